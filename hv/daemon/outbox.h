// SPDX-License-Identifier: BSD-3-Clause
/* What a socket had no room for. All zero: nothing. */
#ifndef VPMUD_OUTBOX_H
#define VPMUD_OUTBOX_H

#include <stddef.h>
#include <stdint.h>

struct outbox {
    uint8_t *bytes;
    size_t size;
};

/* Sends what the socket takes, behind what is left of before; keeps the rest. -1: it is gone. */
int outbox_send(struct outbox *outbox, int fd, const void *bytes, size_t size);

/* Sends what is left. -1: it is gone. */
int outbox_flush(struct outbox *outbox, int fd);

void outbox_free(struct outbox *outbox);

#endif
