/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is published: which instances there are, and which values have data. Decides only; sync.h
 * carries it out.
 *
 * A rate is published as a sum that only grows, made of differences modulo the counter's width. A
 * counter that loses its backing has no data; when it comes back, its sum goes on from where it
 * was.
 */
#ifndef VPMUPERF_PUBLISH_H
#define VPMUPERF_PUBLISH_H

#include <stdbool.h>

#include "counters.h"
#include "guest-drivers/source/source.h"

#define PUBLISH_TOTAL_ID 0x10000u /* no processor has this number */

/* One event of one instance. */
struct publish_track {
    bool valid;     /* has a value now */
    bool has_delta; /* had one at the look before, too */
    uint32_t counter;
    uint64_t config;
    uint64_t last;  /* the counter's value */
    uint64_t delta; /* since the look before */
    uint64_t sum;   /* of all differences */
};

/* An instance. Its address stays until publish_free: perflib reads `values` where they stand. */
struct publish_item {
    enum counter_set_id set;
    uint32_t id;   /* unique in its set, as is the name */
    char name[12]; /* a number, _Total or Default */
    bool wanted;   /* it is to be there */
    uint32_t has;  /* 1 << slot: there is data */
    uint64_t values[COUNTER_MAX_SLOTS];
    struct publish_track tracks[VPMU_EVENTS];
    uint64_t per_mille; /* least of its counters, or SOURCE_NOT_KNOWN */
    uint64_t state;     /* worst of its counters, or SOURCE_NOT_KNOWN */

    /* What perflib has of it: sync.c's. */
    void *instance;    /* NULL: nothing */
    uint32_t referred; /* 1 << slot: perflib has the value's address */
    uint32_t refused;  /* 1 << slot: perflib does not know the counter */
    bool left_out;     /* it cannot be created */
    bool stale;        /* it must be made anew: a reference cannot be taken back */
    uint32_t error;    /* that was reported last */
};

struct publish {
    struct publish_item **items; /* the VM, the total, then the processors by number */
    uint32_t count;
};

enum { PUBLISH_VM, PUBLISH_TOTAL, PUBLISH_PROCESSORS }; /* indices in items */

/** Begins with nothing. Returns 0, or -1 where there is no memory. */
int publish_init(struct publish *publish);
void publish_free(struct publish *publish);

/**
 * Looks at the source and decides. Returns 0, or -1 with source->error filled: nothing has data
 * then, and instances stay.
 */
int publish_look(struct publish *publish, struct source *source);

#endif
