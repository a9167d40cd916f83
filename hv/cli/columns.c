// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/columns.h"

int cli_columns_of(const char *text, size_t bytes)
{
    int columns = 0;

    for (size_t i = 0; i < bytes; i++)
        columns += ((unsigned char)text[i] & 0xC0) != 0x80;
    return columns;
}

int cli_bytes_of(const char *text, int columns)
{
    size_t bytes = 0;

    while (text[bytes] && cli_columns_of(text, bytes + 1) <= columns)
        bytes++;
    return (int)bytes;
}
