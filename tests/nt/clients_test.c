/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers in the style of the public ones, alone and in conflict. */
#include "check.h"
#include "clients/client_ioctl.h"
#include "hal.h"
#include "io.h"
#include "libc.h"
#include "scenarios.h"
#include "vpmu_user.h"

/* ---- Scenario: drivers in the style of the public ones ---- */

struct client_run {
    const char *device;
    ULONG code;
    struct client_report report;
};

static void client_program(void *argument)
{
    struct client_run *run = argument;
    HANDLE client;
    NTSTATUS status = user_open(run->device, &client);

    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "%s: open", run->device);
    if (!NT_SUCCESS(status))
        return;
    status = vpmu_request(client, run->code, NULL, 0, &run->report, sizeof(run->report));
    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "%s: request", run->device);
}

static const struct client_report *ask_client(const char *device, ULONG code)
{
    static struct client_run run;

    memset(&run, 0, sizeof(run));
    run.device = device;
    run.code = code;
    run_as_process(client_program, &run);
    return &run.report;
}

static NTSTATUS client_status(const struct client_report *report, uint32_t what)
{
    for (unsigned i = 0; i < report->count; i++)
        if (report->calls[i].what == what)
            return report->calls[i].status;
    return STATUS_NOT_FOUND;
}

/* Counts of the first GP counter are instructions, in every client; the others' events differ. */
static void check_client_counts(const char *name, const struct client_report *report,
                                bool instructions_only)
{
    unsigned count = 0;

    for (unsigned i = 0; i < report->count; i++) {
        const struct client_call *call = &report->calls[i];
        bool instructions = instructions_only || call->index == 0;

        if (call->what != CLIENT_COUNT)
            continue;
        count++;
        check_equal(call->value, instructions ? CLIENT_INSTRUCTIONS : CLIENT_BRANCHES,
                    "%s: processor %u, counter %u", name, call->processor, call->index);
    }
    check(count > 0, "%s: counted with %u counters", name, count);
}

static void client_alone(void)
{
    struct driver *probe = scenario_load("probe.sys"), *whole = scenario_load("wholepmu.sys");
    const struct client_report *report;

    if (!probe || !whole)
        return;
    report = ask_client("vpmu-probe", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "probe.sys: takes its counters");
    check_client_counts("probe.sys", report, true);
    report = ask_client("vpmu-wholepmu", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "wholepmu.sys: is refused while probe.sys holds");
    ask_client("vpmu-probe", CLIENT_IOCTL_FREE);
    report = ask_client("vpmu-wholepmu", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "wholepmu.sys: takes the whole PMU");
    report = ask_client("vpmu-probe", CLIENT_IOCTL_RUN);
    check(!NT_SUCCESS(client_status(report, CLIENT_PROBE)),
          "probe.sys: each probe is refused while wholepmu.sys holds");
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "probe.sys: and says so");
    driver_unload(probe);
    driver_unload(whole); /* holds still: its unload lets go */
    check_equal(hal_leases(), 0, "clients: nothing is held after the unloads");
}

static void client_without_hal(void)
{
    struct driver *driver = scenario_load("nohal.sys");
    const struct client_report *report;
    unsigned interrupts = 0;

    if (!driver)
        return;
    report = ask_client("vpmu-nohal", CLIENT_IOCTL_RUN);
    check_client_counts("nohal.sys", report, false);
    for (unsigned i = 0; i < report->count; i++)
        if (report->calls[i].what == CLIENT_INTERRUPT)
            interrupts += report->calls[i].value == 1;
    check_equal(interrupts, processor_total(), "nohal.sys: processors with one interrupt");
    driver_unload(driver);
}

/* counts: the processor is AMD's, and the registers are where this driver looks for them. */
static void client_amd(bool counts)
{
    struct driver *driver = scenario_load("amdpower.sys");
    const struct client_report *report;

    if (!driver)
        return;
    report = ask_client("vpmu-amdpower", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "amdpower.sys: takes the whole PMU");
    check_equal((ULONG)client_status(report, CLIENT_FREE), (ULONG)STATUS_SUCCESS,
                "amdpower.sys: gives it back");
    if (counts) /* of cycles, too: there is one to each instruction */
        check_client_counts("amdpower.sys", report, true);
    driver_unload(driver);
}

void vpmu_clients(void)
{
    client_alone();
    client_without_hal();
    client_amd(false);
}

void vpmu_clients_amd(void)
{
    client_amd(true);
}
