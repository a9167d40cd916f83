/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that wait for the status device, in a cancel-safe queue. Its interrupt queues the DPC,
 * which answers those whose wait has ended. Putting a request in queues it, too: the device may
 * have spoken between the first look and the queue.
 */

#include "driver.h"

/* Which requests to take out. */
struct pick {
    PFILE_OBJECT file; /* those of a file */
    bool answered;     /* those that have their answer, which is in IoStatus then */
};

static struct pending *pending_of(PIO_CSQ queue)
{
    return (struct pending *)queue;
}

static PIRP irp_of(LIST_ENTRY *entry)
{
    return (PIRP)((char *)entry - offsetof(IRP, Tail.ListEntry));
}

static uint32_t code_of(PIRP irp)
{
    return IoGetCurrentIrpStackLocation(irp)->Parameters.DeviceIoControl.IoControlCode;
}

static VOID NTAPI insert(PIO_CSQ queue, PIRP irp)
{
    LIST_ENTRY *head = &pending_of(queue)->irps, *entry = &irp->Tail.ListEntry;

    *entry = (LIST_ENTRY){.Flink = head, .Blink = head->Blink};
    head->Blink->Flink = entry;
    head->Blink = entry;
}

static VOID NTAPI take_out(PIO_CSQ queue, PIRP irp)
{
    LIST_ENTRY *entry = &irp->Tail.ListEntry;

    (void)queue;
    entry->Flink->Blink = entry->Blink;
    entry->Blink->Flink = entry->Flink;
}

static bool has_answer(struct pending *pending, PIRP irp)
{
    uint32_t written;

    irp->IoStatus.Status =
        vpmu_answer(pending->vpmu, code_of(irp), irp->AssociatedIrp.SystemBuffer, &written);
    irp->IoStatus.Information = written;
    return irp->IoStatus.Status != STATUS_PENDING;
}

static bool is_picked(struct pending *pending, PIRP irp, const struct pick *pick)
{
    if (pick->answered)
        return has_answer(pending, irp);
    return !pick->file || IoGetCurrentIrpStackLocation(irp)->FileObject == pick->file;
}

/* The first behind `after`, or of all for NULL. */
static PIRP NTAPI peek_next(PIO_CSQ queue, PIRP after, PVOID context)
{
    struct pending *pending = pending_of(queue);
    LIST_ENTRY *at = after ? &after->Tail.ListEntry : &pending->irps;

    while ((at = at->Flink) != &pending->irps) {
        if (is_picked(pending, irp_of(at), context))
            return irp_of(at);
    }
    return NULL;
}

static VOID NTAPI acquire_lock(PIO_CSQ queue, KIRQL *irql)
{
    *irql = KeAcquireSpinLockRaiseToDpc(&pending_of(queue)->lock);
}

static VOID NTAPI release_lock(PIO_CSQ queue, KIRQL irql)
{
    KeReleaseSpinLock(&pending_of(queue)->lock, irql);
}

static VOID NTAPI complete_cancelled(PIO_CSQ queue, PIRP irp)
{
    status_forget(&pending_of(queue)->vpmu->status, code_of(irp));
    complete_request(irp, STATUS_CANCELLED, 0);
}

static VOID NTAPI answer_all(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    struct pending *pending = context;
    struct pick pick = {.answered = true};
    PIRP irp;

    (void)dpc;
    (void)argument1;
    (void)argument2;
    while ((irp = IoCsqRemoveNextIrp(&pending->queue, &pick)))
        complete_request(irp, irp->IoStatus.Status, irp->IoStatus.Information);
}

NTSTATUS pending_init(struct pending *pending, struct vpmu *vpmu)
{
    pending->irps.Flink = pending->irps.Blink = &pending->irps;
    pending->vpmu = vpmu;
    KeInitializeDpc(&pending->dpc, answer_all, pending);
    return IoCsqInitialize(&pending->queue, insert, take_out, peek_next, acquire_lock, release_lock,
                           complete_cancelled);
}

void pending_insert(struct pending *pending, PIRP irp)
{
    IoCsqInsertIrp(&pending->queue, irp, NULL); /* marks it pending */
    pending_poke(pending);
}

void pending_poke(struct pending *pending)
{
    KeInsertQueueDpc(&pending->dpc, NULL, NULL);
}

void pending_end(struct pending *pending, PFILE_OBJECT file, NTSTATUS failure)
{
    struct pick pick = {.file = file};
    PIRP irp;

    while ((irp = IoCsqRemoveNextIrp(&pending->queue, &pick))) {
        status_forget(&pending->vpmu->status, code_of(irp));
        complete_request(irp, failure, 0);
    }
}
