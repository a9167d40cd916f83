/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads, the scheduler and dispatcher objects. */
#ifndef NT_THREAD_H
#define NT_THREAD_H

#include "processor.h"

struct process;
struct profile;

enum thread_state { THREAD_FREE, THREAD_READY, THREAD_RUNNING, THREAD_WAITING, THREAD_DEAD };

struct thread {
    DISPATCHER_HEADER header; /* signalled when the thread has ended */
    enum thread_state state;
    KAFFINITY affinity, user_affinity;
    struct process *process;
    uint64_t id;
    struct thread *next; /* in the ready queue, or in the queue of time-outs */
    uint64_t sp;
    uint8_t *stack;
    uint64_t user_return_sp, rsp0; /* of the library's way to ring 3 */
    void *user_stack;
    void (*start)(void *);
    KSTART_ROUTINE *nt_start;
    void *argument;
    NTSTATUS exit_status;
    /* while it waits */
    LIST_ENTRY wait_entry;
    NTSTATUS wait_status;
    bool timed;
    uint64_t deadline; /* time_now() */
    struct thread *timer_next;
    struct profile *profile; /* thread profiling; NULL: not enabled */
    unsigned context_switches;
    uint8_t sse[512] __attribute__((aligned(16)));
};

/**
 * Creates a thread and makes it ready. Exactly one of start and nt_start is set
 * through the two functions; affinity is a set of processors.
 * The caller holds one reference (object_release()), the thread another.
 */
struct thread *thread_create(struct process *process, void (*start)(void *), void *argument,
                             KAFFINITY affinity);
struct thread *thread_create_nt(struct process *process, KSTART_ROUTINE *start, void *argument);

/** Ends the current thread. */
void thread_exit(NTSTATUS status) __attribute__((noreturn));

/** Lets other ready threads of this processor run. At IRQL PASSIVE_LEVEL. */
void thread_yield(void);

/** Moves the current thread to the processors of the set, before it returns. */
void thread_set_affinity(KAFFINITY affinity);

/** Waits for the end of a thread. */
void thread_join(struct thread *thread);

/** Drops the references that ended threads had to themselves. */
void thread_reap(void);

/** Prepares the scheduler; the caller becomes processor 0's idle thread. */
void thread_init(void);

/** The idle thread of a processor. */
struct thread *thread_idle(unsigned number);

/** Calls fn(argument) in ring 3 on the thread's own user stack. */
uint64_t thread_run_user(uint64_t (*fn)(uint64_t), uint64_t argument);

/* The dispatcher lock guards threads and dispatcher objects; it raises to DISPATCH_LEVEL. */
KIRQL dispatcher_enter(void);
void dispatcher_leave(KIRQL old);

/* With the dispatcher lock held: ends a wait. */
void thread_wake(struct thread *thread, NTSTATUS status);

/* With the dispatcher lock held: the current thread waits until thread_wake(). */
NTSTATUS thread_block(LIST_ENTRY *list, bool timed, uint64_t deadline);

/* The part of the dispatch interrupt that is the scheduler's. */
void thread_dispatch(void);

/* wait.c */
void dispatcher_init(DISPATCHER_HEADER *header, UCHAR type, LONG state);
void dispatcher_signal_all(DISPATCHER_HEADER *header); /* lock held */

/* dpc.c */
void dpc_init(void);
unsigned dpc_queued(void);

/* Types of dispatcher objects. */
enum {
    OBJECT_NOTIFICATION_EVENT = 0,
    OBJECT_SYNCHRONIZATION_EVENT = 1,
    OBJECT_MUTANT = 2,
    OBJECT_THREAD = 6,
    OBJECT_DPC = 19,
};

#endif
