/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the driver needs from the machine and from the system underneath. os.c gives it in the
 * driver, a fake one in the host tests; nothing else but driver.c knows more of NT than the four
 * routines in nt/counters.h.
 */
#ifndef VPMU_OS_H
#define VPMU_OS_H

#include <stdbool.h>
#include <stdint.h>

#include "nt/types.h"

/* False: the instruction faulted (#GP), and nothing has changed. */
bool os_rdmsr(uint32_t msr, uint64_t *value);
bool os_wrmsr(uint32_t msr, uint64_t value);
bool os_rdpmc(uint32_t selector, uint64_t *value);

/*
 * The known piece of work: WRMSR(msr, on), `iterations` rounds of a two-instruction loop that ends
 * in a branch, WRMSR(msr, off). False: a WRMSR faulted.
 *
 * Of the two WRMSRs exactly one is counted; three instructions set up the second.
 */
bool os_measure(uint32_t msr, uint64_t on, uint64_t off, uint32_t iterations);
#define OS_WORK_INSTRUCTIONS(iterations) (2ull * (iterations) + 4)
#define OS_WORK_BRANCHES(iterations) (1ull * (iterations))

void os_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]); /* EAX, EBX, ECX, EDX */
uint64_t os_tsc(void);
void os_rest(void); /* a millisecond or more; PASSIVE_LEVEL */

/* Keep interrupts off this processor for a short while. */
uint64_t os_interrupts_off(void);
void os_interrupts_restore(uint64_t flags);

/* Let RDPMC work in user mode on this processor (CR4.PCE), or not; returns what it was. */
bool os_user_rdpmc(bool allow);

/* Processors are numbered from 0 over all groups. */
uint32_t os_processors(void);
uint32_t os_this_processor(void);
/* Run `work` on one processor at the caller's IRQL, which is PASSIVE_LEVEL. */
typedef void os_work(void *context);
NTSTATUS os_on_processor(uint32_t processor, os_work *work, void *context);

uint32_t os_build(void);
KIRQL os_irql(void);

#endif
