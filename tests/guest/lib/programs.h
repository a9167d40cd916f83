/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs as a compiler makes them, the same each time: what the counters and the oracle are both
 * run over. They touch only their stack, and run in either ring.
 */
#ifndef GUEST_PROGRAMS_H
#define GUEST_PROGRAMS_H

#include <stdint.h>

typedef uint64_t program(uint64_t size);

program program_calls;   /* recursion, and calls through a table */
program program_strings; /* REP of each kind, formatted text */
program program_sort;    /* a quicksort, a list, a checksum */

struct named_program {
    const char *name;
    program *fn;
};

extern const struct named_program programs[3];

#endif
