/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HV_CLIENT_INTERNAL_H
#define HV_CLIENT_INTERNAL_H

#include <sys/un.h>

#include "vpmu/client.h"

struct vpmu_client {
    struct vpmu_client_options options; /* its pointers: to the three below, and the user's */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char name[VPMU_WIRE_NAME];
    uint8_t uuid[VPMU_WIRE_UUID]; /* 0: none */

    const struct vpmu_transport *transport;
    int in, out; /* -1: not connected */
    struct vpmu_wire_reader reader;
    /* What has not been sent yet. There is room for a request of each type, and there are no more:
     * until one has its answer there is no other. */
    uint8_t unsent[VPMU_WIRE_TYPES * sizeof(struct vpmu_wire_message)];
    size_t unsent_size;

    struct vpmu_wire_welcome welcome;
    bool ready; /* it has come */
    bool in_handler;
    uint32_t serial;                   /* of the last request */
    uint32_t pending[VPMU_WIRE_TYPES]; /* serial of the request that has no answer; 0: none */

    vpmu_lease lease;     /* of the last grant */
    uint64_t instance;    /* of the daemon that granted it */
    vpmu_lease releasing; /* of the pending RELEASE */
};

/* ---- error.c --------------------------------------------------------------------------------- */

/* Fills in error, unless it is NULL. -1, for the caller to return. */
__attribute__((format(printf, 4, 5))) int client_error(struct vpmu_client_error *error,
                                                       vpmu_status status, int system_error,
                                                       const char *format, ...);

/* ---- stream.c -------------------------------------------------------------------------------- */

/* Takes the descriptors; both are -1 or neither is. */
void stream_open(struct vpmu_client *client, const struct vpmu_transport *transport, int in,
                 int out);

/* Closes what is open; no request is pending any more. */
void stream_close(struct vpmu_client *client);

/* Sends what is there to send, without blocking. Closed if it fails, as with all below. LOST. */
int stream_flush(struct vpmu_client *client, struct vpmu_client_error *error);

/* Sends a message, now or as soon as there is room. */
int stream_send(struct vpmu_client *client, const struct vpmu_wire_message *message,
                struct vpmu_client_error *error);

/* 1: reader.message is the next message; 0: none has come, as yet; -1: LOST, PROTOCOL. */
int stream_receive(struct vpmu_client *client, struct vpmu_client_error *error);

/* Milliseconds of a clock that only goes forward. */
uint64_t stream_now(void);

/* TIMEOUT from end on. */
int stream_check_time(struct vpmu_client *client, uint64_t end, struct vpmu_client_error *error);

/* Waits until something comes, or can be sent, or it is end. */
int stream_wait(struct vpmu_client *client, uint64_t end, struct vpmu_client_error *error);

/* ---- client.c -------------------------------------------------------------------------------- */

/*
 * Sends a request: a body as its type has, then tail. Waits for the answer, if that is not NULL.
 * The statuses of client.h, and the daemon's.
 */
int client_ask(struct vpmu_client *client, uint32_t type, const void *body, const void *tail,
               uint32_t tail_size, struct vpmu_client_answer *answer,
               struct vpmu_client_error *error);

#endif
