// SPDX-License-Identifier: BSD-3-Clause
/* What a lease of vpmud's answers is, for people. */
#ifndef CLI_LEASE_H
#define CLI_LEASE_H

#include <glib.h>
#include <stdbool.h>

#include "hv/cli/table.h"
#include "vpmu/admission.h"

struct json_object;

/* How a lease is, in one word; the worst first. */
enum lease_word {
    LEASE_REVOKED,  /* has nothing */
    LEASE_SHORT,    /* no longer fits beside what others took */
    LEASE_STARVED,  /* a VM reports counters that stand still */
    LEASE_YIELDING, /* will be revoked */
    LEASE_HELD,     /* for its holder, after a restart */
    LEASE_OBSERVED, /* nobody has asked for it */
    LEASE_RESERVED, /* for a VM that has not come yet */
    LEASE_REDUCED,  /* has less than it asked for */
    LEASE_GRANTED,
    LEASE_WORDS,
};

struct lease_meaning {
    const char *word;
    enum table_mark mark;
    const char *meaning; /* ends "It " */
};

extern const struct lease_meaning lease_meanings[LEASE_WORDS];

enum lease_word lease_word(struct json_object *lease);

/* A VM's, or what is CPU-wide. */
bool lease_is_vm(struct json_object *lease);

/* Adds a cell with the word. */
void lease_add_word(struct table *table, struct json_object *lease);

/* A table of CPU-wide leases, and a row of it. */
struct table *holders_new(void);
void holders_add(struct table *table, struct json_object *lease);

/* "6+3": general-purpose and fixed counters. */
#define AMOUNT_TEXT 24
const char *amount_text(struct vpmu_amount amount, char text[AMOUNT_TEXT]);

/* What CPU-wide holders and VMs leave of an online processor, of a row of status. */
struct vpmu_amount use_left(struct json_object *row);

/* "3 h 12 min", from milliseconds. */
#define DURATION_TEXT 32
const char *duration_text(int64_t ms, char text[DURATION_TEXT]);

/* Milliseconds since 1970. */
int64_t wall_ms(void);

#endif
