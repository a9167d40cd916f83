// SPDX-License-Identifier: BSD-3-Clause
#include "control.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "describe.h"
#include "observe.h"
#include "reload.h"
#include "requests.h"
#include "text.h"

/* A request: what an operation is given, and where its answer goes. */
struct call {
    struct daemon *daemon;
    const struct credentials *credentials;
    struct json_object *request;
    struct json_object *answer;
};

static void put(struct json_object *object, const char *key, struct json_object *value)
{
    json_object_object_add(object, key, value);
}

static void put_number(struct json_object *object, const char *key, uint64_t number)
{
    put(object, key, json_object_new_uint64(number));
}

static void put_text(struct json_object *object, const char *key, const char *text)
{
    put(object, key, json_object_new_string(text));
}

/* The answer is an error from now on. */
static void fail(struct call *call, const char *status, const char *text)
{
    struct json_object *error = json_object_new_object();

    put(call->answer, "ok", json_object_new_boolean(false));
    put_text(error, "status", status);
    put_text(error, "text", text);
    put(call->answer, "error", error);
}

/* ---- Leases ---------------------------------------------------------------------------------- */

static struct json_object *describe_lease(const struct daemon *daemon, const struct entry *entry)
{
    struct json_object *object = describe_entry(daemon->books, entry);
    char text[VPMU_WIRE_TEXT];

    requests_explain(daemon, entry, text);
    put_text(object, "lease_state", vpmu_lease_state_name(requests_state(daemon, entry)));
    put_text(object, "why", text);
    if (entry->report)
        put(object, "report", describe_report(entry->report));
    return object;
}

static void do_leases(struct call *call)
{
    const struct daemon *daemon = call->daemon;
    struct json_object *leases = json_object_new_array();

    for (struct entry *entry = books_next(daemon->books, NULL); entry;
         entry = books_next(daemon->books, entry))
        json_object_array_add(leases, describe_lease(daemon, entry));
    put(call->answer, "leases", leases);
}

/* By number, by name, or by uuid; the first that it fits. NULL, and the call has failed. */
static struct entry *entry_of(struct call *call, const char *key)
{
    struct json_object *value = json_object_object_get(call->request, key);
    const char *text = value ? json_object_get_string(value) : "";
    uint8_t uuid[BOOKS_UUID];
    bool is_uuid = uuid_parse(text, uuid);
    char why[160];

    for (struct entry *entry = books_next(call->daemon->books, NULL); entry;
         entry = books_next(call->daemon->books, entry)) {
        char id[24];

        snprintf(id, sizeof(id), "%llu", (unsigned long long)entry->id);
        if (!strcmp(text, id) || !strcmp(text, entry->owner.name) ||
            (is_uuid && !memcmp(uuid, entry->owner.uuid, sizeof(uuid))))
            return entry;
    }
    snprintf(why, sizeof(why), "no lease has the number, name or uuid \"%.80s\"", text);
    fail(call, "not found", why);
    return NULL;
}

static bool overlaps(const struct vpmu_admission_lease *a, const struct vpmu_admission_lease *b)
{
    for (uint32_t w = 0; w < a->words && w < b->words; w++)
        if (a->processors[w] & b->processors[w])
            return true;
    return false;
}

/* Those that have something of the same processors: CPU-wide ones, whoever asks. */
static struct json_object *describe_neighbours(const struct daemon *daemon,
                                               const struct entry *entry)
{
    struct json_object *neighbours = json_object_new_array();
    struct vpmu_admission_lease own, other;

    books_lease(daemon->books, entry, &own);
    for (struct entry *e = books_next(daemon->books, NULL); e; e = books_next(daemon->books, e)) {
        books_lease(daemon->books, e, &other);
        if (e != entry && other.binding == VPMU_BOUND_CPU && !other.revoked &&
            overlaps(&own, &other))
            json_object_array_add(neighbours, describe_entry(daemon->books, e));
    }
    return neighbours;
}

static void do_explain(struct call *call)
{
    const struct entry *entry = entry_of(call, "vm");

    if (!entry)
        return;
    put(call->answer, "lease", describe_lease(call->daemon, entry));
    put(call->answer, "neighbours", describe_neighbours(call->daemon, entry));
}

static void do_revoke(struct call *call)
{
    struct entry *entry = entry_of(call, "lease");
    struct vpmu_answer answer;
    char by[64], text[VPMU_WIRE_TEXT];

    if (!entry)
        return;
    snprintf(by, sizeof(by), "revoked by an operator (uid %u, pid %d)", call->credentials->uid,
             (int)call->credentials->pid);
    if (entry->owner.state == ENTRY_OBSERVED) {
        fail(call, "invalid", "nobody has asked for this lease: end the process that has it");
    } else if (requests_revoke(call->daemon, entry, by, &answer) != VPMU_STATUS_SUCCESS) {
        vpmu_answer_text(&answer, text, sizeof(text));
        fail(call, vpmu_wire_status_name(answer.status), text);
    }
}

/* ---- The host -------------------------------------------------------------------------------- */

static struct json_object *describe_use(const struct vpmu_admission_use *use)
{
    struct json_object *object = json_object_new_object();

    put(object, "online", json_object_new_boolean(use->online));
    put(object, "capacity", describe_amount(use->capacity));
    put(object, "cpu_wide", describe_amount(use->cpu_wide));
    put(object, "vcpu", describe_amount(use->vcpu));
    put_number(object, "vms", use->vms);
    return object;
}

static bool same_amount(struct vpmu_amount a, struct vpmu_amount b)
{
    return a.gp == b.gp && a.fixed == b.fixed;
}

static bool same_use(const struct vpmu_admission_use *a, const struct vpmu_admission_use *b)
{
    return a->online == b->online && same_amount(a->capacity, b->capacity) &&
           same_amount(a->cpu_wide, b->cpu_wide) && same_amount(a->vcpu, b->vcpu) &&
           a->vms == b->vms;
}

/* Neighbours with the same use are one row: a large host has few kinds of processors. */
static struct json_object *describe_processors(const struct daemon *daemon)
{
    const struct vpmu_admission *admission = books_admission(daemon->books);
    struct json_object *rows = json_object_new_array();
    uint32_t count = daemon->host.processor_count;

    for (uint32_t first = 0, next; first < count; first = next) {
        struct vpmu_admission_use use, other;
        struct json_object *row;

        vpmu_admission_use(admission, first, &use);
        next = first + 1;
        while (next < count &&
               (vpmu_admission_use(admission, next, &other), same_use(&use, &other)))
            next++;
        row = describe_use(&use);
        put_number(row, "first", first);
        put_number(row, "last", next - 1);
        json_object_array_add(rows, row);
    }
    return rows;
}

static const struct fact {
    const char *name;
    size_t at;
} facts[] = {
    {"virtualised", offsetof(struct vpmu_host_facts, virtualised)},
    {"hybrid", offsetof(struct vpmu_host_facts, hybrid)},
    {"perf", offsetof(struct vpmu_host_facts, perf)},
    {"watchdog", offsetof(struct vpmu_host_facts, watchdog)},
    {"kvm", offsetof(struct vpmu_host_facts, kvm)},
    {"enable_pmu", offsetof(struct vpmu_host_facts, enable_pmu)},
    {"mediated", offsetof(struct vpmu_host_facts, mediated)},
};

static struct json_object *describe_facts(const struct vpmu_host *host)
{
    static const char *const values[] = {
        [VPMU_FACT_UNKNOWN] = "unknown", [VPMU_FACT_NO] = "no", [VPMU_FACT_YES] = "yes"};
    struct json_object *object = json_object_new_object();

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        enum vpmu_fact fact;

        memcpy(&fact, (const char *)&host->facts + facts[i].at, sizeof(fact));
        put_text(object, facts[i].name, values[fact]);
    }
    return object;
}

static void do_host(struct call *call)
{
    const struct vpmu_host *host = &call->daemon->host;
    char text[VPMU_WIRE_TEXT] = "";

    put(call->answer, "described", json_object_new_boolean(host->described));
    put_text(call->answer, "kernel", host->kernel);
    put_text(call->answer, "model", host->model);
    put_text(call->answer, "vendor", vpmu_host_vendor_name(host->vendor));
    put(call->answer, "facts", describe_facts(host));
    observe_bars_vms(call->daemon, text, sizeof(text));
    put_text(call->answer, "bars_vms", text);
    put_text(call->answer, "not_measured", host->not_measured);
    put(call->answer, "processors", describe_processors(call->daemon));
}

static void do_status(struct call *call)
{
    const struct daemon *daemon = call->daemon;
    struct json_object *counts = json_object_new_object();

    for (int state = 0; state < ENTRY_STATES; state++)
        put_number(counts, entry_state_names[state],
                   books_count(daemon->books, (enum entry_state)state));
    put_number(call->answer, "instance", daemon->instance);
    put(call->answer, "started_ms", json_object_new_int64(daemon->started_ms));
    put(call->answer, "described", json_object_new_boolean(daemon->host.described));
    put(call->answer, "mediated",
        json_object_new_boolean(daemon->host.facts.mediated == VPMU_FACT_YES));
    put(call->answer, "grace", json_object_new_boolean(daemon->grace));
    put_number(call->answer, "connections", daemon->peer_count);
    put_number(call->answer, "pending", daemon->pending_count);
    put(call->answer, "leases", counts);
    put(call->answer, "processors", describe_processors(daemon));
}

static void do_reload(struct call *call)
{
    char why[400];

    if (!reload_config(call->daemon, why, sizeof(why)))
        fail(call, "invalid", why);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static const struct operation {
    const char *name;
    enum right right;
    void (*run)(struct call *call);
} operations[] = {
    {"status", RIGHT_OBSERVER, do_status},   {"host", RIGHT_OBSERVER, do_host},
    {"leases", RIGHT_OBSERVER, do_leases},   {"top", RIGHT_OBSERVER, do_leases},
    {"explain", RIGHT_OBSERVER, do_explain}, {"revoke", RIGHT_REVOKE, do_revoke},
    {"reload", RIGHT_REVOKE, do_reload},
};

static const struct operation *operation_of(struct json_object *request)
{
    struct json_object *name = json_object_is_type(request, json_type_object)
                                   ? json_object_object_get(request, "op")
                                   : NULL;

    for (size_t i = 0; name && i < sizeof(operations) / sizeof(operations[0]); i++)
        if (!strcmp(json_object_get_string(name), operations[i].name))
            return &operations[i];
    return NULL;
}

static void run(struct call *call)
{
    const struct config *config = call->daemon->config;
    const struct policy *policy =
        policy_find(config->policies, config->policy_count, call->credentials);
    const struct operation *operation = operation_of(call->request);
    char text[160];

    put(call->answer, "ok", json_object_new_boolean(true));
    if (!operation) {
        fail(call, "invalid",
             "not {\"op\": ...} with one of status, host, leases, top, explain, revoke, reload");
    } else if (!policy_allows(policy, operation->right)) {
        snprintf(text, sizeof(text), "uid %u may not ask for %s: %s", call->credentials->uid,
                 operation->name,
                 policy ? "its policy has no such right" : "no policy of vpmud names it");
        fail(call, "denied", text);
    } else {
        operation->run(call);
    }
}

/* A line with a NUL in it ends there for the parser, and is no JSON. */
static void answer(struct daemon *daemon, const struct credentials *credentials, char *line,
                   size_t length, GString *text)
{
    struct call call = {
        .daemon = daemon,
        .credentials = credentials,
        .request = strlen(line) == length ? json_tokener_parse(line) : NULL,
        .answer = json_object_new_object(),
    };

    run(&call);
    g_string_append(text, json_object_to_json_string_ext(call.answer, JSON_C_TO_STRING_PLAIN));
    g_string_append_c(text, '\n');
    json_object_put(call.request);
    json_object_put(call.answer);
}

void control_accept(struct daemon *daemon, int fd)
{
    static const struct text_service service = {.answer = answer};

    text_accept(daemon, fd, &service);
}
