/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission again, naively: a list of leases, oldest first, and sums over all of them for each
 * question. It is told the handles that the real one gives out.
 */
#ifndef ADMISSION_NAIVE_H
#define ADMISSION_NAIVE_H

#include "vpmu/admission.h"

#define NAIVE_PROCESSORS 70u
#define NAIVE_LEASES 12u

struct naive_lease {
    vpmu_lease handle;
    bool everywhere; /* the claim named no set */
    bool is_vm, yields, excludes_guests, observed, revoked;
    bool on[NAIVE_PROCESSORS]; /* as in the claim */
    struct vpmu_amount asked, granted, beside;
    uint64_t holder;
    char name[VPMU_ADMISSION_NAME];
};

struct naive {
    struct vpmu_host_processor processors[NAIVE_PROCESSORS];
    uint32_t processor_count;
    bool mediated;
    bool came_online; /* a processor, since there were no leases: the rule was not asked there */
    uint32_t limit;
    struct naive_lease leases[NAIVE_LEASES];
    uint32_t lease_count;
};

/* Each fills answer as the real one must. acquire: the new lease, without a handle, or NULL. */
struct naive_lease *naive_acquire(struct naive *naive, const struct vpmu_claim *claim,
                                  struct vpmu_answer *answer);
void naive_release(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer);
void naive_resize(struct naive *naive, vpmu_lease handle, struct vpmu_amount need,
                  struct vpmu_answer *answer);
void naive_revoke(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer);
bool naive_set_online(struct naive *naive, const uint64_t *online, uint32_t words);
bool naive_short(struct naive *naive, vpmu_lease handle, struct vpmu_answer *answer);

/* Fills handles with those that must be revoked for the claim; returns how many. */
uint32_t naive_yielding(struct naive *naive, const struct vpmu_claim *claim,
                        vpmu_lease handles[NAIVE_LEASES]);

struct naive_lease *naive_find(struct naive *naive, vpmu_lease handle);
void naive_use(const struct naive *naive, uint32_t processor, struct vpmu_admission_use *use);

/* NULL, or what contradicts the rule: no counter may be had twice but through observed leases. */
const char *naive_broken(const struct naive *naive);

#endif
