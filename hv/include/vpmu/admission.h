// SPDX-License-Identifier: BSD-3-Clause
/*
 * Admission: how many counters of which processors of a host a VM or a host profiler may use.
 *
 * arbiter.h gives particular counters to one holder each, as a HAL does. A host's kernel schedules
 * events instead: what matters is how many are pinned to a processor at the same time. Two kinds of
 * lease follow from the way in which it does so:
 *
 *   CPU-wide    events of a processor, whoever runs on it: the NMI watchdog, host agents, perf -a.
 *               They add up.
 *   vCPU-bound  events of a VM's threads. At most one vCPU runs on a processor at a time, so the
 *               largest need of them counts, not their sum.
 *
 * The rule: on every processor that a VM may use, its need and the CPU-wide leases there fit
 * together. A VM whose need does not fit is refused, or reduced as far as it allows. A CPU-wide
 * lease that would starve an admitted VM is refused, unless that VM yields.
 *
 * With a mediated vPMU the PMU is switched as a whole between host and guest. Then every VM has the
 * whole PMU while it runs, and what excludes it is any CPU-wide event that counts while guests run,
 * on any processor (perf keeps one count for the machine); CPU-wide leases that exclude guests are
 * free.
 *
 * Observed leases are what is there without having asked (a watchdog, an unmanaged agent). They are
 * never refused; a VM that no longer fits beside them is short, and is told so.
 *
 * Pure: the caller gives the memory, there is no clock, no I/O and no lock. Cost: a request is
 * O(processors that it names) and does not depend on how many leases there are; a refusal also
 * looks for the lease to name, oldest first, until it finds one that is as large as any can be.
 */
#ifndef VPMU_ADMISSION_H
#define VPMU_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/arbiter.h" /* vpmu_status, vpmu_lease */

/* A number of counters of one processor. */
struct vpmu_amount {
    uint16_t gp;    /* general-purpose counters: 0..32, more only in a sum of observed leases */
    uint16_t fixed; /* set of fixed counters: bit i is fixed counter i */
};

/* What one processor of the host has. */
struct vpmu_host_processor {
    struct vpmu_amount capacity;
    bool online;
};

#define VPMU_ADMISSION_PROCESSORS_MAX 8192u /* as Linux's NR_CPUS goes */
#define VPMU_ADMISSION_NAME 64u

struct vpmu_admission_config {
    const struct vpmu_host_processor *processors; /* copied */
    uint32_t processor_count;                     /* 1..VPMU_ADMISSION_PROCESSORS_MAX */
    uint32_t leases;                              /* live leases at most, 1..VPMU_LEASES_MAX */
    bool mediated;                                /* the host's vPMU switches the whole PMU */
};

struct vpmu_admission;

/* Bytes of memory that it needs; 0 if a field is out of range. */
size_t vpmu_admission_size(const struct vpmu_admission_config *config);

/* Makes one in the caller's memory, aligned for uint64_t; NULL if out of range or too small. */
struct vpmu_admission *vpmu_admission_init(void *memory, size_t size,
                                           const struct vpmu_admission_config *config);

enum vpmu_binding {
    VPMU_BOUND_CPU = 0,  /* CPU-wide */
    VPMU_BOUND_VCPU = 1, /* vCPU-bound */
};

enum vpmu_claim_flag {
    VPMU_CLAIM_YIELDS = 1 << 0,          /* vCPU-bound: gives way to CPU-wide leases, with notice */
    VPMU_CLAIM_EXCLUDES_GUESTS = 1 << 1, /* CPU-wide: does not count while a guest runs */
    VPMU_CLAIM_OBSERVED = 1 << 2,        /* is there already: recorded, never refused */
};

#define VPMU_CLAIM_FLAGS 7u

/* What is asked for. */
struct vpmu_claim {
    uint8_t binding;            /* enum vpmu_binding */
    uint8_t flags;              /* enum vpmu_claim_flag, or-ed */
    struct vpmu_amount need;    /* what is wanted on each of the processors */
    struct vpmu_amount least;   /* what is accepted, at most need; need itself: all or nothing */
    struct vpmu_amount beside;  /* vCPU-bound: what the host counts on the same threads (libvirt's
                                   <perf>); it takes room and is not granted */
    const uint64_t *processors; /* set: bit p % 64 of word p / 64; NULL: every online processor.
                                   Those that are offline do not matter */
    uint32_t words;             /* of processors; 0 exactly when it is NULL */
    uint64_t holder;            /* of the caller's choosing, not looked at */
    const char *name; /* of the holder, for people; cut to VPMU_ADMISSION_NAME - 1 bytes */
};

/* Why an answer is what it is. After each: the fields of struct vpmu_answer that it sets. */
enum vpmu_reason {
    VPMU_REASON_NONE,     /* granted as asked */
    VPMU_REASON_REDUCED,  /* granted less: as the reason why not all */
    VPMU_REASON_ABSENT,   /* a processor does not have so many: processor, capacity */
    VPMU_REASON_TAKEN,    /* CPU-wide leases leave too few: processor, capacity, used, lease */
    VPMU_REASON_STARVES,  /* it would starve a VM: processor, capacity, used, lease (the VM) */
    VPMU_REASON_YIELDING, /* it would starve only VMs that yield: as STARVES; revoke and retry */
    VPMU_REASON_GUEST_EVENTS, /* mediated: a CPU-wide lease counts guests: lease */
    VPMU_REASON_GUESTS,       /* mediated: a VM has the PMU: lease (YIELDING likewise) */
    VPMU_REASON_NO_PROCESSOR, /* a processor is named that the host does not have: processor; or
                                 none that is online */
    VPMU_REASON_BAD_CLAIM,    /* a field is out of range, or need and beside share a fixed one */
    VPMU_REASON_NO_ROOM,      /* as many leases as there can be */
    VPMU_REASON_BAD_HANDLE,   /* not a live lease: lease as given */
    VPMU_REASONS,
};

/* The answer in full. What the reason does not set is 0, processor VPMU_NOT_SET. */
struct vpmu_answer {
    vpmu_status status;
    enum vpmu_reason reason;
    vpmu_lease lease;        /* what is in the way: the largest lease that is, else the oldest */
    uint32_t processor;      /* the lowest one where it fails */
    struct vpmu_amount need; /* what does not fit: need, or least where that fails, with beside */
    struct vpmu_amount capacity; /* what it has */
    struct vpmu_amount used;     /* what others have of it, of those that the reason speaks of */
    uint64_t holder;             /* of lease */
    char name[VPMU_ADMISSION_NAME];
};

/*
 * Writes the answer as one English line without a newline: what was asked, what is there, who holds
 * the rest. At most size bytes with the NUL; returns the length of the whole, as snprintf does.
 */
size_t vpmu_answer_text(const struct vpmu_answer *answer, char *text, size_t size);

/*
 * Asks for a lease.
 *
 * lease    receives its handle, VPMU_LEASE_NONE on failure
 * granted  NULL, or receives what was granted: need, or between least and need
 * answer   NULL, or receives why; also on success
 *
 * SUCCESS                 held until it is released or revoked (reason NONE or REDUCED)
 * DEVICE_BUSY             only VMs that yield are in the way (YIELDING)
 * INSUFFICIENT_RESOURCES  ABSENT, TAKEN, STARVES, GUEST_EVENTS, GUESTS, NO_ROOM
 * INVALID_PARAMETER       NO_PROCESSOR, BAD_CLAIM
 */
vpmu_status vpmu_admission_acquire(struct vpmu_admission *admission, const struct vpmu_claim *claim,
                                   vpmu_lease *lease, struct vpmu_amount *granted,
                                   struct vpmu_answer *answer);

/* Ends a lease. INVALID_PARAMETER (BAD_HANDLE) if it is not live. */
vpmu_status vpmu_admission_release(struct vpmu_admission *admission, vpmu_lease lease,
                                   struct vpmu_answer *answer);

/*
 * Changes what a live lease has to need (elastic counters, a changed affinity is a new lease). All
 * or nothing: on failure the lease keeps what it had. Giving back always succeeds. Statuses as for
 * acquire, and BAD_HANDLE. Not for a revoked lease: BAD_HANDLE. An observed lease becomes what need
 * says.
 */
vpmu_status vpmu_admission_resize(struct vpmu_admission *admission, vpmu_lease lease,
                                  struct vpmu_amount need, struct vpmu_answer *answer);

/*
 * Takes a lease's counters away; it stays known, with nothing, until it is released. For the VMs
 * that vpmu_admission_yielding() names, once they have had their notice, and for an operator.
 */
vpmu_status vpmu_admission_revoke(struct vpmu_admission *admission, vpmu_lease lease,
                                  struct vpmu_answer *answer);

/*
 * The leases that must be revoked for claim to be granted, one after the other, oldest first;
 * VPMU_LEASE_NONE begins and ends the round; none if that would not help. It may be reduced then:
 * no more is revoked than least needs. O(leases that yield * processors that claim names).
 */
vpmu_lease vpmu_admission_yielding(const struct vpmu_admission *admission,
                                   const struct vpmu_claim *claim, vpmu_lease lease);

/*
 * Which processors are online from now on: a set as in a claim. Leases stay as they are; a claim
 * for every online processor is one for these. Where a processor comes back that both a VM and
 * CPU-wide leases were given, a VM may be short. False: nothing has changed. O(leases * their
 * processors).
 */
bool vpmu_admission_set_online(struct vpmu_admission *admission, const uint64_t *online,
                               uint32_t words);

/* What a lease is. */
struct vpmu_admission_lease {
    vpmu_lease lease;
    uint8_t binding;
    uint8_t flags;
    bool revoked;
    struct vpmu_amount asked;   /* need of the claim, or of the last resize that succeeded */
    struct vpmu_amount granted; /* nothing when revoked */
    struct vpmu_amount beside;
    const uint64_t *processors; /* as in the claim, the online ones if it had NULL; valid until the
                                   lease ends */
    uint32_t words;             /* of processors: of the whole host, also if the claim had NULL */
    uint64_t holder;
    const char *name;
};

/* INVALID_PARAMETER, and nothing is written, if it is not live. */
vpmu_status vpmu_admission_lease(const struct vpmu_admission *admission, vpmu_lease lease,
                                 struct vpmu_admission_lease *info);

/* The live lease after lease, oldest first; VPMU_LEASE_NONE begins and ends the round. */
vpmu_lease vpmu_admission_next(const struct vpmu_admission *admission, vpmu_lease lease);

/*
 * Whether a vCPU-bound lease no longer fits because of observed leases (or, mediated, because one
 * counts guests), or of processors that have come online: true, and answer says where and who, as
 * acquire would. A revoked lease is not short. False: it fits, or is not a live vCPU-bound lease.
 */
bool vpmu_admission_short(const struct vpmu_admission *admission, vpmu_lease lease,
                          struct vpmu_answer *answer);

/* What a processor has, what CPU-wide leases have of it together, and the VMs' largest need. */
struct vpmu_admission_use {
    bool online;
    struct vpmu_amount capacity;
    struct vpmu_amount cpu_wide; /* gp may exceed capacity through observed leases */
    struct vpmu_amount vcpu;
    uint32_t vms; /* vCPU-bound leases that may use it and have something */
};

/* INVALID_PARAMETER if there is no such processor. */
vpmu_status vpmu_admission_use(const struct vpmu_admission *admission, uint32_t processor,
                               struct vpmu_admission_use *use);

/* How many leases are live. */
uint32_t vpmu_admission_leases(const struct vpmu_admission *admission);

#endif
