/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, and errors in words. */

#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "vpmu/status.h"

#define NAME_IN(table, index)                                                                      \
    ((index) < sizeof(table) / sizeof((table)[0]) && (table)[index] ? (table)[index] : "?")

static const char *const event_names[VPMU_EVENTS] = {
#define VPMU_EVENT(id, name, intel, bit, fixed, amd) [VPMU_EVENT_##id] = name,
#include "events.def"
#undef VPMU_EVENT
};

static const char *const state_names[VPMU_COUNTER_STATES] = {
    [VPMU_COUNTER_ABSENT] = "absent",           [VPMU_COUNTER_GRANTED] = "granted",
    [VPMU_COUNTER_BACKED] = "backed",           [VPMU_COUNTER_STARVED] = "starved",
    [VPMU_COUNTER_FILTERED] = "filtered",       [VPMU_COUNTER_REVOKED] = "revoked",
    [VPMU_COUNTER_UNSUPPORTED] = "unsupported",
};

static const char *const host_names[] = {
    [VPMU_SOURCE_NONE] = "none",
    [VPMU_SOURCE_TCG] = "tcg",
    [VPMU_SOURCE_KVM] = "kvm",
};

static const char *const class_names[VPMU_EVENT_CLASSES] = {
    [VPMU_EVENTS_ANY] = "any",
    [VPMU_EVENTS_ARCHITECTURAL] = "architectural",
    [VPMU_EVENTS_STANDARD] = "standard",
    [VPMU_EVENTS_ENHANCED] = "enhanced",
};

const char *source_event_name(uint32_t event)
{
    return event == VPMU_EVENT_RAW ? "raw" : NAME_IN(event_names, event);
}

const char *source_state_name(uint32_t state)
{
    return NAME_IN(state_names, state);
}

const char *source_host_name(uint64_t host)
{
    return NAME_IN(host_names, host);
}

const char *source_class_name(uint64_t event_class)
{
    return NAME_IN(class_names, event_class);
}

uint32_t source_event_by_name(const char *name, size_t length)
{
    for (uint32_t i = 0; i < VPMU_EVENTS; i++) {
        if (strlen(event_names[i]) == length && memcmp(event_names[i], name, length) == 0)
            return i;
    }
    return VPMU_NONE;
}

static const char *status_text(uint32_t status)
{
    static const struct {
        uint32_t nt;
        const char *text;
    } rows[] = {
#define SOURCE_STATUS(name, nt, win32, text) {nt, text},
#include "statuses.def"
#undef SOURCE_STATUS
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].nt == status)
            return rows[i].text;
    }
    return "status";
}

char *source_error_text(const struct source_error *error, char *to, size_t size)
{
    const char *what = error->what ? error->what : "no error";

    if (error->line)
        snprintf(to, size, "line %u: %s", error->line, what);
    else if (error->status)
        snprintf(to, size, "%s: %s (0x%08X)", what, status_text(error->status), error->status);
    else
        snprintf(to, size, "%s", what);
    return to;
}
