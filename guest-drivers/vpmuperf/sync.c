/* SPDX-License-Identifier: BSD-3-Clause */
#include "sync.h"

#include <stdarg.h>
#include <stdio.h>

enum { GO_ON = 0, GIVE_UP = -1 };

static void report(const struct perflib *perflib, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void report(const struct perflib *perflib, const char *format, ...)
{
    char text[160];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    perflib->report(perflib->context, text);
}

/* Once for each item and error: a step comes every second. */
static void report_item(const struct perflib *perflib, struct publish_item *item, uint32_t error,
                        const char *what)
{
    if (item->error != error)
        report(perflib, "%s(%s): %s (error %u)", counter_sets[item->set].name, item->name, what,
               error);
    item->error = error;
}

int sync_start(const struct perflib *perflib)
{
    for (uint32_t set = 0; set < COUNTER_SETS; set++) {
        uint32_t error = perflib->add_set(perflib->context, set);
        if (error && error != SYNC_ALREADY_EXISTS) { /* it is there: as wanted */
            report(perflib, "the counter set \"%s\" is refused (error %u)", counter_sets[set].name,
                   error);
            return GIVE_UP;
        }
    }
    return GO_ON;
}

/* --- Instances
 * ------------------------------------------------------------------------------------ */

static uint32_t create(const struct perflib *perflib, struct publish_item *item)
{
    uint32_t error =
        perflib->create(perflib->context, item->set, item->name, item->id, &item->instance);

    if (error)
        item->instance = NULL;
    item->referred = 0; /* a new instance refers to nothing */
    item->stale = false;
    return error;
}

static int try_again(const struct perflib *perflib, struct publish_item *item, uint32_t error)
{
    report_item(perflib, item, error, "no memory for it now, it is tried again");
    return GO_ON;
}

static int leave_out(const struct perflib *perflib, struct publish_item *item, uint32_t error)
{
    report_item(perflib, item, error, "its name or id exists already, it is left out");
    item->left_out = true;
    return GO_ON;
}

static int refuse(const struct perflib *perflib, struct publish_item *item, uint32_t error)
{
    report_item(perflib, item, error, "perflib refuses what is published");
    return GIVE_UP;
}

/* Somebody has taken the set away: put it back, once. */
static int register_again(const struct perflib *perflib, struct publish_item *item, uint32_t error)
{
    report_item(perflib, item, error, "its set is not registered, it is registered again");
    item->error = 0; /* the same error again is another event */
    error = perflib->add_set(perflib->context, item->set);
    if (!error || error == SYNC_ALREADY_EXISTS)
        error = create(perflib, item);
    return error ? refuse(perflib, item, error) : GO_ON;
}

/* PerfCreateInstance's errors, and what follows. */
static const struct {
    uint32_t error;
    int (*then)(const struct perflib *perflib, struct publish_item *item, uint32_t error);
} create_errors[] = {
    {SYNC_ALREADY_EXISTS, leave_out}, {SYNC_INVALID_PARAMETER, refuse},
    {SYNC_NOT_FOUND, register_again}, {SYNC_NOT_ENOUGH_MEMORY, try_again},
    {SYNC_OUT_OF_MEMORY, try_again},  {SYNC_NO_SYSTEM_RESOURCES, try_again},
};

static int create_item(const struct perflib *perflib, struct publish_item *item)
{
    uint32_t error = create(perflib, item);

    if (!error) {
        item->error = 0;
        return GO_ON;
    }
    for (size_t i = 0; i < sizeof(create_errors) / sizeof(create_errors[0]); i++) {
        if (create_errors[i].error == error)
            return create_errors[i].then(perflib, item, error);
    }
    report_item(perflib, item, error, "it cannot be created, it is tried again");
    return GO_ON;
}

/* Whatever the answer, the instance is not touched again: its block may be gone. */
static void delete_item(const struct perflib *perflib, struct publish_item *item)
{
    uint32_t error = perflib->remove(perflib->context, item->instance);

    item->instance = NULL;
    item->referred = 0;
    if (error)
        report_item(perflib, item, error, "perflib does not delete it");
}

/* --- Values
 * --------------------------------------------------------------------------------------- */

/*
 * Windows takes NULL as "no data". Wine refuses NULL as a wrong parameter; there the instance is
 * made anew without the reference.
 */
static void refer_failed(const struct perflib *perflib, struct publish_item *item, uint32_t slot,
                         bool has, uint32_t error)
{
    if (error == SYNC_INVALID_PARAMETER && !has) {
        item->stale = true;
        return;
    }
    if (error == SYNC_NOT_FOUND)
        item->refused |= 1u << slot;
    report_item(perflib, item, error, counter_sets[item->set].rows[slot].name);
}

static void refer(const struct perflib *perflib, struct publish_item *item, uint32_t slot)
{
    bool has = item->has >> slot & 1;
    uint32_t error =
        perflib->refer(perflib->context, item->instance, counter_sets[item->set].rows[slot].id,
                       has ? &item->values[slot] : NULL);

    if (error)
        refer_failed(perflib, item, slot, has, error);
    else
        item->referred ^= 1u << slot;
}

static void refer_all(const struct perflib *perflib, struct publish_item *item)
{
    for (uint32_t left = (item->has ^ item->referred) & ~item->refused; left; left &= left - 1)
        refer(perflib, item, (uint32_t)__builtin_ctz(left));
}

/* --- Steps
 * ---------------------------------------------------------------------------------------- */

static int sync_instance(const struct perflib *perflib, struct publish_item *item)
{
    if (item->instance && (!item->wanted || item->stale))
        delete_item(perflib, item);
    if (!item->wanted) {
        item->left_out = false; /* when it comes back, it may be possible */
        item->error = 0;
        return GO_ON;
    }
    return item->instance || item->left_out ? GO_ON : create_item(perflib, item);
}

static int sync_item(const struct perflib *perflib, struct publish_item *item)
{
    if (sync_instance(perflib, item) == GIVE_UP)
        return GIVE_UP;
    if (item->instance)
        refer_all(perflib, item);
    if (!item->stale)
        return GO_ON;
    if (sync_instance(perflib, item) == GIVE_UP)
        return GIVE_UP;
    if (item->instance)
        refer_all(perflib, item);
    return GO_ON;
}

int sync_step(const struct perflib *perflib, struct publish *publish, bool values_only)
{
    for (uint32_t i = 0; i < publish->count; i++) {
        struct publish_item *item = publish->items[i];
        if (!values_only && sync_item(perflib, item) == GIVE_UP)
            return GIVE_UP;
        if (values_only && item->instance)
            refer_all(perflib, item);
    }
    return GO_ON;
}

void sync_stop(const struct perflib *perflib, struct publish *publish)
{
    for (uint32_t i = 0; i < publish->count; i++) {
        if (publish->items[i]->instance)
            delete_item(perflib, publish->items[i]);
    }
}
