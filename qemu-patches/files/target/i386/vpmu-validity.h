/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which counters of the vCPUs count, and what the host has granted.
 *
 * Twice a second of the guest's time there is a look at each vCPU that has a
 * PMU (vpmu/validity.h). What it shows is the one source of query-vpmu, of the
 * event VPMU_COUNTER_STATE, of what vpmud is told, and of the status device.
 * All of these want the big lock, and call back with it.
 */
#ifndef I386_VPMU_VALIDITY_H
#define I386_VPMU_VALIDITY_H

#include "cpu.h"
#include "qemu/notify.h"
#include "vpmu/status.h"

/*
 * The vCPU's counters as of the last look, in the order of their indices.
 * Returns how many there are (0: it has no PMU), at most @room.
 */
unsigned x86_vpmu_counters(X86CPU *cpu, struct vpmu_status_counter *records,
                           unsigned room);

/* For how long the vCPU had run as of the last look: updated_ns. */
uint64_t x86_vpmu_ran_ns(X86CPU *cpu);

/* What the notifiers get. */
typedef struct X86VPMULook {
    X86CPU *cpu;
    bool changed; /* the state of a counter, or what is granted */
} X86VPMULook;

/*
 * Notified after each look at a vCPU, and for each vCPU when the host has
 * changed what it grants; data is an X86VPMULook.
 */
void x86_vpmu_add_look_notifier(Notifier *notifier);

/* What the host grants each vCPU now; without a PMU, nothing. */
void x86_vpmu_granted(unsigned *gp, uint32_t *fixed);

/* How often the host has taken counters back. */
uint32_t x86_vpmu_revocations(void);

/*
 * Asks the host to grant so many from now on, within the shape that CPUID
 * describes. @done is called once, perhaps before this returns; @ntstatus is a
 * vpmu_status (vpmu/arbiter.h).
 */
void x86_vpmu_resize(unsigned gp, uint32_t fixed,
                     void (*done)(void *opaque, uint32_t ntstatus),
                     void *opaque);

#endif
