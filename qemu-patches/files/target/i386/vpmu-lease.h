/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lease of the host's counters that the machine's vCPUs count with: from
 * vpmud, or, without its socket, whatever the accelerator lets a VM have.
 */
#ifndef I386_VPMU_LEASE_H
#define I386_VPMU_LEASE_H

#include "qapi/qapi-types-misc-target.h"
#include "qapi/qapi-types-qom.h"
#include "vpmu/wire.h"

typedef struct VpmuAmount {
    unsigned gp, fixed; /* counters of each processor */
} VpmuAmount;

/* What is asked for. */
typedef struct VpmuAsk {
    const char *socket; /* of vpmud, or NULL */
    VpmuShortagePolicy policy;
    bool yields; /* to the host's own profilers */
    VpmuAmount need, least;
} VpmuAsk;

/*
 * Asks for @ask->need, and accepts no less than @ask->least. True: *granted is
 * between the two, until vpmu_lease_release() or the end of the process. False:
 * @errp says who holds what is missing.
 */
bool vpmu_lease_acquire(const VpmuAsk *ask, VpmuAmount *granted, Error **errp);
void vpmu_lease_release(void);

/* The vCPUs have these counters, all of which are granted. */
void vpmu_lease_begin(VpmuAmount shape);

/* What the guest is to have of its shape, and what the host grants, now. */
struct vpmu_amount vpmu_lease_wanted(void);
struct vpmu_amount vpmu_lease_granted(void);
uint32_t vpmu_lease_revocations(void);

/* False: there is no vpmud. */
bool vpmu_lease_state(VpmuLeaseState *state);

/* x86_vpmu_resize(). */
void vpmu_lease_resize(unsigned gp, uint32_t fixed,
                       void (*done)(void *opaque, uint32_t ntstatus),
                       void *opaque);

/* Tells vpmud what the counters do. False: not now, try again. */
bool vpmu_lease_report(struct vpmu_wire_report *report,
                       const struct vpmu_status_counter *counters);

#endif
