// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

#define COLUMNS_LEAST 40
#define COLUMNS_MOST 1000
#define LINES 24

struct terminal terminal_look(void)
{
    const char *kind = getenv("TERM"), *none = getenv("NO_COLOR"), *said = getenv("COLUMNS");
    struct terminal terminal = {.columns = said ? atoi(said) : 0, .lines = LINES};
    struct winsize size;

    terminal.redraws = isatty(STDOUT_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
    terminal.colours = terminal.redraws && !(none && *none);
    if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col && size.ws_row) {
        terminal.columns = size.ws_col;
        terminal.lines = size.ws_row;
    }
    if (terminal.columns < COLUMNS_LEAST || terminal.columns > COLUMNS_MOST)
        terminal.columns = TERMINAL_COLUMNS;
    return terminal;
}

bool terminal_write(const GString *text)
{
    for (size_t at = 0; at < text->len;) {
        const ssize_t done = write(STDOUT_FILENO, text->str + at, text->len - at);

        if (done < 0 && errno != EINTR)
            return false;
        at += done > 0 ? (size_t)done : 0;
    }
    return true;
}

int terminal_end(GString *text, int status)
{
    const bool written = terminal_write(text);

    g_string_free(text, TRUE);
    return written ? status : EX_IOERR;
}
