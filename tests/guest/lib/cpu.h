/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors: per-CPU state, start-up, work on other CPUs, ring 3. */
#ifndef GUEST_CPU_H
#define GUEST_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

#define MAX_CPUS 8

struct tss {
    uint32_t reserved0;
    uint64_t rsp[3];
    uint64_t reserved1;
    uint64_t ist[7];
    uint64_t reserved2;
    uint16_t reserved3;
    uint16_t iomap;
} __attribute__((packed));

typedef void cpu_work(void *arg);

/*
 * One per CPU, GS base points to it, in ring 3 too. The first KiB is the image's own: it may be
 * laid out as another kernel's per-CPU block (gs:8 to gs:0x3ff).
 */
struct cpu {
    struct cpu *self;
    uint8_t client[0x400 - 8];
    uint64_t user_return_sp; /* where run_user() comes back to */
    struct tss tss;
    uint64_t gdt[8];
    unsigned id; /* index and local APIC id */
    volatile bool online;
    cpu_work *volatile work;
    void *work_arg;
};

struct lock {
    volatile int taken;
};

void lock(struct lock *l);
void unlock(struct lock *l);

static inline struct cpu *this_cpu(void)
{
    struct cpu *cpu;
    asm("mov %%gs:0, %0" : "=r"(cpu));
    return cpu;
}

/* The CPU with this index, below cpu_count(). */
struct cpu *cpu_get(unsigned id);

/* How many there are (QEMU's -smp, at most MAX_CPUS). */
unsigned cpu_count(void);

/* Runs fn(arg) on the CPU, with interrupts off, and waits for its end. The caller may be it. */
void on_cpu(unsigned id, cpu_work *fn, void *arg);

/* The two halves of on_cpu(), for another CPU than the caller's. */
void on_cpu_start(unsigned id, cpu_work *fn, void *arg);
void on_cpu_wait(unsigned id);

/* Runs fn(arg) on all CPUs at the same time, the caller's too, and waits for all. */
void on_all_cpus(cpu_work *fn, void *arg);

/* Sends INIT and a start-up IPI to another CPU that is idle, and waits until it is up again. */
void cpu_restart(unsigned id);

/*
 * Calls fn(arg) in ring 3 on the stack below stack_top and returns what it returned. Ring 3
 * executes fn, its RET, and one INT n. Not to be nested. enter_user() takes the RFLAGS to start
 * with; run_user() gives a stack of this CPU's own and keeps the caller's interrupt flag.
 * Interrupts are as before when they return.
 */
uint64_t run_user(uint64_t (*fn)(uint64_t), uint64_t arg);
uint64_t enter_user(uint64_t (*fn)(uint64_t), uint64_t arg, uint64_t flags, void *stack_top);
#define USER_EXIT_INSNS 1

/* A stack for enter_user() that belongs to this CPU. */
void *user_stack_top(void);

/* For start.c. */
void cpu_init_first(void);
void cpu_init_others(void);

#endif
