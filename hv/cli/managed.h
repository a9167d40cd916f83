// SPDX-License-Identifier: BSD-3-Clause
/* The CPU-wide leases that vpmud has given, as hv/host wants to know them. */
#ifndef CLI_MANAGED_H
#define CLI_MANAGED_H

#include <stddef.h>

#include "vpmu/host.h"

struct json_object;

/*
 * From vpmud's answer to {"op": "leases"}. Entries that are no leases of processes on this host's
 * processors are passed over. -1: no memory; then *managed is empty. managed_free() frees it.
 */
int managed_of_answer(struct json_object *answer, const struct vpmu_host *host,
                      struct vpmu_host_managed *managed);

void managed_free(struct vpmu_host_managed *managed);

#endif
