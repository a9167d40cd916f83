// SPDX-License-Identifier: BSD-3-Clause
/*
 * Connections, and what comes over them.
 *
 * Whoever waits and whoever dispatches read the same stream, message by message, and each message
 * is handled before the next one is read. One that waits stops at its answer; what comes before it
 * goes to the handlers, in the order in which the daemon said it.
 */
#include "vpmu/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_internal.h"

#define TIMEOUT_MS 10000u

struct vpmu_client *vpmu_client_new(const struct vpmu_client_options *options,
                                    struct vpmu_client_error *error)
{
    const char *path = options->path ? options->path : VPMU_SOCKET;
    struct vpmu_client *client;

    if (!options->name || !*options->name || options->kind >= VPMU_KINDS ||
        strlen(path) >= sizeof(client->path)) {
        client_error(error, VPMU_CLIENT_ARGUMENT, 0,
                     "a client needs a name, a kind, and a path that a socket can have");
        return NULL;
    }
    client = calloc(1, sizeof(*client));
    if (!client) {
        client_error(error, VPMU_STATUS_NO_MEMORY, ENOMEM, "no memory for a client");
        return NULL;
    }
    client->options = *options;
    memcpy(client->path, path, strlen(path));
    client->options.path = client->path;
    vpmu_wire_text(client->name, sizeof(client->name), options->name);
    client->options.name = client->name;
    if (options->uuid)
        memcpy(client->uuid, options->uuid, sizeof(client->uuid));
    client->options.uuid = client->uuid;
    if (!options->timeout_ms)
        client->options.timeout_ms = TIMEOUT_MS;
    client->in = client->out = -1;
    return client;
}

void vpmu_client_free(struct vpmu_client *client)
{
    if (client)
        stream_close(client);
    free(client);
}

int vpmu_client_fd(const struct vpmu_client *client)
{
    return client->in;
}

const struct vpmu_wire_welcome *vpmu_client_welcome(const struct vpmu_client *client)
{
    return client->ready ? &client->welcome : NULL;
}

vpmu_lease vpmu_client_lease(const struct vpmu_client *client)
{
    return client->lease;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool is_reply(const struct vpmu_wire_message *message)
{
    return message->header.flags & VPMU_WIRE_FLAG_REPLY;
}

static bool is_refusal(const struct vpmu_wire_message *message)
{
    return message->header.flags & VPMU_WIRE_FLAG_ERROR;
}

/* Whether it is what a vpmud may say now. */
static bool is_sound(const struct vpmu_client *client, const struct vpmu_wire_message *message)
{
    uint32_t type = message->header.type;

    if (!is_reply(message))
        return client->ready && vpmu_wire_check_notice(message);
    return type < VPMU_WIRE_TYPES && message->header.serial == client->pending[type] &&
           vpmu_wire_check_reply(message, type);
}

/* What a reply changes. Who is not welcome is not connected. */
static void settle(struct vpmu_client *client, const struct vpmu_wire_message *message)
{
    client->pending[message->header.type] = 0;
    switch (message->header.type) {
    case VPMU_WIRE_HELLO:
        if (is_refusal(message)) {
            stream_close(client);
            return;
        }
        client->welcome = message->welcome;
        client->ready = true;
        return;
    case VPMU_WIRE_ACQUIRE:
    case VPMU_WIRE_RENEW:
        if (is_refusal(message))
            return;
        client->lease = message->grant.lease;
        client->instance = client->welcome.instance;
        return;
    case VPMU_WIRE_RELEASE:
        if (!is_refusal(message) && client->releasing == client->lease)
            client->lease = VPMU_LEASE_NONE;
        return;
    }
}

static void read_answer(const struct vpmu_wire_message *message, struct vpmu_client_answer *answer)
{
    *answer = (struct vpmu_client_answer){.type = message->header.type};
    switch (message->header.type) {
    case VPMU_WIRE_ACQUIRE:
    case VPMU_WIRE_RENEW:
    case VPMU_WIRE_RESERVE:
    case VPMU_WIRE_RESIZE:
        answer->grant = message->grant;
        return;
    case VPMU_WIRE_STATUS:
        answer->info = message->info;
        answer->words = message->info.words;
        memcpy(answer->processors, vpmu_wire_tail(message),
               answer->words * sizeof(answer->processors[0]));
        return;
    }
}

static int read_refusal(const struct vpmu_wire_message *message, struct vpmu_client_error *error)
{
    client_error(error, message->error.status, 0, "%s", message->error.text);
    if (error)
        error->reason = (enum vpmu_reason)message->error.reason;
    return -1;
}

static void tell_answered(const struct vpmu_client *client, const struct vpmu_wire_message *message)
{
    struct vpmu_client_answer answer;
    struct vpmu_client_error error;

    if (is_refusal(message)) {
        read_refusal(message, &error);
        client->options.answered(client->options.user, message->header.type, NULL, &error);
    } else {
        read_answer(message, &answer);
        client->options.answered(client->options.user, message->header.type, &answer, NULL);
    }
}

/* A handler may lose the connection, with what it sends. */
static void tell(struct vpmu_client *client, const struct vpmu_wire_message *message)
{
    client->in_handler = true;
    if (!is_reply(message) && client->options.notice)
        client->options.notice(client->options.user, &message->notice);
    if (is_reply(message) && client->options.answered)
        tell_answered(client, message);
    client->in_handler = false;
}

/* As stream_receive(), and the message is sound; if it is a reply it is settled. */
static int next_message(struct vpmu_client *client, struct vpmu_client_error *error)
{
    const struct vpmu_wire_message *message = &client->reader.message;
    int got = stream_receive(client, error);

    if (got <= 0)
        return got;
    if (!is_sound(client, message)) {
        stream_close(client);
        return client_error(error, VPMU_CLIENT_PROTOCOL, 0,
                            "the peer is no vpmud: it says what nobody asked, or what makes no "
                            "sense");
    }
    if (is_reply(message))
        settle(client, message);
    return 1;
}

static int not_in_handler(const struct vpmu_client *client, struct vpmu_client_error *error)
{
    if (client->in_handler)
        return client_error(error, VPMU_CLIENT_ARGUMENT, 0,
                            "a handler must neither wait nor connect");
    return 0;
}

int vpmu_client_dispatch(struct vpmu_client *client, struct vpmu_client_error *error)
{
    const struct vpmu_wire_message *message = &client->reader.message;
    int got;

    if (not_in_handler(client, error) || stream_flush(client, error))
        return -1;
    while ((got = next_message(client, error)) > 0) {
        tell(client, message);
        if (message->header.type == VPMU_WIRE_HELLO && is_refusal(message))
            return read_refusal(message, error);
    }
    return got;
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* serial: of the request. */
static int await_answer(struct vpmu_client *client, uint32_t serial,
                        struct vpmu_client_answer *answer, struct vpmu_client_error *error)
{
    const struct vpmu_wire_message *message = &client->reader.message;
    uint64_t end = stream_now() + client->options.timeout_ms;

    for (;;) {
        int got = stream_check_time(client, end, error) ? -1 : next_message(client, error);

        if (got < 0)
            return -1;
        if (got && is_reply(message) && message->header.serial == serial)
            break;
        if (got)
            tell(client, message);
        else if (stream_wait(client, end, error) || stream_flush(client, error))
            return -1;
    }
    if (is_refusal(message))
        return read_refusal(message, error);
    read_answer(message, answer);
    return 0;
}

static int send_request(struct vpmu_client *client, uint32_t type, const void *body,
                        const void *tail, uint32_t tail_size, struct vpmu_client_error *error)
{
    const struct vpmu_wire_row *row = vpmu_wire_row(type);
    struct vpmu_wire_message message;

    if (client->pending[type])
        return client_error(error, VPMU_CLIENT_BUSY, 0, "a request %s has no answer yet",
                            row->name);
    client->serial += client->serial == UINT32_MAX ? 2 : 1;
    vpmu_wire_put(&message, type, 0, client->serial, body, row->request_size, tail, tail_size);
    client->pending[type] = client->serial;
    return stream_send(client, &message, error);
}

int client_ask(struct vpmu_client *client, uint32_t type, const void *body, const void *tail,
               uint32_t tail_size, struct vpmu_client_answer *answer,
               struct vpmu_client_error *error)
{
    if (answer && not_in_handler(client, error))
        return -1;
    if (client->in < 0)
        return client_error(error, VPMU_CLIENT_LOST, 0, "not connected to vpmud");
    if (!client->ready && type != VPMU_WIRE_HELLO)
        return client_error(error, VPMU_WIRE_NOT_NOW, 0, "vpmud has not answered HELLO yet");
    if (send_request(client, type, body, tail, tail_size, error))
        return -1;
    return answer ? await_answer(client, client->serial, answer, error) : 0;
}

/* ---- Connection ------------------------------------------------------------------------------ */

static int say_hello(struct vpmu_client *client, struct vpmu_client_answer *answer,
                     struct vpmu_client_error *error)
{
    struct vpmu_wire_hello hello = {
        .version_min = VPMU_PROTOCOL_VERSION,
        .version_max = VPMU_PROTOCOL_VERSION,
        .kind = client->options.kind,
    };

    memcpy(hello.uuid, client->uuid, sizeof(hello.uuid));
    memcpy(hello.name, client->name, sizeof(hello.name));
    if (!client_ask(client, VPMU_WIRE_HELLO, &hello, NULL, 0, answer, error))
        return 0;
    stream_close(client);
    return -1;
}

static int connect_and_greet(struct vpmu_client *client, struct vpmu_client_answer *answer,
                             struct vpmu_client_error *error)
{
    int fd;

    if (not_in_handler(client, error))
        return -1;
    stream_close(client);
    fd = vpmu_transport_connect(client->path);
    if (fd < 0)
        return client_error(error, VPMU_CLIENT_UNREACHABLE, errno, "cannot connect to %s: %s",
                            client->path, strerror(errno));
    stream_open(client, &vpmu_transport_socket, fd, fd);
    return say_hello(client, answer, error);
}

int vpmu_client_connect(struct vpmu_client *client, struct vpmu_client_error *error)
{
    struct vpmu_client_answer answer;

    return connect_and_greet(client, &answer, error);
}

int vpmu_client_connect_start(struct vpmu_client *client, struct vpmu_client_error *error)
{
    return connect_and_greet(client, NULL, error);
}

static bool prepare_descriptor(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK) && !fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int vpmu_client_attach(struct vpmu_client *client, const struct vpmu_transport *transport, int in,
                       int out, struct vpmu_client_error *error)
{
    struct vpmu_client_answer answer;

    stream_close(client);
    stream_open(client, transport, in, out);
    if (!prepare_descriptor(in) || !prepare_descriptor(out)) {
        client_error(error, VPMU_CLIENT_UNREACHABLE, errno, "the descriptors are of no use: %s",
                     strerror(errno));
        stream_close(client);
        return -1;
    }
    return say_hello(client, &answer, error);
}
