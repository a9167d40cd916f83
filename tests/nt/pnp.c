/* SPDX-License-Identifier: BSD-3-Clause */
#include "pnp.h"

#include "apic.h"
#include "check.h"
#include "irp.h"
#include "libc.h"
#include "pool.h"
#include "processor.h"

enum { MEMORIES = PCI_BARS, FIRST_CLASS = 5, CLASSES = 6, LOWEST_VECTOR = 1 };

/* The extension of a physical device object. */
struct physical {
    bool real;
    struct pci_function function;
    struct pnp_memory memory[MEMORIES];
    unsigned memories;
    unsigned messages;
    uint32_t seen;
};

/* What a driver knows as an interrupt object: one message on one vector, the only one in its class,
 * so that its IRQL tells which it is. */
struct KINTERRUPT {
    PDEVICE_OBJECT physical; /* NULL: free */
    struct lock lock;        /* taken at its IRQL */
    KMESSAGE_SERVICE_ROUTINE *routine;
    PVOID context;
    ULONG message;
};

static struct KINTERRUPT interrupts[CLASSES];
static volatile unsigned served;

/* ---- The bus driver ---- */

static NTSTATUS bus_done(PIRP irp, NTSTATUS status)
{
    irp->IoStatus.Status = status;
    IofCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static NTSTATUS NTAPI bus_pnp(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    struct physical *physical = DeviceObject->DeviceExtension;
    UCHAR minor = IoGetCurrentIrpStackLocation(Irp)->MinorFunction;

    physical->seen |= 1u << minor;
    if (physical->real && (minor == IRP_MN_START_DEVICE || minor == IRP_MN_STOP_DEVICE ||
                           minor == IRP_MN_REMOVE_DEVICE))
        pci_enable(&physical->function, minor == IRP_MN_START_DEVICE);
    return bus_done(Irp, minor <= IRP_MN_CANCEL_STOP_DEVICE || minor == IRP_MN_SURPRISE_REMOVAL
                             ? STATUS_SUCCESS
                             : Irp->IoStatus.Status);
}

static NTSTATUS NTAPI bus_other(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    (void)DeviceObject;
    return bus_done(Irp, STATUS_SUCCESS);
}

static DRIVER_OBJECT bus = {
    .Type = 4,
    .MajorFunction =
        {
            [IRP_MJ_PNP] = bus_pnp,
            [IRP_MJ_POWER] = bus_other,
            [IRP_MJ_SYSTEM_CONTROL] = bus_other,
        },
};

static PDEVICE_OBJECT make(struct physical as)
{
    PDEVICE_OBJECT device;

    if (!NT_SUCCESS(IoCreateDevice(&bus, sizeof(as), NULL, FILE_DEVICE_UNKNOWN, 0, FALSE, &device)))
        panic("no physical device object");
    *(struct physical *)device->DeviceExtension = as;
    device->Flags &= ~(ULONG)DO_DEVICE_INITIALIZING;
    return device;
}

PDEVICE_OBJECT pnp_find(uint16_t vendor, uint16_t device)
{
    struct physical physical = {.real = true};

    if (!pci_find(vendor, device, &physical.function))
        return NULL;
    physical.messages = physical.function.messages;
    for (unsigned i = 0; i < PCI_BARS; i++)
        if (physical.function.bars[i].length)
            physical.memory[physical.memories++] = (struct pnp_memory){
                physical.function.bars[i].start, physical.function.bars[i].length};
    return make(physical);
}

PDEVICE_OBJECT pnp_made_up(struct pnp_memory registers, struct pnp_memory pages, unsigned messages)
{
    return make(
        (struct physical){.memory = {registers, pages}, .memories = 2, .messages = messages});
}

void pnp_pull_out(PDEVICE_OBJECT physical)
{
    pci_enable(&((struct physical *)physical->DeviceExtension)->function, false);
}

uint32_t pnp_requests_seen(PDEVICE_OBJECT physical)
{
    return ((struct physical *)physical->DeviceExtension)->seen;
}

/* ---- The PnP manager ---- */

/* One full descriptor, as a PCI device has it: memory in the order of the BARs, then messages. */
struct resources {
    CM_RESOURCE_LIST list;
    CM_PARTIAL_RESOURCE_DESCRIPTOR room[MEMORIES];
};

static void list_resources(const struct physical *physical, struct resources *resources)
{
    CM_PARTIAL_RESOURCE_LIST *list = &resources->list.List[0].PartialResourceList;
    CM_PARTIAL_RESOURCE_DESCRIPTOR *next =
        (CM_PARTIAL_RESOURCE_DESCRIPTOR *)((uint8_t *)list +
                                           offsetof(CM_PARTIAL_RESOURCE_LIST, PartialDescriptors));

    memset(resources, 0, sizeof(*resources));
    resources->list.Count = 1;
    list->Version = list->Revision = 1;
    for (unsigned i = 0; i < physical->memories; i++)
        next[list->Count++] = (CM_PARTIAL_RESOURCE_DESCRIPTOR){
            .Type = CmResourceTypeMemory,
            .u.Memory = {(PHYSICAL_ADDRESS)physical->memory[i].start,
                         (ULONG)physical->memory[i].length},
        };
    if (physical->messages)
        next[list->Count++] = (CM_PARTIAL_RESOURCE_DESCRIPTOR){
            .Type = CmResourceTypeInterrupt,
            .Flags = CM_RESOURCE_INTERRUPT_LATCHED | CM_RESOURCE_INTERRUPT_MESSAGE,
            .u.Interrupt = {.Level = FIRST_CLASS,
                            .Vector = FIRST_CLASS << 4 | LOWEST_VECTOR,
                            .Affinity = processor_mask()},
        };
}

static IO_STACK_LOCATION *begin(struct request *request, PDEVICE_OBJECT physical, UCHAR major,
                                UCHAR minor)
{
    IO_STACK_LOCATION *location = request_init(request, io_top_of_stack(physical), NULL, major);

    location->MinorFunction = minor;
    request->irp.IoStatus.Status = STATUS_NOT_SUPPORTED; /* as every IRP_MJ_PNP begins */
    return location;
}

NTSTATUS pnp_request(PDEVICE_OBJECT physical, UCHAR major, UCHAR minor)
{
    struct request request;

    begin(&request, physical, major, minor);
    return request_send(&request);
}

NTSTATUS pnp_add(struct driver *driver, PDEVICE_OBJECT physical)
{
    NTSTATUS status;

    if (!driver->extension.AddDevice)
        return STATUS_NOT_IMPLEMENTED;
    status = driver->extension.AddDevice(&driver->object, physical);
    for (PDEVICE_OBJECT d = physical->AttachedDevice; d; d = d->AttachedDevice)
        if (d->Flags & DO_DEVICE_INITIALIZING)
            violation("AddDevice left DO_DEVICE_INITIALIZING");
    return status;
}

static void after_removal(PDEVICE_OBJECT physical)
{
    if (physical->AttachedDevice)
        violation("a device object is attached after IRP_MN_REMOVE_DEVICE");
    for (unsigned i = 0; i < CLASSES; i++)
        if (interrupts[i].physical == physical)
            violation("an interrupt is connected after IRP_MN_REMOVE_DEVICE");
}

NTSTATUS pnp_start(PDEVICE_OBJECT physical)
{
    struct resources resources;
    struct request request;
    IO_STACK_LOCATION *location = begin(&request, physical, IRP_MJ_PNP, IRP_MN_START_DEVICE);
    NTSTATUS status;

    list_resources(physical->DeviceExtension, &resources);
    location->Parameters.StartDevice.AllocatedResources = &resources.list;
    location->Parameters.StartDevice.AllocatedResourcesTranslated = &resources.list;
    status = request_send(&request);
    if (!NT_SUCCESS(status)) {
        pnp_request(physical, IRP_MJ_PNP, IRP_MN_REMOVE_DEVICE);
        after_removal(physical);
    }
    return status;
}

static void must_succeed(PDEVICE_OBJECT physical, UCHAR minor)
{
    NTSTATUS status = pnp_request(physical, IRP_MJ_PNP, minor);

    if (status != STATUS_SUCCESS)
        violation("IRP_MJ_PNP %02x failed with %08x", minor, (ULONG)status);
}

void pnp_remove(PDEVICE_OBJECT physical)
{
    if (physical->AttachedDevice) {
        must_succeed(physical, IRP_MN_QUERY_REMOVE_DEVICE);
        must_succeed(physical, IRP_MN_REMOVE_DEVICE);
        after_removal(physical);
    }
    IoDeleteDevice(physical);
}

void pnp_surprise(PDEVICE_OBJECT physical)
{
    must_succeed(physical, IRP_MN_SURPRISE_REMOVAL);
    must_succeed(physical, IRP_MN_REMOVE_DEVICE);
    after_removal(physical);
    IoDeleteDevice(physical);
}

/* ---- Interrupts ---- */

static void on_message(void)
{
    KIRQL irql = irql_current();
    struct KINTERRUPT *interrupt = &interrupts[irql - FIRST_CLASS];

    lock(&interrupt->lock);
    if (interrupt->physical) {
        served++;
        interrupt->routine(interrupt, interrupt->context, interrupt->message);
        if (irql_current() != irql) {
            violation("an interrupt service routine returned at IRQL %u", irql_current());
            irql_set(irql);
        }
    }
    unlock(&interrupt->lock);
}

unsigned pnp_interrupts(void)
{
    return served;
}

static unsigned vector_of(const struct KINTERRUPT *interrupt)
{
    return (unsigned)(FIRST_CLASS + (interrupt - interrupts)) << 4 | LOWEST_VECTOR;
}

static void set_message(struct KINTERRUPT *interrupt, bool on)
{
    const struct physical *physical = interrupt->physical->DeviceExtension;
    unsigned target = interrupt->message % cpu_count();

    if (physical->real)
        pci_message(&physical->function, interrupt->message, (uint32_t)APIC_BASE | target << 12,
                    vector_of(interrupt), !on);
}

/* The lock is taken with interrupts off here, which no class can break into. */
static void set_owner(struct KINTERRUPT *interrupt, PDEVICE_OBJECT physical)
{
    bool enabled = interrupts_off();

    lock(&interrupt->lock); /* the routine is not under way */
    interrupt->physical = physical;
    unlock(&interrupt->lock);
    interrupts_restore(enabled);
}

static struct KINTERRUPT *connect_message(PIO_CONNECT_INTERRUPT_PARAMETERS parameters,
                                          ULONG message)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        struct KINTERRUPT *interrupt = &interrupts[i];

        if (interrupt->physical)
            continue;
        interrupt->routine = parameters->MessageBased.MessageServiceRoutine;
        interrupt->context = parameters->MessageBased.ServiceContext;
        interrupt->message = message;
        interrupt_connect(vector_of(interrupt), on_message);
        set_owner(interrupt, parameters->MessageBased.PhysicalDeviceObject);
        set_message(interrupt, true);
        return interrupt;
    }
    panic("too many interrupts");
}

static void fill_entry(IO_INTERRUPT_MESSAGE_INFO_ENTRY *entry, struct KINTERRUPT *interrupt)
{
    *entry = (IO_INTERRUPT_MESSAGE_INFO_ENTRY){
        .MessageAddress = APIC_BASE,
        .TargetProcessorSet = processor_mask(),
        .InterruptObject = interrupt,
        .MessageData = vector_of(interrupt),
        .Vector = vector_of(interrupt),
        .Irql = (KIRQL)(vector_of(interrupt) >> 4),
        .Mode = 1, /* Latched */
    };
}

NTSTATUS NTAPI IoConnectInterruptEx(PIO_CONNECT_INTERRUPT_PARAMETERS Parameters)
{
    PDEVICE_OBJECT device = Parameters->MessageBased.PhysicalDeviceObject;
    const struct physical *physical;
    PIO_INTERRUPT_MESSAGE_INFO info;

    if (Parameters->Version != CONNECT_MESSAGE_BASED) /* others are not supported here */
        return STATUS_INVALID_PARAMETER_1;
    if (!device || device->DriverObject != &bus || !Parameters->MessageBased.MessageServiceRoutine)
        return STATUS_INVALID_PARAMETER;
    physical = device->DeviceExtension;
    if (!physical->messages)
        return STATUS_NOT_FOUND;
    info = pool_allocate(sizeof(*info) + physical->messages * sizeof(info->MessageInfo[0]),
                         POOL_OWN_TAG, NULL);
    if (!info)
        return STATUS_INSUFFICIENT_RESOURCES;
    info->MessageCount = physical->messages;
    info->UnifiedIrql = FIRST_CLASS + CLASSES - 1;
    for (ULONG i = 0; i < physical->messages; i++)
        fill_entry(&info->MessageInfo[i], connect_message(Parameters, i));
    if (physical->real)
        pci_messages_enable(&physical->function, true);
    *Parameters->MessageBased.ConnectionContext = info;
    return STATUS_SUCCESS;
}

VOID NTAPI IoDisconnectInterruptEx(PIO_DISCONNECT_INTERRUPT_PARAMETERS Parameters)
{
    PIO_INTERRUPT_MESSAGE_INFO info = Parameters->ConnectionContext;

    for (ULONG i = 0; i < info->MessageCount; i++) {
        PKINTERRUPT interrupt = info->MessageInfo[i].InterruptObject;
        const struct physical *physical;

        if (!interrupt->physical) {
            violation("IoDisconnectInterruptEx: not connected");
            continue;
        }
        physical = interrupt->physical->DeviceExtension;
        set_message(interrupt, false);
        if (physical->real)
            pci_messages_enable(&physical->function, false);
        set_owner(interrupt, NULL);
    }
    pool_free(info, POOL_OWN_TAG);
}

bool pnp_interrupt(PDEVICE_OBJECT physical)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        if (interrupts[i].physical != physical)
            continue;
        processor_interrupt(0, vector_of(&interrupts[i]));
        return true;
    }
    return false;
}
