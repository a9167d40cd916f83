// SPDX-License-Identifier: BSD-3-Clause
/* What is at the end of standard output. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <glib.h>
#include <stdbool.h>

#define TERMINAL_COLUMNS 80

struct terminal {
    bool redraws; /* a terminal that can be drawn on */
    bool colours; /* and nobody has said NO_COLOR (no-color.org) */
    int columns;  /* of a terminal, else COLUMNS of the environment, else 80 */
    int lines;    /* of a terminal, else 24 */
};

struct terminal terminal_look(void);

/* Writes text to standard output in one go, as far as the kernel lets us. False: it is closed. */
bool terminal_write(const GString *text);

/* Writes text, frees it, and returns status, or EX_IOERR if it could not be written. */
int terminal_end(GString *text, int status);

#endif
