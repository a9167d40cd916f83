/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes: an id, handles, a privilege. Their address space is the one of everybody. */
#ifndef NT_PROCESS_H
#define NT_PROCESS_H

#include "object.h"
#include "thread.h"

struct process {
    bool live;
    uint64_t id;
    struct handle_table handles;
    bool may_profile; /* holds SeSystemProfilePrivilege, enabled */
};

/** The kernel's own process, id 4. */
extern struct process system_process;

/** Creates a process and tells the notify routines. */
struct process *process_create(void);

/**
 * Runs program(argument) as a thread of the process, waits for its end, and
 * ends the process if exits is true, as when it dies.
 */
void process_run(struct process *process, void (*program)(void *), void *argument, bool exits);

/** The process is gone: each handle left gets its CLEANUP and CLOSE, then notify routines run. */
void process_exit(struct process *process);

/** Notify routines that are registered. */
unsigned process_notify_count(void);

/** The process of the current thread. */
struct process *process_current(void);

#endif
