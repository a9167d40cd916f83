/* SPDX-License-Identifier: BSD-3-Clause */
/* Deferred procedure calls, the dispatch interrupt, and calls to all processors at once. */
#include "check.h"
#include "libc.h"
#include "thread.h"

/* KeSetTargetProcessorDpc marks a chosen processor so; below that the DPC has none. */
#define TARGETED 0x500

static struct lock ipi_lock;
static struct {
    KIPI_BROADCAST_WORKER *worker;
    ULONG_PTR context;
    volatile unsigned arrived, left;
} ipi;

VOID NTAPI KeInitializeDpc(PKDPC Dpc, KDEFERRED_ROUTINE *Routine, PVOID Context)
{
    memset(Dpc, 0, sizeof(*Dpc));
    Dpc->Type = OBJECT_DPC;
    Dpc->Importance = MediumImportance;
    Dpc->DeferredRoutine = Routine;
    Dpc->DeferredContext = Context;
}

NTSTATUS NTAPI KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcNumber->Group || ProcNumber->Reserved || ProcNumber->Number >= cpu_count())
        return STATUS_INVALID_PARAMETER;
    Dpc->Number = (USHORT)(TARGETED + ProcNumber->Number);
    return STATUS_SUCCESS;
}

VOID NTAPI KeSetTargetProcessorDpc(PKDPC Dpc, CCHAR Number)
{
    Dpc->Number = (USHORT)(TARGETED + Number);
}

VOID NTAPI KeSetImportanceDpc(PKDPC Dpc, ULONG Importance)
{
    Dpc->Importance = (UCHAR)Importance;
}

static void enqueue(struct processor *p, PKDPC dpc)
{
    dpc->DpcData = p;
    if (dpc->Importance == HighImportance) {
        dpc->DpcListEntry = p->dpc_first;
        p->dpc_first = dpc;
        if (!p->dpc_last)
            p->dpc_last = dpc;
        return;
    }
    dpc->DpcListEntry = NULL;
    if (p->dpc_last)
        p->dpc_last->DpcListEntry = dpc;
    else
        p->dpc_first = dpc;
    p->dpc_last = dpc;
}

BOOLEAN NTAPI KeInsertQueueDpc(PKDPC Dpc, PVOID Argument1, PVOID Argument2)
{
    bool enabled = interrupts_off();
    struct processor *p =
        Dpc->Number >= TARGETED ? &processors[Dpc->Number - TARGETED] : processor_current();
    bool inserted = false;

    lock(&p->dpc_lock);
    if (!Dpc->DpcData) {
        Dpc->SystemArgument1 = Argument1;
        Dpc->SystemArgument2 = Argument2;
        enqueue(p, Dpc);
        inserted = true;
    }
    unlock(&p->dpc_lock);
    if (inserted)
        processor_interrupt(p->number, VECTOR_DISPATCH);
    interrupts_restore(enabled);
    return inserted;
}

/* Unlinks dpc, or the first one for NULL. */
static PKDPC dequeue(struct processor *p, PKDPC dpc)
{
    bool enabled = interrupts_off();
    PKDPC previous = NULL, at;

    lock(&p->dpc_lock);
    for (at = p->dpc_first; at && dpc && at != dpc; at = at->DpcListEntry)
        previous = at;
    if (at) {
        if (previous)
            previous->DpcListEntry = at->DpcListEntry;
        else
            p->dpc_first = at->DpcListEntry;
        if (p->dpc_last == at)
            p->dpc_last = previous;
        at->DpcData = NULL;
    }
    unlock(&p->dpc_lock);
    interrupts_restore(enabled);
    return at;
}

BOOLEAN NTAPI KeRemoveQueueDpc(PKDPC Dpc)
{
    struct processor *p = Dpc->DpcData;

    return p && dequeue(p, Dpc);
}

/* Whoever runs on a processor below DISPATCH_LEVEL comes after its DPCs. */
VOID NTAPI KeFlushQueuedDpcs(VOID)
{
    KAFFINITY before = thread_current()->affinity;

    for (unsigned i = 0; i < cpu_count(); i++)
        thread_set_affinity(UINT64_C(1) << i);
    thread_set_affinity(before);
}

unsigned dpc_queued(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < cpu_count(); i++)
        for (PKDPC dpc = processors[i].dpc_first; dpc; dpc = dpc->DpcListEntry)
            count++;
    return count;
}

static void run_dpc(PKDPC dpc)
{
    KDEFERRED_ROUTINE *routine = dpc->DeferredRoutine;

    routine(dpc, dpc->DeferredContext, dpc->SystemArgument1, dpc->SystemArgument2);
    if (irql_current() != DISPATCH_LEVEL) {
        violation("a DPC returned at IRQL %u", irql_current());
        irql_set(DISPATCH_LEVEL);
    }
}

static void on_dispatch(void)
{
    struct processor *p = processor_current();
    PKDPC dpc;

    while ((dpc = dequeue(p, NULL)))
        run_dpc(dpc);
    thread_dispatch();
}

static void meet(void)
{
    __atomic_add_fetch(&ipi.arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&ipi.arrived, __ATOMIC_ACQUIRE) < cpu_count())
        pause();
}

static void on_ipi(void)
{
    meet();
    ipi.worker(ipi.context);
    __atomic_add_fetch(&ipi.left, 1, __ATOMIC_ACQ_REL);
}

/* The worker runs at IPI_LEVEL on all processors at the same time; CLOCK_LEVEL lets IPIs in. */
ULONG_PTR NTAPI KeIpiGenericCall(KIPI_BROADCAST_WORKER *BroadcastFunction, ULONG_PTR Context)
{
    KIRQL old = irql_raise(CLOCK_LEVEL);
    unsigned self = processor_current()->number;
    ULONG_PTR result;

    lock(&ipi_lock);
    ipi.worker = BroadcastFunction;
    ipi.context = Context;
    ipi.arrived = ipi.left = 0;
    for (unsigned i = 0; i < cpu_count(); i++)
        if (i != self)
            processor_interrupt(i, VECTOR_IPI);
    irql_set(IPI_LEVEL);
    meet();
    result = BroadcastFunction(Context);
    while (__atomic_load_n(&ipi.left, __ATOMIC_ACQUIRE) < cpu_count() - 1)
        pause();
    irql_set(CLOCK_LEVEL);
    unlock(&ipi_lock);
    irql_set(old);
    return result;
}

void dpc_init(void)
{
    interrupt_connect(VECTOR_DISPATCH, on_dispatch);
    interrupt_connect(VECTOR_IPI, on_ipi);
}
