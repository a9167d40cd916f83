/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors as the NT kernel sees them: IRQL, interrupts, DPC queue, current thread. */
#ifndef NT_PROCESSOR_H
#define NT_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu.h"
#include "ntmore.h"
#include "x86.h"

/* Interrupt vectors; the class (vector >> 4) is the IRQL that the interrupt raises to. */
enum {
    VECTOR_DISPATCH = 0x2f,
    VECTOR_CLOCK = 0xd1,
    VECTOR_IPI = 0xe1,
    VECTOR_PMI = 0xfe,
};

struct thread;

struct processor {
    unsigned number;
    struct thread *current, *idle;
    bool reschedule; /* the current thread is to give way */
    bool poked;      /* a dispatch interrupt is under way to an idle processor */
    bool clock_on;
    bool clock_ticked;
    struct lock dpc_lock; /* taken with interrupts off */
    PKDPC dpc_first, dpc_last;
    bool dpc_running;
};

extern struct processor processors[MAX_CPUS];

/* The running processor. A thread below DISPATCH_LEVEL may leave it at any time. */
static inline struct processor *processor_current(void)
{
    uint32_t number;

    asm volatile("movl %%gs:0x184, %0" : "=r"(number) : : "memory");
    return &processors[number];
}

static inline struct thread *thread_current(void)
{
    struct thread *thread;

    asm volatile("mov %%gs:0x188, %0" : "=r"(thread) : : "memory");
    return thread;
}

/* IRQL is CR8, as on x64 Windows: drivers read and write it without a call. */
static inline KIRQL irql_current(void)
{
    uint64_t irql;

    asm volatile("mov %%cr8, %0" : "=r"(irql) : : "memory");
    return (KIRQL)irql;
}

static inline void irql_set(KIRQL irql)
{
    asm volatile("mov %0, %%cr8" : : "r"((uint64_t)irql) : "memory");
}

/* Raises to irql, or stays where it is higher. Returns the level before. */
static inline KIRQL irql_raise(KIRQL irql)
{
    KIRQL old = irql_current();

    if (irql > old)
        irql_set(irql);
    return old;
}

static inline bool interrupts_off(void)
{
    bool enabled = read_flags() & FLAG_IF;

    cli();
    return enabled;
}

static inline void interrupts_restore(bool enabled)
{
    if (enabled)
        sti();
}

/** Sends an interrupt to a processor, the sender included. */
void processor_interrupt(unsigned number, unsigned vector);

/** Makes vector run handler at the IRQL of its class, SSE state kept, on every processor. */
void interrupt_connect(unsigned vector, void (*handler)(void));

/** Gives the running processor its number and its idle thread, which is the caller. */
void processor_init(unsigned number, struct thread *idle);

/** Runs threads and interrupts on the running processor, for ever. */
void processor_idle(void) __attribute__((noreturn));

/** The set of processors, one bit each. */
KAFFINITY processor_mask(void);

/** Time since the kernel started, in units of 100 ns. */
uint64_t time_now(void);

/** Measures the time stamp counter against the local APIC timer. */
void time_init(void);

#endif
