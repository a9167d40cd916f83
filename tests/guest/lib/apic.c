/* SPDX-License-Identifier: BSD-3-Clause */
#include "apic.h"
#include "layout.h"
#include "x86.h"

#define APIC_SOFTWARE_ENABLE 0x100
#define APIC_BASE_ENABLE 0x800
#define ICR_ASSERT 0x4000
#define ICR_PENDING 0x1000
#define TIMER_DIVIDE_BY_1 0xb

void apic_init(void)
{
    wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | APIC_BASE_ENABLE);
    apic_write(APIC_TPR, 0);
    apic_write(APIC_SPURIOUS, APIC_SOFTWARE_ENABLE | VECTOR_SPURIOUS);
    apic_write(APIC_LVT_TIMER, APIC_LVT_MASKED);
    apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
}

int apic_pending(unsigned vector)
{
    return apic_read(APIC_IRR + vector / 32 * 0x10) >> vector % 32 & 1;
}

static void send(unsigned id, uint32_t command)
{
    apic_write(APIC_ICR_HIGH, id << 24);
    apic_write(APIC_ICR_LOW, command | ICR_ASSERT);
    while (apic_read(APIC_ICR_LOW) & ICR_PENDING)
        pause();
}

void apic_send_fixed(unsigned id, unsigned vector)
{
    send(id, APIC_DELIVERY_FIXED | vector);
}

void apic_send_nmi(unsigned id)
{
    send(id, APIC_DELIVERY_NMI);
}

void apic_send_init(unsigned id)
{
    send(id, APIC_DELIVERY_INIT);
}

void apic_send_startup(unsigned id, uint32_t page)
{
    send(id, APIC_DELIVERY_STARTUP | page >> 12);
}

static void start_timer(uint32_t entry, uint32_t count)
{
    apic_write(APIC_TIMER_DIVIDE, TIMER_DIVIDE_BY_1);
    apic_write(APIC_LVT_TIMER, entry);
    apic_write(APIC_TIMER_INITIAL, count);
}

void apic_timer_start(unsigned vector, uint32_t count)
{
    start_timer(APIC_LVT_PERIODIC | vector, count);
}

void apic_timer_once(unsigned vector, uint32_t count)
{
    start_timer(vector, count);
}

void apic_timer_stop(void)
{
    apic_write(APIC_LVT_TIMER, APIC_LVT_MASKED);
    apic_write(APIC_TIMER_INITIAL, 0);
}
