// SPDX-License-Identifier: BSD-3-Clause
/* What messages there are, and how they are made. Pure. */
#include <string.h>

#include "vpmu/utf8.h"
#include "vpmu/wire.h"

#define BODY(name) ((uint32_t)sizeof(struct vpmu_wire_##name))
#define EMPTY 0u
#define NONE VPMU_WIRE_NONE
#define NO_TAIL VPMU_WIRE_NO_TAIL
#define PROCESSORS VPMU_WIRE_PROCESSORS
#define COUNTERS VPMU_WIRE_COUNTERS
#define VM (1u << VPMU_KIND_VM)
#define PROFILER (1u << VPMU_KIND_PROFILER)
#define HOOK (1u << VPMU_KIND_HOOK)
#define OBSERVER (1u << VPMU_KIND_OBSERVER)
#define ANY (VM | PROFILER | HOOK | OBSERVER)

static const struct vpmu_wire_row rows[VPMU_WIRE_TYPES] = {
#define VPMU_MESSAGE(title, number, request, tail, reply, reply_end, who)                          \
    [number] = {#title, request, reply, tail, reply_end, who},
#include "vpmu/messages.def"
#undef VPMU_MESSAGE
};

const struct vpmu_wire_row *vpmu_wire_row(uint32_t type)
{
    return type < VPMU_WIRE_TYPES && rows[type].name ? &rows[type] : NULL;
}

/* ---- Names ----------------------------------------------------------------------------------- */

const char *vpmu_wire_kind_name(uint32_t kind)
{
    static const char *const names[VPMU_KINDS] = {
        [VPMU_KIND_VM] = "VM",
        [VPMU_KIND_PROFILER] = "profiler",
        [VPMU_KIND_HOOK] = "hook",
        [VPMU_KIND_OBSERVER] = "observer",
    };

    return kind < VPMU_KINDS ? names[kind] : "?";
}

const char *vpmu_lease_state_name(uint32_t state)
{
    static const char *const names[VPMU_LEASE_STATES] = {
        [VPMU_LEASE_GRANTED] = "granted",
        [VPMU_LEASE_SHORT] = "short",
        [VPMU_LEASE_YIELDING] = "yielding",
        [VPMU_LEASE_REVOKED] = "revoked",
    };

    return state < VPMU_LEASE_STATES ? names[state] : "?";
}

const char *vpmu_wire_status_name(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *name;
    } names[] = {
        {VPMU_STATUS_SUCCESS, "success"},
        {VPMU_STATUS_DEVICE_BUSY, "busy"},
        {VPMU_STATUS_UNSUCCESSFUL, "unsuccessful"},
        {VPMU_STATUS_INVALID_PARAMETER, "invalid parameter"},
        {VPMU_STATUS_NO_MEMORY, "no memory"},
        {VPMU_STATUS_INSUFFICIENT_RESOURCES, "insufficient resources"},
        {VPMU_STATUS_NOT_SUPPORTED, "not supported"},
        {VPMU_WIRE_MALFORMED, "malformed message"},
        {VPMU_WIRE_UNKNOWN, "unknown message"},
        {VPMU_WIRE_NOT_NOW, "not now"},
        {VPMU_WIRE_VERSION_RANGE, "no common version"},
        {VPMU_WIRE_DENIED, "denied"},
        {VPMU_WIRE_TOO_MANY, "too many"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown status";
}

/* ---- Texts ----------------------------------------------------------------------------------- */

bool vpmu_wire_text_valid(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && text[at]) {
        size_t length = vpmu_utf8_length(text + at, size - at);

        if (!length)
            return false;
        at += length;
    }
    if (at == size)
        return false;
    while (at < size)
        if (text[at++])
            return false;
    return true;
}

void vpmu_wire_text(char *field, size_t size, const char *text)
{
    size_t left = strlen(text), at = 0;

    memset(field, 0, size);
    while (left) {
        size_t length = vpmu_utf8_length(text, left);
        size_t step = length ? length : 1;

        if (at + step >= size)
            return;
        if (length)
            memcpy(field + at, text, length);
        else
            field[at] = '?';
        at += step;
        text += step;
        left -= step;
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

uint32_t vpmu_wire_put(struct vpmu_wire_message *message, uint32_t type, uint32_t flags,
                       uint32_t serial, const void *body, uint32_t size, const void *tail,
                       uint32_t tail_size)
{
    message->header = (struct vpmu_wire_header){
        .type = type,
        .flags = VPMU_WIRE_VERSION | flags,
        .size = size + tail_size,
        .serial = serial,
    };
    if (size)
        memcpy(message->body, body, size);
    if (tail_size)
        memcpy(message->body + size, tail, tail_size);
    return vpmu_wire_size(message);
}

uint32_t vpmu_wire_reply(struct vpmu_wire_message *message, const struct vpmu_wire_header *request,
                         const void *body)
{
    return vpmu_wire_put(message, request->type, VPMU_WIRE_FLAG_REPLY, request->serial, body,
                         rows[request->type].reply_size, NULL, 0);
}

uint32_t vpmu_wire_reply_info(struct vpmu_wire_message *message,
                              const struct vpmu_wire_header *request,
                              const struct vpmu_wire_info *info, const uint64_t *processors)
{
    return vpmu_wire_put(message, request->type, VPMU_WIRE_FLAG_REPLY, request->serial, info,
                         sizeof(*info), processors, info->words * (uint32_t)sizeof(*processors));
}

uint32_t vpmu_wire_refuse(struct vpmu_wire_message *message, const struct vpmu_wire_header *request,
                          vpmu_status status, enum vpmu_reason reason, const char *text)
{
    struct vpmu_wire_error error = {.status = status, .reason = reason};

    vpmu_wire_text(error.text, sizeof(error.text), *text ? text : vpmu_wire_status_name(status));
    return vpmu_wire_put(message, request->type, VPMU_WIRE_FLAG_REPLY | VPMU_WIRE_FLAG_ERROR,
                         request->serial, &error, sizeof(error), NULL, 0);
}

uint32_t vpmu_wire_notify(struct vpmu_wire_message *message, const struct vpmu_wire_notice *notice)
{
    return vpmu_wire_put(message, VPMU_WIRE_NOTICE, 0, 0, notice, sizeof(*notice), NULL, 0);
}

/* ---- Claims ---------------------------------------------------------------------------------- */

void vpmu_wire_claim_write(struct vpmu_wire_claim *wire, const struct vpmu_claim *claim,
                           enum vpmu_shortage_policy policy)
{
    *wire = (struct vpmu_wire_claim){
        .binding = claim->binding,
        .flags = claim->flags,
        .policy = (uint8_t)policy,
        .need = claim->need,
        .least = claim->least,
        .beside = claim->beside,
        .words = claim->processors ? claim->words : 0,
    };
}

static const struct vpmu_wire_claim *claim_of(const struct vpmu_wire_message *message)
{
    switch (message->header.type) {
    case VPMU_WIRE_RENEW:
        return &message->renew.claim;
    case VPMU_WIRE_RESERVE:
        return &message->reserve.claim;
    default:
        return &message->acquire.claim;
    }
}

void vpmu_wire_claim_read(const struct vpmu_wire_message *message, struct vpmu_claim *claim,
                          enum vpmu_shortage_policy *policy)
{
    const struct vpmu_wire_claim *wire = claim_of(message);

    *claim = (struct vpmu_claim){
        .binding = wire->binding,
        .flags = wire->flags,
        .need = wire->need,
        .least = wire->least,
        .beside = wire->beside,
        .processors = wire->words ? vpmu_wire_tail(message) : NULL,
        .words = wire->words,
        .name = message->header.type == VPMU_WIRE_RESERVE ? message->reserve.name : NULL,
    };
    *policy = (enum vpmu_shortage_policy)wire->policy;
}

/* A reply's and a notice's struct stand in the other column. */
const void *vpmu_wire_tail(const struct vpmu_wire_message *message)
{
    const struct vpmu_wire_row *row = &rows[message->header.type];

    return message->body +
           (message->header.flags & VPMU_WIRE_FLAG_REPLY ? row->reply_size : row->request_size);
}
