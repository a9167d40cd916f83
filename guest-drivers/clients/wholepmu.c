/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the style of a driver that gives a monitoring program the whole PMU: one allocation of
 * everything, unless it stands already, and then guarded RDMSR and WRMSR on any processor for user
 * mode.
 */

#include "client.h"

#include "os.h"

const WCHAR client_device[] = u"\\Device\\vpmu-wholepmu";
const WCHAR client_link[] = u"\\DosDevices\\vpmu-wholepmu";

static HANDLE held;

void client_run(struct client_report *report)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (!held)
        status = HalAllocateHardwareCounters(NULL, 0, NULL, &held);
    client_note(report, CLIENT_ALLOCATE, 0, status, (uint64_t)held);
    if (!NT_SUCCESS(status))
        held = NULL;
}

void client_free(struct client_report *report)
{
    if (held)
        client_note(report, CLIENT_FREE, 0, HalFreeHardwareCounters(held), 0);
    held = NULL;
}

struct access {
    struct client_msr *msr;
    bool write;
    bool ok;
};

static void access_here(void *context)
{
    struct access *access = context;

    access->ok = access->write ? os_wrmsr(access->msr->msr, access->msr->value)
                               : os_rdmsr(access->msr->msr, &access->msr->value);
}

NTSTATUS client_request(ULONG code, struct client_msr *msr)
{
    struct access access = {.msr = msr, .write = code == CLIENT_IOCTL_WRMSR};
    NTSTATUS status = os_on_processor(msr->processor, access_here, &access);

    if (!NT_SUCCESS(status))
        return status;
    return access.ok ? STATUS_SUCCESS : STATUS_PRIVILEGED_INSTRUCTION;
}
