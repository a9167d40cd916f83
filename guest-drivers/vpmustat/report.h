/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of results, as text for people, as CSV or as JSON. */
#ifndef VPMUSTAT_REPORT_H
#define VPMUSTAT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON };

enum report_kind {
    REPORT_WORDS,  /* to the left */
    REPORT_NUMBER, /* to the right; thousands apart in text */
    REPORT_GROUP,  /* words that rows share: in text a line above the rows, when they change */
};

struct report_column {
    const char *name;
    enum report_kind kind;
};

#define REPORT_COLUMNS 12u

struct report {
    FILE *out;
    enum report_format format;
    const struct report_column *columns;
    unsigned width; /* columns */
    char **cells;   /* NULL: no data */
    size_t used, room;
    bool failed; /* out of memory */
};

void report_begin(struct report *report, FILE *out, enum report_format format,
                  const struct report_column *columns, unsigned width);

/* The next cell, row by row. */
void report_words(struct report *report, const char *words);
void report_number(struct report *report, uint64_t number);
/* A number with so many decimals: value is in units of the last one. */
void report_decimal(struct report *report, uint64_t value, unsigned decimals);
void report_none(struct report *report); /* no data: "-", an empty field, null */

/** Prints all and frees it. Returns 0, or -1 where memory or the output failed. */
int report_end(struct report *report);

#endif
