// SPDX-License-Identifier: BSD-3-Clause
/*
 * The client's side of the protocol: ask vpmud for counters, keep the lease, hear what becomes
 * of it.
 *
 *   one shot      vpmu_client_new, _connect, _reserve (with an answer), _free
 *   long-lived    vpmu_client_new, _connect, _acquire, _subscribe, then poll vpmu_client_fd() for
 *                 reading and call _dispatch when it is readable. If any call fails with LOST the
 *                 connection is gone: try _connect from time to time, then _renew
 *   at the end    _release, or just _free: a closed connection gives its leases back
 *
 * Each request takes an answer. If that is not NULL the call waits for it, at most
 * options.timeout_ms. If it is NULL the call only sends, and does not block; the answer comes to
 * options.answered, out of _dispatch. Of each type there is at most one request without an answer.
 *
 * Handlers are called out of _dispatch and out of calls that wait. They may send requests (answer
 * NULL), and must neither wait nor connect nor free.
 *
 * One allocation, in vpmu_client_new. No thread, no signal (never SIGPIPE), no global state; not
 * thread-safe for one client. Every function that can fail returns 0, or -1 and fills in error,
 * which may be NULL.
 */
#ifndef VPMU_CLIENT_H
#define VPMU_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "vpmu/transport.h"
#include "vpmu/wire.h"

/*
 * What can go wrong here, beside what the daemon answers (arbiter.h, wire.h). Each is possible in
 * every function but where it says otherwise.
 */
#define VPMU_CLIENT_UNREACHABLE VPMU_WIRE_STATUS(0x101) /* _connect only: nobody listens there */
#define VPMU_CLIENT_LOST VPMU_WIRE_STATUS(0x102)        /* closed by the daemon, or not connected */
#define VPMU_CLIENT_TIMEOUT                                                                        \
    VPMU_WIRE_STATUS(0x103)                          /* no answer in time; then the connection is  \
                                                        closed, as it is with LOST */
#define VPMU_CLIENT_PROTOCOL VPMU_WIRE_STATUS(0x104) /* the peer is no vpmud: closed as well */
#define VPMU_CLIENT_BUSY VPMU_WIRE_STATUS(0x105)     /* a request of this type has no answer yet */
#define VPMU_CLIENT_ARGUMENT VPMU_WIRE_STATUS(0x106) /* cannot be said: too long, too many, ... */

struct vpmu_client_error {
    vpmu_status status;
    enum vpmu_reason reason;   /* of a refusal; else NONE */
    int system_error;          /* errno, or 0 */
    char text[VPMU_WIRE_TEXT]; /* one line for people, never empty, no newline */
};

/* A positive answer. Fields that its type does not have are 0. */
struct vpmu_client_answer {
    uint32_t type; /* of the request */
    union {
        struct vpmu_wire_grant grant; /* ACQUIRE, RENEW, RESERVE, RESIZE */
        struct vpmu_wire_info info;   /* STATUS */
    };
    uint32_t words; /* STATUS: of processors */
    uint64_t processors[VPMU_WIRE_WORDS_MAX];
};

struct vpmu_client_options {
    const char *path;    /* NULL: VPMU_SOCKET */
    uint32_t kind;       /* enum vpmu_wire_kind */
    const char *name;    /* of the holder, for people; cut to what the wire carries */
    const uint8_t *uuid; /* of the VM, 16 bytes; NULL: none */
    uint32_t timeout_ms; /* of each call that waits; 0: 10 seconds */
    void (*notice)(void *user, const struct vpmu_wire_notice *notice); /* or NULL */
    /* To a request that was sent without an answer: either answer or error is NULL. Or NULL. */
    void (*answered)(void *user, uint32_t type, const struct vpmu_client_answer *answer,
                     const struct vpmu_client_error *error);
    void *user;
};

struct vpmu_client;

/* Copies options. NULL: ARGUMENT (no name, no such kind, path too long), NO_MEMORY. */
struct vpmu_client *vpmu_client_new(const struct vpmu_client_options *options,
                                    struct vpmu_client_error *error);

/* Closes the connection; NULL is allowed. */
void vpmu_client_free(struct vpmu_client *client);

/* ---- Connection ------------------------------------------------------------------------------ */

/*
 * Connects and says HELLO, waiting for the welcome. What was connected before is closed first.
 * UNREACHABLE (errno says why), and what the daemon answers: DENIED, TOO_MANY, VERSION_RANGE.
 */
int vpmu_client_connect(struct vpmu_client *client, struct vpmu_client_error *error);

/*
 * The same without waiting for the welcome, which options.answered gets (type HELLO). Until then
 * only vpmu_client_dispatch() may be called; a request fails with VPMU_WIRE_NOT_NOW.
 */
int vpmu_client_connect_start(struct vpmu_client *client, struct vpmu_client_error *error);

/*
 * As vpmu_client_connect(), over descriptors of the caller's, which the client owns from here on,
 * also if it fails. in and out may be the same. UNREACHABLE: they are no descriptors.
 */
int vpmu_client_attach(struct vpmu_client *client, const struct vpmu_transport *transport, int in,
                       int out, struct vpmu_client_error *error);

/* To be polled for reading; another one after each connect. -1: not connected. */
int vpmu_client_fd(const struct vpmu_client *client);

/* What the daemon said to HELLO; NULL: not connected. */
const struct vpmu_wire_welcome *vpmu_client_welcome(const struct vpmu_client *client);

/*
 * Handles what has come, without blocking, and calls the handlers. LOST, PROTOCOL, and what the
 * daemon says to a HELLO that nobody waits for: the connection is closed; requests without an
 * answer get none.
 */
int vpmu_client_dispatch(struct vpmu_client *client, struct vpmu_client_error *error);

/* ---- Requests -------------------------------------------------------------------------------- */

/*
 * Asks for a lease. With a reservation under the uuid of options: for that.
 * Statuses and reasons of vpmu_admission_acquire(); DENIED. Waiting: DEVICE_BUSY only if VMs
 * have not yielded.
 */
int vpmu_client_acquire(struct vpmu_client *client, const struct vpmu_claim *claim,
                        enum vpmu_shortage_policy policy, struct vpmu_client_answer *answer,
                        struct vpmu_client_error *error);

/*
 * Asks, on a new connection, for the lease that the last ACQUIRE or RENEW of this client granted,
 * with the claim that it had. Handles change. As vpmu_client_acquire(); if the daemon does not know
 * the lease any more, or there never was one, the claim is judged as a new one.
 */
int vpmu_client_renew(struct vpmu_client *client, const struct vpmu_claim *claim,
                      enum vpmu_shortage_policy policy, struct vpmu_client_answer *answer,
                      struct vpmu_client_error *error);

/* The lease of the last ACQUIRE or RENEW that was granted; VPMU_LEASE_NONE after its release. */
vpmu_lease vpmu_client_lease(const struct vpmu_client *client);

/* INVALID_PARAMETER (BAD_HANDLE): it is not this connection's. */
int vpmu_client_release(struct vpmu_client *client, vpmu_lease lease,
                        struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/* Statuses and reasons of vpmu_admission_resize(). */
int vpmu_client_resize(struct vpmu_client *client, vpmu_lease lease, struct vpmu_amount need,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/*
 * Asks for notices of these states (bits 1 << enum vpmu_lease_state) of the connection's leases; an
 * observer, of all.
 */
int vpmu_client_subscribe(struct vpmu_client *client, uint32_t states,
                          struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/*
 * Tells what a VM's counters did: report->counters records at counters. With BUSY it may be
 * forgotten, the next report says it all again. ARGUMENT: more than VPMU_STATUS_COUNTERS.
 */
int vpmu_client_report(struct vpmu_client *client, const struct vpmu_wire_report *report,
                       const struct vpmu_status_counter *counters,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/* What a lease is; VPMU_LEASE_NONE: the connection's first. BAD_HANDLE; DENIED: of another client.
 */
int vpmu_client_status(struct vpmu_client *client, vpmu_lease lease,
                       struct vpmu_client_answer *answer, struct vpmu_client_error *error);

/* Nothing but a round trip. */
int vpmu_client_ping(struct vpmu_client *client, struct vpmu_client_answer *answer,
                     struct vpmu_client_error *error);

/*
 * Reserves for the VM uuid, which is about to start; the reservation survives the connection and
 * ends after timeout_s, unless the VM has claimed it. As vpmu_client_acquire().
 * claim->name is the VM's.
 */
int vpmu_client_reserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                        const struct vpmu_claim *claim, enum vpmu_shortage_policy policy,
                        uint32_t timeout_s, struct vpmu_client_answer *answer,
                        struct vpmu_client_error *error);

/* Frees whatever stands under uuid; nothing there is a success. */
int vpmu_client_unreserve(struct vpmu_client *client, const uint8_t uuid[VPMU_WIRE_UUID],
                          struct vpmu_client_answer *answer, struct vpmu_client_error *error);

#endif
