/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workloads of different shape. What a counter costs is paid once for each block of instructions
 * without a jump, so the shapes differ in how long such blocks are, how they are left, and in what
 * they do to memory. Each touches its stack and its own data only, and runs in ring 3.
 */
#ifndef BENCH_WORKLOADS_H
#define BENCH_WORKLOADS_H

#include <stdint.h>

/* Returns a value that depends on all of the work, the same in every run. */
typedef uint64_t workload(uint64_t rounds);

struct named_workload {
    const char *name;
    workload *fn;
    uint64_t rounds; /* a few seconds under TCG */
};

#define WORKLOADS 11
extern const struct named_workload workloads[WORKLOADS];

#endif
