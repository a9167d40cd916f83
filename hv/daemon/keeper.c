// SPDX-License-Identifier: BSD-3-Clause
/*
 * When the state file is written.
 *
 * A lease ends with its connection, and after a restart its client asserts it again. So a change of
 * leases is written soon, not before its answer: a burst of changes costs one write, and writing
 * takes at most a twentieth of the time, however many leases there are. If it fails (the disk is
 * full) nothing is refused for it: it is logged, counted, and tried again.
 *
 * Nobody asserts a reservation again. It is written before its answer, and refused if that fails.
 */
#include "keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "log.h"
#include "needs.h"
#include "requests.h"
#include "state.h"

NEEDS("rename");

#define SOON_MS 100u
#define SHARE 20u /* of the time: one part of so many is for writing */
#define RETRY_MS 5000u

static uint64_t monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void save_is_due(struct loop_timer *timer)
{
    struct daemon *daemon = OWNER_OF(timer, struct daemon, save);
    struct state_error error;

    if (keeper_save(daemon, false, &error))
        loop_timer_set(daemon->loop, timer, RETRY_MS);
}

void keeper_touch(struct daemon *daemon)
{
    daemon->unsaved = true;
    if (daemon->save.set)
        return;
    daemon->save.due = save_is_due;
    loop_timer_set(daemon->loop, &daemon->save, SOON_MS + daemon->save_ms * SHARE);
}

int keeper_save(struct daemon *daemon, bool clean, struct state_error *error)
{
    const struct state_head head = {
        .instance = daemon->instance, .clean = clean, .next_id = books_next_id(daemon->books)};
    uint64_t begin = monotonic_ms();

    if (state_write(daemon->config->state, &head, daemon->books, error)) {
        daemon->statistics.state_errors++;
        log_event(LOG_ERR, "state-not-saved", TEXT("why", error->text));
        return -1;
    }
    daemon->statistics.state_writes++;
    daemon->save_ms = monotonic_ms() - begin;
    daemon->unsaved = false;
    loop_timer_stop(daemon->loop, &daemon->save);
    return 0;
}

/* ---- After a restart ------------------------------------------------------------------------- */

struct restoring {
    struct daemon *daemon;
    const struct state_head *head; /* read before the leases are */
};

static void restore(void *user, uint64_t id, const struct entry_owner *owner,
                    const struct vpmu_claim *claim)
{
    const struct restoring *restoring = user;
    struct daemon *daemon = restoring->daemon;
    struct entry_owner kept = *owner;
    struct vpmu_claim named = *claim;
    struct vpmu_answer answer;
    struct entry *entry;
    char text[VPMU_WIRE_TEXT];

    named.name = owner->name;
    if (kept.state == ENTRY_LIVE) {
        kept.state = ENTRY_HELD;
        kept.identity = restoring->head->instance;
    }
    entry = books_enter(daemon->books, id, &kept, &named, NULL, &answer);
    if (entry && kept.state == ENTRY_RESERVED) {
        requests_expire(daemon, entry, daemon->config->reserve_ms);
    } else if (!entry) {
        vpmu_answer_text(&answer, text, sizeof(text));
        log_event(LOG_WARNING, "not-kept", NUMBER("lease", id), TEXT("name", owner->name),
                  TEXT("why", text));
    }
}

/* It may be wanted by whoever looks into what has happened. */
static void put_aside(const char *path)
{
    char aside[4096];

    snprintf(aside, sizeof(aside), "%s.bad", path);
    if (rename(path, aside))
        log_event(LOG_WARNING, "state-not-moved", TEXT("to", aside), TEXT("why", strerror(errno)));
}

void keeper_restore(struct daemon *daemon)
{
    struct state_head head = {0};
    struct state_error error;
    struct restoring restoring = {daemon, &head};
    int status = state_read(daemon->config->state, &head, restore, &restoring, &error);

    if (status == 0)
        return;
    if (status < 0) {
        log_event(LOG_ERR, "state-not-read", TEXT("why", error.text));
        put_aside(daemon->config->state);
    }
    /* Without a readable head no renewal is known, but the clients still have their leases. */
    daemon->predecessor = head.instance ? head.instance : UINT64_MAX;
    daemon->complete = status > 0 && head.clean;
    books_begin_at(daemon->books, head.next_id);
    log_event(
        LOG_INFO, "state-read", NUMBER("held", books_count(daemon->books, ENTRY_HELD)),
        NUMBER("reserved", books_count(daemon->books, ENTRY_RESERVED)),
        TEXT("predecessor", daemon->complete ? "ended in good order" : "did not end by itself"));
}
