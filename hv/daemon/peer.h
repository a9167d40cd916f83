// SPDX-License-Identifier: BSD-3-Clause
/* Connections of the wire protocol (vpmu/wire.h): VMs, profilers, hooks, observers. */
#ifndef VPMUD_PEER_H
#define VPMUD_PEER_H

#include "daemon.h"
#include "outbox.h"
#include "policy.h"

/* One connection. */
struct peer {
    struct loop_source source;
    struct daemon *daemon;
    struct peer *previous, *next;
    struct credentials credentials;
    bool surplus; /* over the limit, or under no policy: it is told so, and that is all */
    bool doomed;  /* shut down; closed when the loop comes to it */
    struct vpmu_wire_session session;
    struct vpmu_wire_hello hello; /* as it introduced itself */
    uint32_t subscribed;          /* set of enum vpmu_lease_state */
    uint32_t pending;             /* requests without an answer */
    struct entry *entries;        /* that end with it */
    struct outbox outbox;
    struct vpmu_wire_reader reader;
};

/* A new connection. Takes over fd. */
void peer_accept(struct daemon *daemon, int fd);

/* Ends all connections. */
void peer_close_all(struct daemon *daemon);

/* The policy it is under now; NULL: none. */
const struct policy *peer_policy(const struct peer *peer);

/* Answers. Each request gets exactly one. text may be "". */
void peer_done(struct peer *peer, const struct vpmu_wire_header *request);
void peer_grant(struct peer *peer, const struct vpmu_wire_header *request,
                const struct entry *entry, const struct vpmu_answer *why);
void peer_refuse(struct peer *peer, const struct vpmu_wire_header *request,
                 const struct vpmu_answer *why);
void peer_refuse_text(struct peer *peer, const struct vpmu_wire_header *request, vpmu_status status,
                      enum vpmu_reason reason, const char *text);

/* Tells the entry's peer, and observers, if they want to know of this state. */
void peer_notify(struct daemon *daemon, const struct entry *entry,
                 const struct vpmu_wire_notice *notice);

/* Makes an entry end with a peer; and no longer. */
void peer_own(struct peer *peer, struct entry *entry);
void peer_disown(struct entry *entry);

#endif
