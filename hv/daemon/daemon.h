// SPDX-License-Identifier: BSD-3-Clause
/* What the parts of vpmud share. Everything runs in one thread. */
#ifndef VPMUD_DAEMON_H
#define VPMUD_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "books.h"
#include "config.h"
#include "loop.h"
#include "vpmu/host.h"
#include "vpmu/wire.h"

struct pending;
struct peer;
struct text_peer;

/* What has happened since the start; metrics.c says it. */
struct statistics {
    uint64_t answered[VPMU_WIRE_TYPES];
    uint64_t refused[VPMU_WIRE_TYPES];
    uint64_t reasons[VPMU_REASONS]; /* of refusals */
    uint64_t notices;
    uint64_t connections;
    uint64_t broken; /* streams that made no sense, or whose peer did not read */
    uint64_t revoked;
    uint64_t renewed;
    uint64_t expired; /* reservations */
    uint64_t state_writes, state_errors;
    uint64_t observations, observe_errors;
    uint64_t reloads, reload_errors;
};

struct daemon {
    const char *config_path;
    struct config *config;
    struct loop *loop;
    struct books *books;
    struct statistics statistics;
    uint64_t instance;
    int64_t started_ms; /* wall clock */

    /* observe.c */
    const char *description; /* the file that describes the machine; NULL: it is this one */
    struct vpmu_host_source *source;
    struct vpmu_host host;
    struct loop_timer watch;
    char not_measured[sizeof(((struct vpmu_host *)NULL)->not_measured)]; /* as it was last said */
    struct vpmu_amount *taken; /* room for a number for each processor */

    /* peer.c */
    struct peer *peers;
    uint32_t peer_count, surplus_count, observers;

    /* requests.c */
    struct pending *pending, **pending_end;
    uint32_t pending_count;
    uint32_t yielding, yielded; /* entries that have been told to yield; that had to */
    uint64_t mark;
    uint64_t predecessor; /* instance of the daemon before this one; 0: not known */
    bool grace;
    bool complete; /* the predecessor wrote down everything */
    struct loop_timer grace_end;

    /* keeper.c */
    struct loop_timer save;
    bool unsaved;
    uint64_t save_ms; /* what the last one took */

    struct loop_timer textfile; /* metrics.c */

    /* text.c */
    struct text_peer *text_peers;
    uint32_t text_count;

    /* main.c */
    struct loop_timer alive; /* for the service manager's watchdog */
    uint64_t alive_ms;
};

/* Milliseconds since 1970. */
int64_t wall_clock_ms(void);

#endif
