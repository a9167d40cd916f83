/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading, opening, closing, unloading; I/O requests become calls of vpmu_ioctl. */

#include "driver.h"

#define POOL_TAG 0x756d7076u /* "vpmu" */

static UNICODE_STRING device_name, link_name;
static PDEVICE_OBJECT control_device;

struct control *control_of_driver(void)
{
    return control_device->DeviceExtension;
}

void control_lock(struct control *control)
{
    KeWaitForSingleObject(&control->mutex, Executive, KernelMode, FALSE, NULL);
}

void control_unlock(struct control *control)
{
    KeReleaseMutex(&control->mutex, FALSE);
}

NTSTATUS complete_request(PIRP irp, NTSTATUS status, ULONG_PTR length)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = length;
    IofCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

/* Counters see the whole system, so a caller needs the right to profile it. Administrators have it;
 * the local security policy "Profile system performance" gives it to others. */
static NTSTATUS on_create(struct control *control, PIRP irp)
{
    LUID right = {.LowPart = SE_SYSTEM_PROFILE_PRIVILEGE};

    (void)control;
    if (!SeSinglePrivilegeCheck(right, irp->RequestorMode))
        return complete_request(irp, STATUS_PRIVILEGE_NOT_HELD, 0);
    return complete_request(irp, STATUS_SUCCESS, 0);
}

/* The last handle is closed, by its process or because that has died. */
static NTSTATUS on_cleanup(struct control *control, PIRP irp)
{
    PFILE_OBJECT file = IoGetCurrentIrpStackLocation(irp)->FileObject;

    control_lock(control);
    pending_end(&control->pending, file, STATUS_CANCELLED);
    vpmu_client_gone(&control->vpmu, file);
    control_unlock(control);
    return complete_request(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS on_close(struct control *control, PIRP irp)
{
    (void)control;
    return complete_request(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS on_device_control(struct control *control, PIRP irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
    uint32_t written;
    NTSTATUS status;

    control_lock(control);
    status = vpmu_ioctl(
        &control->vpmu, stack->FileObject, stack->Parameters.DeviceIoControl.IoControlCode,
        irp->AssociatedIrp.SystemBuffer, stack->Parameters.DeviceIoControl.InputBufferLength,
        stack->Parameters.DeviceIoControl.OutputBufferLength, &written);
    if (status == STATUS_PENDING)
        pending_insert(&control->pending, irp); /* it may be gone from here on */
    control_unlock(control);
    return status == STATUS_PENDING ? status : complete_request(irp, status, written);
}

/* What each kind of device does with a request. NULL: it has no use for it. */
static const struct {
    UCHAR major;
    NTSTATUS (*control)(struct control *control, PIRP irp);
    NTSTATUS (*function)(PDEVICE_OBJECT device, PIRP irp);
} routes[] = {
    {IRP_MJ_CREATE, on_create, NULL},
    {IRP_MJ_CLEANUP, on_cleanup, NULL},
    {IRP_MJ_CLOSE, on_close, NULL},
    {IRP_MJ_DEVICE_CONTROL, on_device_control, NULL},
    {IRP_MJ_PNP, NULL, pnp_dispatch},
    {IRP_MJ_POWER, NULL, pnp_pass_down},
    {IRP_MJ_SYSTEM_CONTROL, NULL, pnp_pass_down},
};
enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static NTSTATUS NTAPI dispatch(PDEVICE_OBJECT device, PIRP irp)
{
    UCHAR major = IoGetCurrentIrpStackLocation(irp)->MajorFunction;

    for (uint32_t i = 0; i < ROUTES; i++) {
        if (routes[i].major != major)
            continue;
        if (device == control_device && routes[i].control)
            return routes[i].control(device->DeviceExtension, irp);
        if (device != control_device && routes[i].function)
            return routes[i].function(device, irp);
    }
    return complete_request(irp, STATUS_INVALID_DEVICE_REQUEST, 0);
}

static VOID NTAPI unload(PDRIVER_OBJECT driver)
{
    struct control *control = control_of_driver();

    (void)driver;
    control_lock(control);
    vpmu_client_gone(&control->vpmu, control->vpmu.owner);
    control_unlock(control);
    IoDeleteSymbolicLink(&link_name);
    ExFreePoolWithTag(control->vpmu.processor, POOL_TAG);
    IoDeleteDevice(control_device);
}

/* Room for processors that are added later, too. */
static NTSTATUS set_up(struct control *control)
{
    ULONG processors = KeQueryMaximumProcessorCountEx(ALL_PROCESSOR_GROUPS);
    SIZE_T size = processors * sizeof(struct vpmu_processor);
    struct vpmu_processor *processor;
    NTSTATUS status = pending_init(&control->pending, &control->vpmu);

    if (!NT_SUCCESS(status))
        return status;
    processor = ExAllocatePoolWithTag(NonPagedPoolNx, size, POOL_TAG);
    if (!processor)
        return STATUS_INSUFFICIENT_RESOURCES;
    for (ULONG i = 0; i < processors; i++)
        processor[i] = (struct vpmu_processor){0};
    KeInitializeMutex(&control->mutex, 0);
    vpmu_init(&control->vpmu, processor, processors);
    return STATUS_SUCCESS;
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry_path)
{
    struct control *control;
    NTSTATUS status;

    (void)registry_path;
    RtlInitUnicodeString(&device_name, VPMU_KERNEL_DEVICE);
    RtlInitUnicodeString(&link_name, VPMU_KERNEL_LINK);
    status = IoCreateDevice(driver, sizeof(struct control), &device_name, FILE_DEVICE_UNKNOWN,
                            FILE_DEVICE_SECURE_OPEN, FALSE, &control_device);
    if (!NT_SUCCESS(status))
        return status;
    control = control_device->DeviceExtension; /* zeroed */
    status = set_up(control);
    if (!NT_SUCCESS(status))
        goto delete_device;
    status = IoCreateSymbolicLink(&link_name, &device_name);
    if (!NT_SUCCESS(status))
        goto free_processors;

    for (uint32_t i = 0; i < ROUTES; i++)
        driver->MajorFunction[routes[i].major] = dispatch;
    driver->DriverExtension->AddDevice = pnp_add_device;
    driver->DriverUnload = unload;
    return STATUS_SUCCESS;

free_processors:
    ExFreePoolWithTag(control->vpmu.processor, POOL_TAG);
delete_device:
    IoDeleteDevice(control_device);
    return status;
}
