/* SPDX-License-Identifier: BSD-3-Clause */
/* The counter sets of the machine, and what they count: sets and query. */
#ifndef VPMUSTAT_CONSUMER_H
#define VPMUSTAT_CONSUMER_H

#include "arguments.h"
#include "guest-drivers/perflib/words.h"

/* NULL: the system does not have it. */
struct perf_routines {
#define PERF_ROUTINE(name, parameters) uint32_t(*name) parameters;
#include "routines.def"
#undef PERF_ROUTINE
};

enum perf_request { /* PerfQueryCounterSetRegistrationInfo's request codes */
                    PERF_REQUEST_SET = 1,
                    PERF_REQUEST_SET_NAME = 3,
                    PERF_REQUEST_SET_HELP = 4,
                    PERF_REQUEST_COUNTER_NAMES = 5,
                    PERF_REQUEST_PROVIDER = 7,
                    PERF_REQUEST_SET_ENGLISH = 9,
                    PERF_REQUEST_COUNTER_ENGLISH = 10,
};

/** Prints what a failure was to err, and returns 1, the exit status. */
int consumer_sets(const struct perf_routines *routines, const struct arguments *arguments,
                  FILE *out, FILE *err);
int consumer_query(const struct perf_routines *routines, const struct arguments *arguments,
                   void (*sleep_ms)(uint32_t), FILE *out, FILE *err);

#endif
