/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validity: whether the counters of a guest really count, found out by looking at them.
 *
 * KVM backs a guest's counter with a perf event of the host. If that cannot be created, or loses
 * its place to a pinned event of the host, the guest's counter stands still and nobody is told. So
 * one looks, now and then, at what the guest has enabled. An instructions or cycles counter that
 * has stood still while the guest demonstrably executed in a ring that it counts is starved. All
 * other events can truly be zero and are never judged by their value; they share the fate of the
 * counters beside them only in that nothing is said of them.
 *
 * What shows that the guest executed: its vCPU's thread ran, it was halted at neither look, and
 *   - the counter counts in every ring: nothing more is needed
 *   - the counter counts in one ring: the guest was in that ring at both looks
 * A verdict takes VPMU_VALIDITY_LOOKS intervals in a row, since a thread also runs in the host, and
 * a guest may have been in another ring, or halted, between two looks. One count ends it at once. A
 * halted or idle guest gives no evidence, for or against, and its verdict stands.
 *
 * No event is opened and nothing is written: a look takes no counter from anybody.
 *
 * Pure: no clock, no allocation, no I/O.
 */
#ifndef VPMU_VALIDITY_H
#define VPMU_VALIDITY_H

#include <stdbool.h>
#include <stdint.h>

#include "vpmu/abi.h"

#define VPMU_VALIDITY_LOOKS 2u

/* How long a thread must have run for an interval to be evidence: far above what handling an exit
 * takes, far below the interval between two looks. */
#define VPMU_VALIDITY_RUN_NS UINT64_C(10000000)

/* What a look at one counter shows. */
struct vpmu_look {
    uint64_t selector; /* as the guest has written it; a fixed counter: its control bits */
    uint64_t value;
    bool exists;      /* the host has granted it (else: absent, or revoked) */
    bool revoked;     /* was granted and has been taken back */
    bool enabled;     /* counts, as far as the guest's registers say */
    bool unsupported; /* programmed for an event that the source cannot count, enabled or not */
    bool filtered;    /* programmed for one that the operator's policy denies, enabled or not */
    bool moves;       /* instructions or cycles: cannot stand still while the guest executes */
    bool user;        /* counts in ring 3 */
    bool kernel;      /* counts in ring 0 */
};

/* What is known of one counter. All zero before the first look. */
struct vpmu_validity {
    struct vpmu_look last;
    uint64_t enabled_ns; /* the vCPU ran with the counter enabled */
    uint64_t backed_ns;  /* for so much of it nothing speaks against its having counted */
    uint64_t doubted_ns; /* standing still, not yet long enough for a verdict */
    uint32_t still;      /* intervals in a row that are evidence and in which it stood still */
    uint8_t state;       /* enum vpmu_counter_state */
};

/* One vCPU at the time of a look. */
struct vpmu_moment {
    uint64_t ran_ns;  /* for how long its thread has run since the look before */
    bool user;        /* it was in ring 3 */
    bool user_before; /* it was in ring 3 at the look before */
    bool halted;      /* it was halted, or had not been started, at one of the two looks */
};

/*
 * A further look at a counter. Updates its state and its times.
 * True if its state has changed.
 */
bool vpmu_validity_look(struct vpmu_validity *validity, const struct vpmu_look *look,
                        const struct vpmu_moment *moment);

#endif
