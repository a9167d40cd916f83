// SPDX-License-Identifier: BSD-3-Clause
/* The state file: what the next daemon has to know of the leases of this one. */
#ifndef VPMUD_STATE_H
#define VPMUD_STATE_H

#include "books.h"

struct state_head {
    uint64_t instance; /* of the daemon that wrote it */
    bool clean;        /* it wrote it as its last act: nothing is missing */
    uint64_t next_id;
};

struct state_error {
    char text[320];
};

/* Writes the leases of entries that are live, reserved or held. 0, or -1 and error. */
int state_write(const char *path, const struct state_head *head, const struct books *books,
                struct state_error *error);

/*
 * Reads a state file and calls each for every lease; claim->holder and name are not set, what was
 * granted is need and least. 1: read; 0: there is no file; -1 and error: it is not readable or not
 * whole, each may have been called for a part of it.
 */
int state_read(const char *path, struct state_head *head,
               void (*each)(void *user, uint64_t id, const struct entry_owner *owner,
                            const struct vpmu_claim *claim),
               void *user, struct state_error *error);

#endif
