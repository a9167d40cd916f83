/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the source share. */
#ifndef SOURCE_INTERNAL_H
#define SOURCE_INTERNAL_H

#include "source.h"

/* NTSTATUS by name */
enum {
#define SOURCE_STATUS(name, nt, win32, text) SOURCE_NT_##name = (int)(nt),
#include "statuses.def"
#undef SOURCE_STATUS
};

/** Fills the source's error. Returns -1, so that a failure is one statement. */
int source_fail(struct source *source, const char *what, uint32_t status);

/** Facts of which nothing is known. */
struct source_facts source_no_facts(void);

/** Counts the counters that are starved and filtered on some processor into facts. */
struct source_tally {
    uint64_t starved; /* sets of indices */
    uint64_t filtered;
};
void source_tally(struct source_tally *tally, const struct source_processor *processor);
void source_tally_end(const struct source_tally *tally, struct source_facts *facts);

/** How many a set has; the compiler's own would call its library, which a kernel lacks. */
uint64_t source_members(uint64_t set);

struct source *source_open_file(const char *path, struct source_error *error);

#endif
