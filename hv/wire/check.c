// SPDX-License-Identifier: BSD-3-Clause
/* What a message must be. Pure, and safe against any message that vpmu_wire_read() has put
 * together. */
#include <string.h>

#include "vpmu/wire.h"

/* NULL: it is as it must be. Else what is not. */
typedef const char *check_fn(const struct vpmu_wire_message *message);

static bool has_uuid(const uint8_t uuid[VPMU_WIRE_UUID])
{
    static const uint8_t none[VPMU_WIRE_UUID];

    return memcmp(uuid, none, VPMU_WIRE_UUID) != 0;
}

static bool is_name(const char *name)
{
    return name[0] && vpmu_wire_text_valid(name, VPMU_WIRE_NAME);
}

static const char *check_claim(const struct vpmu_wire_claim *claim)
{
    if (claim->reserved || claim->reserved2)
        return "a reserved field is not 0";
    if (claim->flags & ~(VPMU_CLAIM_YIELDS | VPMU_CLAIM_EXCLUDES_GUESTS))
        return "a flag of the claim does not exist, or is not for clients";
    if (claim->policy >= VPMU_POLICIES)
        return "there is no such policy";
    return NULL;
}

static const char *check_hello(const struct vpmu_wire_message *message)
{
    if (message->hello.reserved)
        return "a reserved field is not 0";
    if (message->hello.kind >= VPMU_KINDS)
        return "there is no such kind of client";
    return is_name(message->hello.name) ? NULL : "the name is empty, or no text";
}

static const char *check_acquire(const struct vpmu_wire_message *message)
{
    return check_claim(&message->acquire.claim);
}

static const char *check_renew(const struct vpmu_wire_message *message)
{
    return check_claim(&message->renew.claim);
}

static const char *check_resize(const struct vpmu_wire_message *message)
{
    return message->resize.reserved ? "a reserved field is not 0" : NULL;
}

static const char *check_reserve(const struct vpmu_wire_message *message)
{
    const struct vpmu_wire_reserve *reserve = &message->reserve;

    if (reserve->reserved)
        return "a reserved field is not 0";
    if (!has_uuid(reserve->uuid))
        return "the uuid is 0";
    if (!is_name(reserve->name))
        return "the name is empty, or no text";
    if (!reserve->timeout_s || reserve->timeout_s > VPMU_WIRE_TIMEOUT_MAX)
        return "the time-out is out of range";
    return check_claim(&reserve->claim);
}

static const char *check_unreserve(const struct vpmu_wire_message *message)
{
    return has_uuid(message->unreserve.uuid) ? NULL : "the uuid is 0";
}

static const char *check_subscribe(const struct vpmu_wire_message *message)
{
    if (message->subscribe.reserved)
        return "a reserved field is not 0";
    return message->subscribe.states >> VPMU_LEASE_STATES ? "there is no such state" : NULL;
}

static const char *check_report(const struct vpmu_wire_message *message)
{
    const struct vpmu_status_counter *counters = vpmu_wire_tail(message);

    for (unsigned i = VPMU_COUNTER_STATES; i < 8; i++)
        if (message->report.states[i])
            return "there is no such state";
    for (uint32_t i = 0; i < message->report.counters; i++)
        if (counters[i].state >= VPMU_COUNTER_STATES)
            return "a counter's state does not exist";
    return NULL;
}

static check_fn *const checks[VPMU_WIRE_TYPES] = {
    [VPMU_WIRE_HELLO] = check_hello,         [VPMU_WIRE_ACQUIRE] = check_acquire,
    [VPMU_WIRE_RESIZE] = check_resize,       [VPMU_WIRE_RENEW] = check_renew,
    [VPMU_WIRE_RESERVE] = check_reserve,     [VPMU_WIRE_UNRESERVE] = check_unreserve,
    [VPMU_WIRE_SUBSCRIBE] = check_subscribe, [VPMU_WIRE_REPORT] = check_report,
};

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* How many records follow the struct, as it says; the struct is whole. */
static uint32_t records(const struct vpmu_wire_message *message)
{
    switch (message->header.type) {
    case VPMU_WIRE_ACQUIRE:
        return message->acquire.claim.words;
    case VPMU_WIRE_RENEW:
        return message->renew.claim.words;
    case VPMU_WIRE_RESERVE:
        return message->reserve.claim.words;
    case VPMU_WIRE_REPORT:
        return message->report.counters;
    default: /* STATUS: only its reply has a tail */
        return message->info.words;
    }
}

static bool has_size(const struct vpmu_wire_message *message, uint32_t size,
                     enum vpmu_wire_tail tail)
{
    static const struct {
        uint32_t size, most;
    } tails[] = {
        [VPMU_WIRE_NO_TAIL] = {0, 0},
        [VPMU_WIRE_PROCESSORS] = {sizeof(uint64_t), VPMU_WIRE_WORDS_MAX},
        [VPMU_WIRE_COUNTERS] = {sizeof(struct vpmu_status_counter), VPMU_STATUS_COUNTERS},
    };
    uint32_t count;

    if (size == VPMU_WIRE_NONE || message->header.size < size)
        return false;
    count = tail == VPMU_WIRE_NO_TAIL ? 0 : records(message);
    return count <= tails[tail].most && message->header.size == size + count * tails[tail].size;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* "NAME: what"; all of them are far shorter than a text may be. */
static vpmu_status answer(vpmu_status status, char text[VPMU_WIRE_TEXT], const char *name,
                          const char *what)
{
    const char *const parts[] = {name, ": ", what};
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        for (const char *c = parts[i]; *c && at < VPMU_WIRE_TEXT - 1; c++)
            text[at++] = *c;
    text[at] = '\0';
    return status;
}

/* Each kind of client has leases of one binding; a hook reserves for VMs. */
static bool has_binding(const struct vpmu_wire_message *message, uint32_t kind)
{
    struct vpmu_claim claim;
    enum vpmu_shortage_policy policy;

    if (vpmu_wire_row(message->header.type)->request_tail != VPMU_WIRE_PROCESSORS)
        return true;
    vpmu_wire_claim_read(message, &claim, &policy);
    return claim.binding == (kind == VPMU_KIND_PROFILER ? VPMU_BOUND_CPU : VPMU_BOUND_VCPU);
}

vpmu_status vpmu_wire_check_request(const struct vpmu_wire_message *message,
                                    const struct vpmu_wire_session *session,
                                    char text[VPMU_WIRE_TEXT])
{
    const struct vpmu_wire_row *row = vpmu_wire_row(message->header.type);
    const bool is_hello = message->header.type == VPMU_WIRE_HELLO;
    const char *wrong;

    if (!row || row->request_size == VPMU_WIRE_NONE)
        return answer(VPMU_WIRE_UNKNOWN, text, "message", "there is no such request");
    if (message->header.flags & VPMU_WIRE_FLAG_REPLY || !message->header.serial)
        return answer(VPMU_WIRE_MALFORMED, text, row->name, "it is a reply, or has no serial");
    if (is_hello == session->ready)
        return answer(VPMU_WIRE_NOT_NOW, text, row->name,
                      is_hello ? "it has been said already" : "HELLO comes first");
    if (session->ready && !(row->kinds >> session->kind & 1))
        return answer(VPMU_WIRE_DENIED, text, row->name, "not for this kind of client");
    if (!has_size(message, row->request_size, row->request_tail))
        return answer(VPMU_WIRE_MALFORMED, text, row->name, "its size is not right");
    wrong = checks[message->header.type] ? checks[message->header.type](message) : NULL;
    if (wrong)
        return answer(VPMU_WIRE_MALFORMED, text, row->name, wrong);
    if (is_hello && (message->hello.version_min > VPMU_PROTOCOL_VERSION ||
                     message->hello.version_max < VPMU_PROTOCOL_VERSION))
        return answer(VPMU_WIRE_VERSION_RANGE, text, row->name, "vpmud speaks version 1");
    if (!has_binding(message, session->kind))
        return answer(VPMU_WIRE_DENIED, text, row->name,
                      "VMs have vCPU-bound leases, profilers CPU-wide ones");
    text[0] = '\0';
    return VPMU_STATUS_SUCCESS;
}

/* ---- What a client gets ---------------------------------------------------------------------- */

static bool is_client_status(uint32_t status)
{
    return (status & ~0xFFu) == VPMU_WIRE_STATUS_CLIENT;
}

static bool is_sound_error(const struct vpmu_wire_message *message)
{
    return message->header.size == sizeof(message->error) &&
           message->error.status != VPMU_STATUS_SUCCESS &&
           !is_client_status(message->error.status) && message->error.reason < VPMU_REASONS &&
           message->error.text[0] &&
           vpmu_wire_text_valid(message->error.text, sizeof(message->error.text));
}

static bool is_sound_grant(const struct vpmu_wire_message *message)
{
    return message->grant.lease != VPMU_LEASE_NONE && message->grant.reason < VPMU_REASONS &&
           vpmu_wire_text_valid(message->grant.text, sizeof(message->grant.text));
}

static bool is_sound_welcome(const struct vpmu_wire_message *message)
{
    return message->welcome.version == VPMU_PROTOCOL_VERSION && message->welcome.instance != 0;
}

static bool is_sound_info(const struct vpmu_wire_message *message)
{
    return message->info.state < VPMU_LEASE_STATES &&
           vpmu_wire_text_valid(message->info.name, sizeof(message->info.name)) &&
           vpmu_wire_text_valid(message->info.text, sizeof(message->info.text));
}

bool vpmu_wire_check_reply(const struct vpmu_wire_message *message, uint32_t type)
{
    static bool (*const sound[VPMU_WIRE_TYPES])(const struct vpmu_wire_message *message) = {
        [VPMU_WIRE_HELLO] = is_sound_welcome, [VPMU_WIRE_ACQUIRE] = is_sound_grant,
        [VPMU_WIRE_RESIZE] = is_sound_grant,  [VPMU_WIRE_RENEW] = is_sound_grant,
        [VPMU_WIRE_RESERVE] = is_sound_grant, [VPMU_WIRE_STATUS] = is_sound_info,
    };
    const struct vpmu_wire_row *row = vpmu_wire_row(type);

    if (!row || message->header.type != type || !(message->header.flags & VPMU_WIRE_FLAG_REPLY) ||
        !message->header.serial)
        return false;
    if (message->header.flags & VPMU_WIRE_FLAG_ERROR)
        return is_sound_error(message);
    return row->request_size != VPMU_WIRE_NONE &&
           has_size(message, row->reply_size, row->reply_tail) &&
           (!sound[type] || sound[type](message));
}

bool vpmu_wire_check_notice(const struct vpmu_wire_message *message)
{
    const struct vpmu_wire_notice *notice = &message->notice;

    return message->header.type == VPMU_WIRE_NOTICE &&
           !(message->header.flags & VPMU_WIRE_FLAG_REPLY) && !message->header.serial &&
           message->header.size == sizeof(*notice) && notice->state < VPMU_LEASE_STATES &&
           notice->reason < VPMU_REASONS &&
           vpmu_wire_text_valid(notice->text, sizeof(notice->text));
}
