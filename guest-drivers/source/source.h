/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the values of a VM's counters come from: vpmu.sys, or a file in tests.
 *
 * Looking never disturbs: a source that has not taken the counters only reads. A source that has
 * (source_take) owns them until it is closed, as vpmu_ioctl.h says of owners.
 *
 * A value stands only where source_has_value says so. Everything else is no data, never 0.
 */
#ifndef SOURCE_H
#define SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu_ioctl.h"

#define SOURCE_NOT_KNOWN UINT64_MAX
#define SOURCE_MAX_RECORDS 48u /* counters of one processor: VPMU_STATUS_COUNTERS */
#define SOURCE_ALL_EVENTS ((1u << VPMU_EVENTS) - 1)

/* One counter of one processor. */
struct source_record {
    uint32_t counter;    /* index, as in vpmu_ioctl.h */
    uint32_t event;      /* enum vpmu_event_id; VPMU_EVENT_RAW; VPMU_NONE: not programmed */
    uint32_t state;      /* enum vpmu_counter_state; GRANTED also where nobody has proved more */
    uint64_t config;     /* umask << 8 | event code */
    uint64_t value;      /* events since it was programmed, modulo 2^width of the counter */
    uint64_t enabled_ns; /* for how long it has been enabled, or SOURCE_NOT_KNOWN */
    uint64_t backed_ns;  /* for how much of that it has counted, or SOURCE_NOT_KNOWN */
};

struct source_processor {
    uint32_t processor;
    uint32_t count; /* valid entries of `records`, in the order of their indices */
    struct source_record records[SOURCE_MAX_RECORDS];
};

/* The VM. Each number may be SOURCE_NOT_KNOWN, but for `processors`. */
struct source_facts {
    uint32_t processors;  /* numbered 0 to processors - 1; may change from look to look */
    uint64_t shape;       /* counters of a processor that CPUID lists */
    uint64_t granted;     /* how many of them the host has granted */
    uint64_t starved;     /* counters that are starved on some processor */
    uint64_t filtered;    /* counters that are filtered on some processor */
    uint64_t revocations; /* how often the host has taken counters back */
    uint64_t host;        /* enum vpmu_status_source: what counts for this VM */
    uint64_t event_class; /* enum vpmu_event_class */
    uint64_t gp_width;    /* bits: differences are taken modulo 2^width */
    uint64_t fixed_width;
};

/* What went wrong last. */
struct source_error {
    const char *what; /* in words; NULL: nothing */
    uint32_t status;  /* NTSTATUS, 0: none */
    uint32_t line;    /* of a file, from 1; 0: not in a line */
};

struct source;

struct source_ops {
    const char *name;
    int (*look)(struct source *source, struct source_facts *facts);
    int (*read)(struct source *source, uint32_t processor, struct source_processor *out);
    /* NULL where there is nothing to take */
    int (*take)(struct source *source, uint32_t events, uint32_t flags, uint32_t *placed);
    void (*close)(struct source *source);
};

struct source {
    const struct source_ops *ops;
    struct source_error error;
};

/**
 * Opens a source: NULL or "driver" is vpmu.sys, "file:PATH" a file as docs/perflib.md describes.
 * Returns NULL with *error filled where it cannot be had.
 */
struct source *source_open(const char *from, struct source_error *error);

/** Gives back what was taken, and frees it. NULL is allowed. */
void source_close(struct source *source);

/** Looks at the VM as it is now. Returns 0, or -1 with source->error filled. */
int source_look(struct source *source, struct source_facts *facts);

/**
 * Reads the counters of one processor, with count 0 where nobody has programmed any. Returns 0, or
 * -1 with source->error filled: a processor that is not there is an error.
 */
int source_read(struct source *source, uint32_t processor, struct source_processor *out);

/**
 * Takes all free counters, verifies them on every processor, programs the events (a set of
 * 1 << enum vpmu_event_id) with flags VPMU_COUNT_... and starts them from 0. *placed are those that
 * have found a counter. Returns 0; 1 where another owner has the counters, so that there is only
 * looking; -1 with source->error filled.
 */
int source_take(struct source *source, uint32_t events, uint32_t flags, uint32_t *placed);

/** Whether the record's value counts what its event says: it is backed. */
bool source_has_value(const struct source_record *record);

/**
 * The per mille of its enabled time for which a counter was backed, 0 to 1000, or SOURCE_NOT_KNOWN:
 * also where it has not been enabled yet.
 */
uint64_t source_backed_per_mille(const struct source_record *record);

/** The record that counts an event: one with a value before one without. NULL: none. */
const struct source_record *source_find(const struct source_processor *processor, uint32_t event);

/** Names, for people and for files: lower case, one word. "?" where there is none. */
const char *source_event_name(uint32_t event);
const char *source_state_name(uint32_t state);
const char *source_host_name(uint64_t host);
const char *source_class_name(uint64_t event_class);

/** Finds an event by its name. Returns its id, or VPMU_NONE. */
uint32_t source_event_by_name(const char *name, size_t length);

/** Writes the error as one line without its end, cut to size. Returns to. */
char *source_error_text(const struct source_error *error, char *to, size_t size);

#endif
