// SPDX-License-Identifier: BSD-3-Clause
/*
 * A terminal that is drawn on again and again. A frame is one write, over what was there: the
 * screen is never empty, so it does not flicker. Signals come as events between screen_open() and
 * screen_close(); the terminal is as before after that.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <glib.h>
#include <stdbool.h>

struct screen;

/* drawn: on the terminal; else frames are plain blocks, one after the other. */
struct screen *screen_open(bool drawn);
void screen_close(struct screen *screen);

/* False: nobody reads any more. */
bool screen_show(struct screen *screen, const GString *frame);

/* Waits so long, or until the size changes. False: it is to end (a signal, or q). */
bool screen_wait(struct screen *screen, int ms);

#endif
