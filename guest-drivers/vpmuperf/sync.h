/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes perflib have what publish.h has decided, and decides what follows from each of its errors.
 *
 * All values are by reference (PERF_ATTRIB_BY_REFERENCE): perflib reads 8 aligned bytes where they
 * stand, so that none is ever torn, and a reference of NULL gives consumers ERROR_NO_DATA.
 * (Microsoft, "PerfSetCounterRefValue function".)
 */
#ifndef VPMUPERF_SYNC_H
#define VPMUPERF_SYNC_H

#include "publish.h"

/* Win32 errors that decide something; the numbers are those of winerror.h. */
enum {
    SYNC_NOT_ENOUGH_MEMORY = 8,
    SYNC_OUT_OF_MEMORY = 14,
    SYNC_INVALID_PARAMETER = 87,
    SYNC_ALREADY_EXISTS = 183,
    SYNC_NOT_FOUND = 1168,
    SYNC_NO_SYSTEM_RESOURCES = 1450,
};

/* The routines of perflib. Each returns a Win32 error, 0 for success. */
struct perflib {
    uint32_t (*add_set)(void *context, enum counter_set_id set);
    uint32_t (*create)(void *context, enum counter_set_id set, const char *name, uint32_t id,
                       void **instance);
    uint32_t (*remove)(void *context, void *instance);
    /* value NULL: no data */
    uint32_t (*refer)(void *context, void *instance, uint32_t counter, uint64_t *value);
    void (*report)(void *context, const char *text); /* a line for people */
    void *context;
};

/** Registers both sets. Returns 0, or -1 where that is refused; it has been reported. */
int sync_start(const struct perflib *perflib);

/**
 * Brings perflib up to date. With values_only, as within a call from perflib, no instance is made
 * or deleted. Returns 0, or -1 where going on makes no sense; what went wrong has been reported,
 * once.
 */
int sync_step(const struct perflib *perflib, struct publish *publish, bool values_only);

/** Deletes every instance. */
void sync_stop(const struct perflib *perflib, struct publish *publish);

#endif
