// SPDX-License-Identifier: BSD-3-Clause
#include "describe.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "policy.h"
#include "vpmu/host.h"

/* Longest list of processors: every second one of 8192 and its comma. */
#define LIST_TEXT (VPMU_ADMISSION_PROCESSORS_MAX / 2 * 5 + 64)

static const char *const binding_names[] = {[VPMU_BOUND_CPU] = "cpu", [VPMU_BOUND_VCPU] = "vcpu"};

static const char *const counter_state_names[VPMU_COUNTER_STATES] = {
    [VPMU_COUNTER_ABSENT] = "absent",     [VPMU_COUNTER_GRANTED] = "granted",
    [VPMU_COUNTER_BACKED] = "backed",     [VPMU_COUNTER_STARVED] = "starved",
    [VPMU_COUNTER_FILTERED] = "filtered", [VPMU_COUNTER_UNSUPPORTED] = "unsupported",
    [VPMU_COUNTER_REVOKED] = "revoked",
};

static const struct flag {
    const char *name;
    uint8_t flag;
} flags[] = {
    {"yields", VPMU_CLAIM_YIELDS},
    {"excludes_guests", VPMU_CLAIM_EXCLUDES_GUESTS},
};

#define FLAGS (sizeof(flags) / sizeof(flags[0]))

/* ---- uuids ----------------------------------------------------------------------------------- */

static bool has_dash(unsigned i)
{
    return i == 4 || i == 6 || i == 8 || i == 10;
}

void uuid_write(const uint8_t uuid[BOOKS_UUID], char text[UUID_TEXT])
{
    for (unsigned i = 0; i < BOOKS_UUID; i++)
        text += sprintf(text, "%s%02x", has_dash(i) ? "-" : "", uuid[i]);
}

bool uuid_parse(const char *text, uint8_t uuid[BOOKS_UUID])
{
    static const char digits[] = "00112233445566778899aAbBcCdDeEfF";

    for (unsigned i = 0; i < BOOKS_UUID * 2; i++) {
        const char *digit;

        if (i % 2 == 0 && has_dash(i / 2) && *text++ != '-')
            return false;
        digit = *text ? strchr(digits, *text++) : NULL;
        if (!digit)
            return false;
        uuid[i / 2] = (uint8_t)(uuid[i / 2] << 4 | (digit - digits) / 2);
    }
    return !*text;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Rights are kinds, and more. */
_Static_assert(RIGHT_VM == (int)VPMU_KIND_VM && RIGHT_PROFILER == (int)VPMU_KIND_PROFILER &&
                   RIGHT_HOOK == (int)VPMU_KIND_HOOK && RIGHT_OBSERVER == (int)VPMU_KIND_OBSERVER,
               "right_names begins with the kinds");

const char *kind_name(uint32_t kind)
{
    return kind < VPMU_KINDS ? right_names[kind] : "?";
}

const char *counter_state_name(uint32_t state)
{
    return state < VPMU_COUNTER_STATES ? counter_state_names[state] : "?";
}

static void add_number(struct json_object *object, const char *key, uint64_t number)
{
    json_object_object_add(object, key, json_object_new_uint64(number));
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

static void add_flag(struct json_object *object, const char *key, bool flag)
{
    json_object_object_add(object, key, json_object_new_boolean(flag));
}

struct json_object *describe_amount(struct vpmu_amount amount)
{
    struct json_object *object = json_object_new_object();

    add_number(object, "gp", amount.gp);
    add_number(object, "fixed", amount.fixed);
    return object;
}

static struct json_object *describe_counter(const struct vpmu_status_counter *counter)
{
    struct json_object *object = json_object_new_object();

    add_number(object, "index", counter->index);
    add_text(object, "state", counter_state_name(counter->state));
    add_number(object, "selector", counter->selector);
    add_number(object, "enabled_ns", counter->enabled_ns);
    add_number(object, "backed_ns", counter->backed_ns);
    return object;
}

struct json_object *describe_report(const struct entry_report *report)
{
    struct json_object *object = json_object_new_object();
    struct json_object *states = json_object_new_object();
    struct json_object *counters = json_object_new_array();

    for (unsigned i = 0; i < VPMU_COUNTER_STATES; i++)
        add_number(states, counter_state_names[i], report->states[i]);
    for (uint32_t i = 0; i < report->count; i++)
        json_object_array_add(counters, describe_counter(&report->counters[i]));
    add_number(object, "reported_ms", (uint64_t)report->reported_ms);
    add_number(object, "vcpus", report->vcpus);
    json_object_object_add(object, "states", states);
    json_object_object_add(object, "counters", counters);
    return object;
}

static void add_owner(struct json_object *object, const struct entry_owner *owner)
{
    char uuid[UUID_TEXT];

    add_text(object, "state", entry_state_names[owner->state]);
    if (owner->state != ENTRY_OBSERVED) {
        add_text(object, "kind", kind_name(owner->kind));
        add_number(object, "uid", owner->uid);
    }
    add_text(object, "name", owner->name);
    if (uuid_is_set(owner->uuid)) {
        uuid_write(owner->uuid, uuid);
        add_text(object, "uuid", uuid);
    }
    if (owner->state == ENTRY_HELD)
        add_number(object, "instance", owner->identity);
    if (owner->pid > 0)
        add_number(object, "pid", (uint64_t)owner->pid);
    json_object_object_add(object, "since_ms", json_object_new_int64(owner->since_ms));
}

static void add_lease(struct json_object *object, const struct vpmu_admission_lease *lease)
{
    char list[LIST_TEXT];

    add_text(object, "binding", binding_names[lease->binding]);
    for (size_t i = 0; i < FLAGS; i++)
        add_flag(object, flags[i].name, lease->flags & flags[i].flag);
    json_object_object_add(object, "granted", describe_amount(lease->granted));
    json_object_object_add(object, "beside", describe_amount(lease->beside));
    vpmu_host_write_list(lease->processors, lease->words, list, sizeof(list));
    add_text(object, "processors", list);
    add_flag(object, "revoked", lease->revoked);
}

struct json_object *describe_entry(const struct books *books, const struct entry *entry)
{
    struct json_object *object = json_object_new_object();
    struct vpmu_admission_lease lease;

    books_lease(books, entry, &lease);
    add_number(object, "id", entry->id);
    add_owner(object, &entry->owner);
    json_object_object_add(object, "need", describe_amount(entry->need));
    json_object_object_add(object, "least", describe_amount(entry->least));
    add_lease(object, &lease);
    add_flag(object, "every", entry->every);
    add_flag(object, "short", entry->is_short);
    return object;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* A number from 0 to most; -1: it is missing, or none. */
static int64_t number_of(struct json_object *object, const char *key, int64_t most)
{
    struct json_object *value = json_object_object_get(object, key);
    int64_t number = json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : -1;

    return number <= most ? number : -1;
}

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value = json_object_object_get(object, key);

    return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static bool flag_of(struct json_object *object, const char *key)
{
    return json_object_get_boolean(json_object_object_get(object, key));
}

/* -1: it is none of them. */
static int index_of(const char *text, const char *const *names, int count)
{
    for (int i = 0; text && i < count; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

static bool amount_of(struct json_object *object, const char *key, struct vpmu_amount *amount)
{
    struct json_object *value = json_object_object_get(object, key);
    int64_t gp = number_of(value, "gp", 32), fixed = number_of(value, "fixed", UINT16_MAX);

    *amount = (struct vpmu_amount){.gp = (uint16_t)gp, .fixed = (uint16_t)fixed};
    return gp >= 0 && fixed >= 0;
}

static bool parse_owner(struct json_object *object, struct entry_owner *owner)
{
    const char *name = text_of(object, "name"), *uuid = text_of(object, "uuid");
    int state = index_of(text_of(object, "state"), entry_state_names, ENTRY_STATES);
    int kind = index_of(text_of(object, "kind"), right_names, VPMU_KINDS);
    int64_t uid = number_of(object, "uid", UINT32_MAX);
    int64_t since = number_of(object, "since_ms", INT64_MAX);

    memset(owner, 0, sizeof(*owner));
    if (!name || state < 0 || kind < 0 || uid < 0 || since < 0)
        return false;
    owner->state = (enum entry_state)state;
    owner->kind = (uint32_t)kind;
    owner->uid = (uid_t)uid;
    owner->since_ms = since;
    if (owner->state == ENTRY_HELD)
        owner->identity = json_object_get_uint64(json_object_object_get(object, "instance"));
    snprintf(owner->name, sizeof(owner->name), "%s", name);
    return !uuid || uuid_parse(uuid, owner->uuid);
}

static bool parse_claim(struct json_object *object, struct vpmu_claim *claim,
                        uint64_t set[BOOKS_SET_WORDS])
{
    int binding = index_of(text_of(object, "binding"), binding_names, 2);
    const char *list = text_of(object, "processors");

    memset(claim, 0, sizeof(*claim));
    if (binding < 0 || !amount_of(object, "granted", &claim->need) ||
        !amount_of(object, "beside", &claim->beside))
        return false;
    claim->binding = (uint8_t)binding;
    claim->least = claim->need;
    for (size_t i = 0; i < FLAGS; i++)
        if (flag_of(object, flags[i].name))
            claim->flags |= flags[i].flag;
    if (flag_of(object, "every"))
        return true;
    if (!list || vpmu_host_parse_list(list, VPMU_ADMISSION_PROCESSORS_MAX, set))
        return false;
    claim->processors = set;
    claim->words = BOOKS_SET_WORDS;
    while (claim->words && !set[claim->words - 1])
        claim->words--;
    return claim->words;
}

bool describe_parse(struct json_object *object, uint64_t *id, struct entry_owner *owner,
                    struct vpmu_claim *claim, uint64_t set[BOOKS_SET_WORDS])
{
    int64_t number = number_of(object, "id", INT64_MAX);

    *id = (uint64_t)number;
    return number > 0 && parse_owner(object, owner) && parse_claim(object, claim, set);
}
