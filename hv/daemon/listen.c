// SPDX-License-Identifier: BSD-3-Clause
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "log.h"
#include "needs.h"

NEEDS("accept4 close unlink");

#define BACKLOG 128
#define ROUND 64      /* connections that are accepted before others have their turn */
#define PAUSE_MS 200u /* when there is no descriptor left */

struct listener {
    struct loop_source source;
    struct loop_timer pause;
    struct daemon *daemon;
    listen_accept *accept;
    char *made; /* the path of a socket of its own */
};

static bool taken[64]; /* of the service manager's, by place */

static struct listener *fail(struct listen_error *error, const char *path, const char *what)
{
    snprintf(error->text, sizeof(error->text), "%.100s: %s: %s", path, what, strerror(errno));
    return NULL;
}

static int passed(void)
{
    int count = sd_listen_fds(0);

    return count > (int)(sizeof(taken) / sizeof(taken[0])) ? (int)sizeof(taken) : count;
}

/* -1: it has passed none for this path. */
static int passed_for(const char *path)
{
    for (int i = 0; i < passed(); i++) {
        int fd = SD_LISTEN_FDS_START + i;

        if (taken[i] || sd_is_socket_unix(fd, SOCK_STREAM, 1, path, 0) <= 0)
            continue;
        taken[i] = true;
        fcntl(fd, F_SETFL, O_NONBLOCK);
        return fd;
    }
    return -1;
}

void listen_close_others(void)
{
    for (int i = 0; i < passed(); i++) {
        if (taken[i])
            continue;
        log_event(LOG_WARNING, "socket-not-used", NUMBER("fd", SD_LISTEN_FDS_START + i),
                  TEXT("why", "the configuration has no such path"));
        close(SD_LISTEN_FDS_START + i);
    }
}

/* A socket that nobody listens on is left over. */
static bool is_left_over(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused;

    if (fd < 0)
        return false;
    refused =
        connect(fd, (const struct sockaddr *)address, sizeof(*address)) && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static int bind_socket(int fd, const struct sockaddr_un *address)
{
    mode_t mask = umask(0);
    int status = bind(fd, (const struct sockaddr *)address, sizeof(*address));

    if (status && errno == EADDRINUSE) {
        if (is_left_over(address) && !unlink(address->sun_path))
            status = bind(fd, (const struct sockaddr *)address, sizeof(*address));
        else
            errno = EADDRINUSE;
    }
    umask(mask);
    return status;
}

static int make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int saved;

    if (fd < 0)
        return -1;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (!bind_socket(fd, &address) && !listen(fd, BACKLOG))
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static void listener_ready(struct loop_source *source, uint32_t events);
static void pause_is_over(struct loop_timer *timer);

struct listener *listen_at(struct daemon *daemon, const char *path, listen_accept *accept,
                           struct listen_error *error)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    int fd = passed_for(path);

    if (!listener)
        return fail(error, path, "no memory");
    if (fd < 0) {
        fd = make_socket(path);
        listener->made = strdup(path);
    }
    listener->source = (struct loop_source){.fd = fd, .events = EPOLLIN, .ready = listener_ready};
    listener->pause.due = pause_is_over;
    listener->daemon = daemon;
    listener->accept = accept;
    if (fd >= 0)
        return listener;
    fail(error, path, "cannot listen");
    free(listener->made);
    free(listener);
    return NULL;
}

int listen_start(struct listener *listener)
{
    return loop_add(listener->daemon->loop, &listener->source);
}

void listen_end(struct listener *listener)
{
    if (!listener)
        return;
    loop_remove(listener->daemon->loop, &listener->source);
    loop_timer_stop(listener->daemon->loop, &listener->pause);
    close(listener->source.fd);
    if (listener->made)
        unlink(listener->made);
    free(listener->made);
    free(listener);
}

static void pause_is_over(struct loop_timer *timer)
{
    struct listener *listener = OWNER_OF(timer, struct listener, pause);

    loop_change(listener->daemon->loop, &listener->source, EPOLLIN);
}

/* Whoever waits goes on waiting; asking again at once would only keep the processor busy. */
static void take_a_break(struct listener *listener)
{
    log_event(LOG_ERR, "not-accepting", TEXT("why", strerror(errno)));
    loop_change(listener->daemon->loop, &listener->source, 0);
    loop_timer_set(listener->daemon->loop, &listener->pause, PAUSE_MS);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
    struct listener *listener = OWNER_OF(source, struct listener, source);

    (void)events;
    for (int i = 0; i < ROUND; i++) {
        int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            listener->accept(listener->daemon, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            take_a_break(listener);
        return;
    }
}
