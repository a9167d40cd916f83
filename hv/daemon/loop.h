// SPDX-License-Identifier: BSD-3-Clause
/* The event loop: descriptors, timers and signals of one thread. */
#ifndef VPMUD_LOOP_H
#define VPMUD_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

/* What a source or a timer is embedded in. */
#define OWNER_OF(pointer, type, field) ((type *)((char *)(pointer) - offsetof(type, field)))

/* A descriptor that is waited for. Embedded in its owner. */
struct loop_source {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT, or-ed; errors and hang-ups always come */
    void (*ready)(struct loop_source *source, uint32_t events);
};

/* Goes off once, at a point of loop_now(). Embedded in its owner; all zero is not set. */
struct loop_timer {
    void (*due)(struct loop_timer *timer);
    uint64_t at;
    struct loop_timer *next;
    bool set;
};

/* NULL: errno says why. */
struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* Milliseconds of CLOCK_MONOTONIC, as of the last round of the loop. */
uint64_t loop_now(const struct loop *loop);

/* Begins to wait for source->events. 0, or -1 and errno. */
int loop_add(struct loop *loop, struct loop_source *source);

/* Waits for other events from now on. */
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);

/* Waits no longer, also not for what this round has found. The descriptor stays open. */
void loop_remove(struct loop *loop, struct loop_source *source);

/* Sets the timer, again if it is set, to go off in so many milliseconds. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t in_ms);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);

/* Calls handler for these signals (a list that ends with 0), which are blocked from now on. */
int loop_signals(struct loop *loop, const int *signals, void (*handler)(void *user, int signal),
                 void *user);

/* Runs until loop_stop(). 0, or -1 and errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
