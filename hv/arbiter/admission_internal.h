/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission's state, and what its files give each other.
 *
 * Theory of operation
 *
 * Leases are of three classes: CPU-wide ones, firm VMs, and VMs that yield. For each processor and
 * class a tally keeps how many leases need 1, 2, 3 ... GP counters, their sum, and how many have
 * each fixed counter. Sum and largest need are then known without a look at any lease.
 *
 * A claim is judged against layers, each of which takes what the one before does and more: nothing
 * (what the processor has), CPU-wide leases, firm VMs, VMs that yield. The first layer that leaves
 * too little is the reason of a refusal. A VM is judged against CPU-wide leases only: no two vCPUs
 * run on a processor at a time.
 *
 * A request is judged before anything changes; what follows (commit) cannot fail.
 */
#ifndef VPMU_ADMISSION_INTERNAL_H
#define VPMU_ADMISSION_INTERNAL_H

#include "arbiter_internal.h"
#include "vpmu/admission.h"

#define GP_MAX 32u
#define LEVELS (2 * GP_MAX) /* a need and what is beside it */
#define FIXED_MAX 16u

enum class {
    CLASS_CPU,      /* CPU-wide */
    CLASS_FIRM,     /* vCPU-bound */
    CLASS_YIELDING, /* vCPU-bound, VPMU_CLAIM_YIELDS */
    CLASSES,
};

/* What the leases of one class have of one processor. */
struct tally {
    uint64_t sum;                 /* of GP counters */
    uint64_t levels;              /* set: bit n - 1 if a lease has n GP counters */
    uint32_t at_level[LEVELS];    /* how many have n, at n - 1 */
    uint32_t at_fixed[FIXED_MAX]; /* how many have that fixed counter */
    uint32_t leases;
    uint16_t fixed; /* set of those that one has */
};

struct adm_processor {
    struct vpmu_amount capacity;
    struct tally tallies[CLASSES];
};

struct adm_lease {
    struct link ages;
    struct vpmu_amount asked;
    struct vpmu_amount granted;
    struct vpmu_amount beside;
    uint64_t holder;
    uint32_t generation;
    uint8_t binding;
    uint8_t flags;
    bool live;
    bool revoked;
    bool everywhere; /* the claim named no set; the lease's set is not used */
    char name[VPMU_ADMISSION_NAME];
};

struct vpmu_admission {
    uint32_t processor_count;
    uint32_t words; /* of a set */
    bool mediated;
    uint32_t having[CLASSES]; /* leases that have something... */
    uint32_t guest_events;    /* ...and CPU-wide ones of them that count guests */
    struct list ages;         /* live leases, oldest first */
    struct pool pool;
    struct adm_processor *processors;
    uint64_t *online; /* set */
    uint64_t *sets;   /* of each slot */
    struct adm_lease *leases;
};

/* What there is on the processors of a set that are online. */
struct adm_walk {
    const struct vpmu_admission *admission;
    const uint64_t *set;
    uint32_t words;
    uint32_t word; /* the next one */
    uint64_t left; /* of the one before */
    uint32_t processor;
};

/* What is judged: a claim with one of its amounts. */
struct adm_want {
    enum class class;
    bool with_guests;         /* it counts while a guest runs */
    struct vpmu_amount total; /* with what is beside */
    const uint64_t *set;
    uint32_t words;
};

static inline bool adm_has(struct vpmu_amount amount)
{
    return amount.gp || amount.fixed;
}

static inline struct vpmu_amount adm_with(struct vpmu_amount amount, struct vpmu_amount beside)
{
    return (struct vpmu_amount){.gp = (uint16_t)(amount.gp + beside.gp),
                                .fixed = amount.fixed | beside.fixed};
}

/* Whether more has all that less has. */
static inline bool adm_covers(struct vpmu_amount more, struct vpmu_amount less)
{
    return less.gp <= more.gp && !(less.fixed & ~more.fixed);
}

static inline enum class adm_class(uint8_t binding, uint8_t flags) {
    if (binding == VPMU_BOUND_CPU) return CLASS_CPU;
    return flags & VPMU_CLAIM_YIELDS ? CLASS_YIELDING : CLASS_FIRM;
}

/* admission.c */
struct adm_walk adm_walk(const struct vpmu_admission *admission, const uint64_t *set,
                         uint32_t words);
bool adm_walk_next(struct adm_walk *walk);
vpmu_lease adm_handle(const struct vpmu_admission *admission, uint32_t slot);
const uint64_t *adm_set(const struct vpmu_admission *admission, uint32_t slot);

/* The want of a lease as it stands. */
struct adm_want adm_lease_want(const struct vpmu_admission *admission, uint32_t slot);

/* admission_tally.c */
void adm_tally_change(struct vpmu_admission *admission, uint32_t slot, bool more);
struct vpmu_amount adm_sum(const struct tally *tally);
struct vpmu_amount adm_largest(const struct tally *tally);

/* admission_judge.c */

/* Where answers go: the caller's structure, or scratch if it gave none; cleared. */
struct vpmu_answer *adm_answer_begin(struct vpmu_answer *given, struct vpmu_answer *scratch);
vpmu_status adm_answer(struct vpmu_answer *answer, enum vpmu_reason reason);

/* Is the claim well-formed? Answers so if not. */
bool adm_claim_valid(const struct vpmu_admission *admission, const struct vpmu_claim *claim,
                     struct vpmu_answer *answer);
struct adm_want adm_claim_want(const struct vpmu_admission *admission,
                               const struct vpmu_claim *claim, struct vpmu_amount amount);

/* Does it fit? If not, answers where and why; name: also which lease is in the way, O(leases). */
bool adm_fits(const struct vpmu_admission *admission, const struct adm_want *want, bool name,
              struct vpmu_answer *answer);

/* The most of need that fits beside, where beside does. */
struct vpmu_amount adm_most(const struct vpmu_admission *admission, const struct adm_want *want,
                            struct vpmu_amount need, struct vpmu_amount beside);

/* Is the lease in the way of what is wanted, be it together with others? */
bool adm_in_the_way(const struct vpmu_admission *admission, const struct adm_want *want,
                    uint32_t slot);

#endif
