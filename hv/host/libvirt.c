// SPDX-License-Identifier: BSD-3-Clause
/*
 * Domains with <perf>, from libvirt's status files (/run/libvirt/qemu/NAME.xml): a <domstatus pid>
 * with the live <domain>, which has <name>, <uuid> and <perf><event name enabled/></perf>.
 *
 * libvirt opens these events on the threads of the QEMU process (src/util/virperf.c), so they go
 * with its vCPUs.
 */
#include "host_internal.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_FOLDER "/run/libvirt/qemu"
#define STATUS_FILE_MOST (8u << 20)

/* The events that take a counter; the others are software's, or of the cache monitoring. */
static const char *const counting[] = {
    "cache_misses",           "cache_references", "instructions", "cpu_cycles",
    "branch_instructions",    "branch_misses",    "bus_cycles",   "stalled_cycles_frontend",
    "stalled_cycles_backend", "ref_cpu_cycles",
};

struct domain {
    struct vpmu_host_holder *holder;
    unsigned depth;
    bool domain; /* in it; only its own children are looked at */
    bool perf;   /* in <perf> of the domain */
    char *field; /* where the text of this element goes */
    size_t size;
    char uuid[40];
};

static const char *attribute(const char **names, const char **values, const char *name)
{
    for (; *names; names++, values++)
        if (!strcmp(*names, name))
            return *values;
    return "";
}

static bool counts(const char *event)
{
    for (size_t i = 0; i < HOST_ROWS(counting); i++)
        if (!strcmp(event, counting[i]))
            return true;
    return false;
}

/* Depths: 1 <domstatus>, 2 <domain>, 3 its children, 4 <event>. */
static void start_element(GMarkupParseContext *context, const char *name, const char **names,
                          const char **values, void *data, GError **error)
{
    struct domain *domain = data;
    int64_t pid;

    domain->depth++;
    domain->field = NULL;
    if (domain->depth == 1 && !strcmp(name, "domstatus") &&
        !host_parse_number(attribute(names, values, "pid"), 1, INT32_MAX, &pid))
        domain->holder->pid = (uint32_t)pid;
    if (domain->depth == 2)
        domain->domain = !strcmp(name, "domain");
    if (!domain->domain)
        return;
    if (domain->depth == 3) {
        domain->perf = !strcmp(name, "perf");
        if (!strcmp(name, "name")) {
            domain->field = domain->holder->name;
            domain->size = sizeof(domain->holder->name);
        } else if (!strcmp(name, "uuid")) {
            domain->field = domain->uuid;
            domain->size = sizeof(domain->uuid);
        }
    }
    if (domain->depth == 4 && domain->perf && !strcmp(name, "event") &&
        !strcmp(attribute(names, values, "enabled"), "yes"))
        domain->holder->events += counts(attribute(names, values, "name"));
}

static void end_element(GMarkupParseContext *context, const char *name, void *data, GError **error)
{
    struct domain *domain = data;

    domain->depth--;
    domain->field = NULL;
}

static void take_text(GMarkupParseContext *context, const char *text, gsize size, void *data,
                      GError **error)
{
    struct domain *domain = data;
    char field[VPMU_HOST_NAME];

    if (!domain->field)
        return;
    snprintf(field, sizeof(field), "%.*s", (int)MIN(size, sizeof(field) - 1), text);
    host_copy_printable(domain->field, domain->size, field);
}

bool host_parse_domain(const char *text, size_t size, struct vpmu_host_holder *holder)
{
    static const GMarkupParser parser = {
        .start_element = start_element, .end_element = end_element, .text = take_text};
    struct domain domain = {.holder = holder};
    GMarkupParseContext *context = g_markup_parse_context_new(&parser, 0, &domain, NULL);
    const bool good = g_markup_parse_context_parse(context, text, (gssize)size, NULL) &&
                      g_markup_parse_context_end_parse(context, NULL);

    g_markup_parse_context_free(context);
    return good && holder->name[0] && host_parse_uuid(domain.uuid, holder->uuid);
}

static int add_domain(struct vpmu_host *host, const char *path)
{
    struct vpmu_host_holder found = {
        .kind = VPMU_HOST_DOMAIN_PERF,
        .basis = VPMU_HOST_CERTAIN,
        .binding = VPMU_BOUND_VCPU,
        .pinned = VPMU_FACT_NO,
        .includes_guests = VPMU_FACT_YES,
    };
    size_t size;
    char *text = vpmu_host_load_file(path, STATUS_FILE_MOST, &size);
    const bool is_domain = text && host_parse_domain(text, size, &found);

    free(text);
    if (!is_domain || !found.events)
        return 0;
    found.amount.gp = (uint16_t)MIN(found.events, 32);
    return host_copy_holder(host, &found);
}

int host_add_domains(const char *root, struct vpmu_host *host, struct vpmu_host_error *error)
{
    char path[PATH_MAX];
    int status = 0;

    snprintf(path, sizeof(path), "%s" STATUS_FOLDER, root);
    DIR *files = opendir(path);

    if (!files) {
        host->facts.domains = errno == ENOENT ? VPMU_FACT_NO : VPMU_FACT_UNKNOWN;
        return 0;
    }
    host->facts.domains = VPMU_FACT_YES;
    for (const struct dirent *entry; !status && (entry = readdir(files));)
        if (g_str_has_suffix(entry->d_name, ".xml") &&
            (size_t)snprintf(path, sizeof(path), "%s" STATUS_FOLDER "/%s", root, entry->d_name) <
                sizeof(path))
            status = add_domain(host, path);
    closedir(files);
    return status ? host_fail(error, "no memory for libvirt's domains") : 0;
}
