/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle that needs no counter: runs code under EFLAGS.TF, takes a trap after each instruction,
 * and looks at the bytes of the one that was executed.
 */
#ifndef GUEST_STEP_H
#define GUEST_STEP_H

#include <stddef.h>
#include <stdint.h>

struct step_counts {
    uint64_t insns, branches, cond;
};

/*
 * rips[0] is the first instruction's address, rips[k] that of the next one after k instructions.
 * A REP instruction is one. length counts the entries; the rest is not recorded.
 */
struct step_trace {
    uint64_t *rips;
    size_t size, length;
};

/* Runs fn(arg) in ring 3; counts up to its RET. The trace may be NULL. */
struct step_counts step_user(uint64_t (*fn)(uint64_t), uint64_t arg, struct step_trace *trace);

/* Runs fn(arg) in ring 0; counts from the instruction at first (inclusive) to last (exclusive). */
struct step_counts step_kernel(uint64_t (*fn)(uint64_t), uint64_t arg, uint64_t first,
                               uint64_t last, struct step_trace *trace);

#endif
