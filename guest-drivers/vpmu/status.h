/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status device (vpmu/status.h), over its mapped memory. Nothing here believes it: what it says
 * is checked before it is used or passed on, and each wait for it ends.
 *
 * Requests come under the driver's mutex. status_answer() also runs in the DPC, beside them: it
 * only reads, but for `resizing`.
 */
#ifndef VPMU_STATUS_DEVICE_H
#define VPMU_STATUS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "nt/types.h"
#include "vpmu/status.h"
#include "vpmu_ioctl.h"

struct status {
    volatile struct vpmu_status_registers *registers; /* NULL: no device */
    const volatile uint8_t *pages;
    uint32_t vcpus;   /* pages that are mapped */
    bool interrupt;   /* changes are told */
    bool resizing;    /* a client waits for the answer of its RESIZE */
    NTSTATUS failure; /* why there is no device */
};

void status_init(struct status *status);

/*
 * The device is there: its two regions, and their lengths in bytes. STATUS_DEVICE_PROTOCOL_ERROR
 * (not such a device), STATUS_REVISION_MISMATCH, STATUS_DEVICE_CONFIGURATION_ERROR (too small).
 */
NTSTATUS status_attach(struct status *status, volatile void *registers, uint64_t registers_length,
                       const volatile void *pages, uint64_t pages_length);
/* It may interrupt from now on, or no more. */
void status_interrupt(struct status *status, bool enable);
/* It is gone, and `why`. Its memory may be gone already. */
void status_detach(struct status *status, NTSTATUS why);

/* The requests; the statuses are those of vpmu_ioctl.h. `out` is zero before. */
NTSTATUS status_host(const struct status *status, struct vpmu_host *out);
NTSTATUS status_states(const struct status *status, uint32_t apic_id, struct vpmu_states *out);
/* STATUS_PENDING: *out now says what is waited for, and belongs to status_answer(). */
NTSTATUS status_wait(const struct status *status, uint32_t changes, struct vpmu_host *out);
NTSTATUS status_resize(struct status *status, uint32_t gp, uint32_t fixed, struct vpmu_host *out);

/* What a pending request of this code waits for: STATUS_PENDING, or its end and its answer. */
NTSTATUS status_answer(struct status *status, uint32_t code, struct vpmu_host *out);
/* Nobody waits for it any more. */
void status_forget(struct status *status, uint32_t code);

#endif
