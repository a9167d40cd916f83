// SPDX-License-Identifier: BSD-3-Clause
/*
 * Bytes to and from the daemon.
 *
 * No byte is read before it is wanted: what has come and is not handled yet is always the kernel's
 * to tell, so whoever polls the descriptor misses nothing.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client_internal.h"

void stream_open(struct vpmu_client *client, const struct vpmu_transport *transport, int in,
                 int out)
{
    client->transport = transport;
    client->in = in;
    client->out = out;
}

void stream_close(struct vpmu_client *client)
{
    if (client->in >= 0)
        close(client->in);
    if (client->out >= 0 && client->out != client->in)
        close(client->out);
    client->in = client->out = -1;
    client->reader.have = 0;
    client->reader.broken = client->reader.whole = false;
    client->unsent_size = 0;
    client->ready = false;
    memset(client->pending, 0, sizeof(client->pending));
}

static int lost(struct vpmu_client *client, struct vpmu_client_error *error, const char *what)
{
    int saved = errno;

    stream_close(client);
    return client_error(error, VPMU_CLIENT_LOST, saved, "%s vpmud: %s", what, strerror(saved));
}

static int no_protocol(struct vpmu_client *client, struct vpmu_client_error *error,
                       const char *what)
{
    stream_close(client);
    return client_error(error, VPMU_CLIENT_PROTOCOL, 0, "the peer is no vpmud: %s", what);
}

/* ---- Sending --------------------------------------------------------------------------------- */

int stream_flush(struct vpmu_client *client, struct vpmu_client_error *error)
{
    size_t done = 0;

    while (done < client->unsent_size) {
        ssize_t sent =
            client->transport->send(client->out, client->unsent + done, client->unsent_size - done);

        if (sent >= 0)
            done += (size_t)sent;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            return lost(client, error, "cannot send to");
    }
    client->unsent_size -= done;
    memmove(client->unsent, client->unsent + done, client->unsent_size);
    return 0;
}

int stream_send(struct vpmu_client *client, const struct vpmu_wire_message *message,
                struct vpmu_client_error *error)
{
    memcpy(client->unsent + client->unsent_size, message, vpmu_wire_size(message));
    client->unsent_size += vpmu_wire_size(message);
    return stream_flush(client, error);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* How many bytes the reader lacks of a header, or of a message whose header it has. */
static size_t wanted(const struct vpmu_wire_reader *reader)
{
    const size_t header = sizeof(reader->message.header);

    if (reader->whole)
        return header;
    if (reader->have < header)
        return header - reader->have;
    return vpmu_wire_size(&reader->message) - reader->have;
}

int stream_receive(struct vpmu_client *client, struct vpmu_client_error *error)
{
    uint8_t data[sizeof(struct vpmu_wire_message)];

    if (client->in < 0)
        return client_error(error, VPMU_CLIENT_LOST, 0, "not connected to vpmud");
    for (;;) {
        ssize_t got = client->transport->receive(client->in, data, wanted(&client->reader));
        const uint8_t *at = data;
        size_t size = got > 0 ? (size_t)got : 0;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got < 0 && errno == EPROTO)
            return no_protocol(client, error, "it passes file descriptors");
        if (got < 0)
            return lost(client, error, "cannot receive from");
        if (!got) {
            stream_close(client);
            return client_error(error, VPMU_CLIENT_LOST, 0, "vpmud has closed the connection");
        }
        switch (vpmu_wire_read(&client->reader, &at, &size)) {
        case VPMU_WIRE_MESSAGE:
            return 1;
        case VPMU_WIRE_BROKEN:
            return no_protocol(client, error, "what it sends is not the protocol");
        default:
            break;
        }
    }
}

/* ---- Waiting --------------------------------------------------------------------------------- */

uint64_t stream_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int stream_check_time(struct vpmu_client *client, uint64_t end, struct vpmu_client_error *error)
{
    if (stream_now() < end)
        return 0;
    stream_close(client);
    return client_error(error, VPMU_CLIENT_TIMEOUT, 0, "vpmud does not answer in %u ms",
                        client->options.timeout_ms);
}

int stream_wait(struct vpmu_client *client, uint64_t end, struct vpmu_client_error *error)
{
    struct pollfd ends[] = {
        {.fd = client->in, .events = POLLIN},
        {.fd = client->unsent_size ? client->out : -1, .events = POLLOUT},
    };
    uint64_t now = stream_now(), left = now < end ? end - now : 0;

    if (poll(ends, 2, left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR)
        return lost(client, error, "cannot wait for");
    return 0;
}
