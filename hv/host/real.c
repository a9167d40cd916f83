// SPDX-License-Identifier: BSD-3-Clause
/*
 * This machine: its processors and facts.
 *
 * Facts come from files (below root) and from CPUID. A file that is not there or may not be read
 * leaves its fact unknown. Only the list of processors has to be there.
 */
#include "host_internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PMUS "/sys/bus/event_source/devices"

struct real {
    const struct host_machine *machine;
    char root[];
};

static int read_list(const char *root, const char *path, struct host_set *set)
{
    char text[65536];

    if (host_read_file(root, text, sizeof(text), "%s", path) < 0)
        return -1;
    return host_parse_list(text, VPMU_ADMISSION_PROCESSORS_MAX, set);
}

/* ---- Kinds of processors ---- */

/* A PMU of the kernel's for processors: "cpu", or on hybrid machines "cpu_core", "cpu_atom", ... */
static bool is_core_pmu(const struct dirent *entry)
{
    return !strcmp(entry->d_name, "cpu") || !strncmp(entry->d_name, "cpu_", 4);
}

static int select_core_pmu(const struct dirent *entry)
{
    return is_core_pmu(entry) &&
           strlen(entry->d_name) < sizeof(((struct vpmu_host_core_type *)0)->pmu);
}

static void add_core_type(const char *root, struct vpmu_host *host, const char *pmu)
{
    struct vpmu_host_core_type *type = &host->core_types[host->core_type_count++];
    char text[32];
    int64_t number;

    host_copy_printable(type->pmu, sizeof(type->pmu), pmu);
    host_read_file(root, text, sizeof(text), PMUS "/%s/type", pmu);
    type->perf_type =
        host_parse_number(text, 0, UINT32_MAX, &number) ? VPMU_HOST_UNKNOWN : (uint32_t)number;
}

/* The kernel's PMUs, by name; then the type of the processors that none of them has. */
static void find_core_types(const char *root, struct vpmu_host *host)
{
    char path[PATH_MAX];
    struct dirent **entries = NULL;

    snprintf(path, sizeof(path), "%s" PMUS, root);
    const int count = scandir(path, &entries, select_core_pmu, alphasort);

    for (int i = 0; i < count; i++) {
        if (host->core_type_count < VPMU_HOST_CORE_TYPES - 1)
            add_core_type(root, host, entries[i]->d_name);
        free(entries[i]);
    }
    free((void *)entries);
    host->core_type_count++; /* without a name */
}

/* "cpu" has no list of processors: it is for all. */
static void assign_core_types(const char *root, struct vpmu_host *host)
{
    const uint32_t none = host->core_type_count - 1;

    for (uint32_t p = 0; p < host->processor_count; p++)
        host->details[p].core_type = (uint8_t)none;
    for (uint32_t t = none; t--;) {
        struct host_set set;
        char path[PATH_MAX];

        snprintf(path, sizeof(path), PMUS "/%s/cpus", host->core_types[t].pmu);
        if (!strcmp(host->core_types[t].pmu, "cpu"))
            memset(&set, 0xFF, sizeof(set));
        else if (read_list(root, path, &set))
            continue;
        for (uint32_t p = 0; p < host->processor_count; p++)
            if (host_set_has(set.words, HOST_SET_WORDS, p))
                host->details[p].core_type = (uint8_t)t;
    }
}

static uint32_t first_online(const struct vpmu_host *host, uint32_t type)
{
    for (uint32_t p = 0; p < host->processor_count; p++)
        if (host->processors[p].online && host->details[p].core_type == type)
            return p;
    return VPMU_HOST_UNKNOWN;
}

/*
 * CPUID answers for the processor that executes it. Where there is one kind any will do; else this
 * thread goes to one of each. Without a driver no counter can be had: the version stays, to be told
 * of, and the capacity is none.
 */
static void read_capacities(const struct host_machine *machine, struct vpmu_host *host)
{
    const bool several = host->core_type_count > 2;

    for (uint32_t t = 0; t < host->core_type_count; t++) {
        struct vpmu_host_core_type *type = &host->core_types[t];
        const uint32_t processor = first_online(host, t);

        if (processor == VPMU_HOST_UNKNOWN)
            continue;
        if (several && machine->go(machine->context, processor))
            continue;
        host->vendor = host_capacity(machine->cpuid, machine->context, type);
        if (!type->pmu[0])
            type->capacity = (struct vpmu_amount){0};
    }
    if (several)
        machine->back(machine->context);
}

static void read_siblings(const char *root, struct vpmu_host *host)
{
    for (uint32_t p = 0; p < host->processor_count; p++) {
        char text[4096];
        struct host_set set;

        if (host_read_file(root, text, sizeof(text),
                           "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", p) < 0 ||
            host_parse_list(text, host->processor_count, &set))
            continue;
        for (uint32_t s = 0; s < p; s++)
            if (host_set_has(set.words, HOST_SET_WORDS, s)) {
                host->details[p].sibling = s;
                break;
            }
    }
}

static void mark_online(struct vpmu_host *host, const struct host_set *online)
{
    for (uint32_t p = 0; p < host->processor_count; p++)
        host->processors[p].online = host_set_has(online->words, HOST_SET_WORDS, p);
}

static const char online_path[] = "/sys/devices/system/cpu/online";

static void real_online(void *context, struct vpmu_host *host)
{
    struct host_set online;

    if (!read_list(((const struct real *)context)->root, online_path, &online))
        mark_online(host, &online);
}

static int real_processors(void *context, struct vpmu_host *host, struct vpmu_host_error *error)
{
    const struct real *real = context;
    const struct host_machine *machine = real->machine;
    struct host_set present, online;

    if (read_list(real->root, "/sys/devices/system/cpu/present", &present) ||
        read_list(real->root, online_path, &online))
        return host_fail(error,
                         "%s/sys/devices/system/cpu has no list of processors that can be "
                         "read (present, online)",
                         real->root);
    if (host_make_processors(host, host_set_count(&present), error))
        return -1;
    mark_online(host, &online);
    find_core_types(real->root, host);
    assign_core_types(real->root, host);
    read_capacities(machine, host);
    for (uint32_t p = 0; p < host->processor_count; p++)
        host->processors[p].capacity = host->core_types[host->details[p].core_type].capacity;
    read_siblings(real->root, host);
    host_model(machine->cpuid, machine->context, host->model, sizeof(host->model));
    return 0;
}

/* ---- Facts ---- */

/* A fact that a file of one letter or digit says. The first file of a fact that is there counts. */
static const struct {
    size_t field;
    const char *path;
} fact_files[] = {
    {offsetof(struct vpmu_host_facts, watchdog), "/proc/sys/kernel/nmi_watchdog"},
    {offsetof(struct vpmu_host_facts, enable_pmu), "/sys/module/kvm/parameters/enable_pmu"},
    {offsetof(struct vpmu_host_facts, ignore_msrs), "/sys/module/kvm/parameters/ignore_msrs"},
    {offsetof(struct vpmu_host_facts, mediated),
     "/sys/module/kvm_amd/parameters/enable_mediated_pmu"},
    {offsetof(struct vpmu_host_facts, mediated),
     "/sys/module/kvm_intel/parameters/enable_mediated_pmu"},
    {offsetof(struct vpmu_host_facts, mediated), "/sys/module/kvm/parameters/enable_mediated_pmu"},
};

static enum vpmu_fact yes_if(bool yes)
{
    return yes ? VPMU_FACT_YES : VPMU_FACT_NO;
}

static void read_fact_files(const char *root, struct vpmu_host_facts *facts)
{
    for (size_t i = 0; i < HOST_ROWS(fact_files); i++) {
        enum vpmu_fact fact;
        char text[16];

        memcpy(&fact, (const char *)facts + fact_files[i].field, sizeof(fact));
        if (fact != VPMU_FACT_UNKNOWN ||
            host_read_file(root, text, sizeof(text), "%s", fact_files[i].path) < 0)
            continue;
        fact = host_parse_fact(text);
        memcpy((char *)facts + fact_files[i].field, &fact, sizeof(fact));
    }
}

/* Whether a file or folder is there; unknown if that may not be seen. */
static enum vpmu_fact is_there(const char *root, const char *path)
{
    char full[PATH_MAX];
    DIR *folder;

    snprintf(full, sizeof(full), "%s%s", root, path);
    folder = opendir(full);
    if (folder) {
        closedir(folder);
        return VPMU_FACT_YES;
    }
    return errno == ENOENT || errno == ENOTDIR ? VPMU_FACT_NO : VPMU_FACT_UNKNOWN;
}

static enum vpmu_fact kvm_is_loaded(const char *root)
{
    const enum vpmu_fact intel = is_there(root, "/sys/module/kvm_intel");
    const enum vpmu_fact amd = is_there(root, "/sys/module/kvm_amd");

    return intel == VPMU_FACT_YES ? intel : amd;
}

static void read_paranoid(const char *root, struct vpmu_host_facts *facts)
{
    char text[16];
    int64_t number;

    host_read_file(root, text, sizeof(text), "/proc/sys/kernel/perf_event_paranoid");
    if (host_parse_number(text, INT32_MIN, INT32_MAX, &number))
        return;
    facts->paranoid_known = true;
    facts->paranoid = (int32_t)number;
}

/*
 * Since Linux 6.5 the watchdog can be one that takes no counter ("buddy"): which, the kernel only
 * says in its configuration.
 */
static enum vpmu_fact watchdog_is_perf(const char *root, const char *kernel)
{
    char path[PATH_MAX];
    size_t size;

    snprintf(path, sizeof(path), "%s/boot/config-%s", root, kernel);
    char *config = vpmu_host_load_file(path, 4u << 20, &size);

    if (!config)
        return VPMU_FACT_UNKNOWN;
    const enum vpmu_fact fact =
        strstr(config, "\nCONFIG_HARDLOCKUP_DETECTOR_BUDDY=y\n")  ? VPMU_FACT_NO
        : strstr(config, "\nCONFIG_HARDLOCKUP_DETECTOR_PERF=y\n") ? VPMU_FACT_YES
                                                                  : VPMU_FACT_UNKNOWN;
    free(config);
    return fact;
}

static bool folder_asks_for_mediated(const char *root, const char *folder)
{
    char path[PATH_MAX];
    bool asked = false;

    snprintf(path, sizeof(path), "%s%s", root, folder);
    DIR *files = opendir(path);

    if (!files)
        return false;
    for (const struct dirent *entry; (entry = readdir(files));) {
        char text[16384];

        if (entry->d_name[0] != '.' &&
            host_read_file(root, text, sizeof(text), "%s/%s", folder, entry->d_name) > 0)
            asked = asked || host_asks_for_mediated(text);
    }
    closedir(files);
    return asked;
}

static bool is_asked_for_mediated(const char *root)
{
    static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
                                          "/usr/lib/modprobe.d"};
    char text[8192];

    host_read_file(root, text, sizeof(text), "/proc/cmdline");
    if (host_asks_for_mediated(text))
        return true;
    for (size_t i = 0; i < HOST_ROWS(folders); i++)
        if (folder_asks_for_mediated(root, folders[i]))
            return true;
    return false;
}

static void read_kernel(const char *root, struct vpmu_host *host)
{
    char text[sizeof(host->kernel)];

    host_read_file(root, text, sizeof(text), "/proc/sys/kernel/osrelease");
    text[strcspn(text, "\n")] = '\0';
    host_copy_printable(host->kernel, sizeof(host->kernel), text);
}

static int real_observe(void *context, struct vpmu_host *host, struct vpmu_host_error *error)
{
    const struct real *real = context;
    const struct host_machine *machine = real->machine;
    struct vpmu_host_facts *facts = &host->facts;
    struct host_set watched;

    read_kernel(real->root, host);
    read_fact_files(real->root, facts);
    facts->virtualised = yes_if(host_is_virtualised(machine->cpuid, machine->context));
    facts->hybrid = yes_if(host_is_hybrid(machine->cpuid, machine->context));
    facts->perf = yes_if(host->core_types[0].pmu[0]);
    facts->kvm = kvm_is_loaded(real->root);
    facts->mediated_known = facts->kvm == VPMU_FACT_YES
                                ? yes_if(facts->mediated != VPMU_FACT_UNKNOWN)
                                : VPMU_FACT_UNKNOWN;
    facts->mediated_asked = yes_if(is_asked_for_mediated(real->root));
    facts->watchdog_perf = watchdog_is_perf(real->root, host->kernel);
    read_paranoid(real->root, facts);

    const bool listed = !read_list(real->root, "/proc/sys/kernel/watchdog_cpumask", &watched);

    if (host_add_watchdog(host, listed ? &watched : NULL))
        return host_fail(error, "no memory for the watchdog");
    if (host_add_processes(real->root, host, error) || host_add_domains(real->root, host, error))
        return -1;
    return 0;
}

/* ---- Measuring ---- */

static int real_place(void *context, const struct vpmu_host *host, uint32_t processor,
                      const char **why)
{
    const struct host_machine *machine = ((const struct real *)context)->machine;
    const struct vpmu_host_core_type *type = &host->core_types[host->details[processor].core_type];
    int count = machine->go(machine->context, processor);

    if (!count)
        count = machine->place(machine->context, processor, type,
                               host->processors[processor].capacity.gp);
    if (count >= 0)
        return count;
    *why = strerror(-count);
    return -1;
}

static void real_placed(void *context)
{
    const struct host_machine *machine = ((const struct real *)context)->machine;

    machine->back(machine->context);
}

static const struct host_source_ops real_ops = {
    .processors = real_processors,
    .online = real_online,
    .observe = real_observe,
    .place = real_place,
    .placed = real_placed,
    .free = free,
};

struct vpmu_host_source *host_real_on(const char *root, const struct host_machine *machine)
{
    struct real *real = malloc(sizeof(*real) + strlen(root) + 1);

    if (!real)
        return NULL;
    real->machine = machine;
    memcpy(real->root, root, strlen(root) + 1);
    return host_source(&real_ops, real);
}

struct vpmu_host_source *vpmu_host_real(const char *root)
{
    return host_real_on(root, host_this_machine());
}
