/* SPDX-License-Identifier: BSD-3-Clause */
/* A user program's view of thread profiling. */
#ifndef NT_PROFILING_TEST_H
#define NT_PROFILING_TEST_H

/** The statuses of the four routines, with no configuration set. */
void profiling_test_statuses(void);

/**
 * Threads that share one processor read their own counts: configuration entry 0
 * counts instructions of ring 3, entry 1 branches of ring 3.
 */
void profiling_test_threads(void);

/** Runs during() in a thread that is profiled with two counters. */
void profiling_test_during(void (*during)(void));

#endif
