/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the style of a profiler's driver: asks for each counter alone and gives it back, then takes
 * all that were free in one allocation, then configures them for threads one by one. It holds them
 * until CLIENT_IOCTL_FREE.
 */

#include "client.h"

#include "os.h"

enum { FIRST_FIXED = 32, RDPMC_FIXED = 0x40000000, GP = 16, FIXED = 4 };
enum { ENABLE_KERNEL = 0x420000, INSTRUCTIONS = 0xc0, PERFEVTSEL0 = 0x186, PMC0 = 0xc1 };

const WCHAR client_device[] = u"\\Device\\vpmu-probe";
const WCHAR client_link[] = u"\\DosDevices\\vpmu-probe";

static HANDLE held;
static uint64_t counters;

struct list {
    ULONG count;
    PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR descriptor[GP + FIXED];
};

static PPHYSICAL_COUNTER_RESOURCE_LIST as_list(struct list *list)
{
    return (PPHYSICAL_COUNTER_RESOURCE_LIST)(void *)list;
}

static void add(struct list *list, uint32_t index)
{
    list->descriptor[list->count++] = (PHYSICAL_COUNTER_RESOURCE_DESCRIPTOR){
        .Type = ResourceTypeSingle,
        .u.CounterIndex = index,
    };
}

static uint64_t listed(void)
{
    uint32_t r[4];

    os_cpuid(0xa, 0, r);
    return ((1ull << (r[0] >> 8 & 0xf)) - 1) | ((1ull << (r[3] & 0x3)) - 1) << FIRST_FIXED;
}

static bool is_free(struct client_report *report, uint32_t index)
{
    struct list one = {0};
    HANDLE set;
    NTSTATUS status;

    add(&one, index);
    status = HalAllocateHardwareCounters(NULL, 0, as_list(&one), &set);
    client_note(report, CLIENT_PROBE, index, status, 0);
    if (!NT_SUCCESS(status))
        return false;
    HalFreeHardwareCounters(set);
    return true;
}

static void configure(struct client_report *report, uint32_t index)
{
    uint32_t selector = index < FIRST_FIXED ? index : RDPMC_FIXED | (index - FIRST_FIXED);
    HARDWARE_COUNTER counter = {.Type = PMCCounter, .Index = selector};

    client_note(report, CLIENT_SET, selector, KeSetHardwareCounterConfiguration(&counter, 1), 0);
}

static void count(struct client_report *report, uint32_t index)
{
    uint64_t flags = os_interrupts_off();
    uint64_t value = 0;
    bool ok = os_wrmsr(PMC0 + index, 0) &&
              os_measure(PERFEVTSEL0 + index, ENABLE_KERNEL | INSTRUCTIONS, 0, CLIENT_ITERATIONS) &&
              os_rdmsr(PMC0 + index, &value) && os_wrmsr(PMC0 + index, 0);

    os_interrupts_restore(flags);
    client_note(report, CLIENT_COUNT, index, ok ? STATUS_SUCCESS : STATUS_IO_DEVICE_ERROR, value);
}

void client_run(struct client_report *report)
{
    uint64_t mask = listed();
    struct list all = {0};
    NTSTATUS status;

    if (held)
        return;
    counters = 0;
    for (uint32_t i = 0; i < 64; i++) {
        if (mask >> i & 1 && is_free(report, i)) {
            add(&all, i);
            counters |= 1ull << i;
        }
    }
    status = all.count ? HalAllocateHardwareCounters(NULL, 0, as_list(&all), &held)
                       : STATUS_INSUFFICIENT_RESOURCES;
    client_note(report, CLIENT_ALLOCATE, 0, status, (uint64_t)held);
    if (!NT_SUCCESS(status)) {
        held = NULL;
        return;
    }
    for (uint32_t i = 0; i < 64; i++) {
        if (counters >> i & 1)
            configure(report, i);
        if (i < FIRST_FIXED && counters >> i & 1)
            count(report, i);
    }
}

void client_free(struct client_report *report)
{
    if (!held)
        return;
    client_note(report, CLIENT_SET, 0, KeSetHardwareCounterConfiguration(NULL, 0), 0);
    client_note(report, CLIENT_FREE, 0, HalFreeHardwareCounters(held), 0);
    held = NULL;
}

NTSTATUS client_request(ULONG code, struct client_msr *msr)
{
    (void)code;
    (void)msr;
    return STATUS_INVALID_DEVICE_REQUEST;
}
