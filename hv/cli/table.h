// SPDX-License-Identifier: BSD-3-Clause
/*
 * Tables for people: cells go in row by row, lines of a given width come out. A column is as wide
 * as its widest cell; if a line would be too wide, the widest of the columns that may be cut are
 * cut, and a cell that is cut ends with '+'. Pure.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum table_side { TABLE_LEFT, TABLE_RIGHT };

/* What becomes of a column when lines are too wide. It is never narrower than its title. */
enum table_cut { TABLE_WHOLE, TABLE_CUT, TABLE_CUT_FIRST };

/* What a cell says, which is its colour. */
enum table_mark {
    TABLE_PLAIN,
    TABLE_HEADING,
    TABLE_GOOD,
    TABLE_WARNING,
    TABLE_BAD,
    TABLE_UNKNOWN,
    TABLE_MARKS,
};

struct table_column {
    const char *title; /* ASCII */
    enum table_side side;
    enum table_cut cut;
};

struct table;

/* The columns stay the caller's, and stay. */
struct table *table_new(const struct table_column *columns, size_t count);
void table_free(struct table *table);

/* The next cell. What cannot be shown in it becomes '?'. */
void table_add(struct table *table, enum table_mark mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

size_t table_rows(const struct table *table);

/*
 * Appends the titles and at most `most` rows in lines of at most width columns, without spaces at
 * their ends. Nothing if there is no row.
 */
void table_write(const struct table *table, GString *to, int width, size_t most, bool colours);

/* Appends a text in the colour of a mark. */
void table_put_marked(GString *to, enum table_mark mark, const char *text, bool colours);

#endif
