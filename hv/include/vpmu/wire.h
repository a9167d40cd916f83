// SPDX-License-Identifier: BSD-3-Clause
/*
 * The protocol between vpmud and its clients: layouts, and pure functions for both sides.
 * docs/protocol.md explains it for authors of other implementations.
 *
 * A stream of messages: a header, then a body of the size that the header gives. Both ends run on
 * one machine, so byte order is that machine's; it is little-endian on all that have our PMU.
 *
 *   bytes -> vpmu_wire_read()           reassembles: messages, or a stream that makes no sense
 *         -> vpmu_wire_check_request()  for the daemon: may this be said, by this client, now?
 *            vpmu_wire_check_reply()    for a client: is this an answer to what was asked?
 *   values -> vpmu_wire_put() and the functions behind it -> bytes
 *
 * messages.def says what there is; nothing else in the code does. No clock, no allocation, no I/O.
 */
#ifndef VPMU_WIRE_H
#define VPMU_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/abi.h"
#include "vpmu/admission.h"
#include "vpmu/status.h" /* vpmu_status_counter, vpmu_shortage_policy */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "layouts are read in place");

#define VPMU_SOCKET "/run/vpmud/vpmud.sock"

#define VPMU_WIRE_VERSION 1u     /* in every header, for ever: how a stream is cut into messages */
#define VPMU_PROTOCOL_VERSION 1u /* what the messages mean; agreed upon by HELLO */

#define VPMU_WIRE_BODY_MAX 2048u
#define VPMU_WIRE_WORDS_MAX (VPMU_ADMISSION_PROCESSORS_MAX / 64)
#define VPMU_WIRE_NAME VPMU_ADMISSION_NAME
#define VPMU_WIRE_TEXT 240u
#define VPMU_WIRE_UUID 16u
#define VPMU_WIRE_PENDING_MAX 16u    /* requests of one connection that have no answer yet */
#define VPMU_WIRE_TIMEOUT_MAX 86400u /* seconds of a reservation */

/* ---- Header ---------------------------------------------------------------------------------- */

struct vpmu_wire_header {
    uint32_t type;   /* enum vpmu_wire_type */
    uint32_t flags;  /* enum vpmu_wire_flag */
    uint32_t size;   /* of the body: 0..VPMU_WIRE_BODY_MAX, a multiple of 8 */
    uint32_t serial; /* of a request: its sender's choice, not 0; echoed in the reply; notice: 0 */
};

enum vpmu_wire_flag {
    VPMU_WIRE_FLAG_VERSION = 3,    /* bits 0 and 1: VPMU_WIRE_VERSION */
    VPMU_WIRE_FLAG_REPLY = 1 << 2, /* from the daemon, to the request with this serial */
    VPMU_WIRE_FLAG_ERROR = 1 << 3, /* only with REPLY: the body is struct vpmu_wire_error */
    VPMU_WIRE_FLAGS = 15,
};

enum vpmu_wire_type {
#define VPMU_MESSAGE(name, number, ...) VPMU_WIRE_##name = (number),
#include "vpmu/messages.def"
#undef VPMU_MESSAGE
    VPMU_WIRE_TYPES = 13, /* one more than the largest */
};

/* ---- Statuses -------------------------------------------------------------------------------- */

/*
 * A failed answer has an arbiter's status (DEVICE_BUSY, INSUFFICIENT_RESOURCES, ...) with its
 * reason, or one of these. They are NTSTATUS values with the customer bit.
 */
#define VPMU_WIRE_STATUS(number) (0xE0560000u | (number))

#define VPMU_WIRE_MALFORMED VPMU_WIRE_STATUS(1)     /* a size, a reserved field, a text */
#define VPMU_WIRE_UNKNOWN VPMU_WIRE_STATUS(2)       /* no such request */
#define VPMU_WIRE_NOT_NOW VPMU_WIRE_STATUS(3)       /* before HELLO, a second HELLO */
#define VPMU_WIRE_VERSION_RANGE VPMU_WIRE_STATUS(4) /* no version that both know */
#define VPMU_WIRE_DENIED VPMU_WIRE_STATUS(5)   /* this client, or this user, may not ask for that */
#define VPMU_WIRE_TOO_MANY VPMU_WIRE_STATUS(6) /* connections, or unanswered requests */

/* From here to 0x1FF: what a client says of its connection; never in a message. */
#define VPMU_WIRE_STATUS_CLIENT VPMU_WIRE_STATUS(0x100)

/* ---- Bodies ---------------------------------------------------------------------------------- */

enum vpmu_wire_kind {
    VPMU_KIND_VM = 0,       /* has vCPU-bound leases */
    VPMU_KIND_PROFILER = 1, /* has CPU-wide leases */
    VPMU_KIND_HOOK = 2,     /* reserves for VMs that start */
    VPMU_KIND_OBSERVER = 3, /* only looks */
    VPMU_KINDS = 4,
};

/* Texts are UTF-8 without control characters, ended and filled up with NUL. */

struct vpmu_wire_hello {
    uint16_t version_min; /* of the protocol, both inclusive */
    uint16_t version_max;
    uint32_t features; /* wanted; bits that the daemon does not know are ignored; none exist */
    uint32_t kind;     /* enum vpmu_wire_kind */
    uint32_t reserved; /* 0, as all that are called so */
    uint8_t uuid[VPMU_WIRE_UUID]; /* of the VM, as libvirt writes it; 0: none */
    char name[VPMU_WIRE_NAME];    /* of the holder, for people; not empty */
};

struct vpmu_wire_welcome {
    uint16_t version;    /* of the protocol from now on */
    uint16_t mediated;   /* 0, or 1: the host switches the whole PMU between itself and VMs */
    uint32_t features;   /* those of the wanted ones that it has */
    uint32_t processors; /* of the host */
    uint32_t grace_ms;   /* for how long after a start it keeps what its predecessor granted */
    uint64_t instance;   /* another one at each start of the daemon; not 0 */
    uint32_t notice_ms;  /* between a notice YIELDING and the revocation */
    uint32_t reserved;
};

/* A claim; its set of processors, if it has one, is at the end of the body. */
struct vpmu_wire_claim {
    uint8_t binding; /* enum vpmu_binding: what the kind of client has */
    uint8_t flags;   /* enum vpmu_claim_flag without OBSERVED */
    uint8_t policy;  /* enum vpmu_shortage_policy: for people; least is what decides */
    uint8_t reserved;
    struct vpmu_amount need;
    struct vpmu_amount least;
    struct vpmu_amount beside;
    uint32_t words; /* 0..VPMU_WIRE_WORDS_MAX; 0: every online processor */
    uint32_t reserved2;
};

struct vpmu_wire_acquire {
    struct vpmu_wire_claim claim;
};

struct vpmu_wire_grant {
    vpmu_lease lease;
    struct vpmu_amount granted;
    uint32_t reason;           /* enum vpmu_reason: NONE, or REDUCED */
    char text[VPMU_WIRE_TEXT]; /* who holds the rest, or empty */
};

struct vpmu_wire_lease {
    vpmu_lease lease;
};

struct vpmu_wire_resize {
    vpmu_lease lease;
    struct vpmu_amount need;
    uint32_t reserved;
};

struct vpmu_wire_renew {
    uint64_t instance; /* of the daemon that granted it */
    vpmu_lease lease;
    struct vpmu_wire_claim claim;
};

struct vpmu_wire_reserve {
    uint8_t uuid[VPMU_WIRE_UUID]; /* not 0 */
    char name[VPMU_WIRE_NAME];    /* not empty */
    uint32_t timeout_s;           /* 1..VPMU_WIRE_TIMEOUT_MAX */
    uint32_t reserved;
    struct vpmu_wire_claim claim;
};

struct vpmu_wire_unreserve {
    uint8_t uuid[VPMU_WIRE_UUID]; /* not 0 */
};

/* The state of a lease. */
enum vpmu_lease_state {
    VPMU_LEASE_GRANTED = 0,  /* has what was granted */
    VPMU_LEASE_SHORT = 1,    /* no longer fits beside what others took without asking */
    VPMU_LEASE_YIELDING = 2, /* will be revoked, unless it gives back what is in the way */
    VPMU_LEASE_REVOKED = 3,  /* has nothing */
    VPMU_LEASE_STATES = 4,
};

struct vpmu_wire_subscribe {
    uint32_t states; /* notices of these: bit 1 << enum vpmu_lease_state; 0: none any more */
    uint32_t reserved;
};

/* A lease has another state than before. To its client, and to observers. */
struct vpmu_wire_notice {
    vpmu_lease lease;
    uint32_t state;             /* enum vpmu_lease_state */
    uint32_t reason;            /* enum vpmu_reason */
    uint32_t processor;         /* where, or VPMU_NOT_SET */
    uint32_t until_ms;          /* YIELDING: from now to the revocation; else 0 */
    struct vpmu_amount granted; /* what it has now */
    uint32_t reserved;
    char text[VPMU_WIRE_TEXT];
};

/* What a VM's counters did since its start: the sums, then a record for each counter. */
struct vpmu_wire_report {
    vpmu_lease lease;
    uint32_t vcpus;     /* over which the records are sums; a record's state is the worst */
    uint32_t counters;  /* records at the end of the body: 0..VPMU_STATUS_COUNTERS */
    uint32_t states[8]; /* by enum vpmu_counter_state: counters of all vCPUs in it; the last: 0 */
};

struct vpmu_wire_info {
    vpmu_lease lease;
    uint64_t since; /* seconds since 1970 */
    uint8_t binding;
    uint8_t flags;
    uint8_t state; /* enum vpmu_lease_state */
    uint8_t reserved;
    struct vpmu_amount asked;
    struct vpmu_amount granted;
    struct vpmu_amount beside;
    uint32_t words; /* of the set of processors at the end of the body */
    uint32_t reserved2;
    uint8_t uuid[VPMU_WIRE_UUID];
    char name[VPMU_WIRE_NAME];
    char text[VPMU_WIRE_TEXT]; /* why the state is what it is, or empty */
};

struct vpmu_wire_error {
    uint32_t status;           /* see Statuses */
    uint32_t reason;           /* enum vpmu_reason; NONE with a status of the wire's */
    char text[VPMU_WIRE_TEXT]; /* what was asked, what is there, who holds the rest; not empty */
};

/* Sizes are the protocol's; no field crosses its natural alignment, so there is no padding. */
_Static_assert(sizeof(struct vpmu_wire_header) == 16, "header");
_Static_assert(sizeof(struct vpmu_amount) == 4, "amount");
_Static_assert(sizeof(struct vpmu_wire_hello) == 96, "hello");
_Static_assert(offsetof(struct vpmu_wire_hello, uuid) == 16, "hello");
_Static_assert(sizeof(struct vpmu_wire_welcome) == 32, "welcome");
_Static_assert(offsetof(struct vpmu_wire_welcome, instance) == 16, "welcome");
_Static_assert(sizeof(struct vpmu_wire_claim) == 24, "claim");
_Static_assert(offsetof(struct vpmu_wire_claim, words) == 16, "claim");
_Static_assert(sizeof(struct vpmu_wire_acquire) == 24, "acquire");
_Static_assert(sizeof(struct vpmu_wire_grant) == 256, "grant");
_Static_assert(offsetof(struct vpmu_wire_grant, text) == 16, "grant");
_Static_assert(sizeof(struct vpmu_wire_lease) == 8, "lease");
_Static_assert(sizeof(struct vpmu_wire_resize) == 16, "resize");
_Static_assert(sizeof(struct vpmu_wire_renew) == 40, "renew");
_Static_assert(sizeof(struct vpmu_wire_reserve) == 112, "reserve");
_Static_assert(offsetof(struct vpmu_wire_reserve, claim) == 88, "reserve");
_Static_assert(sizeof(struct vpmu_wire_unreserve) == 16, "unreserve");
_Static_assert(sizeof(struct vpmu_wire_subscribe) == 8, "subscribe");
_Static_assert(sizeof(struct vpmu_wire_notice) == 272, "notice");
_Static_assert(offsetof(struct vpmu_wire_notice, text) == 32, "notice");
_Static_assert(sizeof(struct vpmu_wire_report) == 48, "report");
_Static_assert(sizeof(struct vpmu_wire_info) == 360, "info");
_Static_assert(offsetof(struct vpmu_wire_info, words) == 32, "info");
_Static_assert(sizeof(struct vpmu_wire_error) == 248, "error");
_Static_assert(VPMU_COUNTER_STATES < 8, "a state for each element of a report");

/* ---- Messages -------------------------------------------------------------------------------- */

/* A whole message, as it is on the wire. */
struct vpmu_wire_message {
    struct vpmu_wire_header header;
    union {
        uint8_t body[VPMU_WIRE_BODY_MAX];
        struct vpmu_wire_hello hello;
        struct vpmu_wire_welcome welcome;
        struct vpmu_wire_acquire acquire;
        struct vpmu_wire_grant grant;
        struct vpmu_wire_lease lease;
        struct vpmu_wire_resize resize;
        struct vpmu_wire_renew renew;
        struct vpmu_wire_reserve reserve;
        struct vpmu_wire_unreserve unreserve;
        struct vpmu_wire_subscribe subscribe;
        struct vpmu_wire_notice notice;
        struct vpmu_wire_report report;
        struct vpmu_wire_info info;
        struct vpmu_wire_error error;
        uint64_t words[VPMU_WIRE_BODY_MAX / 8];
    };
};

_Static_assert(sizeof(struct vpmu_wire_message) == 16 + VPMU_WIRE_BODY_MAX, "message");

/* Bytes of the message on the wire. */
static inline uint32_t vpmu_wire_size(const struct vpmu_wire_message *message)
{
    return (uint32_t)sizeof(message->header) + message->header.size;
}

/* What may follow a body's struct. */
enum vpmu_wire_tail {
    VPMU_WIRE_NO_TAIL,
    VPMU_WIRE_PROCESSORS, /* uint64_t */
    VPMU_WIRE_COUNTERS,   /* struct vpmu_status_counter */
};

#define VPMU_WIRE_NONE UINT32_MAX /* of a size below: there is no such message */

/* What messages.def says of a type. */
struct vpmu_wire_row {
    const char *name;      /* "ACQUIRE" */
    uint32_t request_size; /* of the struct, without a tail */
    uint32_t reply_size;   /* of NOTICE: the notice's */
    enum vpmu_wire_tail request_tail;
    enum vpmu_wire_tail reply_tail;
    uint32_t kinds; /* bit 1 << enum vpmu_wire_kind */
};

/* NULL: there is no such type. */
const struct vpmu_wire_row *vpmu_wire_row(uint32_t type);

/* "VM", "profiler", "hook", "observer"; "?" if there is no such kind. */
const char *vpmu_wire_kind_name(uint32_t kind);

/* "granted", "short", "yielding", "revoked"; "?" if there is no such state. */
const char *vpmu_lease_state_name(uint32_t state);

/* A status in words ("insufficient resources"); "unknown status" if it is none of ours. */
const char *vpmu_wire_status_name(uint32_t status);

/* ---- Reassembling ---------------------------------------------------------------------------- */

/* All zero at the beginning of a stream. */
struct vpmu_wire_reader {
    uint32_t have; /* bytes of message, between messages 0 */
    bool broken;
    bool whole;
    struct vpmu_wire_message message;
};

enum vpmu_wire_progress {
    VPMU_WIRE_MORE = 0,    /* all of data is used up; the next message is not complete yet */
    VPMU_WIRE_MESSAGE = 1, /* reader->message is one, until the next call; call again */
    VPMU_WIRE_BROKEN = -1, /* not a stream of ours: its header makes no sense. Close it. For good */
};

/*
 * Takes bytes from *data, of which there are *size, and moves both on. A header is sane if its
 * version is ours, no other flags are set than those that exist, ERROR comes only with REPLY, and
 * the size is a multiple of 8 within the bound. Whatever the bytes are: never reads beyond them.
 */
enum vpmu_wire_progress vpmu_wire_read(struct vpmu_wire_reader *reader, const uint8_t **data,
                                       size_t *size);

/* ---- Checking -------------------------------------------------------------------------------- */

/* What the daemon knows of a connection. All zero at its beginning. */
struct vpmu_wire_session {
    bool ready;    /* HELLO has been answered with a welcome */
    uint32_t kind; /* then: enum vpmu_wire_kind */
};

/*
 * Whether a message may be sent to a daemon in this state: an existing request, not a reply, its
 * serial not 0, legal now and for this kind, its size right with its tail, reserved fields 0, texts
 * as they must be, enums in range. What a claim asks for is the arbiter's to judge.
 *
 * SUCCESS, or the status to answer with: MALFORMED, UNKNOWN, NOT_NOW, VERSION_RANGE, DENIED; text
 * then says what is wrong, in at most VPMU_WIRE_TEXT bytes. Not for the caller to close for.
 */
vpmu_status vpmu_wire_check_request(const struct vpmu_wire_message *message,
                                    const struct vpmu_wire_session *session,
                                    char text[VPMU_WIRE_TEXT]);

/* Whether a message is a sound answer, or error, to a request of that type. True: it is. */
bool vpmu_wire_check_reply(const struct vpmu_wire_message *message, uint32_t type);

/* Whether a message is a sound notice. */
bool vpmu_wire_check_notice(const struct vpmu_wire_message *message);

/* Whether size bytes are a text of the wire's: UTF-8 without control characters, filled with NUL.
 */
bool vpmu_wire_text_valid(const char *text, size_t size);

/* ---- Making ---------------------------------------------------------------------------------- */

/*
 * Makes message: body, of which there are size bytes, then tail. Returns vpmu_wire_size(message).
 * The caller's sizes are right: together at most VPMU_WIRE_BODY_MAX and multiples of 8.
 */
uint32_t vpmu_wire_put(struct vpmu_wire_message *message, uint32_t type, uint32_t flags,
                       uint32_t serial, const void *body, uint32_t size, const void *tail,
                       uint32_t tail_size);

/* The answer to request: body has the size that the row says. As vpmu_wire_put(). */
uint32_t vpmu_wire_reply(struct vpmu_wire_message *message, const struct vpmu_wire_header *request,
                         const void *body);

/* The answer STATUS with its set, of info->words words. */
uint32_t vpmu_wire_reply_info(struct vpmu_wire_message *message,
                              const struct vpmu_wire_header *request,
                              const struct vpmu_wire_info *info, const uint64_t *processors);

/* The answer that request has failed. text is cut to fit; what the wire cannot carry becomes '?'.
 */
uint32_t vpmu_wire_refuse(struct vpmu_wire_message *message, const struct vpmu_wire_header *request,
                          vpmu_status status, enum vpmu_reason reason, const char *text);

uint32_t vpmu_wire_notify(struct vpmu_wire_message *message, const struct vpmu_wire_notice *notice);

/*
 * Copies a text into a field of size bytes: cut at a character's end, filled with NUL; each byte
 * that the wire does not carry becomes '?'.
 */
void vpmu_wire_text(char *field, size_t size, const char *text);

/* A claim without its set, for the wire. Its words must be at most VPMU_WIRE_WORDS_MAX. */
void vpmu_wire_claim_write(struct vpmu_wire_claim *wire, const struct vpmu_claim *claim,
                           enum vpmu_shortage_policy policy);

/*
 * The claim of a checked ACQUIRE, RENEW or RESERVE, and its policy. The set stays in message.
 * Holder is 0; the name is that of a RESERVE, else NULL.
 */
void vpmu_wire_claim_read(const struct vpmu_wire_message *message, struct vpmu_claim *claim,
                          enum vpmu_shortage_policy *policy);

/* What follows the struct in a checked message. */
const void *vpmu_wire_tail(const struct vpmu_wire_message *message);

#endif
