/* SPDX-License-Identifier: BSD-3-Clause */
/* The local APIC of the running CPU, in xAPIC mode (SDM Vol. 3, chapter 11). */
#ifndef GUEST_APIC_H
#define GUEST_APIC_H

#include <stdint.h>

enum apic_register {
    APIC_ID = 0x20,
    APIC_TPR = 0x80,
    APIC_EOI = 0xb0,
    APIC_SPURIOUS = 0xf0,
    APIC_IRR = 0x200,
    APIC_ICR_LOW = 0x300,
    APIC_ICR_HIGH = 0x310,
    APIC_LVT_TIMER = 0x320,
    APIC_LVT_PMI = 0x340,
    APIC_TIMER_INITIAL = 0x380,
    APIC_TIMER_CURRENT = 0x390,
    APIC_TIMER_DIVIDE = 0x3e0,
};

#define APIC_DELIVERY_FIXED 0x000
#define APIC_DELIVERY_SMI 0x200
#define APIC_DELIVERY_NMI 0x400
#define APIC_DELIVERY_INIT 0x500
#define APIC_DELIVERY_STARTUP 0x600
#define APIC_DELIVERY_EXTINT 0x700
#define APIC_LVT_MASKED 0x10000
#define APIC_LVT_PERIODIC 0x20000

#define APIC_BASE 0xfee00000ul

static inline uint32_t apic_read(enum apic_register reg)
{
    return *(volatile uint32_t *)(APIC_BASE + reg);
}

static inline void apic_write(enum apic_register reg, uint32_t value)
{
    *(volatile uint32_t *)(APIC_BASE + reg) = value;
}

static inline void apic_eoi(void)
{
    apic_write(APIC_EOI, 0);
}

void apic_init(void);

/* Is this vector requested and not yet taken (IRR)? */
int apic_pending(unsigned vector);

void apic_send_fixed(unsigned id, unsigned vector);
void apic_send_nmi(unsigned id);
void apic_send_init(unsigned id);
/* page: page-aligned, below 1 MiB */
void apic_send_startup(unsigned id, uint32_t page);

/* Interrupts on the vector every count timer ticks (1 ns each in QEMU); the handler must EOI. */
void apic_timer_start(unsigned vector, uint32_t count);
void apic_timer_once(unsigned vector, uint32_t count);
void apic_timer_stop(void);

#endif
