/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocation contract once more, as plainly as it can be written: one bool for each resource
 * that a lease has on each processor, and scans over everything. It shares no code with hv/arbiter;
 * the histories compare the two.
 */
#ifndef ARBITER_NAIVE_H
#define ARBITER_NAIVE_H

#include "vpmu/arbiter.h"

#define NAIVE_PROCESSORS 8
#define NAIVE_LEASES 16
#define NAIVE_INDICES 64

struct naive_processor {
    uint32_t number;
    bool has[NAIVE_INDICES];
    uint8_t version;
};

struct naive_lease {
    vpmu_lease handle; /* given by the arbiter; 0 while the place is free */
    uint64_t age;
    struct vpmu_holder holder;
    bool whole;
    bool everywhere;
    bool on[NAIVE_PROCESSORS];
    bool owns[NAIVE_PROCESSORS][NAIVE_INDICES];
    uint32_t spans;
    uint64_t overflow_handler;
    struct vpmu_event_buffer event_buffer;
    bool has_tag;
    uint32_t tag;
};

struct naive {
    uint32_t mode;
    uint32_t groups;
    uint32_t processor_count; /* online ones only, ascending */
    struct naive_processor processors[NAIVE_PROCESSORS];
    uint32_t lease_limit, holder_limit, span_limit;
    uint64_t age;
    struct naive_lease leases[NAIVE_LEASES];
    struct vpmu_hardware_counter set[VPMU_PROFILING_MAX];
    uint32_t set_count;
    struct vpmu_holder set_holder;
    uint32_t threads;
};

void naive_init(struct naive *naive, const struct vpmu_arbiter_config *config);

/* The place of the new lease, whose handle the caller fills in, or NULL; *why says the rest. */
struct naive_lease *naive_allocate(struct naive *naive, const struct vpmu_holder *holder,
                                   const struct vpmu_request *request,
                                   struct vpmu_explanation *why);

void naive_free(struct naive *naive, vpmu_lease handle, struct vpmu_explanation *why);
uint32_t naive_free_holder(struct naive *naive, uint64_t id);

void naive_set(struct naive *naive, const struct vpmu_holder *holder,
               const struct vpmu_hardware_counter *counters, uint32_t count,
               struct vpmu_explanation *why);

const struct naive_lease *naive_find(const struct naive *naive, vpmu_lease handle);

/* The live lease that comes after this one in age, of one holder or (id NULL) of any; NULL: oldest.
 */
const struct naive_lease *naive_after(const struct naive *naive, const uint64_t *id,
                                      const struct naive_lease *lease);

/* processor: a place in naive->processors. */
const struct naive_lease *naive_owner(const struct naive *naive, uint32_t processor,
                                      uint32_t index);

uint32_t naive_leases(const struct naive *naive);
uint32_t naive_holders(const struct naive *naive);

#endif
