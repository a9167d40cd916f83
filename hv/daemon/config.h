// SPDX-License-Identifier: BSD-3-Clause
/* The configuration: an INI-like file that is valid as a whole or not used at all. */
#ifndef VPMUD_CONFIG_H
#define VPMUD_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "policy.h"

/* docs/operators.md explains each key; the table in config.c has defaults and limits. */
struct config {
    /* [daemon] */
    char *socket;
    char *control;
    char *metrics;  /* NULL: none */
    char *textfile; /* NULL: none */
    char *state;
    char *user; /* NULL: stay who we are */
    uint32_t grace_ms;
    uint32_t notice_ms;
    uint32_t reserve_ms; /* a reservation lasts at most so long */
    uint32_t leases;
    uint32_t connections;
    uint32_t pending;     /* requests that wait for VMs to yield, or for the grace period's end */
    uint32_t queue_bytes; /* of one connection, not read by its peer */
    /* [watch] */
    uint32_t interval_ms;
    uint32_t name_holders; /* 1: look into every process */
    /* [policy NAME] */
    struct policy *policies;
    size_t policy_count;
};

struct config_error {
    char text[320]; /* one line: what, where, what would be right */
};

/* NULL and error: it cannot be read, or something in it is wrong. */
struct config *config_load(const char *path, struct config_error *error);

/* The same from memory; text need not end with a NUL. */
struct config *config_parse(const char *text, size_t size, struct config_error *error);

void config_free(struct config *config);

/*
 * Whether next may take the place of config in a running daemon: sockets, state file, user and
 * table sizes stay what they were. If not, error names the key.
 */
bool config_may_follow(const struct config *config, const struct config *next,
                       struct config_error *error);

#endif
