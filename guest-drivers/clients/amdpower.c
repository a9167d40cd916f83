/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the style of a power profiler on AMD: the whole PMU, the first two extended counters set to
 * cycles and instructions on each processor, read, cleared and given back in one go. Where the
 * allocation is refused it reads nothing and goes on.
 */

#include "client.h"

#include "os.h"

enum { ENABLE_ALL = 0x430000, CYCLES = 0x76, INSTRUCTIONS = 0xc0 };
#define PERF_CTL(i) (0xc0010200u + 2 * (i))
#define PERF_CTR(i) (0xc0010201u + 2 * (i))

const WCHAR client_device[] = u"\\Device\\vpmu-amdpower";
const WCHAR client_link[] = u"\\DosDevices\\vpmu-amdpower";

static const uint64_t events[] = {CYCLES, INSTRUCTIONS};

static void count(struct client_report *report, uint32_t i)
{
    uint64_t flags = os_interrupts_off();
    uint64_t value = 0;
    bool ok = os_wrmsr(PERF_CTR(i), 0) &&
              os_measure(PERF_CTL(i), ENABLE_ALL | events[i], 0, CLIENT_ITERATIONS) &&
              os_rdmsr(PERF_CTR(i), &value) && os_wrmsr(PERF_CTR(i), 0);

    os_interrupts_restore(flags);
    client_note(report, CLIENT_COUNT, i, ok ? STATUS_SUCCESS : STATUS_IO_DEVICE_ERROR, value);
}

static void count_here(void *context)
{
    for (uint32_t i = 0; i < 2; i++)
        count(context, i);
}

void client_run(struct client_report *report)
{
    HANDLE set = NULL;
    NTSTATUS status = HalAllocateHardwareCounters(NULL, 0, NULL, &set);

    client_note(report, CLIENT_ALLOCATE, 0, status, (uint64_t)set);
    if (!NT_SUCCESS(status))
        return;
    for (uint32_t i = 0; i < os_processors(); i++)
        os_on_processor(i, count_here, report);
    client_note(report, CLIENT_FREE, 0, HalFreeHardwareCounters(set), 0);
}

void client_free(struct client_report *report)
{
    (void)report;
}

NTSTATUS client_request(ULONG code, struct client_msr *msr)
{
    (void)code;
    (void)msr;
    return STATUS_INVALID_DEVICE_REQUEST;
}
