/* SPDX-License-Identifier: BSD-3-Clause */

#include "client.h"

#include "os.h"

static UNICODE_STRING device_name, link_name;

void client_note(struct client_report *report, enum client_what what, uint32_t index,
                 NTSTATUS status, uint64_t value)
{
    if (report->count == CLIENT_MAX_CALLS)
        return;
    report->calls[report->count++] = (struct client_call){
        .what = what,
        .index = index,
        .status = status,
        .processor = os_this_processor(),
        .value = value,
    };
}

static NTSTATUS complete(PIRP irp, NTSTATUS status, ULONG length)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = length;
    IofCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static NTSTATUS NTAPI on_open_or_close(PDEVICE_OBJECT device, PIRP irp)
{
    (void)device;
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS NTAPI on_device_control(PDEVICE_OBJECT device, PIRP irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
    ULONG code = stack->Parameters.DeviceIoControl.IoControlCode;
    ULONG in = stack->Parameters.DeviceIoControl.InputBufferLength;
    ULONG out = stack->Parameters.DeviceIoControl.OutputBufferLength;
    void *buffer = irp->AssociatedIrp.SystemBuffer;
    struct client_report *report = buffer;
    NTSTATUS status;

    (void)device;
    switch (code) {
    case CLIENT_IOCTL_RUN:
    case CLIENT_IOCTL_FREE:
        if (out < sizeof(*report))
            return complete(irp, STATUS_BUFFER_TOO_SMALL, 0);
        *report = (struct client_report){0};
        if (code == CLIENT_IOCTL_RUN)
            client_run(report);
        else
            client_free(report);
        return complete(irp, STATUS_SUCCESS, sizeof(*report));
    case CLIENT_IOCTL_RDMSR:
    case CLIENT_IOCTL_WRMSR:
        if (in != sizeof(struct client_msr) || out < sizeof(struct client_msr))
            return complete(irp, STATUS_INVALID_PARAMETER, 0);
        status = client_request(code, buffer);
        return complete(irp, status, NT_SUCCESS(status) ? sizeof(struct client_msr) : 0);
    default:
        return complete(irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    }
}

static VOID NTAPI unload(PDRIVER_OBJECT driver)
{
    struct client_report report = {0};

    client_free(&report);
    IoDeleteSymbolicLink(&link_name);
    IoDeleteDevice(driver->DeviceObject);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
    PDEVICE_OBJECT device;
    NTSTATUS status;

    (void)registry_path;
    driver->MajorFunction[IRP_MJ_CREATE] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_CLEANUP] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_CLOSE] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_device_control;
    driver->DriverUnload = unload;
    RtlInitUnicodeString(&device_name, client_device);
    RtlInitUnicodeString(&link_name, client_link);
    status = IoCreateDevice(driver, 0, &device_name, FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN,
                            FALSE, &device);
    if (!NT_SUCCESS(status))
        return status;
    status = IoCreateSymbolicLink(&link_name, &device_name);
    if (!NT_SUCCESS(status))
        IoDeleteDevice(device);
    return status;
}
