// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/columns.h"

#include <stdbool.h>
#include <string.h>

#include "vpmu/utf8.h"

static int width_of(gunichar character)
{
    return g_unichar_iszerowidth(character) ? 0 : g_unichar_iswide(character) ? 2 : 1;
}

int cli_columns_of(const char *text, size_t bytes)
{
    int columns = 0;

    for (const char *end = text + bytes; text < end; text = g_utf8_next_char(text))
        columns += width_of(g_utf8_get_char(text));
    return columns;
}

int cli_bytes_of(const char *text, int columns)
{
    const char *end = text;

    while (*end) {
        columns -= width_of(g_utf8_get_char(end));
        if (columns < 0)
            break;
        end = g_utf8_next_char(end);
    }
    return (int)(end - text);
}

void cli_put_printable(GString *to, const char *text)
{
    for (size_t left = strlen(text); left;) {
        const size_t length = vpmu_utf8_length(text, left);
        const size_t step = length ? length : 1;

        if (length && g_unichar_isprint(g_utf8_get_char(text)))
            g_string_append_len(to, text, (gssize)length);
        else
            g_string_append_c(to, '?');
        text += step;
        left -= step;
    }
}

/* Bytes of the word at text; a word that is wider than a line is several. */
static size_t word_of(const char *text, int room)
{
    const size_t word = strcspn(text, " ");
    const size_t most = (size_t)cli_bytes_of(text, MAX(room, 2)); /* one character at least */

    return MIN(word, most);
}

void cli_put_wrapped(GString *to, const char *text, int column, int width)
{
    int at = column;
    bool first = true;

    while (*text) {
        const size_t word = word_of(text, width - column);
        const int columns = cli_columns_of(text, word);

        if (!first && at + 1 + columns > width) {
            g_string_append_printf(to, "\n%*s", column, "");
            at = column;
        } else if (!first) {
            g_string_append_c(to, ' ');
            at++;
        }
        g_string_append_len(to, text, (gssize)word);
        at += columns;
        first = false;
        text += word;
        text += strspn(text, " ");
    }
    g_string_append_c(to, '\n');
}
