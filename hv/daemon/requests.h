// SPDX-License-Identifier: BSD-3-Clause
/* What becomes of a request: granted, refused, or pending. See requests.c. */
#ifndef VPMUD_REQUESTS_H
#define VPMUD_REQUESTS_H

#include "daemon.h"
#include "peer.h"

/* The requests of peers; each is answered through peer.h, now or later. */
void request_acquire(struct peer *peer, const struct vpmu_wire_header *header,
                     const struct vpmu_claim *claim);
void request_renew(struct peer *peer, const struct vpmu_wire_header *header, uint64_t instance,
                   uint64_t id, const struct vpmu_claim *claim);
void request_release(struct peer *peer, const struct vpmu_wire_header *header, uint64_t id);
void request_resize(struct peer *peer, const struct vpmu_wire_header *header, uint64_t id,
                    struct vpmu_amount need);
void request_reserve(struct peer *peer, const struct vpmu_wire_header *header,
                     const struct vpmu_wire_reserve *wire, const struct vpmu_claim *claim);
void request_unreserve(struct peer *peer, const struct vpmu_wire_header *header,
                       const uint8_t uuid[BOOKS_UUID]);

/* entry is the peer's; counters follow the report in its message. */
void request_report(struct peer *peer, const struct vpmu_wire_header *header, struct entry *entry,
                    const struct vpmu_wire_report *wire,
                    const struct vpmu_status_counter *counters);

/* A peer has gone: its leases end, what it has asked for is forgotten. */
void requests_forget(struct peer *peer);

/* Takes an entry's counters away for good, as its operator wants. */
vpmu_status requests_revoke(struct daemon *daemon, struct entry *entry, const char *by,
                            struct vpmu_answer *answer);

/* Something may fit now: looks at what is pending, then gives back what was yielded. */
void requests_settle(struct daemon *daemon);

/* Looks again which VMs no longer fit beside what is observed, and tells them. */
void requests_look_for_short(struct daemon *daemon);

/* The state of an entry's lease, as clients are told it. */
enum vpmu_lease_state requests_state(const struct daemon *daemon, const struct entry *entry);

/* Why that state is what it is, or "". */
void requests_explain(const struct daemon *daemon, const struct entry *entry,
                      char text[VPMU_WIRE_TEXT]);

/* A notice of that state; reason and text are for the caller. */
struct vpmu_wire_notice requests_notice(const struct daemon *daemon, const struct entry *entry);

/* At the start, when the state file has been read: the grace period begins, if there is one. */
void requests_begin(struct daemon *daemon);

/* A reservation that the state file has: it expires. */
void requests_expire(struct daemon *daemon, struct entry *entry, uint64_t in_ms);

/* At the end. */
void requests_free(struct daemon *daemon);

#endif
