// SPDX-License-Identifier: BSD-3-Clause
/*
 * Text in the columns of a terminal, as GLib knows them: a wide character takes two, a combining
 * one none. Pure.
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include <glib.h>
#include <stddef.h>

/* Columns that bytes of printable text take. */
int cli_columns_of(const char *text, size_t bytes);

/* How many bytes of printable text fit into columns. */
int cli_bytes_of(const char *text, int columns);

/*
 * Appends a text as it can be shown anywhere: whoever chose it, no control character, no change of
 * direction and nothing that is no UTF-8 reaches the terminal; each such byte or character
 * becomes '?'.
 */
void cli_put_printable(GString *to, const char *text);

/* Appends words, from column on, wrapped to it before width; ends the line. */
void cli_put_wrapped(GString *to, const char *text, int column, int width);

#endif
