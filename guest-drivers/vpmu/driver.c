/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading, opening, closing, unloading; I/O requests become calls of vpmu_ioctl. */

#include "nt/kernel.h"
#include "vpmu.h"

#define POOL_TAG 0x756d7076u /* "vpmu" */

/* The device's extension. */
struct device {
    struct vpmu vpmu;
    KMUTEX mutex; /* one request at a time */
};

static UNICODE_STRING device_name, link_name;

static struct vpmu *lock(PDEVICE_OBJECT object)
{
    struct device *device = object->DeviceExtension;

    KeWaitForSingleObject(&device->mutex, Executive, KernelMode, FALSE, NULL);
    return &device->vpmu;
}

static void unlock(PDEVICE_OBJECT object)
{
    struct device *device = object->DeviceExtension;

    KeReleaseMutex(&device->mutex, FALSE);
}

static NTSTATUS complete(PIRP irp, NTSTATUS status, ULONG length)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = length;
    IofCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

/* Counters see the whole system, so a caller needs the right to profile it. Administrators have it;
 * the local security policy "Profile system performance" gives it to others. */
static NTSTATUS NTAPI on_create(PDEVICE_OBJECT device, PIRP irp)
{
    LUID right = {.LowPart = SE_SYSTEM_PROFILE_PRIVILEGE};

    (void)device;
    if (!SeSinglePrivilegeCheck(right, irp->RequestorMode))
        return complete(irp, STATUS_PRIVILEGE_NOT_HELD, 0);
    return complete(irp, STATUS_SUCCESS, 0);
}

/* The last handle is closed, by its process or because that has died. */
static NTSTATUS NTAPI on_cleanup(PDEVICE_OBJECT device, PIRP irp)
{
    vpmu_client_gone(lock(device), IoGetCurrentIrpStackLocation(irp)->FileObject);
    unlock(device);
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS NTAPI on_close(PDEVICE_OBJECT device, PIRP irp)
{
    (void)device;
    return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS NTAPI on_device_control(PDEVICE_OBJECT device, PIRP irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
    uint32_t written;
    NTSTATUS status = vpmu_ioctl(
        lock(device), stack->FileObject, stack->Parameters.DeviceIoControl.IoControlCode,
        irp->AssociatedIrp.SystemBuffer, stack->Parameters.DeviceIoControl.InputBufferLength,
        stack->Parameters.DeviceIoControl.OutputBufferLength, &written);

    unlock(device);
    return complete(irp, status, written);
}

static VOID NTAPI unload(PDRIVER_OBJECT driver)
{
    struct vpmu *vpmu = lock(driver->DeviceObject);

    vpmu_client_gone(vpmu, vpmu->owner);
    unlock(driver->DeviceObject);
    IoDeleteSymbolicLink(&link_name);
    ExFreePoolWithTag(vpmu->processor, POOL_TAG);
    IoDeleteDevice(driver->DeviceObject);
}

/* Room for processors that are added later, too. */
static NTSTATUS set_up(struct device *device)
{
    ULONG processors = KeQueryMaximumProcessorCountEx(ALL_PROCESSOR_GROUPS);
    SIZE_T size = processors * sizeof(struct vpmu_processor);
    struct vpmu_processor *processor = ExAllocatePoolWithTag(NonPagedPoolNx, size, POOL_TAG);

    if (!processor)
        return STATUS_INSUFFICIENT_RESOURCES;
    for (ULONG i = 0; i < processors; i++)
        processor[i] = (struct vpmu_processor){0};
    KeInitializeMutex(&device->mutex, 0);
    vpmu_init(&device->vpmu, processor, processors);
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
    PDEVICE_OBJECT object;
    struct device *device;
    NTSTATUS status;

    (void)registry_path;
    RtlInitUnicodeString(&device_name, VPMU_KERNEL_DEVICE);
    RtlInitUnicodeString(&link_name, VPMU_KERNEL_LINK);
    status = IoCreateDevice(driver, sizeof(struct device), &device_name, FILE_DEVICE_UNKNOWN,
                            FILE_DEVICE_SECURE_OPEN, FALSE, &object);
    if (!NT_SUCCESS(status))
        return status;
    device = object->DeviceExtension; /* zeroed */
    status = set_up(device);
    if (!NT_SUCCESS(status))
        goto delete_device;
    status = IoCreateSymbolicLink(&link_name, &device_name);
    if (!NT_SUCCESS(status))
        goto free_processors;

    driver->MajorFunction[IRP_MJ_CREATE] = on_create;
    driver->MajorFunction[IRP_MJ_CLEANUP] = on_cleanup;
    driver->MajorFunction[IRP_MJ_CLOSE] = on_close;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_device_control;
    driver->DriverUnload = unload;
    return STATUS_SUCCESS;

free_processors:
    ExFreePoolWithTag(device->vpmu.processor, POOL_TAG);
delete_device:
    IoDeleteDevice(object);
    return status;
}
