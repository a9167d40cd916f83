/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status device as Plug and Play sees it. What START_DEVICE does, STOP_DEVICE,
 * SURPRISE_REMOVAL and REMOVE_DEVICE undo in the opposite order: no more interrupts, no DPC under
 * way, nobody looks at the memory, the memory is unmapped, whoever waits is told.
 *
 * The driver works without the device, so no failure here touches the control device.
 */

#include "driver.h"

#define LOCK_TAG 0x756d7076u

struct region {
    PVOID at;
    SIZE_T length;
};

/* The function device object's extension. */
struct function {
    PDEVICE_OBJECT physical, lower;
    IO_REMOVE_LOCK lock;
    struct region registers, pages;
    PVOID interrupt; /* its connection, or NULL */
};

static PDEVICE_OBJECT bound; /* a machine has one such device */

static BOOLEAN NTAPI on_interrupt(PKINTERRUPT interrupt, PVOID context, ULONG message)
{
    struct control *control = context;

    (void)interrupt;
    (void)message;
    pending_poke(&control->pending);
    return TRUE;
}

/* --- Starting and stopping, under the mutex ----------------------------------------------------
 */

/* Memory number `number` of the device, in the order of its BARs. */
static struct region map_memory(const CM_RESOURCE_LIST *resources, ULONG number)
{
    const CM_PARTIAL_RESOURCE_LIST *list = &resources->List[0].PartialResourceList;

    for (ULONG i = 0; i < list->Count; i++) {
        const CM_PARTIAL_RESOURCE_DESCRIPTOR *descriptor = &list->PartialDescriptors[i];
        struct region region = {.length = descriptor->u.Memory.Length};

        if (descriptor->Type != CmResourceTypeMemory || number--)
            continue;
        region.at = MmMapIoSpace(descriptor->u.Memory.Start, region.length, MmNonCached);
        return region;
    }
    return (struct region){0};
}

static void unmap_memory(struct region *region)
{
    if (region->at)
        MmUnmapIoSpace(region->at, region->length);
    *region = (struct region){0};
}

static void connect(struct function *function, struct control *control)
{
    IO_CONNECT_INTERRUPT_PARAMETERS parameters = {
        .Version = CONNECT_MESSAGE_BASED,
        .MessageBased =
            {
                .PhysicalDeviceObject = function->physical,
                .ConnectionContext = (PIO_INTERRUPT_MESSAGE_INFO *)&function->interrupt,
                .MessageServiceRoutine = on_interrupt,
                .ServiceContext = control,
            },
    };

    /* Without interrupts there are states, and no waiting for them. */
    if (!NT_SUCCESS(IoConnectInterruptEx(&parameters))) {
        function->interrupt = NULL;
        return;
    }
    status_interrupt(&control->vpmu.status, true);
}

static void disconnect(struct function *function)
{
    IO_DISCONNECT_INTERRUPT_PARAMETERS parameters = {
        .Version = CONNECT_MESSAGE_BASED,
        .ConnectionContext = function->interrupt,
    };

    if (function->interrupt)
        IoDisconnectInterruptEx(&parameters);
    function->interrupt = NULL;
    KeFlushQueuedDpcs();
}

static void unmap(struct function *function)
{
    unmap_memory(&function->pages);
    unmap_memory(&function->registers);
}

static NTSTATUS start(struct function *function, struct control *control,
                      const CM_RESOURCE_LIST *resources)
{
    NTSTATUS status = STATUS_DEVICE_CONFIGURATION_ERROR;

    if (resources && resources->Count) {
        function->registers = map_memory(resources, 0);
        function->pages = map_memory(resources, 1);
    }
    if (function->registers.at && function->pages.at)
        status =
            status_attach(&control->vpmu.status, function->registers.at, function->registers.length,
                          function->pages.at, function->pages.length);
    if (!NT_SUCCESS(status)) {
        status_detach(&control->vpmu.status, status);
        unmap(function);
        return status;
    }
    connect(function, control);
    return status;
}

/* there: the device can still be written to. */
static void stop(struct function *function, struct control *control, bool there, NTSTATUS why)
{
    if (!control->vpmu.status.registers)
        return; /* not started, and the reason stands */
    if (there)
        status_interrupt(&control->vpmu.status, false);
    disconnect(function);
    status_detach(&control->vpmu.status, why);
    unmap(function);
    pending_end(&control->pending, NULL, why);
}

static void stop_locked(struct function *function, bool there, NTSTATUS why)
{
    struct control *control = control_of_driver();

    control_lock(control);
    stop(function, control, there, why);
    control_unlock(control);
}

/* --- Requests ----------------------------------------------------------------------------------
 */

static NTSTATUS pass_down(const struct function *function, PIRP irp)
{
    IoSkipCurrentIrpStackLocation(irp);
    return IofCallDriver(function->lower, irp);
}

static NTSTATUS pass_down_done(const struct function *function, PIRP irp)
{
    irp->IoStatus.Status = STATUS_SUCCESS;
    return pass_down(function, irp);
}

/* The bus starts the device before its function driver does. */
static NTSTATUS on_start(struct function *function, PIRP irp)
{
    struct control *control = control_of_driver();
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
    NTSTATUS status = STATUS_UNSUCCESSFUL;

    if (IoForwardIrpSynchronously(function->lower, irp))
        status = irp->IoStatus.Status;
    if (NT_SUCCESS(status)) {
        control_lock(control);
        stop(function, control, true, STATUS_DEVICE_NOT_READY); /* started again, elsewhere */
        status =
            start(function, control, stack->Parameters.StartDevice.AllocatedResourcesTranslated);
        control_unlock(control);
    }
    return complete_request(irp, status, 0);
}

static NTSTATUS on_remove(PDEVICE_OBJECT device, PIRP irp)
{
    struct function *function = device->DeviceExtension;
    NTSTATUS status;

    stop_locked(function, true, STATUS_NO_SUCH_DEVICE);
    status = pass_down_done(function, irp);
    IoReleaseRemoveLockAndWaitEx(&function->lock, irp, sizeof(function->lock));
    IoDetachDevice(function->lower);
    bound = NULL;
    IoDeleteDevice(device);
    return status;
}

static NTSTATUS on_other(struct function *function, PIRP irp)
{
    switch (IoGetCurrentIrpStackLocation(irp)->MinorFunction) {
    case IRP_MN_START_DEVICE:
        return on_start(function, irp);
    case IRP_MN_STOP_DEVICE:
        stop_locked(function, true, STATUS_DEVICE_NOT_READY);
        return pass_down_done(function, irp);
    case IRP_MN_SURPRISE_REMOVAL:
        stop_locked(function, false, STATUS_DEVICE_REMOVED);
        return pass_down_done(function, irp);
    case IRP_MN_QUERY_STOP_DEVICE:
    case IRP_MN_CANCEL_STOP_DEVICE:
    case IRP_MN_QUERY_REMOVE_DEVICE:
    case IRP_MN_CANCEL_REMOVE_DEVICE:
        return pass_down_done(function, irp);
    default:
        return pass_down(function, irp);
    }
}

NTSTATUS pnp_dispatch(PDEVICE_OBJECT device, PIRP irp)
{
    struct function *function = device->DeviceExtension;
    NTSTATUS status = IoAcquireRemoveLockEx(&function->lock, irp, "", 0, sizeof(function->lock));

    if (!NT_SUCCESS(status))
        return complete_request(irp, status, 0);
    if (IoGetCurrentIrpStackLocation(irp)->MinorFunction == IRP_MN_REMOVE_DEVICE)
        return on_remove(device, irp);
    status = on_other(function, irp);
    IoReleaseRemoveLockEx(&function->lock, irp, sizeof(function->lock));
    return status;
}

NTSTATUS pnp_pass_down(PDEVICE_OBJECT device, PIRP irp)
{
    struct function *function = device->DeviceExtension;
    NTSTATUS status = IoAcquireRemoveLockEx(&function->lock, irp, "", 0, sizeof(function->lock));

    if (!NT_SUCCESS(status))
        return complete_request(irp, status, 0);
    status = pass_down(function, irp);
    IoReleaseRemoveLockEx(&function->lock, irp, sizeof(function->lock));
    return status;
}

NTSTATUS NTAPI pnp_add_device(PDRIVER_OBJECT driver, PDEVICE_OBJECT physical)
{
    PDEVICE_OBJECT device;
    struct function *function;
    NTSTATUS status;

    if (bound)
        return STATUS_DEVICE_ALREADY_ATTACHED;
    status = IoCreateDevice(driver, sizeof(*function), NULL, FILE_DEVICE_UNKNOWN,
                            FILE_DEVICE_SECURE_OPEN, FALSE, &device);
    if (!NT_SUCCESS(status))
        return status;
    function = device->DeviceExtension; /* zeroed */
    IoInitializeRemoveLockEx(&function->lock, LOCK_TAG, 0, 0, sizeof(function->lock));
    function->physical = physical;
    function->lower = IoAttachDeviceToDeviceStack(device, physical);
    if (!function->lower) {
        IoDeleteDevice(device);
        return STATUS_NO_SUCH_DEVICE;
    }
    device->Flags |= function->lower->Flags & DO_POWER_PAGABLE;
    device->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    bound = device;
    return STATUS_SUCCESS;
}
