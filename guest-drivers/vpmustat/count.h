/* SPDX-License-Identifier: BSD-3-Clause */
/* What the source of values gives: list, and the counts of a program. */
#ifndef VPMUSTAT_COUNT_H
#define VPMUSTAT_COUNT_H

#include "arguments.h"

/** Returns an exit status; failures are printed to err. */
int count_list(const struct arguments *arguments, FILE *out, FILE *err);

/** Returns the program's exit status, or 125 where there is no count, 127 where it did not run. */
int count_program(const struct arguments *arguments, FILE *out, FILE *err);

/* One event over a time, on one processor or on several. */
struct count {
    bool has_value;
    uint64_t value;
    uint32_t state;      /* enum vpmu_counter_state: the worst */
    uint64_t enabled_ns; /* or SOURCE_NOT_KNOWN */
    uint64_t backed_ns;
};

/** A count of nothing yet. */
struct count count_nothing(void);

/**
 * Adds what a counter has counted from before to after (records of one processor; NULL: none).
 * from_zero: it was started for this, so that before says nothing. width: bits of its counter.
 */
void count_add(struct count *count, const struct source_record *before,
               const struct source_record *after, bool from_zero, uint64_t width);

#endif
