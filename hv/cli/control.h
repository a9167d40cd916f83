// SPDX-License-Identifier: BSD-3-Clause
/* Questions to vpmud over its control socket: a JSON object on a line, answered by another. */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

#include <stdbool.h>

struct json_object;

#define CONTROL_SOCKET "/run/vpmud/control.sock"

struct control_error {
    char text[320];   /* what went wrong; no newline */
    bool unreachable; /* there is no connection, or no answer */
    bool absent;      /* since there is no daemon at the socket */
    bool denied;      /* this user may not connect, or not ask for that */
};

/*
 * Connects to vpmud's control socket; path NULL is CONTROL_SOCKET. The descriptor, or -1 and error.
 */
int control_connect(const char *path, struct control_error *error);

/*
 * Asks one question and waits for the answer, some seconds at most. The whole answer, which the
 * caller puts (json_object_put); NULL and error if there is none, or it says that it is an error:
 * then the text is vpmud's. The question stays the caller's.
 */
struct json_object *control_ask(int control, struct json_object *question,
                                struct control_error *error);

/*
 * Both, and closes the connection: asks path {"op": op}, with {key: value} unless key is NULL.
 */
struct json_object *control_question(const char *path, const char *op, const char *key,
                                     const char *value, struct control_error *error);

#endif
