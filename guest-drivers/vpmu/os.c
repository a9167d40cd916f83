/* SPDX-License-Identifier: BSD-3-Clause */
/* os.h over Windows. What may fault is in guarded.S. */

#include "os.h"

#include "nt/kernel.h"

enum { CR4_PCE = 1 << 8 };

void os_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4])
{
    __asm__ volatile("cpuid"
                     : "=a"(regs[0]), "=b"(regs[1]), "=c"(regs[2]), "=d"(regs[3])
                     : "a"(leaf), "c"(subleaf));
}

uint64_t os_tsc(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

void os_rest(void)
{
    LARGE_INTEGER interval = {.QuadPart = -10000}; /* relative, in units of 100 ns */

    KeDelayExecutionThread(KernelMode, FALSE, &interval);
}

uint64_t os_interrupts_off(void)
{
    uint64_t flags;

    __asm__ volatile("pushfq; popq %0; cli" : "=r"(flags) : : "memory");
    return flags;
}

void os_interrupts_restore(uint64_t flags)
{
    __asm__ volatile("pushq %0; popfq" : : "r"(flags) : "memory", "cc");
}

bool os_user_rdpmc(bool allow)
{
    uint64_t flags = os_interrupts_off();
    uint64_t cr4;

    __asm__ volatile("movq %%cr4, %0" : "=r"(cr4));
    __asm__ volatile("movq %0, %%cr4"
                     :
                     : "r"(allow ? cr4 | CR4_PCE : cr4 & ~(uint64_t)CR4_PCE)
                     : "memory");
    os_interrupts_restore(flags);
    return cr4 & CR4_PCE;
}

KIRQL os_irql(void)
{
    uint64_t cr8;

    __asm__ volatile("movq %%cr8, %0" : "=r"(cr8));
    return (KIRQL)cr8;
}

uint32_t os_processors(void)
{
    return KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS);
}

uint32_t os_this_processor(void)
{
    return KeGetCurrentProcessorNumberEx(NULL);
}

NTSTATUS os_on_processor(uint32_t processor, os_work *work, void *context)
{
    PROCESSOR_NUMBER number;
    GROUP_AFFINITY there = {0}, before;
    NTSTATUS status = KeGetProcessorNumberFromIndex(processor, &number);

    if (!NT_SUCCESS(status))
        return status;
    there.Group = number.Group;
    there.Mask = 1ull << number.Number;
    KeSetSystemGroupAffinityThread(&there, &before);
    work(context);
    KeRevertToUserGroupAffinityThread(&before);
    return STATUS_SUCCESS;
}

uint32_t os_build(void)
{
    RTL_OSVERSIONINFOW version = {.dwOSVersionInfoSize = sizeof(version)};

    return NT_SUCCESS(RtlGetVersion(&version)) ? version.dwBuildNumber : 0;
}
