/* SPDX-License-Identifier: BSD-3-Clause */
#include "testdriver.h"

static UNICODE_STRING device_name, link_name;

static struct test_row *add_row(struct test_output *output, uint64_t got, uint64_t want)
{
    struct test_row *row = &output->rows[output->count];

    if (output->count == TEST_MAX_ROWS) {
        output->dropped++;
        return NULL;
    }
    output->count++;
    row->got = got;
    row->want = want;
    return row;
}

static size_t append(struct test_row *row, size_t at, const char *text)
{
    while (*text && at < sizeof(row->name) - 1)
        row->name[at++] = *text++;
    row->name[at] = 0;
    return at;
}

void test_equal(struct test_output *output, uint64_t got, uint64_t want, const char *name)
{
    struct test_row *row = add_row(output, got, want);

    if (row)
        append(row, 0, name);
}

void test_equal_on(struct test_output *output, uint64_t got, uint64_t want, const char *name,
                   uint32_t processor)
{
    const char digits[] = {(char)('0' + processor % 10), 0}; /* at most 8 processors */
    struct test_row *row = add_row(output, got, want);

    if (row)
        append(row, append(row, append(row, 0, name), ", processor "), digits);
}

void test_on_processor(uint32_t processor, void (*work)(void *), void *context)
{
    GROUP_AFFINITY there = {.Mask = 1ull << processor}, before;

    KeSetSystemGroupAffinityThread(&there, &before);
    work(context);
    KeRevertToUserGroupAffinityThread(&before);
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
    struct test_output *output = irp->AssociatedIrp.SystemBuffer;
    struct test_input input;

    (void)device;
    if (stack->Parameters.DeviceIoControl.IoControlCode != TEST_IOCTL_RUN)
        return complete(irp, STATUS_INVALID_DEVICE_REQUEST, 0);
    if (stack->Parameters.DeviceIoControl.InputBufferLength != sizeof(input))
        return complete(irp, STATUS_INVALID_PARAMETER, 0);
    if (stack->Parameters.DeviceIoControl.OutputBufferLength < sizeof(*output))
        return complete(irp, STATUS_BUFFER_TOO_SMALL, 0);
    input = *(const struct test_input *)irp->AssociatedIrp.SystemBuffer;
    output->count = 0;
    output->dropped = 0;
    test_run(&input, output);
    return complete(irp, STATUS_SUCCESS, sizeof(*output));
}

static VOID NTAPI unload(PDRIVER_OBJECT driver)
{
    test_unload();
    IoDeleteSymbolicLink(&link_name);
    IoDeleteDevice(driver->DeviceObject);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
    PDEVICE_OBJECT device;
    NTSTATUS status;

    (void)registry_path;
    RtlInitUnicodeString(&device_name, test_device);
    RtlInitUnicodeString(&link_name, test_link);
    status = IoCreateDevice(driver, 0, &device_name, FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN,
                            FALSE, &device);
    if (!NT_SUCCESS(status))
        return status;
    status = IoCreateSymbolicLink(&link_name, &device_name);
    if (!NT_SUCCESS(status)) {
        IoDeleteDevice(device);
        return status;
    }
    driver->MajorFunction[IRP_MJ_CREATE] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_CLEANUP] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_CLOSE] = on_open_or_close;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_device_control;
    driver->DriverUnload = unload;
    return STATUS_SUCCESS;
}
