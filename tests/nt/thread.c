/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler: one queue of ready threads for all processors, first come
 * first served, an affinity mask per thread, no priorities. It runs at
 * DISPATCH_LEVEL under the dispatcher lock. The lock is held across a switch of
 * stacks and released by the thread that goes on, so a thread that is queued
 * while it still runs is not taken by another processor before it has left.
 *
 * There is no clock tick while nobody needs one: a processor's clock runs while
 * a thread of it waits with a time-out or while ready threads compete for it.
 */
#include "thread.h"

#include "apic.h"
#include "check.h"
#include "libc.h"
#include "memory.h"
#include "object.h"
#include "profiling.h"

#define STACK_PAGES 8
#define CLOCK_PERIOD_NS 1000000

extern void switch_stacks(uint64_t *save, uint64_t next);
extern void thread_enter(void);
void thread_first(void) __attribute__((noreturn));

static struct lock dispatcher_lock;
static struct thread *ready_first, *ready_last;
static struct thread *timed_first;
static struct thread *dead_first;
static struct thread idle_threads[MAX_CPUS];
static uint64_t next_id = 8;

KIRQL dispatcher_enter(void)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);

    lock(&dispatcher_lock);
    return old;
}

void dispatcher_leave(KIRQL old)
{
    unlock(&dispatcher_lock);
    irql_set(old);
}

static bool allowed(const struct thread *thread, unsigned number)
{
    return thread->affinity >> number & 1;
}

static struct thread *take_ready(unsigned number)
{
    struct thread *previous = NULL;

    for (struct thread *t = ready_first; t; previous = t, t = t->next) {
        if (!allowed(t, number))
            continue;
        if (previous)
            previous->next = t->next;
        else
            ready_first = t->next;
        if (ready_last == t)
            ready_last = previous;
        return t;
    }
    return NULL;
}

static bool anyone_ready(unsigned number)
{
    for (struct thread *t = ready_first; t; t = t->next)
        if (allowed(t, number))
            return true;
    return false;
}

/* Tells a processor that there is a thread for it: an idle one if it can be. */
static void poke_for(const struct thread *thread)
{
    unsigned number = MAX_CPUS;

    for (unsigned i = cpu_count(); i-- > 0;) {
        struct processor *p = &processors[i];

        if (!allowed(thread, i))
            continue;
        number = i;
        if (p->current == p->idle && !p->poked)
            break;
    }
    if (number == MAX_CPUS)
        panic("thread %lu: empty affinity", thread->id);
    processors[number].poked = true;
    processor_interrupt(number, VECTOR_DISPATCH);
}

static void make_ready(struct thread *thread)
{
    thread->state = THREAD_READY;
    thread->next = NULL;
    if (ready_last)
        ready_last->next = thread;
    else
        ready_first = thread;
    ready_last = thread;
    poke_for(thread);
}

static void save_cpu_state(struct thread *thread)
{
    struct cpu *cpu = cpu_get(processor_current()->number);

    asm volatile("fxsave64 %0" : "=m"(thread->sse));
    thread->user_return_sp = cpu->user_return_sp;
    thread->rsp0 = cpu->tss.rsp[0];
}

static void load_cpu_state(const struct thread *thread)
{
    struct cpu *cpu = cpu_get(processor_current()->number);

    asm volatile("fxrstor64 %0" : : "m"(thread->sse));
    cpu->user_return_sp = thread->user_return_sp;
    cpu->tss.rsp[0] = thread->rsp0;
}

/* Lock held; the current thread is queued, waiting or dead. Returns when it runs again. */
static void switch_away(void)
{
    struct processor *p = processor_current();
    struct thread *old = p->current;
    struct thread *next = take_ready(p->number);

    if (!next)
        next = p->idle;
    next->state = THREAD_RUNNING;
    if (next == old)
        return;
    profiling_switch(old, next);
    save_cpu_state(old);
    load_cpu_state(next);
    next->context_switches++;
    p->current = next;
    asm volatile("mov %0, %%gs:0x188" : : "r"(next) : "memory");
    switch_stacks(&old->sp, next->sp);
}

NTSTATUS thread_block(LIST_ENTRY *list, bool timed, uint64_t deadline)
{
    struct thread *self = thread_current();

    self->state = THREAD_WAITING;
    self->timed = timed;
    self->deadline = deadline;
    self->wait_entry.Flink = self->wait_entry.Blink = NULL;
    if (list) {
        self->wait_entry = (LIST_ENTRY){.Flink = list, .Blink = list->Blink};
        list->Blink->Flink = &self->wait_entry;
        list->Blink = &self->wait_entry;
    }
    if (timed) {
        self->timer_next = timed_first;
        timed_first = self;
        if (!processor_current()->clock_on) {
            processor_current()->clock_on = true;
            apic_timer_start(VECTOR_CLOCK, CLOCK_PERIOD_NS);
        }
    }
    switch_away();
    return self->wait_status;
}

static void leave_timed(struct thread *thread)
{
    struct thread **at = &timed_first;

    while (*at && *at != thread)
        at = &(*at)->timer_next;
    if (*at)
        *at = thread->timer_next;
    thread->timed = false;
}

void thread_wake(struct thread *thread, NTSTATUS status)
{
    if (thread->wait_entry.Flink) {
        thread->wait_entry.Flink->Blink = thread->wait_entry.Blink;
        thread->wait_entry.Blink->Flink = thread->wait_entry.Flink;
        thread->wait_entry.Flink = NULL;
    }
    if (thread->timed)
        leave_timed(thread);
    thread->wait_status = status;
    make_ready(thread);
}

static void wake_expired(void)
{
    struct thread *t = timed_first;
    uint64_t now = time_now();

    while (t) {
        struct thread *next = t->timer_next;

        if (t->deadline <= now)
            thread_wake(t, STATUS_TIMEOUT);
        t = next;
    }
}

/* Lock held: the clock runs while something waits for it. */
static void set_clock(struct processor *p)
{
    bool wanted = timed_first || (p->current != p->idle && anyone_ready(p->number));

    if (wanted == p->clock_on)
        return;
    p->clock_on = wanted;
    if (wanted)
        apic_timer_start(VECTOR_CLOCK, CLOCK_PERIOD_NS);
    else
        apic_timer_stop();
}

static void on_clock(void)
{
    struct processor *p = processor_current();

    p->clock_ticked = true;
    processor_interrupt(p->number, VECTOR_DISPATCH);
}

void thread_dispatch(void)
{
    struct processor *p = processor_current();
    struct thread *self = p->current;

    lock(&dispatcher_lock);
    p->poked = false;
    if (p->clock_ticked) {
        p->clock_ticked = false;
        p->reschedule = true;
        wake_expired();
    }
    set_clock(p);
    if (self == p->idle) {
        switch_away();
    } else if (!allowed(self, p->number) || (p->reschedule && anyone_ready(p->number))) {
        p->reschedule = false;
        make_ready(self);
        switch_away();
    }
    unlock(&dispatcher_lock);
}

void thread_yield(void)
{
    KIRQL old = dispatcher_enter();

    if (anyone_ready(processor_current()->number)) {
        make_ready(thread_current());
        switch_away();
    }
    dispatcher_leave(old);
}

void thread_set_affinity(KAFFINITY affinity)
{
    KIRQL old = dispatcher_enter();
    struct thread *self = thread_current();

    self->affinity = affinity;
    if (!allowed(self, processor_current()->number)) {
        if (old < DISPATCH_LEVEL) {
            make_ready(self);
            switch_away();
        } else { /* the move waits until the caller lowers the IRQL */
            processor_interrupt(processor_current()->number, VECTOR_DISPATCH);
        }
    }
    dispatcher_leave(old);
}

void thread_first(void)
{
    struct thread *self = thread_current();

    dispatcher_leave(PASSIVE_LEVEL);
    sti();
    if (self->start)
        self->start(self->argument);
    else
        self->nt_start(self->argument);
    thread_exit(STATUS_SUCCESS);
}

void thread_exit(NTSTATUS status)
{
    struct thread *self = thread_current();

    profiling_forget(self);
    dispatcher_enter();
    self->exit_status = status;
    self->state = THREAD_DEAD;
    dispatcher_signal_all(&self->header);
    self->next = dead_first;
    dead_first = self;
    switch_away();
    panic("a dead thread runs");
}

/* A thread cannot drop the reference to itself, for it stands on its own stack. */
void thread_reap(void)
{
    KIRQL old = dispatcher_enter();
    struct thread *dead = dead_first;

    dead_first = NULL;
    dispatcher_leave(old);
    while (dead) {
        struct thread *next = dead->next;

        object_release(dead);
        dead = next;
    }
}

static void thread_destroy(void *body)
{
    struct thread *thread = body;

    for (unsigned i = 0; i < STACK_PAGES; i++)
        page_free(thread->stack + i * PAGE_SIZE);
    if (thread->user_stack)
        page_free(thread->user_stack);
}

static struct thread *create(struct process *process, void *argument, KAFFINITY affinity)
{
    struct thread *thread = object_create(OBJECT_TYPE_THREAD, sizeof(*thread), thread_destroy);
    uint64_t *top;

    if (!thread)
        panic("no memory for a thread");
    object_reference(thread); /* its own; see thread_reap() */
    dispatcher_init(&thread->header, OBJECT_THREAD, 0);
    thread->id = __atomic_fetch_add(&next_id, 4, __ATOMIC_RELAXED);
    thread->process = process;
    thread->argument = argument;
    thread->affinity = thread->user_affinity = affinity & processor_mask();
    thread->stack = pages_alloc(STACK_PAGES);
    top = (uint64_t *)(thread->stack + STACK_PAGES * PAGE_SIZE);
    *--top = 0;
    *--top = (uint64_t)thread_enter;
    top -= 6; /* the registers that switch_stacks() keeps */
    thread->sp = (uint64_t)top;
    thread->rsp0 = (uint64_t)top;
    memcpy(thread->sse, idle_threads[0].sse, sizeof(thread->sse));
    return thread;
}

static void begin(struct thread *thread)
{
    KIRQL old = dispatcher_enter();

    make_ready(thread);
    dispatcher_leave(old);
}

struct thread *thread_create(struct process *process, void (*start)(void *), void *argument,
                             KAFFINITY affinity)
{
    struct thread *thread = create(process, argument, affinity);

    thread->start = start;
    begin(thread);
    return thread;
}

struct thread *thread_create_nt(struct process *process, KSTART_ROUTINE *start, void *argument)
{
    struct thread *thread = create(process, argument, processor_mask());

    thread->nt_start = start;
    begin(thread);
    return thread;
}

void thread_join(struct thread *thread)
{
    KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL);
}

uint64_t thread_run_user(uint64_t (*fn)(uint64_t), uint64_t argument)
{
    struct thread *self = thread_current();

    if (!self->user_stack)
        self->user_stack = pages_alloc(1);
    return enter_user(fn, argument, FLAG_IF, (uint8_t *)self->user_stack + PAGE_SIZE);
}

struct thread *thread_idle(unsigned number)
{
    return &idle_threads[number];
}

void thread_init(void)
{
    asm volatile("fninit");
    for (unsigned i = 0; i < cpu_count(); i++) {
        struct thread *idle = &idle_threads[i];

        idle->state = THREAD_RUNNING;
        idle->affinity = UINT64_C(1) << i;
        asm volatile("fxsave64 %0" : "=m"(idle->sse));
    }
    interrupt_connect(VECTOR_CLOCK, on_clock);
}

/* The documented routines. */

HANDLE NTAPI PsGetCurrentThreadId(VOID)
{
    return (HANDLE)thread_current()->id;
}

PVOID NTAPI KeGetCurrentThread(VOID)
{
    return thread_current();
}

static KAFFINITY group_mask(const char *routine, const GROUP_AFFINITY *affinity)
{
    KAFFINITY mask = affinity->Group == 0 ? affinity->Mask & processor_mask() : 0;

    if (!mask)
        violation("%s: no active processor in mask %lx of group %u", routine, affinity->Mask,
                  affinity->Group);
    return mask;
}

/*
 * The previous affinity is all zero when the thread had its user affinity; that
 * value makes KeRevertToUserGroupAffinityThread go back to it.
 */
VOID NTAPI KeSetSystemGroupAffinityThread(PGROUP_AFFINITY Affinity,
                                          PGROUP_AFFINITY PreviousAffinity)
{
    struct thread *self = thread_current();
    KAFFINITY mask = group_mask("KeSetSystemGroupAffinityThread", Affinity);

    if (PreviousAffinity)
        *PreviousAffinity =
            (GROUP_AFFINITY){.Mask = self->affinity == self->user_affinity ? 0 : self->affinity};
    if (mask)
        thread_set_affinity(mask);
}

VOID NTAPI KeRevertToUserGroupAffinityThread(PGROUP_AFFINITY PreviousAffinity)
{
    thread_set_affinity(PreviousAffinity->Mask ? PreviousAffinity->Mask
                                               : thread_current()->user_affinity);
}

NTSTATUS NTAPI PsTerminateSystemThread(NTSTATUS ExitStatus)
{
    struct thread *self = thread_current();

    if (!self->nt_start)
        return STATUS_INVALID_PARAMETER;
    thread_exit(ExitStatus);
}
