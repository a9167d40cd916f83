/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the silent failures this VM has: takes the counters, and has them verified. */
#ifndef VPMUSTAT_SELFTEST_H
#define VPMUSTAT_SELFTEST_H

#include "arguments.h"
#include "guest-drivers/source/device.h"

/* As system_profile_thread; NULL: there is no such thing. */
typedef int selftest_profile(void (*work)(void), uint64_t *counted, const char **what,
                             uint32_t *error);

/**
 * Prints the findings, or with -A each check, and gives the counters back. Returns 0 where nothing
 * is wrong, 1 where something is, 2 where it could not be tried.
 */
int selftest(const struct source_device *device, selftest_profile *profile,
             const struct arguments *arguments, FILE *out, FILE *err);

#endif
