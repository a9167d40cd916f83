/* SPDX-License-Identifier: BSD-3-Clause */
/* What vpmustat asks of the system. */
#ifndef VPMUSTAT_SYSTEM_H
#define VPMUSTAT_SYSTEM_H

#include <stdint.h>

#include "consumer.h"

#define SYSTEM_ANYWHERE UINT32_MAX

/**
 * Runs a program (its arguments end in NULL) on a processor, or SYSTEM_ANYWHERE, and waits for it.
 * Returns 0 with its exit status, or -1 with *error in words.
 */
int system_run(char **program, uint32_t processor, int *status, const char **error);

/** A clock in nanoseconds that never goes back. */
uint64_t system_now_ns(void);
void system_sleep_ms(uint32_t ms);

/**
 * Finds the consumer routines, in the DLL perflib or, if that is NULL, where the system has them.
 * What is not there stays NULL.
 */
void system_find_routines(const char *perflib, struct perf_routines *routines);

/*
 * Profiles the calling thread with counter 0 of the kernel's profiling configuration, around work()
 * (EnableThreadProfiling, ReadThreadProfilingData). Returns 0 with what it counted, or -1 with
 * *what in words: the routine that is missing or that failed.
 */
int system_profile_thread(void (*work)(void), uint64_t *counted, const char **what,
                          uint32_t *error);

#endif
