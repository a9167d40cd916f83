// SPDX-License-Identifier: BSD-3-Clause
/* Sockets on which vpmud is spoken to: a service manager's, or its own. */
#ifndef VPMUD_LISTEN_H
#define VPMUD_LISTEN_H

#include "daemon.h"

/* Gets a descriptor of its own, which does not block. */
typedef void listen_accept(struct daemon *daemon, int fd);

struct listener;

struct listen_error {
    char text[200];
};

/*
 * Listens at path: on the socket that the service manager has passed for it, else on a new one,
 * which everybody may connect to (policies decide). NULL and error.
 */
struct listener *listen_at(struct daemon *daemon, const char *path, listen_accept *accept,
                           struct listen_error *error);

/* Begins to accept. -1 and errno. */
int listen_start(struct listener *listener);

/* NULL is allowed. A socket of its own is removed. */
void listen_end(struct listener *listener);

/* Closes what the service manager has passed and nobody listens on; says so. */
void listen_close_others(void);

#endif
