/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lease of the host's counters that the machine's vCPUs count with: from
 * vpmud, or, without its socket, whatever the kernel lets a VM have.
 */
#ifndef I386_VPMU_LEASE_H
#define I386_VPMU_LEASE_H

#include "qapi/qapi-types-qom.h"

typedef struct VpmuAmount {
    unsigned gp, fixed; /* counters of each processor */
} VpmuAmount;

/*
 * Asks for @need, and accepts no less than @least. True: *granted is between
 * the two, until vpmu_lease_release() or the end of the process. False: @errp
 * says who holds what is missing.
 */
bool vpmu_lease_acquire(const char *socket, VpmuShortagePolicy policy,
                        VpmuAmount need, VpmuAmount least,
                        VpmuAmount *granted, Error **errp);
void vpmu_lease_release(void);

#endif
