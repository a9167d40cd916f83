/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatcher objects: events, mutexes, threads to wait for, fast mutexes. */
#include "check.h"
#include "libc.h"
#include "object.h"
#include "process.h"
#include "thread.h"

#define THREAD_OF(entry)                                                                           \
    ((struct thread *)((uint8_t *)(entry) - offsetof(struct thread, wait_entry)))

void dispatcher_init(DISPATCHER_HEADER *header, UCHAR type, LONG state)
{
    *header = (DISPATCHER_HEADER){.Type = type, .SignalState = state};
    header->WaitListHead.Flink = header->WaitListHead.Blink = &header->WaitListHead;
}

static struct thread *first_waiter(DISPATCHER_HEADER *header)
{
    LIST_ENTRY *entry = header->WaitListHead.Flink;

    return entry == &header->WaitListHead ? NULL : THREAD_OF(entry);
}

void dispatcher_signal_all(DISPATCHER_HEADER *header)
{
    struct thread *thread;

    header->SignalState = 1;
    while ((thread = first_waiter(header)))
        thread_wake(thread, STATUS_SUCCESS);
}

/* Takes the signal for thread if the object has one. */
static bool take_signal(DISPATCHER_HEADER *header, struct thread *thread)
{
    KMUTEX *mutex = (KMUTEX *)header;

    switch (header->Type) {
    case OBJECT_MUTANT: /* 1 free, below that held 1 - state times */
        if (header->SignalState <= 0 && mutex->OwnerThread != thread)
            return false;
        header->SignalState--;
        mutex->OwnerThread = thread;
        return true;
    case OBJECT_SYNCHRONIZATION_EVENT:
        if (!header->SignalState)
            return false;
        header->SignalState = 0;
        return true;
    default:
        return header->SignalState > 0;
    }
}

/* A negative time-out is relative, in units of 100 ns; absolute ones count from the start. */
static uint64_t deadline_of(const LARGE_INTEGER *timeout)
{
    return timeout->QuadPart < 0 ? time_now() + (uint64_t)-timeout->QuadPart
                                 : (uint64_t)timeout->QuadPart;
}

NTSTATUS NTAPI KeWaitForSingleObject(PVOID Object, ULONG WaitReason, KPROCESSOR_MODE WaitMode,
                                     BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    DISPATCHER_HEADER *header = Object;
    bool may_wait = !Timeout || Timeout->QuadPart != 0;
    NTSTATUS status = STATUS_SUCCESS;
    KIRQL old;

    (void)WaitReason;
    (void)WaitMode;
    (void)Alertable;
    if (may_wait && irql_current() > APC_LEVEL) {
        violation("KeWaitForSingleObject: would wait at IRQL %u", irql_current());
        return STATUS_UNSUCCESSFUL;
    }
    old = dispatcher_enter();
    if (!take_signal(header, thread_current()))
        status = may_wait ? thread_block(&header->WaitListHead, Timeout != NULL,
                                         Timeout ? deadline_of(Timeout) : 0)
                          : STATUS_TIMEOUT;
    dispatcher_leave(old);
    return status;
}

NTSTATUS NTAPI KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                      PLARGE_INTEGER Interval)
{
    KIRQL old = dispatcher_enter();

    (void)WaitMode;
    (void)Alertable;
    thread_block(NULL, true, deadline_of(Interval));
    dispatcher_leave(old);
    return STATUS_SUCCESS;
}

VOID NTAPI KeInitializeEvent(PKEVENT Event, ULONG Type, BOOLEAN State)
{
    dispatcher_init(&Event->Header, (UCHAR)Type, State);
}

LONG NTAPI KeSetEvent(PKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    DISPATCHER_HEADER *header = &Event->Header;
    KIRQL old = dispatcher_enter();
    LONG before = header->SignalState;
    struct thread *thread;

    (void)Increment;
    if (Wait)
        violation("KeSetEvent: Wait is not supported here");
    if (header->Type == OBJECT_NOTIFICATION_EVENT) {
        dispatcher_signal_all(header);
    } else if ((thread = first_waiter(header))) {
        thread_wake(thread, STATUS_SUCCESS);
    } else {
        header->SignalState = 1;
    }
    dispatcher_leave(old);
    return before;
}

LONG NTAPI KeResetEvent(PKEVENT Event)
{
    return __atomic_exchange_n(&Event->Header.SignalState, 0, __ATOMIC_SEQ_CST);
}

VOID NTAPI KeClearEvent(PKEVENT Event)
{
    KeResetEvent(Event);
}

LONG NTAPI KeReadStateEvent(PKEVENT Event)
{
    return __atomic_load_n(&Event->Header.SignalState, __ATOMIC_SEQ_CST);
}

VOID NTAPI KeInitializeMutex(PKMUTEX Mutex, ULONG Level)
{
    (void)Level;
    memset(Mutex, 0, sizeof(*Mutex));
    dispatcher_init(&Mutex->Header, OBJECT_MUTANT, 1);
    Mutex->ApcDisable = 1;
}

LONG NTAPI KeReleaseMutex(PKMUTEX Mutex, BOOLEAN Wait)
{
    KIRQL old = dispatcher_enter();
    LONG before = Mutex->Header.SignalState;
    struct thread *thread;

    (void)Wait;
    if (Mutex->OwnerThread != thread_current()) {
        violation("KeReleaseMutex: not the owner");
    } else if (++Mutex->Header.SignalState == 1) {
        Mutex->OwnerThread = NULL;
        if ((thread = first_waiter(&Mutex->Header)) && take_signal(&Mutex->Header, thread))
            thread_wake(thread, STATUS_SUCCESS);
    }
    dispatcher_leave(old);
    return before;
}

/* Fast mutexes, as ExInitializeFastMutex (inline in drivers) leaves them: Count 1, no owner. */

VOID NTAPI ExAcquireFastMutex(PFAST_MUTEX Mutex)
{
    KIRQL old = irql_raise(APC_LEVEL);

    if (Mutex->Owner == thread_current())
        violation("ExAcquireFastMutex: the owner acquires it again");
    if (__atomic_fetch_sub(&Mutex->Count, 1, __ATOMIC_ACQUIRE) != 1) {
        Mutex->Contention++;
        KeWaitForSingleObject(&Mutex->Event, Executive, KernelMode, FALSE, NULL);
    }
    Mutex->Owner = thread_current();
    Mutex->OldIrql = old;
}

BOOLEAN NTAPI ExTryToAcquireFastMutex(PFAST_MUTEX Mutex)
{
    KIRQL old = irql_raise(APC_LEVEL);
    LONG free = 1;

    if (!__atomic_compare_exchange_n(&Mutex->Count, &free, 0, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        irql_set(old);
        return FALSE;
    }
    Mutex->Owner = thread_current();
    Mutex->OldIrql = old;
    return TRUE;
}

VOID NTAPI ExReleaseFastMutex(PFAST_MUTEX Mutex)
{
    KIRQL old = (KIRQL)Mutex->OldIrql;

    if (Mutex->Owner != thread_current())
        violation("ExReleaseFastMutex: not the owner");
    Mutex->Owner = NULL;
    if (__atomic_fetch_add(&Mutex->Count, 1, __ATOMIC_RELEASE) != 0)
        KeSetEvent(&Mutex->Event, 0, FALSE);
    irql_set(old);
}
