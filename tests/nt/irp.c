/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests on their way, cancel-safe queues and remove locks. */
#include "irp.h"

#include "check.h"
#include "libc.h"
#include "processor.h"
#include "thread.h"

#define INVOKE_ALWAYS 0xe0 /* SL_INVOKE_ON_CANCEL, _SUCCESS, _ERROR */

typedef NTSTATUS NTAPI IO_COMPLETION_ROUTINE(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context);

IO_STACK_LOCATION *request_init(struct request *request, PDEVICE_OBJECT device, FILE_OBJECT *file,
                                UCHAR major)
{
    IO_STACK_LOCATION *location;

    if (device->StackSize > REQUEST_DEPTH)
        panic("a stack of %d devices", device->StackSize);
    memset(request, 0, sizeof(*request));
    location = &request->locations[device->StackSize - 1];
    request->irp.Type = 6;
    request->irp.Size = sizeof(IRP) + sizeof(request->locations);
    request->irp.StackCount = device->StackSize;
    request->irp.CurrentLocation = device->StackSize;
    request->irp.RequestorMode = file ? UserMode : KernelMode;
    request->irp.Tail.Thread = thread_current();
    request->irp.Tail.CurrentStackLocation = location;
    request->irp.Tail.OriginalFileObject = file;
    location->MajorFunction = major;
    location->DeviceObject = device;
    location->FileObject = file;
    KeInitializeEvent(&request->done, NotificationEvent, FALSE);
    return location;
}

NTSTATUS request_call(struct request *request)
{
    IO_STACK_LOCATION *location = request->irp.Tail.CurrentStackLocation;
    PDEVICE_OBJECT device = location->DeviceObject;
    UCHAR major = location->MajorFunction;
    NTSTATUS status = device->DriverObject->MajorFunction[major](device, &request->irp);
    bool enabled = read_flags() & FLAG_IF;
    bool marked = location->Control & SL_PENDING_RETURNED;

    if (irql_current() != PASSIVE_LEVEL || !enabled) {
        violation("major function %02x returned at IRQL %u, interrupts %s", major, irql_current(),
                  enabled ? "on" : "off");
        irql_set(PASSIVE_LEVEL);
        sti();
    }
    if ((status == STATUS_PENDING) != marked)
        violation("major function %02x returned %08x, and the request is%s marked pending", major,
                  (ULONG)status, marked ? "" : " not");
    return status;
}

NTSTATUS request_wait(struct request *request, NTSTATUS returned)
{
    NTSTATUS status;

    if (returned == STATUS_PENDING)
        KeWaitForSingleObject(&request->done, Executive, KernelMode, FALSE, NULL);
    if (!request->completions) {
        violation("a dispatch routine returned %08x and completed nothing", (ULONG)returned);
        return returned;
    }
    status = request->irp.IoStatus.Status;
    if (returned != STATUS_PENDING && returned != status)
        violation("a dispatch routine returned %08x but completed with %08x", (ULONG)returned,
                  (ULONG)status);
    return status;
}

NTSTATUS request_send(struct request *request)
{
    return request_wait(request, request_call(request));
}

/* ---- Down and up the stack ---- */

NTSTATUS NTAPI IofCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    IO_STACK_LOCATION *location = Irp->Tail.CurrentStackLocation - 1;

    if (Irp->CurrentLocation <= 1) {
        violation("IofCallDriver: no stack location is left");
        return STATUS_UNSUCCESSFUL;
    }
    Irp->CurrentLocation--;
    Irp->Tail.CurrentStackLocation = location;
    location->DeviceObject = DeviceObject;
    return DeviceObject->DriverObject->MajorFunction[location->MajorFunction](DeviceObject, Irp);
}

static NTSTATUS NTAPI stop_here(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context)
{
    (void)DeviceObject;
    (void)Irp;
    KeSetEvent(Context, 0, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

BOOLEAN NTAPI IoForwardIrpSynchronously(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    IO_STACK_LOCATION *location = Irp->Tail.CurrentStackLocation;
    KEVENT event;

    if (Irp->CurrentLocation <= 1)
        return FALSE;
    KeInitializeEvent(&event, NotificationEvent, FALSE);
    location[-1] = *location;
    location[-1].Control = INVOKE_ALWAYS;
    location[-1].CompletionRoutine = (PVOID)stop_here;
    location[-1].Context = &event;
    if (IofCallDriver(DeviceObject, Irp) == STATUS_PENDING)
        KeWaitForSingleObject(&event, Executive, KernelMode, FALSE, NULL);
    return TRUE;
}

/* Whether a completion routine wants the request to stay where it is. */
static bool go_up(PIRP irp)
{
    IO_STACK_LOCATION *location = irp->Tail.CurrentStackLocation;
    bool top = irp->CurrentLocation == irp->StackCount;

    irp->CurrentLocation++;
    irp->Tail.CurrentStackLocation++;
    irp->PendingReturned = (location->Control & SL_PENDING_RETURNED) != 0;
    if (!location->CompletionRoutine || !(location->Control & INVOKE_ALWAYS))
        return true;
    return ((IO_COMPLETION_ROUTINE *)location->CompletionRoutine)(
               top ? NULL : irp->Tail.CurrentStackLocation->DeviceObject, irp, location->Context) !=
           STATUS_MORE_PROCESSING_REQUIRED;
}

VOID NTAPI IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost)
{
    struct request *request = (struct request *)Irp;

    (void)PriorityBoost;
    if (Irp->CancelRoutine)
        violation("IofCompleteRequest: it can still be cancelled");
    if (Irp->IoStatus.Status == STATUS_PENDING)
        violation("IofCompleteRequest: with STATUS_PENDING");
    while (Irp->CurrentLocation <= Irp->StackCount)
        if (!go_up(Irp))
            return;
    if (__atomic_fetch_add(&request->completions, 1, __ATOMIC_ACQ_REL) != 0) {
        violation("IofCompleteRequest: completed twice");
        return;
    }
    KeSetEvent(&request->done, 0, FALSE);
}

/* ---- Cancel-safe queues ---- */

typedef VOID NTAPI DRIVER_CANCEL(PDEVICE_OBJECT DeviceObject, PIRP Irp);

static PVOID exchange_cancel_routine(PIRP irp, PVOID routine)
{
    return __atomic_exchange_n(&irp->CancelRoutine, routine, __ATOMIC_ACQ_REL);
}

void request_cancel(struct request *request)
{
    PIRP irp = &request->irp;
    PVOID routine;

    __atomic_store_n(&irp->Cancel, TRUE, __ATOMIC_SEQ_CST);
    routine = exchange_cancel_routine(irp, NULL);
    if (routine)
        ((DRIVER_CANCEL *)routine)(irp->Tail.CurrentStackLocation->DeviceObject, irp);
}

static VOID NTAPI csq_cancel(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    PIO_CSQ csq = Irp->Tail.DriverContext[3];
    KIRQL irql;

    (void)DeviceObject;
    csq->CsqAcquireLock(csq, &irql);
    csq->CsqRemoveIrp(csq, Irp);
    csq->CsqReleaseLock(csq, irql);
    csq->CsqCompleteCanceledIrp(csq, Irp);
}

NTSTATUS NTAPI IoCsqInitialize(PIO_CSQ Csq, IO_CSQ_INSERT_IRP *CsqInsertIrp,
                               IO_CSQ_REMOVE_IRP *CsqRemoveIrp,
                               IO_CSQ_PEEK_NEXT_IRP *CsqPeekNextIrp,
                               IO_CSQ_ACQUIRE_LOCK *CsqAcquireLock,
                               IO_CSQ_RELEASE_LOCK *CsqReleaseLock,
                               IO_CSQ_COMPLETE_CANCELED_IRP *CsqCompleteCanceledIrp)
{
    *Csq = (IO_CSQ){
        .Type = 2,
        .CsqInsertIrp = CsqInsertIrp,
        .CsqRemoveIrp = CsqRemoveIrp,
        .CsqPeekNextIrp = CsqPeekNextIrp,
        .CsqAcquireLock = CsqAcquireLock,
        .CsqReleaseLock = CsqReleaseLock,
        .CsqCompleteCanceledIrp = CsqCompleteCanceledIrp,
    };
    return STATUS_SUCCESS;
}

/* A request that is cancelled already is completed as cancelled instead. */
VOID NTAPI IoCsqInsertIrp(PIO_CSQ Csq, PIRP Irp, PVOID Context)
{
    bool cancelled;
    KIRQL irql;

    if (Context)
        violation("IoCsqInsertIrp: a context is not supported here");
    Irp->Tail.DriverContext[3] = Csq;
    Irp->Tail.CurrentStackLocation->Control |= SL_PENDING_RETURNED;
    Csq->CsqAcquireLock(Csq, &irql);
    Csq->CsqInsertIrp(Csq, Irp);
    exchange_cancel_routine(Irp, (PVOID)csq_cancel);
    cancelled = __atomic_load_n(&Irp->Cancel, __ATOMIC_SEQ_CST) &&
                exchange_cancel_routine(Irp, NULL) != NULL;
    if (cancelled)
        Csq->CsqRemoveIrp(Csq, Irp);
    Csq->CsqReleaseLock(Csq, irql);
    if (cancelled)
        Csq->CsqCompleteCanceledIrp(Csq, Irp);
}

PIRP NTAPI IoCsqRemoveNextIrp(PIO_CSQ Csq, PVOID PeekContext)
{
    PIRP irp = NULL;
    KIRQL irql;

    Csq->CsqAcquireLock(Csq, &irql);
    while ((irp = Csq->CsqPeekNextIrp(Csq, irp, PeekContext))) {
        if (!exchange_cancel_routine(irp, NULL))
            continue; /* its cancel routine waits for the lock */
        Csq->CsqRemoveIrp(Csq, irp);
        break;
    }
    Csq->CsqReleaseLock(Csq, irql);
    return irp;
}

/* ---- Remove locks: IoCount begins at 1, for the device itself ---- */

VOID NTAPI IoInitializeRemoveLockEx(IO_REMOVE_LOCK *Lock, ULONG AllocateTag, ULONG MaxLockedMinutes,
                                    ULONG HighWatermark, ULONG RemlockSize)
{
    (void)AllocateTag;
    (void)MaxLockedMinutes;
    (void)HighWatermark;
    if (RemlockSize != sizeof(*Lock))
        violation("IoInitializeRemoveLockEx: a lock of %u bytes", RemlockSize);
    memset(Lock, 0, sizeof(*Lock));
    Lock->IoCount = 1;
    KeInitializeEvent(&Lock->RemoveEvent, SynchronizationEvent, FALSE);
}

static void drop(IO_REMOVE_LOCK *lock)
{
    LONG left = __atomic_sub_fetch(&lock->IoCount, 1, __ATOMIC_ACQ_REL);

    if (left < 0)
        violation("a remove lock is released more often than acquired");
    if (left == 0)
        KeSetEvent(&lock->RemoveEvent, 0, FALSE);
}

NTSTATUS NTAPI IoAcquireRemoveLockEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag, const char *File,
                                     ULONG Line, ULONG RemlockSize)
{
    (void)Tag;
    (void)File;
    (void)Line;
    (void)RemlockSize;
    __atomic_add_fetch(&RemoveLock->IoCount, 1, __ATOMIC_ACQ_REL);
    if (!__atomic_load_n(&RemoveLock->Removed, __ATOMIC_ACQUIRE))
        return STATUS_SUCCESS;
    drop(RemoveLock);
    return STATUS_DELETE_PENDING;
}

VOID NTAPI IoReleaseRemoveLockEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag, ULONG RemlockSize)
{
    (void)Tag;
    (void)RemlockSize;
    drop(RemoveLock);
}

VOID NTAPI IoReleaseRemoveLockAndWaitEx(IO_REMOVE_LOCK *RemoveLock, PVOID Tag, ULONG RemlockSize)
{
    (void)Tag;
    (void)RemlockSize;
    __atomic_store_n(&RemoveLock->Removed, TRUE, __ATOMIC_RELEASE);
    drop(RemoveLock); /* the caller's */
    drop(RemoveLock); /* the device's */
    KeWaitForSingleObject(&RemoveLock->RemoveEvent, Executive, KernelMode, FALSE, NULL);
}
