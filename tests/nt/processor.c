/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors, IRQL and spin locks. */
#include "processor.h"

#include "apic.h"
#include "check.h"
#include "libc.h"
#include "trap.h"

struct processor processors[MAX_CPUS];

static void (*connected[16])(void); /* by class: one vector in each */
static uint64_t tsc_start, tsc_per_second;

void processor_init(unsigned number, struct thread *idle)
{
    struct processor *p = &processors[number];

    p->number = number;
    p->current = p->idle = idle;
    asm volatile("movl %0, %%gs:0x184" : : "r"(number) : "memory");
    asm volatile("mov %0, %%gs:0x188" : : "r"(idle) : "memory");
}

void processor_idle(void)
{
    irql_set(PASSIVE_LEVEL);
    for (;;)
        sti_hlt();
}

KAFFINITY processor_mask(void)
{
    return (UINT64_C(1) << cpu_count()) - 1;
}

void processor_interrupt(unsigned number, unsigned vector)
{
    bool enabled = interrupts_off(); /* the command register takes two writes */

    apic_send_fixed(number, vector);
    interrupts_restore(enabled);
}

/* With CR8 at the vector's class the local APIC holds back this class and those below it. */
static void run_connected(struct trap_frame *frame)
{
    uint8_t sse[512] __attribute__((aligned(16)));
    KIRQL old = irql_current();
    KIRQL level = (KIRQL)(frame->vector >> 4);

    asm volatile("fxsave64 %0" : "=m"(sse));
    irql_set(level);
    apic_eoi();
    sti();
    connected[level]();
    cli();
    irql_set(old);
    asm volatile("fxrstor64 %0" : : "m"(sse));
}

void interrupt_connect(unsigned vector, void (*handler)(void))
{
    connected[vector >> 4] = handler;
    trap_set(vector, run_connected);
}

/* One count of the timer is 1 ns of the machine's clock (apic.h). */
void time_init(void)
{
    const uint32_t span = 10 * 1000 * 1000;
    uint64_t start;

    apic_write(APIC_TIMER_DIVIDE, 0xb);
    apic_write(APIC_LVT_TIMER, APIC_LVT_MASKED);
    apic_write(APIC_TIMER_INITIAL, UINT32_MAX);
    start = rdtsc();
    while (UINT32_MAX - apic_read(APIC_TIMER_CURRENT) < span)
        pause();
    tsc_per_second = (rdtsc() - start) * 100;
    apic_write(APIC_TIMER_INITIAL, 0);
    tsc_start = rdtsc();
}

uint64_t time_now(void)
{
    const uint64_t units = 10000000; /* per second */
    uint64_t ticks = rdtsc() - tsc_start;

    return ticks / tsc_per_second * units + ticks % tsc_per_second * units / tsc_per_second;
}

LARGE_INTEGER NTAPI KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER now = {.QuadPart = (LONGLONG)time_now()};

    if (PerformanceFrequency)
        PerformanceFrequency->QuadPart = 10000000;
    return now;
}

KIRQL NTAPI KfRaiseIrql(KIRQL NewIrql)
{
    KIRQL old = irql_current();

    if (NewIrql < old || NewIrql > HIGH_LEVEL)
        violation("KfRaiseIrql: from %u to %u", old, NewIrql);
    else
        irql_set(NewIrql);
    return old;
}

VOID NTAPI KeLowerIrql(KIRQL NewIrql)
{
    if (NewIrql > irql_current())
        violation("KeLowerIrql: from %u to %u", irql_current(), NewIrql);
    else
        irql_set(NewIrql);
}

KIRQL NTAPI KeGetCurrentIrql(VOID)
{
    return irql_current();
}

KIRQL NTAPI KeRaiseIrqlToDpcLevel(VOID)
{
    return irql_raise(DISPATCH_LEVEL);
}

VOID NTAPI KeAcquireSpinLockAtDpcLevel(KSPIN_LOCK *SpinLock)
{
    while (__atomic_exchange_n(SpinLock, 1, __ATOMIC_ACQUIRE))
        pause();
}

VOID NTAPI KeReleaseSpinLockFromDpcLevel(KSPIN_LOCK *SpinLock)
{
    if (!__atomic_exchange_n(SpinLock, 0, __ATOMIC_RELEASE))
        violation("KeReleaseSpinLock: not held");
}

KIRQL NTAPI KeAcquireSpinLockRaiseToDpc(KSPIN_LOCK *SpinLock)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);

    KeAcquireSpinLockAtDpcLevel(SpinLock);
    return old;
}

VOID NTAPI KeReleaseSpinLock(KSPIN_LOCK *SpinLock, KIRQL NewIrql)
{
    KeReleaseSpinLockFromDpcLevel(SpinLock);
    irql_set(NewIrql);
}

/* Processor numbers: one group. */

ULONG NTAPI KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    return GroupNumber == 0 || GroupNumber == ALL_PROCESSOR_GROUPS ? cpu_count() : 0;
}

ULONG NTAPI KeQueryMaximumProcessorCountEx(USHORT GroupNumber)
{
    return KeQueryActiveProcessorCountEx(GroupNumber);
}

USHORT NTAPI KeQueryActiveGroupCount(VOID)
{
    return 1;
}

KAFFINITY NTAPI KeQueryGroupAffinity(USHORT GroupNumber)
{
    return GroupNumber == 0 ? processor_mask() : 0;
}

ULONG NTAPI KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    unsigned number = processor_current()->number;

    if (ProcNumber)
        *ProcNumber = (PROCESSOR_NUMBER){.Group = 0, .Number = (UCHAR)number};
    return number;
}

NTSTATUS NTAPI KeGetProcessorNumberFromIndex(ULONG ProcIndex, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcIndex >= cpu_count())
        return STATUS_INVALID_PARAMETER;
    *ProcNumber = (PROCESSOR_NUMBER){.Group = 0, .Number = (UCHAR)ProcIndex};
    return STATUS_SUCCESS;
}

ULONG NTAPI KeGetProcessorIndexFromNumber(PPROCESSOR_NUMBER ProcNumber)
{
    return ProcNumber->Group == 0 && ProcNumber->Number < cpu_count() ? ProcNumber->Number
                                                                      : UINT32_MAX;
}
