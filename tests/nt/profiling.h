/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread profiling: kernel32's four routines as a user program calls them, with
 * NT statuses, and the part of the context switch that reads the counters.
 */
#ifndef NT_PROFILING_H
#define NT_PROFILING_H

#include "thread.h"

/** Profiles the current thread; bit i of counters is counter i of the standing configuration. */
NTSTATUS EnableThreadProfiling(struct thread *thread, ULONG flags, ULONG64 counters,
                               HANDLE *profile);
NTSTATUS DisableThreadProfiling(HANDLE profile);
NTSTATUS QueryThreadProfiling(struct thread *thread, BOOLEAN *enabled);

/** Reads the counters in ring 3 by RDPMC, so CR4.PCE must be set (a driver's task). */
NTSTATUS ReadThreadProfilingData(HANDLE profile, ULONG flags, PERFORMANCE_DATA *data);

/** For the scheduler: one thread gives way to another on this processor. */
void profiling_switch(struct thread *from, struct thread *to);

/** For the scheduler: the thread ends. */
void profiling_forget(struct thread *thread);

#endif
