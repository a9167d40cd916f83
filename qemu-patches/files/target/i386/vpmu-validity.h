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
#include "vpmu/validity.h"

/* For the status device */

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
 * Notified after each look at a vCPU, for each vCPU when the host has changed
 * what it grants, and when a vCPU is unplugged; data is an X86VPMULook.
 */
void x86_vpmu_add_look_notifier(Notifier *notifier);

/* What the host grants each vCPU now; without a PMU, nothing. */
void x86_vpmu_granted(unsigned *gp, uint32_t *fixed);

/* How often the host has taken counters back. */
uint32_t x86_vpmu_revocations(void);

/*
 * Asks the host to grant so many from now on, within the shape that CPUID
 * describes. @done is called once, perhaps before this returns; @ntstatus is a
 * vpmu_status (vpmu/arbiter.h): INVALID_PARAMETER beyond the shape, DEVICE_BUSY
 * while another request has no answer, else vpmud's.
 */
void x86_vpmu_resize(unsigned gp, uint32_t fixed,
                     void (*done)(void *opaque, uint32_t ntstatus),
                     void *opaque);

/* For the rest of QEMU */

/* What is known of a vCPU. */
struct X86VPMUWatch {
    unsigned count; /* counters */
    struct vpmu_counter_info infos[VPMU_COUNTERS_MAX]; /* as of the last look */
    struct vpmu_validity counters[VPMU_COUNTERS_MAX];
    uint64_t ran_ns;  /* the vCPU has run, since the first look */
    uint64_t look_ns; /* looks have taken, of the time of the vCPU's thread */
    uint64_t clock;   /* of that thread, as of the last look */
    bool user;        /* then in ring 3 */
    bool halted;      /* then halted */
    bool started;     /* there has been a look */
    bool asked;       /* a look is on its way */
};

/* Watches a vCPU that has a PMU, until x86_vpmu_unwatch(). */
void x86_vpmu_watch(X86CPU *cpu);
void x86_vpmu_unwatch(X86CPU *cpu);

/* A look now, on the vCPU's thread. */
void x86_vpmu_look(X86CPU *cpu);

/* What is granted is another: looks at all vCPUs, and notifies. */
void x86_vpmu_regranted(void);

#endif
