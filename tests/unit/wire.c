// SPDX-License-Identifier: BSD-3-Clause
/* The protocol's pure half: what is read, what may be said, and what is carried. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "vpmu/wire.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- A sound message of each type ------------------------------------------------------------ */

#define WORDS 3u
#define COUNTERS 2u

static const uint64_t processors[WORDS] = {0xFF, 0, 0x8000000000000001};

/* Every field different from 0 that may be, so that one that is lost is missed. */
static const struct vpmu_wire_claim vm_claim = {
    .binding = VPMU_BOUND_VCPU,
    .flags = VPMU_CLAIM_YIELDS,
    .policy = VPMU_POLICY_REDUCE,
    .need = {.gp = 4, .fixed = 7},
    .least = {.gp = 2, .fixed = 1},
    .beside = {.gp = 1, .fixed = 8},
    .words = WORDS,
};

static void hello(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_hello body = {
        .version_min = 1, .version_max = 3, .kind = VPMU_KIND_VM, .uuid = {1}, .name = "a VM"};

    vpmu_wire_put(m, VPMU_WIRE_HELLO, 0, 7, &body, sizeof(body), NULL, 0);
}

static void acquire(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_acquire body = {.claim = vm_claim};

    vpmu_wire_put(m, VPMU_WIRE_ACQUIRE, 0, 7, &body, sizeof(body), processors, sizeof(processors));
}

static void release(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_lease body = {.lease = 5};

    vpmu_wire_put(m, VPMU_WIRE_RELEASE, 0, 7, &body, sizeof(body), NULL, 0);
}

static void resize(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_resize body = {.lease = 5, .need = {.gp = 1}};

    vpmu_wire_put(m, VPMU_WIRE_RESIZE, 0, 7, &body, sizeof(body), NULL, 0);
}

static void renew(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_renew body = {.instance = 9, .lease = 5, .claim = vm_claim};

    vpmu_wire_put(m, VPMU_WIRE_RENEW, 0, 7, &body, sizeof(body), processors, sizeof(processors));
}

static void reserve(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_reserve body = {
        .uuid = {1}, .name = "a VM", .timeout_s = VPMU_WIRE_TIMEOUT_MAX, .claim = vm_claim};

    vpmu_wire_put(m, VPMU_WIRE_RESERVE, 0, 7, &body, sizeof(body), processors, sizeof(processors));
}

static void unreserve(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_unreserve body = {.uuid = {[15] = 1}};

    vpmu_wire_put(m, VPMU_WIRE_UNRESERVE, 0, 7, &body, sizeof(body), NULL, 0);
}

static void subscribe(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_subscribe body = {.states = (1u << VPMU_LEASE_STATES) - 1};

    vpmu_wire_put(m, VPMU_WIRE_SUBSCRIBE, 0, 7, &body, sizeof(body), NULL, 0);
}

static void report(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_report body = {
        .lease = 5, .vcpus = 2, .counters = COUNTERS, .states = {[VPMU_COUNTER_BACKED] = 4}};
    const struct vpmu_status_counter counters[COUNTERS] = {
        {.index = 0, .state = VPMU_COUNTER_BACKED, .enabled_ns = 20, .backed_ns = 20},
        {.index = 32, .state = VPMU_COUNTER_STARVED, .enabled_ns = 20, .backed_ns = 1}};

    vpmu_wire_put(m, VPMU_WIRE_REPORT, 0, 7, &body, sizeof(body), counters, sizeof(counters));
}

static void status(struct vpmu_wire_message *m)
{
    const struct vpmu_wire_lease body = {.lease = VPMU_LEASE_NONE};

    vpmu_wire_put(m, VPMU_WIRE_STATUS, 0, 7, &body, sizeof(body), NULL, 0);
}

static void ping(struct vpmu_wire_message *m)
{
    vpmu_wire_put(m, VPMU_WIRE_PING, 0, 7, NULL, 0, NULL, 0);
}

/* No NOTICE: that is no request. */
static void (*const sound[VPMU_WIRE_TYPES])(struct vpmu_wire_message *) = {
    [VPMU_WIRE_HELLO] = hello,         [VPMU_WIRE_ACQUIRE] = acquire,
    [VPMU_WIRE_RELEASE] = release,     [VPMU_WIRE_RESIZE] = resize,
    [VPMU_WIRE_RENEW] = renew,         [VPMU_WIRE_RESERVE] = reserve,
    [VPMU_WIRE_UNRESERVE] = unreserve, [VPMU_WIRE_SUBSCRIBE] = subscribe,
    [VPMU_WIRE_REPORT] = report,       [VPMU_WIRE_STATUS] = status,
    [VPMU_WIRE_PING] = ping,
};

/* A session in which the type may be said: hooks reserve, VMs do the rest. */
static struct vpmu_wire_session session_for(uint32_t type)
{
    const struct vpmu_wire_row *row = vpmu_wire_row(type);
    bool vm = row->kinds & 1u << VPMU_KIND_VM;

    return (struct vpmu_wire_session){.ready = type != VPMU_WIRE_HELLO,
                                      .kind = vm ? VPMU_KIND_VM : VPMU_KIND_HOOK};
}

static void must_be(const struct vpmu_wire_message *m, const struct vpmu_wire_session *session,
                    vpmu_status expected, const char *what)
{
    char text[VPMU_WIRE_TEXT];

    memset(text, 'x', sizeof(text));
    cr_assert_eq(vpmu_wire_check_request(m, session, text), expected, "type %u, %s: %s",
                 m->header.type, what, text);
    cr_assert(memchr(text, '\0', sizeof(text)));
    cr_assert(strstr(text, what), "type %u: \"%s\" does not say \"%s\"", m->header.type, text,
              what);
}

/* ---- Requests -------------------------------------------------------------------------------- */

Test(wire, each_sound_request_passes)
{
    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        struct vpmu_wire_message m;

        cr_assert_eq(!sound[type], !vpmu_wire_row(type) || type == VPMU_WIRE_NOTICE, "type %u",
                     type);
        if (sound[type]) {
            struct vpmu_wire_session session = session_for(type);

            sound[type](&m);
            must_be(&m, &session, VPMU_STATUS_SUCCESS, "");
        }
    }
}

/* One field of a sound request is changed. */
static struct wrong {
    uint32_t type;
    uint32_t offset, size; /* of the field, in the message */
    uint64_t value;
    vpmu_status status;
    char says[40];
} wrongs[] = {
#define HEADER(field)                                                                              \
    offsetof(struct vpmu_wire_header, field), sizeof(((struct vpmu_wire_header *)0)->field)
#define BODY(name, field)                                                                          \
    16 + offsetof(struct vpmu_wire_##name, field), sizeof(((struct vpmu_wire_##name *)0)->field)
#define BAD VPMU_WIRE_MALFORMED
    {VPMU_WIRE_PING, HEADER(type), 0, VPMU_WIRE_UNKNOWN, "no such request"},
    {VPMU_WIRE_PING, HEADER(type), VPMU_WIRE_NOTICE, VPMU_WIRE_UNKNOWN, "no such request"},
    {VPMU_WIRE_PING, HEADER(type), VPMU_WIRE_TYPES, VPMU_WIRE_UNKNOWN, "no such request"},
    {VPMU_WIRE_PING, HEADER(type), UINT32_MAX, VPMU_WIRE_UNKNOWN, "no such request"},
    {VPMU_WIRE_PING, HEADER(flags), 5, BAD, "reply"},
    {VPMU_WIRE_PING, HEADER(serial), 0, BAD, "serial"},
    {VPMU_WIRE_HELLO, BODY(hello, reserved), 1, BAD, "reserved"},
    {VPMU_WIRE_HELLO, BODY(hello, kind), VPMU_KINDS, BAD, "kind"},
    {VPMU_WIRE_HELLO, BODY(hello, name[0]), 0, BAD, "name"},
    {VPMU_WIRE_HELLO, BODY(hello, name[1]), '\n', BAD, "name"},
    {VPMU_WIRE_HELLO, BODY(hello, name[1]), 0, BAD, "name"}, /* what follows the end is not 0 */
    {VPMU_WIRE_HELLO, BODY(hello, version_min), 2, VPMU_WIRE_VERSION_RANGE, "version 1"},
    {VPMU_WIRE_HELLO, BODY(hello, version_max), 0, VPMU_WIRE_VERSION_RANGE, "version 1"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.reserved), 1, BAD, "reserved"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.reserved2), 1, BAD, "reserved"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.flags), VPMU_CLAIM_OBSERVED, BAD, "flag"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.flags), 0x80, BAD, "flag"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.policy), VPMU_POLICIES, BAD, "policy"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.words), 2, BAD, "size"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.words), 4, BAD, "size"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.words), UINT32_MAX, BAD, "size"},
    /* 3 words, if the product is taken in 32 bits */
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.words), 0x20000003, BAD, "size"},
    {VPMU_WIRE_ACQUIRE, BODY(acquire, claim.binding), VPMU_BOUND_CPU, VPMU_WIRE_DENIED, "VMs"},
    {VPMU_WIRE_RESIZE, BODY(resize, reserved), 1, BAD, "reserved"},
    {VPMU_WIRE_RENEW, BODY(renew, claim.policy), 255, BAD, "policy"},
    {VPMU_WIRE_RENEW, BODY(renew, claim.binding), 2, VPMU_WIRE_DENIED, "VMs"},
    {VPMU_WIRE_RESERVE, BODY(reserve, reserved), 1, BAD, "reserved"},
    {VPMU_WIRE_RESERVE, BODY(reserve, uuid[0]), 0, BAD, "uuid"},
    {VPMU_WIRE_RESERVE, BODY(reserve, name[0]), 0x80, BAD, "name"},
    {VPMU_WIRE_RESERVE, BODY(reserve, timeout_s), 0, BAD, "time-out"},
    {VPMU_WIRE_RESERVE, BODY(reserve, timeout_s), VPMU_WIRE_TIMEOUT_MAX + 1, BAD, "time-out"},
    {VPMU_WIRE_RESERVE, BODY(reserve, claim.flags), 0xFF, BAD, "flag"},
    {VPMU_WIRE_RESERVE, BODY(reserve, claim.binding), VPMU_BOUND_CPU, VPMU_WIRE_DENIED, "VMs"},
    {VPMU_WIRE_UNRESERVE, BODY(unreserve, uuid[15]), 0, BAD, "uuid"},
    {VPMU_WIRE_SUBSCRIBE, BODY(subscribe, reserved), 1, BAD, "reserved"},
    {VPMU_WIRE_SUBSCRIBE, BODY(subscribe, states), 1 << VPMU_LEASE_STATES, BAD, "state"},
    {VPMU_WIRE_REPORT, BODY(report, counters), 1, BAD, "size"},
    {VPMU_WIRE_REPORT, BODY(report, counters), VPMU_STATUS_COUNTERS + 1, BAD, "size"},
    {VPMU_WIRE_REPORT, BODY(report, states[VPMU_COUNTER_STATES]), 1, BAD, "state"},
    {VPMU_WIRE_REPORT, 16 + sizeof(struct vpmu_wire_report) + 4, 4, VPMU_COUNTER_STATES, BAD,
     "counter's state"},
    {VPMU_WIRE_REPORT, 16 + sizeof(struct vpmu_wire_report) + 36, 4, UINT32_MAX, BAD,
     "counter's state"},
};

ParameterizedTestParameters(wire, each_wrong_field_is_named)
{
    return cr_make_param_array(struct wrong, wrongs, COUNT(wrongs));
}

ParameterizedTest(struct wrong *wrong, wire, each_wrong_field_is_named)
{
    struct vpmu_wire_session session = session_for(wrong->type);
    struct vpmu_wire_message m;

    sound[wrong->type](&m);
    memcpy((uint8_t *)&m + wrong->offset, &wrong->value, wrong->size);
    must_be(&m, &session, wrong->status, wrong->says);
}

/* A body of any other size is malformed, whatever stands in it. */
Test(wire, only_one_size_is_right)
{
    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        struct vpmu_wire_message m;
        uint32_t right;

        if (!sound[type])
            continue;
        memset(&m, 0, sizeof(m));
        sound[type](&m);
        right = m.header.size;
        for (m.header.size = 0; m.header.size <= VPMU_WIRE_BODY_MAX; m.header.size += 8) {
            struct vpmu_wire_session session = session_for(type);

            if (m.header.size != right)
                must_be(&m, &session, VPMU_WIRE_MALFORMED, "size");
        }
    }
}

Test(wire, hello_comes_first_and_once)
{
    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        struct vpmu_wire_session session = {.ready = type == VPMU_WIRE_HELLO};
        struct vpmu_wire_message m;

        if (!sound[type])
            continue;
        sound[type](&m);
        must_be(&m, &session, VPMU_WIRE_NOT_NOW, type == VPMU_WIRE_HELLO ? "already" : "HELLO");
    }
}

static uint8_t binding_of(uint32_t kind)
{
    return kind == VPMU_KIND_PROFILER ? VPMU_BOUND_CPU : VPMU_BOUND_VCPU;
}

/* Who may say what: messages.def, once more and by hand. V, P, H, O: the kinds. */
Test(wire, kinds_of_clients)
{
    static const char *const may[VPMU_WIRE_TYPES] = {
        [VPMU_WIRE_ACQUIRE] = "VP",    [VPMU_WIRE_RELEASE] = "VP", [VPMU_WIRE_RESIZE] = "VP",
        [VPMU_WIRE_RENEW] = "VP",      [VPMU_WIRE_RESERVE] = "H",  [VPMU_WIRE_UNRESERVE] = "H",
        [VPMU_WIRE_SUBSCRIBE] = "VPO", [VPMU_WIRE_REPORT] = "V",   [VPMU_WIRE_STATUS] = "VPHO",
        [VPMU_WIRE_PING] = "VPHO",
    };

    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        for (uint32_t kind = 0; may[type] && kind < VPMU_KINDS; kind++) {
            struct vpmu_wire_session session = {.ready = true, .kind = kind};
            struct vpmu_wire_message m;
            char text[VPMU_WIRE_TEXT];
            vpmu_status answer;

            sound[type](&m);
            if (type == VPMU_WIRE_ACQUIRE)
                m.acquire.claim.binding = binding_of(kind);
            if (type == VPMU_WIRE_RENEW)
                m.renew.claim.binding = binding_of(kind);
            answer = vpmu_wire_check_request(&m, &session, text);
            cr_assert_eq(answer,
                         strchr(may[type], "VPHO"[kind]) ? VPMU_STATUS_SUCCESS : VPMU_WIRE_DENIED,
                         "type %u, %s: %s", type, vpmu_wire_kind_name(kind), text);
        }
    }
}

/* ---- Claims ---------------------------------------------------------------------------------- */

Test(wire, a_claim_is_carried_whole)
{
    static const uint32_t types[] = {VPMU_WIRE_ACQUIRE, VPMU_WIRE_RENEW, VPMU_WIRE_RESERVE};

    for (size_t i = 0; i < COUNT(types); i++) {
        enum vpmu_shortage_policy policy;
        struct vpmu_wire_message m;
        struct vpmu_wire_claim again;
        struct vpmu_claim claim;

        sound[types[i]](&m);
        vpmu_wire_claim_read(&m, &claim, &policy);
        cr_assert_eq(claim.words, WORDS);
        cr_assert_eq(memcmp(claim.processors, processors, sizeof(processors)), 0);
        cr_assert_eq(claim.processors, vpmu_wire_tail(&m));
        cr_assert_eq(policy, VPMU_POLICY_REDUCE);
        cr_assert_eq(!claim.name, types[i] != VPMU_WIRE_RESERVE);
        cr_assert(!claim.name || !strcmp(claim.name, "a VM"));
        vpmu_wire_claim_write(&again, &claim, policy);
        cr_assert_eq(memcmp(&again, &vm_claim, sizeof(again)), 0);
    }
}

/* No words: every online processor, as NULL says in a claim. */
Test(wire, no_set_is_every_processor)
{
    const struct vpmu_wire_acquire body = {.claim.binding = VPMU_BOUND_VCPU};
    const struct vpmu_claim given = {.processors = NULL, .words = 5};
    struct vpmu_wire_session session = session_for(VPMU_WIRE_ACQUIRE);
    enum vpmu_shortage_policy policy;
    struct vpmu_wire_message m;
    struct vpmu_wire_claim wire;
    struct vpmu_claim claim;

    vpmu_wire_put(&m, VPMU_WIRE_ACQUIRE, 0, 1, &body, sizeof(body), NULL, 0);
    must_be(&m, &session, VPMU_STATUS_SUCCESS, "");
    vpmu_wire_claim_read(&m, &claim, &policy);
    cr_assert_null(claim.processors);
    cr_assert_eq(claim.words, 0);
    vpmu_wire_claim_write(&wire, &given, VPMU_POLICY_HIDE);
    cr_assert_eq(wire.words, 0);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* All sound requests in one stream, fed in pieces of every size. */
Test(wire, how_a_stream_is_cut_makes_no_difference)
{
    static uint8_t stream[8192];
    size_t size = 0;

    for (uint32_t type = 0; type < VPMU_WIRE_TYPES; type++) {
        struct vpmu_wire_message m;

        if (sound[type]) {
            sound[type](&m);
            memcpy(stream + size, &m, vpmu_wire_size(&m));
            size += vpmu_wire_size(&m);
        }
    }
    for (size_t step = 1; step <= size; step++) {
        static struct vpmu_wire_reader reader;
        size_t message_at = 0, messages = 0;

        memset(&reader, 0, sizeof(reader));
        for (size_t from = 0; from < size; from += step) {
            size_t left = step < size - from ? step : size - from;
            const uint8_t *at = stream + from;
            enum vpmu_wire_progress progress;

            while ((progress = vpmu_wire_read(&reader, &at, &left)) == VPMU_WIRE_MESSAGE) {
                size_t length = vpmu_wire_size(&reader.message);

                cr_assert_eq(memcmp(&reader.message, stream + message_at, length), 0);
                message_at += length;
                messages++;
            }
            cr_assert_eq(progress, VPMU_WIRE_MORE);
            cr_assert_eq(left, 0);
        }
        cr_assert_eq(message_at, size, "pieces of %zu", step);
        cr_assert_eq(messages, 11);
    }
}

static struct header_row {
    struct vpmu_wire_header header;
    enum vpmu_wire_progress progress;
} headers[] = {
    {{1, 1, 0, 1}, VPMU_WIRE_MESSAGE},
    {{0, 1, 0, 0}, VPMU_WIRE_MESSAGE}, /* what it is, is for the checks */
    {{UINT32_MAX, 1, 0, 1}, VPMU_WIRE_MESSAGE},
    {{1, 1 | VPMU_WIRE_FLAG_REPLY, 0, 1}, VPMU_WIRE_MESSAGE},
    {{1, 1 | VPMU_WIRE_FLAG_REPLY | VPMU_WIRE_FLAG_ERROR, 0, 1}, VPMU_WIRE_MESSAGE},
    {{1, 1 | VPMU_WIRE_FLAG_ERROR, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 0, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 2, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 3, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 1 | 16, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 1u | 1u << 31, 0, 1}, VPMU_WIRE_BROKEN},
    {{1, 1, 8, 1}, VPMU_WIRE_MORE},
    {{1, 1, VPMU_WIRE_BODY_MAX, 1}, VPMU_WIRE_MORE},
    {{1, 1, VPMU_WIRE_BODY_MAX + 8, 1}, VPMU_WIRE_BROKEN},
    {{1, 1, 4, 1}, VPMU_WIRE_BROKEN},
    {{1, 1, UINT32_MAX - 7, 1}, VPMU_WIRE_BROKEN},
};

ParameterizedTestParameters(wire, headers)
{
    return cr_make_param_array(struct header_row, headers, COUNT(headers));
}

/* A broken stream is broken for good, and no byte after its header is touched. */
ParameterizedTest(struct header_row *row, wire, headers)
{
    static struct vpmu_wire_reader reader;
    const uint8_t *at = (const uint8_t *)&row->header;
    size_t left = sizeof(row->header);

    memset(&reader, 0, sizeof(reader));
    cr_assert_eq(vpmu_wire_read(&reader, &at, &left), row->progress);
    cr_assert_eq(left, 0);
    if (row->progress == VPMU_WIRE_BROKEN) {
        struct vpmu_wire_message m;

        ping(&m);
        at = (const uint8_t *)&m;
        left = vpmu_wire_size(&m);
        cr_assert_eq(vpmu_wire_read(&reader, &at, &left), VPMU_WIRE_BROKEN);
        cr_assert_eq(at, (const uint8_t *)&m);
    }
}

/* ---- Answers --------------------------------------------------------------------------------- */

Test(wire, an_answer_is_sound_for_its_request_alone)
{
    const struct vpmu_wire_header request = {VPMU_WIRE_ACQUIRE, 1, 0, 42};
    const struct vpmu_wire_grant grant = {
        .lease = 3, .granted = {.gp = 2}, .text = "the rest is A's"};
    struct vpmu_wire_message m, again;

    cr_assert_eq(vpmu_wire_reply(&m, &request, &grant), 16 + sizeof(grant));
    cr_assert_eq(m.header.serial, 42);
    cr_assert_eq(memcmp(&m.grant, &grant, sizeof(grant)), 0);
    for (uint32_t type = 0; type <= VPMU_WIRE_TYPES; type++)
        cr_assert_eq(vpmu_wire_check_reply(&m, type), type == VPMU_WIRE_ACQUIRE);
    cr_assert_not(vpmu_wire_check_notice(&m));
    again = m;
    again.grant.lease = VPMU_LEASE_NONE;
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
    again = m;
    again.grant.reason = VPMU_REASONS;
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
    again = m;
    memset(again.grant.text, 'x', sizeof(again.grant.text)); /* it has no end */
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
    again = m;
    again.header.serial = 0;
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
    again = m;
    again.header.flags = VPMU_WIRE_VERSION;
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
    again = m;
    again.header.size -= 8;
    cr_assert_not(vpmu_wire_check_reply(&again, VPMU_WIRE_ACQUIRE));
}

Test(wire, a_refusal_always_says_something)
{
    const struct vpmu_wire_header request = {VPMU_WIRE_ACQUIRE, 1, 0, 42};
    struct vpmu_wire_message m;

    vpmu_wire_refuse(&m, &request, VPMU_STATUS_INSUFFICIENT_RESOURCES, VPMU_REASON_TAKEN, "");
    cr_assert(vpmu_wire_check_reply(&m, VPMU_WIRE_ACQUIRE));
    cr_assert_str_eq(m.error.text, "insufficient resources");
    vpmu_wire_refuse(&m, &request, VPMU_WIRE_DENIED, VPMU_REASON_NONE, "no\nway");
    cr_assert(vpmu_wire_check_reply(&m, VPMU_WIRE_ACQUIRE));
    cr_assert_str_eq(m.error.text, "no?way");
    m.error.status = VPMU_STATUS_SUCCESS;
    cr_assert_not(vpmu_wire_check_reply(&m, VPMU_WIRE_ACQUIRE));
    m.error.status = VPMU_WIRE_STATUS_CLIENT + 2;
    cr_assert_not(vpmu_wire_check_reply(&m, VPMU_WIRE_ACQUIRE), "what only a client says");
}

Test(wire, a_status_has_its_set)
{
    const struct vpmu_wire_header request = {VPMU_WIRE_STATUS, 1, 0, 42};
    const struct vpmu_wire_info info = {
        .lease = 3, .state = VPMU_LEASE_SHORT, .words = WORDS, .name = "a VM", .text = "why"};
    struct vpmu_wire_message m;

    vpmu_wire_reply_info(&m, &request, &info, processors);
    cr_assert(vpmu_wire_check_reply(&m, VPMU_WIRE_STATUS));
    cr_assert_eq(memcmp(vpmu_wire_tail(&m), processors, sizeof(processors)), 0);
    m.info.words--;
    cr_assert_not(vpmu_wire_check_reply(&m, VPMU_WIRE_STATUS));
    m.info.words = WORDS;
    m.info.state = VPMU_LEASE_STATES;
    cr_assert_not(vpmu_wire_check_reply(&m, VPMU_WIRE_STATUS));
}

Test(wire, a_notice_is_no_answer)
{
    const struct vpmu_wire_notice notice = {
        .lease = 3, .state = VPMU_LEASE_REVOKED, .processor = VPMU_NOT_SET, .text = "an operator"};
    struct vpmu_wire_session session = session_for(VPMU_WIRE_PING);
    struct vpmu_wire_message m;

    vpmu_wire_notify(&m, &notice);
    cr_assert(vpmu_wire_check_notice(&m));
    for (uint32_t type = 0; type <= VPMU_WIRE_TYPES; type++)
        cr_assert_not(vpmu_wire_check_reply(&m, type));
    m.header.serial = 1;
    cr_assert_not(vpmu_wire_check_notice(&m));
    must_be(&m, &session, VPMU_WIRE_UNKNOWN, "no such request");
    m.header.serial = 0;
    m.notice.state = VPMU_LEASE_STATES;
    cr_assert_not(vpmu_wire_check_notice(&m));
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Unicode's table of well-formed byte sequences (The Unicode Standard, table 3-7), at its edges. */
static struct text_row {
    char bytes[12];
    bool valid;
    char carried[12]; /* what vpmu_wire_text() makes of it */
} texts[] = {
    {"", true, ""},
    {"vm-1 ~", true, "vm-1 ~"},
    {"\xC3\xBC", true, "\xC3\xBC"},
    {"\xE2\x82\xAC", true, "\xE2\x82\xAC"},
    {"\xF0\x9F\x98\x80", true, "\xF0\x9F\x98\x80"},
    {"\xED\x9F\xBF", true, "\xED\x9F\xBF"},
    {"\xF4\x8F\xBF\xBF", true, "\xF4\x8F\xBF\xBF"},
    {"\n", false, "?"},
    {"\x7F", false, "?"},
    {"\x1B[2J", false, "?[2J"},
    {"\xC2\x9B", false, "??"}, /* a control character of the second set */
    {"\xC1\xBF", false, "??"},
    {"\xE0\x9F\xBF", false, "???"},
    {"\xED\xA0\x80", false, "???"}, /* a surrogate */
    {"\xF0\x8F\xBF\xBF", false, "????"},
    {"\xF4\x90\x80\x80", false, "????"},
    {"\xF5\x80\x80\x80", false, "????"},
    {"\xE2\x82", false, "??"},
    {"a\x80", false, "a?"},
};

ParameterizedTestParameters(wire, texts)
{
    return cr_make_param_array(struct text_row, texts, COUNT(texts));
}

ParameterizedTest(struct text_row *row, wire, texts)
{
    char field[12];

    cr_assert_eq(vpmu_wire_text_valid(row->bytes, sizeof(row->bytes)), row->valid);
    vpmu_wire_text(field, sizeof(field), row->bytes);
    cr_assert_eq(memcmp(field, row->carried, sizeof(field)), 0, "%s", field);
}

/* Cut at a character's end, always ended. */
Test(wire, long_texts_are_cut_between_characters)
{
    char field[8];

    vpmu_wire_text(field, sizeof(field), "1234567890");
    cr_assert_str_eq(field, "1234567");
    vpmu_wire_text(field, sizeof(field), "123456\xC3\xBC");
    cr_assert_str_eq(field, "123456");
    vpmu_wire_text(field, sizeof(field), "12345\xC3\xBC");
    cr_assert_str_eq(field, "12345\xC3\xBC");
    cr_assert_not(vpmu_wire_text_valid("12345678", 8), "it has no end");
}

Test(wire, names)
{
    static const uint32_t statuses[] = {
        VPMU_WIRE_MALFORMED,     VPMU_WIRE_UNKNOWN,
        VPMU_WIRE_NOT_NOW,       VPMU_WIRE_VERSION_RANGE,
        VPMU_WIRE_DENIED,        VPMU_WIRE_TOO_MANY,
        VPMU_STATUS_DEVICE_BUSY, VPMU_STATUS_INSUFFICIENT_RESOURCES};

    for (size_t i = 0; i < COUNT(statuses); i++)
        cr_assert_str_neq(vpmu_wire_status_name(statuses[i]), "unknown status");
    cr_assert_str_eq(vpmu_wire_status_name(VPMU_WIRE_STATUS(0xFFF)), "unknown status");
    cr_assert_str_eq(vpmu_wire_kind_name(VPMU_KINDS), "?");
    cr_assert_str_eq(vpmu_lease_state_name(VPMU_LEASE_STATES), "?");
    for (uint32_t kind = 0; kind < VPMU_KINDS; kind++)
        cr_assert_str_neq(vpmu_wire_kind_name(kind), "?");
    for (uint32_t state = 0; state < VPMU_LEASE_STATES; state++)
        cr_assert_str_neq(vpmu_lease_state_name(state), "?");
}
