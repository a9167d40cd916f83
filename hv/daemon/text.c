// SPDX-License-Identifier: BSD-3-Clause
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "needs.h"
#include "outbox.h"

NEEDS("recvfrom close");

#define LINE_MAX_BYTES 65536u
#define CONNECTIONS 64u

struct text_peer {
    struct loop_source source;
    struct daemon *daemon;
    const struct text_service *service;
    struct text_peer *previous, *next;
    struct credentials credentials;
    struct outbox outbox;
    bool ends; /* when what is unsent has been sent */
    size_t have;
    char line[LINE_MAX_BYTES];
};

static void close_peer(struct text_peer *peer)
{
    struct daemon *daemon = peer->daemon;

    loop_remove(daemon->loop, &peer->source);
    close(peer->source.fd);
    *(peer->previous ? &peer->previous->next : &daemon->text_peers) = peer->next;
    if (peer->next)
        peer->next->previous = peer->previous;
    daemon->text_count--;
    credentials_free(&peer->credentials);
    outbox_free(&peer->outbox);
    free(peer);
}

static int answer_line(struct text_peer *peer, char *line, size_t length)
{
    GString *answer = g_string_new(NULL);
    int status;

    peer->service->answer(peer->daemon, &peer->credentials, line, length, answer);
    peer->ends = peer->service->once;
    status = outbox_send(&peer->outbox, peer->source.fd, answer->str, answer->len);
    g_string_free(answer, TRUE);
    return status;
}

/* One answer at a time: the next line has its turn when this one's answer has been sent. */
static int answer_lines(struct text_peer *peer)
{
    char *end;

    while (!peer->outbox.size && !peer->ends && (end = memchr(peer->line, '\n', peer->have))) {
        size_t length = (size_t)(end - peer->line);

        *end = '\0';
        if (answer_line(peer, peer->line, length))
            return -1;
        peer->have -= length + 1;
        memmove(peer->line, end + 1, peer->have);
    }
    return peer->have == LINE_MAX_BYTES && !peer->outbox.size && !peer->ends ? -1 : 0;
}

/* 0 at the end of the stream, or if the line is too long. */
static ssize_t fill(struct text_peer *peer)
{
    ssize_t got = recv(peer->source.fd, peer->line + peer->have, LINE_MAX_BYTES - peer->have, 0);

    if (got > 0)
        peer->have += (size_t)got;
    return got;
}

static void text_ready(struct loop_source *source, uint32_t events)
{
    struct text_peer *peer = OWNER_OF(source, struct text_peer, source);
    bool gone = peer->outbox.size && outbox_flush(&peer->outbox, source->fd);

    if (!gone && !peer->outbox.size && events & EPOLLIN && !peer->ends) {
        ssize_t got = fill(peer);

        gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    }
    if (!gone)
        gone = answer_lines(peer);
    if (gone || (peer->ends && !peer->outbox.size) || (events & EPOLLHUP && !(events & EPOLLIN)))
        close_peer(peer);
    else
        loop_change(peer->daemon->loop, source, peer->outbox.size ? EPOLLOUT : EPOLLIN);
}

void text_accept(struct daemon *daemon, int fd, const struct text_service *service)
{
    struct text_peer *peer = daemon->text_count < CONNECTIONS ? calloc(1, sizeof(*peer)) : NULL;

    if (peer) {
        peer->source = (struct loop_source){.fd = fd, .events = EPOLLIN, .ready = text_ready};
        peer->daemon = daemon;
        peer->service = service;
    }
    if (!peer || credentials_read(fd, &peer->credentials) ||
        loop_add(daemon->loop, &peer->source)) {
        log_event(LOG_WARNING, "not-accepted", NUMBER("connections", daemon->text_count));
        close(fd);
        if (peer)
            credentials_free(&peer->credentials);
        free(peer);
        return;
    }
    peer->next = daemon->text_peers;
    if (peer->next)
        peer->next->previous = peer;
    daemon->text_peers = peer;
    daemon->text_count++;
}

void text_close_all(struct daemon *daemon)
{
    struct text_peer *next;

    for (struct text_peer *peer = daemon->text_peers; peer; peer = next) {
        next = peer->next;
        close_peer(peer);
    }
}
