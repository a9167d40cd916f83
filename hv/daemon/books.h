// SPDX-License-Identifier: BSD-3-Clause
/*
 * The books: every lease of the machine, and whose it is.
 *
 * vpmu/admission.h decides what fits; the books know the rest of a lease: the name, the uuid, the
 * connection that it ends with, since when it stands. An entry has a number of its own, which its
 * holder and people use: it stays the same when what admission has granted is taken back and given
 * again.
 */
#ifndef VPMUD_BOOKS_H
#define VPMUD_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loop.h"
#include "vpmu/abi.h"
#include "vpmu/admission.h"
#include "vpmu/wire.h"

struct peer;

#define BOOKS_UUID VPMU_WIRE_UUID
#define BOOKS_SET_WORDS (VPMU_ADMISSION_PROCESSORS_MAX / 64)

enum entry_state {
    ENTRY_LIVE,     /* its holder is connected */
    ENTRY_RESERVED, /* for a VM that has not come yet */
    ENTRY_HELD,     /* its holder was connected to the daemon before this one */
    ENTRY_OBSERVED, /* nobody has asked for it: it is there */
    ENTRY_STATES,
};

extern const char *const entry_state_names[ENTRY_STATES];

/* What a VM has last said of its counters. */
struct entry_report {
    int64_t reported_ms;                  /* since 1970 */
    uint32_t vcpus;                       /* over which the counters are sums */
    uint32_t states[VPMU_COUNTER_STATES]; /* how many counters of all vCPUs are in each */
    uint32_t count;
    struct vpmu_status_counter counters[]; /* count of them */
};

/* Who a lease is for. */
struct entry_owner {
    enum entry_state state;
    uint32_t kind; /* enum vpmu_wire_kind */
    uint8_t uuid[BOOKS_UUID];
    char name[VPMU_ADMISSION_NAME];
    uid_t uid;
    pid_t pid;
    int64_t since_ms;  /* wall clock */
    uint64_t identity; /* OBSERVED: holder of the host's claim; HELD: instance that granted it */
};

struct entry {
    uint64_t id;      /* never 0 */
    vpmu_lease lease; /* admission's */
    struct entry_owner owner;
    struct vpmu_amount need, least; /* of the claim */
    bool every;                     /* the claim named every online processor */
    bool yielded;                   /* revoked in favour of another: restored when that is gone */
    bool is_short;                  /* what is observed leaves too little for it */
    struct entry_report *report;    /* NULL: none yet */
    struct peer *peer;              /* LIVE only */
    struct entry *next_of_peer;
    struct loop_timer expiry;      /* RESERVED only */
    void *user;                    /* for expiry */
    bool yielding;                 /* has been told to yield */
    uint64_t mark;                 /* requests.c */
    struct entry *previous, *next; /* by id */
};

struct books;

/* NULL: out of range, or no memory. */
struct books *books_new(const struct vpmu_admission_config *config);
void books_free(struct books *books);

const struct vpmu_admission *books_admission(const struct books *books);

/*
 * Enters a lease if admission grants it. id: 0, or one that no entry has. NULL, and answer says
 * why. answer->lease is an entry's id, here and in every answer of the books.
 */
struct entry *books_enter(struct books *books, uint64_t id, const struct entry_owner *owner,
                          const struct vpmu_claim *claim, struct vpmu_amount *granted,
                          struct vpmu_answer *answer);

/* Ends an entry's lease and frees it; it is in no peer's list and its timer is not set. */
void books_strike(struct books *books, struct entry *entry);

/* As their namesakes in vpmu/admission.h. */
bool books_set_online(struct books *books, const uint64_t *online, uint32_t words);
vpmu_status books_resize(struct books *books, struct entry *entry, struct vpmu_amount need,
                         struct vpmu_answer *answer);
vpmu_status books_revoke(struct books *books, struct entry *entry, struct vpmu_answer *answer);
bool books_short(const struct books *books, const struct entry *entry, struct vpmu_answer *answer);

/* The entry that must yield first for claim; NULL: none. */
struct entry *books_yielding(const struct books *books, const struct vpmu_claim *claim,
                             const struct entry *after);

/* Gives a revoked entry again what it had asked for. False: it does not fit; nothing changes. */
bool books_restore(struct books *books, struct entry *entry, struct vpmu_amount *granted);

/*
 * Makes a reservation or a held lease the one of claim and owner, under the same id. If admission
 * does not grant claim in its place the entry stays as it was.
 */
vpmu_status books_take_over(struct books *books, struct entry *entry,
                            const struct entry_owner *owner, const struct vpmu_claim *claim,
                            struct vpmu_amount *granted, struct vpmu_answer *answer);

/* NULL: there is none. */
struct entry *books_find(const struct books *books, uint64_t id);

/* The reservation for a uuid. */
struct entry *books_reservation(const struct books *books, const uint8_t uuid[BOOKS_UUID]);

/* All of them in the order of their ids; NULL begins and ends the round. */
struct entry *books_next(const struct books *books, const struct entry *entry);

/* What admission has of an entry. */
void books_lease(const struct books *books, const struct entry *entry,
                 struct vpmu_admission_lease *lease);

/* The claim by which the entry would be asked for again; its processors are the entry's. */
struct vpmu_claim books_claim(const struct books *books, const struct entry *entry);

/* How many entries are in a state. */
uint32_t books_count(const struct books *books, enum entry_state state);

/* The id that the next entry gets, unless it brings its own. */
uint64_t books_next_id(const struct books *books);
void books_begin_at(struct books *books, uint64_t id);

/* A uuid that nobody has: all zero. */
bool uuid_is_set(const uint8_t uuid[BOOKS_UUID]);

#endif
