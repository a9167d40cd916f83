// SPDX-License-Identifier: BSD-3-Clause
/* Connections that speak lines of text: the control socket and the metrics. */
#ifndef VPMUD_TEXT_H
#define VPMUD_TEXT_H

#include <glib.h>

#include "daemon.h"
#include "policy.h"

/* What is spoken on a socket. */
struct text_service {
    /* Appends the answer to a line, which has no newline and ends with a NUL. */
    void (*answer)(struct daemon *daemon, const struct credentials *credentials, char *line,
                   size_t length, GString *answer);
    bool once; /* the connection ends after one answer */
};

/* A new connection. Takes over fd. */
void text_accept(struct daemon *daemon, int fd, const struct text_service *service);

/* Ends all connections. */
void text_close_all(struct daemon *daemon);

#endif
