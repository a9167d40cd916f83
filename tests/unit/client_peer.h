/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vpmud that says what a test tells it to, at the other end of a socket pair. The serials of a
 * client are 1, 2, 3, ...: an answer can be there before it is asked for, and no test needs a
 * thread.
 */
#ifndef TESTS_UNIT_CLIENT_PEER_H
#define TESTS_UNIT_CLIENT_PEER_H

#include "vpmu/client.h"

#define INSTANCE 0x1234u

struct peer {
    int fd;  /* the daemon's end */
    int far; /* the client's; vpmu_client_attach() takes it */
    struct vpmu_wire_session session;
};

void peer_open(struct peer *peer);

/* Says one message, or the first size bytes of it. */
void peer_say(struct peer *peer, const struct vpmu_wire_message *message);
void peer_say_part(struct peer *peer, const struct vpmu_wire_message *message, size_t size);

/* Says a positive answer to the request serial, of that type; body as the type has it. */
void peer_answer(struct peer *peer, uint32_t type, uint32_t serial, const void *body);
void peer_refuse(struct peer *peer, uint32_t type, uint32_t serial, vpmu_status status,
                 enum vpmu_reason reason, const char *text);
void peer_notify(struct peer *peer, vpmu_lease lease, enum vpmu_lease_state state);

/* The next request of the client, which a daemon would take. */
struct vpmu_wire_message peer_hear(struct peer *peer);

/* Whether the client has closed the connection, and there is nothing more to hear. */
bool peer_is_alone(struct peer *peer);

/* A welcome to the HELLO that has this serial. */
void peer_welcome(struct peer *peer, uint32_t serial);

/* ---- What a client's handlers have heard ----------------------------------------------------- */

struct heard {
    char order[32]; /* 'n' a notice, 'a' an answer, 'e' an error */
    struct vpmu_wire_notice notice;
    uint32_t type;
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;
    void (*in_notice)(struct heard *heard);
    struct vpmu_client *client; /* for in_notice */
    int result;                 /* of what in_notice has done */
};

/* A VM that knows uuid 1, 2, ..., with handlers that write down what they hear. */
struct vpmu_client *new_client(struct heard *heard, uint32_t timeout_ms);

/* The same, connected to the peer. Its HELLO has been heard; the next serial is 2. */
struct vpmu_client *connected_client(struct peer *peer, struct heard *heard);

#endif
