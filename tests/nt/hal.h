/* SPDX-License-Identifier: BSD-3-Clause */
/* The hardware abstraction layer's side of hardware counters, over hv/arbiter. */
#ifndef NT_HAL_H
#define NT_HAL_H

#include <stdbool.h>

#include "ntmore.h"

struct image;

struct hal_pmu {
    unsigned version; /* 0: none, or hidden by the hypervisor interface */
    unsigned gp, fixed;
    unsigned gp_width, fixed_width;
    bool event_buffer; /* PEBS; found, or claimed by the boot option eventbuffer */
    const char *why_none;
};

/** What the guest kernel found; the same on all processors. */
extern struct hal_pmu hal_pmu;

/** Looks at CPUID and sets up the arbiter. Before hal_start_processor(). */
void hal_init(void);

/** The boot sequence of the running processor's PMU. */
void hal_start_processor(void);

/** Live allocations of a driver; lets go of them. */
unsigned hal_leases_of(const struct image *image);
void hal_forget(const struct image *image);

/** Live allocations of everybody. */
unsigned hal_leases(void);

/** The kernel's own profiling takes or gives back GP counter 0 of every processor. */
void hal_kernel_profiling(bool on);

/** A thread begins or ends thread profiling with the standing configuration. */
void hal_thread_profiling(bool on);

/** Overflow interrupts that no allocation answered for, and all of them. */
unsigned hal_unclaimed_overflows(void);
unsigned hal_overflows(void);

#endif
