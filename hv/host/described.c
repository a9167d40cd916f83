// SPDX-License-Identifier: BSD-3-Clause
/*
 * A machine that a JSON file describes; docs/host.md has the format.
 *
 * Everything is checked when it is read: an unknown key, a wrong type and a number out of range are
 * errors that name the place. A snapshot is then made from the values without further checks but
 * for memory.
 */
#include "host_internal.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST (16u << 20)
#define DEPTH_MOST 8

struct described {
    struct vpmu_host host; /* details[].left: as described, not as measured */
};

/* Where a value stands, for errors: what it is of, and which of them. */
struct place {
    const char *in;
    size_t index;
};

static int bad(struct vpmu_host_error *error, struct place place, const char *key, const char *what)
{
    return host_fail(error, "%s %zu: \"%s\" is not %s", place.in, place.index, key, what);
}

/* ---- Values ---- */

static int get_number(struct json_object *object, const char *key, struct place place,
                      int64_t least, int64_t most, int64_t *number, struct vpmu_host_error *error)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, key, &value))
        return 0;
    const int64_t given = json_object_get_int64(value);

    if (!json_object_is_type(value, json_type_int) || given < least || given > most) {
        char what[64];

        snprintf(what, sizeof(what), "a whole number from %lld to %lld", (long long)least,
                 (long long)most);
        return bad(error, place, key, what);
    }
    *number = given;
    return 0;
}

static int get_text(struct json_object *object, const char *key, struct place place, char *text,
                    size_t size, struct vpmu_host_error *error)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, key, &value))
        return 0;
    if (!json_object_is_type(value, json_type_string))
        return bad(error, place, key, "a text");
    host_copy_printable(text, size, json_object_get_string(value));
    return 0;
}

/* true, false, or null for what is not known. */
static int get_fact(struct json_object *object, const char *key, struct place place,
                    enum vpmu_fact *fact, struct vpmu_host_error *error)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, key, &value))
        return 0;
    if (!value)
        *fact = VPMU_FACT_UNKNOWN;
    else if (json_object_is_type(value, json_type_boolean))
        *fact = json_object_get_boolean(value) ? VPMU_FACT_YES : VPMU_FACT_NO;
    else
        return bad(error, place, key, "true, false or null");
    return 0;
}

/* One of some names; its position. */
static int get_name(struct json_object *object, const char *key, struct place place,
                    const char *const *names, size_t count, size_t *position,
                    struct vpmu_host_error *error)
{
    struct json_object *value;

    if (!json_object_object_get_ex(object, key, &value))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (json_object_is_type(value, json_type_string) &&
            !strcmp(json_object_get_string(value), names[i])) {
            *position = i;
            return 0;
        }
    char what[120] = "one of";

    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(what);
        snprintf(what + length, sizeof(what) - length, " %s", names[i]);
    }
    return bad(error, place, key, what);
}

static int get_list(struct json_object *object, const char *key, struct place place, uint32_t limit,
                    struct host_set *set, bool *given, struct vpmu_host_error *error)
{
    struct json_object *value;

    *given = json_object_object_get_ex(object, key, &value);
    if (!*given)
        return 0;
    if (!json_object_is_type(value, json_type_string) ||
        host_parse_list(json_object_get_string(value), limit, set)) {
        char what[64];

        snprintf(what, sizeof(what), "a list of processors below %u, as \"0-3,8\"", limit);
        return bad(error, place, key, what);
    }
    return 0;
}

static int know_keys(struct json_object *object, struct place place, const char *const *keys,
                     struct vpmu_host_error *error)
{
    if (!json_object_is_type(object, json_type_object))
        return host_fail(error, "%s %zu is not an object", place.in, place.index);
    json_object_object_foreach(object, key, value)
    {
        const char *const *known = keys;

        (void)value;
        while (*known && strcmp(*known, key) != 0)
            known++;
        if (!*known) {
            char printable[64];

            host_copy_printable(printable, sizeof(printable), key);
            return host_fail(error, "%s %zu: there is no key \"%s\"", place.in, place.index,
                             printable);
        }
    }
    return 0;
}

/* An array's length, or 0 if it is not given; -1 if it is something else or too long. */
static long array_length(struct json_object *object, const char *key, size_t most,
                         struct json_object **array, struct vpmu_host_error *error)
{
    if (!json_object_object_get_ex(object, key, array))
        return 0;
    if (!json_object_is_type(*array, json_type_array))
        return host_fail(error, "\"%s\" is not an array", key);
    if (json_object_array_length(*array) > most)
        return host_fail(error, "\"%s\" has more than %zu entries", key, most);
    return (long)json_object_array_length(*array);
}

/* ---- The machine ---- */

static int read_core_type(struct json_object *entry, size_t index, struct described *described,
                          struct vpmu_host_error *error)
{
    static const char *const keys[] = {"name", "version", "gp", "fixed", NULL};
    const struct place place = {"core_types", index};
    struct vpmu_host_core_type *type = &described->host.core_types[index];
    int64_t version = 0, gp = 0, fixed = 0;

    if (know_keys(entry, place, keys, error) ||
        get_text(entry, "name", place, type->pmu, sizeof(type->pmu), error) ||
        get_number(entry, "version", place, 0, 255, &version, error) ||
        get_number(entry, "gp", place, 0, 32, &gp, error) ||
        get_number(entry, "fixed", place, 0, 16, &fixed, error))
        return -1;
    type->perf_type = VPMU_HOST_UNKNOWN;
    type->version = (uint8_t)version;
    type->capacity.gp = (uint16_t)gp;
    type->capacity.fixed = (uint16_t)((UINT32_C(1) << fixed) - 1);
    return 0;
}

static int find_core_type(const struct vpmu_host *host, const char *name, struct place place,
                          uint8_t *position, struct vpmu_host_error *error)
{
    for (uint32_t t = 0; t < host->core_type_count; t++)
        if (!strcmp(host->core_types[t].pmu, name)) {
            *position = (uint8_t)t;
            return 0;
        }
    return bad(error, place, "core_type", "the name of one of core_types");
}

/* Reads the ranges' processors only, to know how many there are. */
static int count_processors(struct json_object *ranges, uint32_t *count,
                            struct vpmu_host_error *error)
{
    for (size_t i = 0; i < json_object_array_length(ranges); i++) {
        const struct place place = {"processors", i};
        struct json_object *entry = json_object_array_get_idx(ranges, i);
        struct host_set set;
        bool given = false;

        if (!json_object_is_type(entry, json_type_object))
            return host_fail(error, "processors %zu is not an object", i);
        if (get_list(entry, "range", place, VPMU_ADMISSION_PROCESSORS_MAX, &set, &given, error))
            return -1;
        if (!given)
            return host_fail(error, "processors %zu has no \"range\"", i);
        const uint32_t here = host_set_count(&set);

        if (here > *count)
            *count = here;
    }
    return 0;
}

static int read_range(struct json_object *entry, size_t index, struct described *described,
                      struct host_set *seen, struct vpmu_host_error *error)
{
    static const char *const keys[] = {"range", "core_type", "threads", "online", "left", NULL};
    const struct place place = {"processors", index};
    struct vpmu_host *host = &described->host;
    char name[sizeof(host->core_types[0].pmu)];
    enum vpmu_fact online = VPMU_FACT_YES;
    int64_t threads = 1, left = VPMU_HOST_UNKNOWN;
    struct host_set set;
    uint32_t first = 0;
    int64_t thread = 0;
    uint8_t type = 0;
    bool given;

    snprintf(name, sizeof(name), "%s", host->core_types[0].pmu);
    if (know_keys(entry, place, keys, error) ||
        get_list(entry, "range", place, host->processor_count, &set, &given, error) ||
        get_text(entry, "core_type", place, name, sizeof(name), error) ||
        find_core_type(host, name, place, &type, error) ||
        get_number(entry, "threads", place, 1, 64, &threads, error) ||
        get_number(entry, "left", place, 0, 32, &left, error) ||
        get_fact(entry, "online", place, &online, error))
        return -1;
    for (uint32_t p = 0; p < host->processor_count; p++) {
        if (!host_set_has(set.words, HOST_SET_WORDS, p))
            continue;
        if (host_set_has(seen->words, HOST_SET_WORDS, p))
            return host_fail(error, "processors %zu: processor %u was described before", index, p);
        host_set_add(seen, p);
        if (thread++ % threads == 0)
            first = p;
        host->processors[p].online = online == VPMU_FACT_YES;
        host->processors[p].capacity = host->core_types[type].capacity;
        host->details[p] =
            (struct vpmu_host_detail){.core_type = type, .sibling = first, .left = (uint32_t)left};
    }
    return 0;
}

static int read_machine(struct json_object *top, struct described *described,
                        struct vpmu_host_error *error)
{
    static const char *const vendors[] = {"unknown", "Intel", "AMD"};
    const struct place place = {"machine", 0};
    struct vpmu_host *host = &described->host;
    struct json_object *types, *ranges;
    struct host_set seen = {{0}};
    size_t vendor = 0;
    uint32_t count = 0;

    if (get_name(top, "vendor", place, vendors, HOST_ROWS(vendors), &vendor, error) ||
        get_text(top, "kernel", place, host->kernel, sizeof(host->kernel), error) ||
        get_text(top, "model", place, host->model, sizeof(host->model), error))
        return -1;
    host->vendor = (enum vpmu_host_vendor)vendor;
    const long type_count = array_length(top, "core_types", VPMU_HOST_CORE_TYPES, &types, error);
    const long range_count =
        type_count < 0
            ? -1
            : array_length(top, "processors", VPMU_ADMISSION_PROCESSORS_MAX, &ranges, error);

    if (type_count < 0 || range_count < 0)
        return -1;
    if (!type_count || !range_count)
        return host_fail(error, "\"%s\" is missing or empty",
                         type_count ? "processors" : "core_types");
    for (long t = 0; t < type_count; t++, host->core_type_count++)
        if (read_core_type(json_object_array_get_idx(types, (size_t)t), (size_t)t, described,
                           error))
            return -1;
    if (count_processors(ranges, &count, error) || host_make_processors(host, count, error))
        return -1;
    for (long r = 0; r < range_count; r++)
        if (read_range(json_object_array_get_idx(ranges, (size_t)r), (size_t)r, described, &seen,
                       error))
            return -1;
    return 0;
}

/* ---- Facts ---- */

#define FACT(name) {#name, offsetof(struct vpmu_host_facts, name)}

static const struct {
    const char *key;
    size_t field;
} facts[] = {
    FACT(virtualised), FACT(hybrid),     FACT(perf),     FACT(watchdog),       FACT(watchdog_perf),
    FACT(kvm),         FACT(enable_pmu), FACT(mediated), FACT(mediated_known), FACT(mediated_asked),
    FACT(ignore_msrs), FACT(domains),
};

static int know_facts(struct json_object *object, struct vpmu_host_error *error)
{
    const char *keys[HOST_ROWS(facts) + 5] = {"paranoid", "processes", "unseen",
                                              "watchdog_processors"};

    for (size_t i = 0; i < HOST_ROWS(facts); i++)
        keys[4 + i] = facts[i].key;
    return know_keys(object, (struct place){"facts", 0}, keys, error);
}

static int read_facts(struct json_object *top, struct described *described,
                      struct vpmu_host_error *error)
{
    const struct place place = {"facts", 0};
    struct vpmu_host_facts *known = &described->host.facts;
    int64_t paranoid = INT64_MIN, processes = 0, unseen = 0;
    struct json_object *object;
    struct host_set watchdog;
    bool watched;

    if (!json_object_object_get_ex(top, "facts", &object))
        return 0;
    if (know_facts(object, error))
        return -1;
    for (size_t i = 0; i < HOST_ROWS(facts); i++) {
        enum vpmu_fact fact = VPMU_FACT_UNKNOWN;

        if (get_fact(object, facts[i].key, place, &fact, error))
            return -1;
        memcpy((char *)known + facts[i].field, &fact, sizeof(fact));
    }
    if (get_number(object, "paranoid", place, INT32_MIN, INT32_MAX, &paranoid, error) ||
        get_number(object, "processes", place, 0, INT32_MAX, &processes, error) ||
        get_number(object, "unseen", place, 0, INT32_MAX, &unseen, error) ||
        get_list(object, "watchdog_processors", place, described->host.processor_count, &watchdog,
                 &watched, error))
        return -1;
    known->paranoid_known = paranoid != INT64_MIN;
    known->paranoid = known->paranoid_known ? (int32_t)paranoid : 0;
    known->processes = (uint32_t)processes;
    known->unseen = (uint32_t)unseen;
    return host_add_watchdog(&described->host, watched ? &watchdog : NULL)
               ? host_fail(error, "no memory for the watchdog")
               : 0;
}

/* ---- Holders and VMs ---- */

static int read_ancestors(struct json_object *entry, struct place place,
                          struct vpmu_host_holder *holder, struct vpmu_host_error *error)
{
    struct json_object *array;
    const long count = array_length(entry, "ancestors", VPMU_HOST_ANCESTORS, &array, error);

    for (long i = 0; i < count; i++) {
        struct json_object *value = json_object_array_get_idx(array, (size_t)i);
        const int64_t pid = json_object_get_int64(value);

        if (!json_object_is_type(value, json_type_int) || pid < 1 || pid > INT32_MAX)
            return bad(error, place, "ancestors", "an array of process ids");
        holder->ancestors[i] = (uint32_t)pid;
    }
    return count < 0 ? -1 : 0;
}

static int read_uuid(struct json_object *entry, struct place place, uint8_t uuid[16],
                     struct vpmu_host_error *error)
{
    char text[64] = "";

    if (get_text(entry, "uuid", place, text, sizeof(text), error))
        return -1;
    return !text[0] || host_parse_uuid(text, uuid) ? 0 : bad(error, place, "uuid", "a UUID");
}

/* Of a domain, gp is what it counts; of a process without gp, what is known is only that it has
 * events. */
static int read_amount(struct json_object *entry, struct place place,
                       struct vpmu_host_holder *holder, struct vpmu_host_error *error)
{
    const bool known = json_object_object_get_ex(entry, "gp", NULL) ||
                       json_object_object_get_ex(entry, "fixed", NULL);
    int64_t gp = 0, fixed = 0;

    if (get_number(entry, "gp", place, 0, 1024, &gp, error) ||
        get_number(entry, "fixed", place, 0, UINT16_MAX, &fixed, error))
        return -1;
    holder->amount = (struct vpmu_amount){.gp = (uint16_t)gp, .fixed = (uint16_t)fixed};
    holder->basis = known ? VPMU_HOST_CERTAIN : VPMU_HOST_NOT_KNOWN;
    return 0;
}

static int read_holder(struct json_object *entry, size_t index, struct vpmu_host *host,
                       struct vpmu_host_error *error)
{
    static const char *const keys[] = {
        "kind", "pid",   "name",       "ancestors",       "uuid", "events", "binding", "pinned",
        "gp",   "fixed", "processors", "includes_guests", NULL};
    static const char *const kinds[] = {"process", "domain_perf"};
    static const char *const bindings[] = {"cpu", "vcpu"};
    const struct place place = {"holders", index};
    struct vpmu_host_holder *holder = host_add_holder(host);
    struct host_set set;
    int64_t pid = 0, events = 0;
    size_t kind = 0, binding = 0;
    bool given;

    if (!holder)
        return host_fail(error, "no memory for a holder");
    if (know_keys(entry, place, keys, error) ||
        get_name(entry, "kind", place, kinds, HOST_ROWS(kinds), &kind, error) ||
        get_name(entry, "binding", place, bindings, HOST_ROWS(bindings), &binding, error) ||
        get_number(entry, "pid", place, 0, INT32_MAX, &pid, error) ||
        get_number(entry, "events", place, 0, INT32_MAX, &events, error) ||
        get_text(entry, "name", place, holder->name, sizeof(holder->name), error) ||
        get_fact(entry, "pinned", place, &holder->pinned, error) ||
        get_fact(entry, "includes_guests", place, &holder->includes_guests, error) ||
        read_ancestors(entry, place, holder, error) ||
        read_uuid(entry, place, holder->uuid, error) || read_amount(entry, place, holder, error) ||
        get_list(entry, "processors", place, host->processor_count, &set, &given, error))
        return -1;
    holder->kind = kind ? VPMU_HOST_DOMAIN_PERF : VPMU_HOST_PROCESS;
    holder->binding = kind || binding ? VPMU_BOUND_VCPU : VPMU_BOUND_CPU;
    holder->pid = (uint32_t)pid;
    holder->events = (uint32_t)events;
    if (given && host_holder_processors(holder, set.words, host_words(host)))
        return host_fail(error, "no memory for a holder's processors");
    return 0;
}

static int read_vm(struct json_object *entry, size_t index, struct vpmu_host *host,
                   struct vpmu_host_error *error)
{
    static const char *const keys[] = {"pid", "name", "pmu", "apic", NULL};
    const struct place place = {"vms", index};
    struct vpmu_host_vm *vm = host_add_vm(host);
    int64_t pid = 0;

    if (!vm)
        return host_fail(error, "no memory for a VM");
    if (know_keys(entry, place, keys, error) ||
        get_number(entry, "pid", place, 0, INT32_MAX, &pid, error) ||
        get_text(entry, "name", place, vm->name, sizeof(vm->name), error) ||
        get_fact(entry, "pmu", place, &vm->pmu, error) ||
        get_fact(entry, "apic", place, &vm->apic, error))
        return -1;
    vm->pid = (uint32_t)pid;
    return 0;
}

typedef int read_entry_fn(struct json_object *entry, size_t index, struct vpmu_host *host,
                          struct vpmu_host_error *error);

static int read_array(struct json_object *top, const char *key, read_entry_fn *read_entry,
                      struct vpmu_host *host, struct vpmu_host_error *error)
{
    struct json_object *array;
    const long count = array_length(top, key, 1u << 20, &array, error);

    for (long i = 0; i < count; i++)
        if (read_entry(json_object_array_get_idx(array, (size_t)i), (size_t)i, host, error))
            return -1;
    return count < 0 ? -1 : 0;
}

/* ---- The source ---- */

static int read_all(struct json_object *top, struct described *described,
                    struct vpmu_host_error *error)
{
    static const char *const keys[] = {"vendor", "kernel",  "model", "core_types", "processors",
                                       "facts",  "holders", "vms",   NULL};

    if (know_keys(top, (struct place){"machine", 0}, keys, error) ||
        read_machine(top, described, error) || read_facts(top, described, error) ||
        read_array(top, "holders", read_holder, &described->host, error) ||
        read_array(top, "vms", read_vm, &described->host, error))
        return -1;
    return 0;
}

static int described_processors(void *context, struct vpmu_host *host,
                                struct vpmu_host_error *error)
{
    const struct vpmu_host *from = &((const struct described *)context)->host;

    host->described = true;
    host->vendor = from->vendor;
    memcpy(host->model, from->model, sizeof(host->model));
    memcpy(host->core_types, from->core_types, sizeof(host->core_types));
    host->core_type_count = from->core_type_count;
    if (host_make_processors(host, from->processor_count, error))
        return -1;
    memcpy(host->processors, from->processors, from->processor_count * sizeof(*host->processors));
    for (uint32_t p = 0; p < from->processor_count; p++) {
        host->details[p] = from->details[p];
        host->details[p].left = VPMU_HOST_UNKNOWN;
    }
    return 0;
}

/* Another description may have fewer processors: those that it lacks are offline. */
static void described_online(void *context, struct vpmu_host *host)
{
    const struct vpmu_host *from = &((const struct described *)context)->host;

    for (uint32_t p = 0; p < host->processor_count; p++)
        host->processors[p].online = p < from->processor_count && from->processors[p].online;
}

static int described_observe(void *context, struct vpmu_host *host, struct vpmu_host_error *error)
{
    const struct vpmu_host *from = &((const struct described *)context)->host;

    host->facts = from->facts;
    memcpy(host->kernel, from->kernel, sizeof(host->kernel));
    for (uint32_t i = 0; i < from->holder_count; i++)
        if (host_copy_holder(host, &from->holders[i]))
            return host_fail(error, "no memory for the holders");
    for (uint32_t i = 0; i < from->vm_count; i++) {
        struct vpmu_host_vm *vm = host_add_vm(host);

        if (!vm)
            return host_fail(error, "no memory for the VMs");
        *vm = from->vms[i];
    }
    return 0;
}

/* As described, else what pinned CPU-wide holders leave, as the kernel would have it. */
static int described_place(void *context, const struct vpmu_host *host, uint32_t processor,
                           const char **why)
{
    const struct vpmu_host *from = &((const struct described *)context)->host;
    const uint32_t capacity = from->processors[processor].capacity.gp;
    uint32_t taken = 0;

    if (from->details[processor].left != VPMU_HOST_UNKNOWN)
        return (int)from->details[processor].left;
    for (uint32_t i = 0; i < from->holder_count; i++)
        if (from->holders[i].binding == VPMU_BOUND_CPU &&
            from->holders[i].pinned == VPMU_FACT_YES &&
            host_holder_on(from, &from->holders[i], processor))
            taken += from->holders[i].amount.gp;
    return (int)(taken < capacity ? capacity - taken : 0);
}

static void described_placed(void *context)
{
    (void)context;
}

static void described_free(void *context)
{
    struct described *described = context;

    vpmu_host_free(&described->host);
    free(described);
}

static const struct host_source_ops described_ops = {
    .processors = described_processors,
    .online = described_online,
    .observe = described_observe,
    .place = described_place,
    .placed = described_placed,
    .free = described_free,
};

/* NULL and error if it is not one JSON value. */
static struct json_object *parse_json(const char *text, size_t size, struct vpmu_host_error *error)
{
    struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MOST);

    if (!tokener || size > FILE_MOST) {
        host_fail(error, tokener ? "it is too large" : "no memory");
        json_tokener_free(tokener);
        return NULL;
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *top = json_tokener_parse_ex(tokener, text, (int)size);
    const enum json_tokener_error status = json_tokener_get_error(tokener);

    if (status != json_tokener_success) {
        host_fail(error, "byte %zu: it is not JSON: %s", json_tokener_get_parse_end(tokener),
                  status == json_tokener_continue ? "it ends too early"
                                                  : json_tokener_error_desc(status));
        json_object_put(top);
        top = NULL;
    } else if (!top) {
        host_fail(error, "machine 0 is not an object");
    }
    json_tokener_free(tokener);
    return top;
}

struct vpmu_host_source *vpmu_host_described_text(const char *text, size_t size,
                                                  struct vpmu_host_error *error)
{
    struct json_object *top = parse_json(text, size, error);
    struct described *described = top ? calloc(1, sizeof(*described)) : NULL;

    if (!top)
        return NULL;
    if (!described)
        host_fail(error, "no memory");
    const int status = described ? read_all(top, described, error) : -1;

    json_object_put(top);
    if (!status) {
        struct vpmu_host_source *source = host_source(&described_ops, described);

        if (!source)
            host_fail(error, "no memory");
        return source;
    }
    if (described)
        described_free(described);
    return NULL;
}

struct vpmu_host_source *vpmu_host_described(const char *path, struct vpmu_host_error *error)
{
    struct vpmu_host_error inner;
    size_t size;
    char *text = vpmu_host_load_file(path, FILE_MOST, &size);

    if (!text) {
        host_fail(error, "%s: %s", path, strerror(errno));
        return NULL;
    }
    struct vpmu_host_source *source = vpmu_host_described_text(text, size, &inner);

    free(text);
    if (!source)
        host_fail(error, "%s: %s", path, inner.text);
    return source;
}
