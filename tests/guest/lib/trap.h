/* SPDX-License-Identifier: BSD-3-Clause */
/* Exceptions and interrupts. */
#ifndef GUEST_TRAP_H
#define GUEST_TRAP_H

#include <stdint.h>

#define IST_NMI 1
#define IST_DF 2

struct trap_frame {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rdx, rcx, rbx, rax;
    uint64_t vector, error;
    uint64_t rip, cs, rflags, rsp, ss;
};

/* Runs with interrupts off; may change the frame. Of an interrupt it must call apic_eoi(). */
typedef void trap_handler(struct trap_frame *frame);

/*
 * Sets the handler of a vector, for all CPUs, and returns the one before; NULL: none. An
 * instruction under EX_TRY() is fixed up before handlers are asked. An exception or an interrupt
 * that nobody handles ends the run.
 */
trap_handler *trap_set(unsigned vector, trap_handler *handler);

/*
 * Has the vector go straight to this code, from ring 3 too; NULL: back to the handlers. For tests
 * that must know how many instructions the way through takes.
 */
void trap_set_entry(unsigned vector, const void *entry);

/* For cpu.c and start.c. */
void trap_init(void);
void trap_init_cpu(void);

#endif
