// SPDX-License-Identifier: BSD-3-Clause
#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "needs.h"

NEEDS("epoll_ctl epoll_wait timerfd_settime read close clock_gettime rt_sigprocmask");

#define ROUND 64
#define QUIET_MS 50 /* nothing has happened for so long: time for the log */

struct loop {
    int epoll;
    bool stopped;
    uint64_t now;
    struct loop_source clock;   /* a timerfd, set to the first timer */
    struct loop_source signals; /* a signalfd */
    struct loop_timer *timers;  /* the first to go off in front */
    struct epoll_event events[ROUND];
    int count; /* of events in this round */
    void (*handler)(void *user, int signal);
    void *user;
};

static uint64_t monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t loop_now(const struct loop *loop)
{
    return loop->now;
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

int loop_add(struct loop *loop, struct loop_source *source)
{
    struct epoll_event event = {.events = source->events, .data.ptr = source};

    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event);
}

void loop_change(struct loop *loop, struct loop_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    if (source->events == events)
        return;
    source->events = events;
    epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

/* The source may be freed before its event in this round has had its turn. */
void loop_remove(struct loop *loop, struct loop_source *source)
{
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
    for (int i = 0; i < loop->count; i++)
        if (loop->events[i].data.ptr == source)
            loop->events[i].data.ptr = NULL;
}

/* ---- Timers ---------------------------------------------------------------------------------- */

/* A timerfd goes off at once for a time that is past, and is disarmed by 0. */
static void arm(struct loop *loop)
{
    uint64_t at = loop->timers ? loop->timers->at : 0;
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000 * 1000000)}};

    timerfd_settime(loop->clock.fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void take_out(struct loop *loop, struct loop_timer *timer)
{
    struct loop_timer **place = &loop->timers;

    while (*place != timer)
        place = &(*place)->next;
    *place = timer->next;
    timer->set = false;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t in_ms)
{
    struct loop_timer **place = &loop->timers;

    if (timer->set)
        take_out(loop, timer);
    timer->at = monotonic_ms() + in_ms;
    while (*place && (*place)->at <= timer->at)
        place = &(*place)->next;
    timer->next = *place;
    *place = timer;
    timer->set = true;
    if (loop->timers == timer)
        arm(loop);
}

/* If it was the first, the loop wakes up once for nothing, which costs less than arming anew. */
void loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
    if (timer->set)
        take_out(loop, timer);
}

static void clock_ready(struct loop_source *source, uint32_t events)
{
    struct loop *loop = OWNER_OF(source, struct loop, clock);
    uint64_t expirations;

    (void)events;
    if (read(source->fd, &expirations, sizeof(expirations)) < 0)
        return;
    while (loop->timers && loop->timers->at <= loop->now) {
        struct loop_timer *timer = loop->timers;

        take_out(loop, timer);
        timer->due(timer);
    }
    arm(loop);
}

/* ---- Signals --------------------------------------------------------------------------------- */

static void signals_ready(struct loop_source *source, uint32_t events)
{
    struct loop *loop = OWNER_OF(source, struct loop, signals);
    struct signalfd_siginfo info;

    (void)events;
    if (read(source->fd, &info, sizeof(info)) == sizeof(info))
        loop->handler(loop->user, (int)info.ssi_signo);
}

int loop_signals(struct loop *loop, const int *signals, void (*handler)(void *user, int signal),
                 void *user)
{
    sigset_t set;

    sigemptyset(&set);
    for (; *signals; signals++)
        sigaddset(&set, *signals);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;
    loop->handler = handler;
    loop->user = user;
    loop->signals = (struct loop_source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                         .events = EPOLLIN,
                                         .ready = signals_ready};
    return loop->signals.fd < 0 ? -1 : loop_add(loop, &loop->signals);
}

/* ---- The loop -------------------------------------------------------------------------------- */

struct loop *loop_new(void)
{
    struct loop *loop = calloc(1, sizeof(*loop));

    if (!loop)
        return NULL;
    loop->now = monotonic_ms();
    loop->signals.fd = -1;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->clock =
        (struct loop_source){.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                             .events = EPOLLIN,
                             .ready = clock_ready};
    if (loop->epoll >= 0 && loop->clock.fd >= 0 && !loop_add(loop, &loop->clock))
        return loop;
    loop_free(loop);
    return NULL;
}

void loop_free(struct loop *loop)
{
    const int fds[] = {loop->epoll, loop->clock.fd, loop->signals.fd};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(loop);
}

static void run_round(struct loop *loop)
{
    for (int i = 0; i < loop->count; i++) {
        struct loop_source *source = loop->events[i].data.ptr;

        if (source)
            source->ready(source, loop->events[i].events);
    }
    loop->count = 0;
}

int loop_run(struct loop *loop)
{
    while (!loop->stopped) {
        int saved;

        loop->count =
            epoll_wait(loop->epoll, loop->events, ROUND, log_is_unwritten() ? QUIET_MS : -1);
        saved = errno;
        loop->now = monotonic_ms();
        if (loop->count < 0 && saved != EINTR) {
            errno = saved;
            return -1;
        }
        if (loop->count == 0)
            log_flush();
        run_round(loop);
    }
    return 0;
}

void loop_stop(struct loop *loop)
{
    loop->stopped = true;
}
