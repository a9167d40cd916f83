// SPDX-License-Identifier: BSD-3-Clause
/* Keeps the state file up to date; see keeper.c. */
#ifndef VPMUD_KEEPER_H
#define VPMUD_KEEPER_H

#include "daemon.h"

struct state_error;

/* What the state file has to say has changed: it is written soon. */
void keeper_touch(struct daemon *daemon);

/* Writes it now. clean: it is the last time. 0, or -1 and error. */
int keeper_save(struct daemon *daemon, bool clean, struct state_error *error);

/* Enters what the predecessor has left behind. */
void keeper_restore(struct daemon *daemon);

#endif
