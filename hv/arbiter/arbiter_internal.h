/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arbiter's state, and what its files give each other.
 *
 * Theory of operation
 *
 * Every processor has a set of resources that exist and a set of those that are taken, one bit each
 * (see "resource" in vpmu/arbiter.h), and for each taken bit the slot of the lease that has it. A
 * conflict is one AND per processor; who is in the way is one look-up.
 *
 * A lease holds the same resources on all its processors (those of them that exist there), so its
 * record has constant size: a set of resources, and its processors as a chain of spans, one for
 * each group that it names. A lease over every processor has no spans. The whole PMU is one word:
 * which lease has it. It can be had only while no lease lives, so it needs no mark on any
 * processor, and every other request looks at that word first.
 *
 * Leases, spans and holders come from pools of a fixed size. Leases are chained twice, by age and
 * by holder. References are 32-bit slots, not pointers: records stay small.
 *
 * A request passes through judge (request.c: is it well-formed, can it be had at all), look (is any
 * of it held, is there room) and commit (lease.c), which cannot fail: nothing changes before all is
 * known to succeed.
 */
#ifndef VPMU_ARBITER_INTERNAL_H
#define VPMU_ARBITER_INTERNAL_H

#include "vpmu/arbiter.h"

#define NIL UINT32_MAX
#define GROUP_SIZE 64u
#define BIT(n) (UINT64_C(1) << (n))

struct group {
    uint64_t online;
    uint64_t stamp; /* of the request that named it last */
};

struct processor {
    uint64_t exists;
    uint64_t taken;
    uint32_t version;
    uint32_t owner[VPMU_INDEX_MAX + 1]; /* lease slots; defined where taken */
};

/* The processors of one group that a lease covers. */
struct span {
    uint64_t mask;
    uint32_t group;
    uint32_t next; /* of the same lease */
};

enum chain {
    CHAIN_AGE,
    CHAIN_HOLDER,
    CHAINS,
};

struct link {
    uint32_t previous;
    uint32_t next;
};

struct list {
    uint32_t first;
    uint32_t last;
};

/* What a request asks for on each of its processors. */
struct demand {
    uint64_t resources;
    uint64_t overflow_handler;
    struct vpmu_event_buffer event_buffer;
    uint32_t tag;
    bool has_tag;
    bool all_processors; /* no affinity was given */
    bool whole;          /* neither was */
};

struct lease {
    struct demand demand;
    uint32_t generation;
    bool live;
    uint32_t holder;
    uint32_t spans;
    struct link links[CHAINS];
};

struct holder {
    struct vpmu_holder who;
    struct list leases;
    uint32_t references; /* leases, and the profiling set */
    uint32_t next;       /* in its bucket */
};

/*
 * Slots of an array of a fixed size. A free slot has the next one in a field of its record; slots
 * at or above fresh were never used.
 */
struct pool {
    unsigned char *links; /* that field of the first record */
    size_t stride;        /* from record to record */
    uint32_t free;
    uint32_t fresh;
    uint32_t limit;
    uint32_t used;
};

struct profiling {
    struct vpmu_hardware_counter counters[VPMU_PROFILING_MAX];
    uint32_t count;
    uint32_t holder; /* NIL while it is empty */
    uint32_t threads;
};

struct vpmu_arbiter {
    uint32_t mode;
    uint32_t group_count;
    uint32_t processor_count;
    uint32_t bare;         /* the first online processor without a counter, or NIL */
    uint64_t common;       /* resources of every online processor */
    uint64_t stamp;        /* of the last request with an affinity */
    uint32_t whole;        /* the lease that has the whole PMU, or NIL */
    unsigned bucket_shift; /* a hash's top bits are its bucket */
    struct list ages;      /* live leases, oldest first */
    struct profiling profiling;
    struct pool lease_pool, span_pool, holder_pool;
    struct group *groups;
    struct processor *processors;
    struct lease *leases;
    struct span *spans;
    struct holder *holders;
    uint32_t *buckets;
};

/*
 * The processors of a request or of a lease, in ascending order within each group:
 *
 *     for (struct walk walk = arb_walk_lease(arbiter, slot); arb_walk_next(&walk);)
 *         look_at(&arbiter->processors[walk.processor]);
 */
struct walk {
    const struct vpmu_arbiter *arbiter;
    const struct vpmu_affinity *entry; /* what comes next is an affinity entry up to end, */
    const struct vpmu_affinity *end;
    uint32_t span;  /* or a span, */
    uint32_t group; /* or, if every processor is wanted, this group */
    bool all;
    uint32_t base; /* the first processor of the group at hand */
    uint64_t left; /* and what is left of it */
    uint32_t processor;
};

/* arbiter.c */
struct walk arb_walk_all(const struct vpmu_arbiter *arbiter);
struct walk arb_walk_request(const struct vpmu_arbiter *arbiter,
                             const struct vpmu_request *request);
struct walk arb_walk_lease(const struct vpmu_arbiter *arbiter, uint32_t slot);
bool arb_walk_next(struct walk *walk);

static inline uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set);
}

static inline bool has_mode(const struct vpmu_arbiter *arbiter, enum vpmu_mode mode)
{
    return (arbiter->mode & (uint32_t)mode) != 0;
}

/* text.c */
struct text {
    char *to;
    size_t size;
    size_t length; /* of the whole, whether it fits or not */
};

void arb_put_char(struct text *text, char c);
void arb_put_string(struct text *text, const char *string);
void arb_put_number(struct text *text, uint64_t number, unsigned base);
size_t arb_text_end(struct text *text); /* writes the NUL; returns the length of the whole */

/* explain.c */

/* Where explanations go: the caller's structure, or scratch if it gave none; cleared. */
struct vpmu_explanation *arb_explain_begin(struct vpmu_explanation *given,
                                           struct vpmu_explanation *scratch);

/* Records the answer and returns its status. */
vpmu_status arb_explain(struct vpmu_explanation *why, vpmu_status status, enum vpmu_cause cause);

/* The same, for something that the lease in slot has. */
vpmu_status arb_explain_lease(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why,
                              vpmu_status status, enum vpmu_cause cause, uint32_t slot);

/* There is no slot left for a lease, its spans or its holder. */
vpmu_status arb_explain_no_room(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why);

/* request.c */

/* Is the request well-formed, and do its processors have what it asks for? Fills demand if so. */
vpmu_status arb_request_judge(struct vpmu_arbiter *arbiter, const struct vpmu_request *request,
                              struct demand *demand, struct vpmu_explanation *why);

/*
 * Is there a counter on each processor of a request without a list? If not, explains so with the
 * given status: Hyper-V answers success where there is none, and so do we, but never in silence.
 */
vpmu_status arb_request_backing(const struct vpmu_arbiter *arbiter,
                                const struct vpmu_request *request, vpmu_status status,
                                struct vpmu_explanation *why);

/* pool.c */
void arb_pool_init(struct pool *pool, uint32_t *first_link, size_t stride, uint32_t limit);
uint32_t arb_pool_take(struct pool *pool); /* the caller has asked arb_pool_left() */
void arb_pool_put(struct pool *pool, uint32_t slot);

static inline uint32_t arb_pool_left(const struct pool *pool)
{
    return pool->limit - pool->used;
}

/* holder.c */
uint32_t arb_holder_find(const struct vpmu_arbiter *arbiter, uint64_t id);
bool arb_holder_has_room(const struct vpmu_arbiter *arbiter, uint64_t id);
uint32_t arb_holder_get(struct vpmu_arbiter *arbiter, const struct vpmu_holder *who);
void arb_holder_put(struct vpmu_arbiter *arbiter, uint32_t slot);

/* lease.c */
uint32_t arb_lease_find(const struct vpmu_arbiter *arbiter, vpmu_lease lease);

/* The handle of a slot; VPMU_LEASE_NONE for NIL. */
vpmu_lease arb_lease_handle(const struct vpmu_arbiter *arbiter, uint32_t slot);

/* profiling.c */
void arb_profiling_clear(struct vpmu_arbiter *arbiter);

#endif
