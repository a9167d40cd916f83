// SPDX-License-Identifier: BSD-3-Clause
/* How wide text is on a terminal: one column for each character of UTF-8. */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include <stddef.h>

/* Columns that bytes of text take. */
int cli_columns_of(const char *text, size_t bytes);

/* How many bytes of text fit into columns. */
int cli_bytes_of(const char *text, int columns);

#endif
