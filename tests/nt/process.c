/* SPDX-License-Identifier: BSD-3-Clause */
#include "process.h"

#include "check.h"
#include "io.h"
#include "libc.h"

#define PROCESSES 16
#define NOTIFY_ROUTINES 8

struct process system_process = {.live = true, .id = 4, .may_profile = true};
static struct process processes[PROCESSES];
static uint64_t next_id = 1000;
static CREATE_PROCESS_NOTIFY_ROUTINE *notify[NOTIFY_ROUTINES];

struct process *process_current(void)
{
    struct process *process = thread_current()->process;

    return process ? process : &system_process;
}

static void tell(const struct process *process, BOOLEAN create)
{
    for (unsigned i = 0; i < NOTIFY_ROUTINES; i++)
        if (notify[i])
            notify[i]((HANDLE)system_process.id, (HANDLE)process->id, create);
}

struct process *process_create(void)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *process = &processes[i];

        if (process->live)
            continue;
        memset(process, 0, sizeof(*process));
        process->live = true;
        process->id = next_id;
        process->may_profile = true;
        next_id += 4;
        tell(process, TRUE);
        return process;
    }
    panic("too many processes");
}

void process_exit(struct process *process)
{
    io_cancel_process(process);
    for (unsigned i = 0; i < HANDLES; i++) {
        void *body = __atomic_exchange_n(&process->handles.bodies[i], NULL, __ATOMIC_ACQ_REL);

        if (body)
            io_close_file(body);
    }
    tell(process, FALSE);
    process->live = false;
}

struct run {
    void (*program)(void *);
    void *argument;
    bool exits;
};

/* A dying process closes its handles in its own context. */
static void run_thread(void *argument)
{
    const struct run *run = argument;

    run->program(run->argument);
    if (run->exits)
        process_exit(process_current());
}

void process_run(struct process *process, void (*program)(void *), void *argument, bool exits)
{
    struct run run = {program, argument, exits};
    struct thread *thread = thread_create(process, run_thread, &run, processor_mask());

    thread_join(thread);
    object_release(thread);
    thread_reap();
}

unsigned process_notify_count(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < NOTIFY_ROUTINES; i++)
        count += notify[i] != NULL;
    return count;
}

HANDLE NTAPI PsGetCurrentProcessId(VOID)
{
    return (HANDLE)process_current()->id;
}

PVOID NTAPI IoGetCurrentProcess(VOID)
{
    return process_current();
}

NTSTATUS NTAPI PsSetCreateProcessNotifyRoutine(CREATE_PROCESS_NOTIFY_ROUTINE *NotifyRoutine,
                                               BOOLEAN Remove)
{
    for (unsigned i = 0; i < NOTIFY_ROUTINES; i++) {
        if (notify[i] != (Remove ? NotifyRoutine : NULL))
            continue;
        notify[i] = Remove ? NULL : NotifyRoutine;
        return STATUS_SUCCESS;
    }
    return STATUS_INVALID_PARAMETER;
}

/* The kernel holds every privilege; a LUID is that of SeSystemProfilePrivilege or unknown here. */
BOOLEAN NTAPI SeSinglePrivilegeCheck(LUID PrivilegeValue, KPROCESSOR_MODE PreviousMode)
{
    if (PreviousMode == KernelMode)
        return TRUE;
    return PrivilegeValue.LowPart == SE_SYSTEM_PROFILE_PRIVILEGE && PrivilegeValue.HighPart == 0 &&
           process_current()->may_profile;
}

NTSTATUS NTAPI PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                                    PVOID ObjectAttributes, HANDLE ProcessHandle, PVOID ClientId,
                                    KSTART_ROUTINE *StartRoutine, PVOID StartContext)
{
    struct thread *thread;

    (void)DesiredAccess;
    (void)ObjectAttributes;
    (void)ProcessHandle;
    (void)ClientId;
    thread_reap();
    thread = thread_create_nt(&system_process, StartRoutine, StartContext);
    *ThreadHandle = handle_open(&kernel_handles, thread);
    return *ThreadHandle ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
}
