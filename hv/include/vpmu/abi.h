/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What crosses a boundary: guest and host, client and daemon, driver and user mode.
 * Fixed widths only; one enum for one meaning, everywhere.
 */
#ifndef VPMU_ABI_H
#define VPMU_ABI_H

#include <stdint.h>

/* The state of one counter, as the operator, libvirt and the guest are told it. */
enum vpmu_counter_state {
    VPMU_COUNTER_ABSENT = 0,      /* the processor has no such counter */
    VPMU_COUNTER_GRANTED = 1,     /* promised, not counting now */
    VPMU_COUNTER_BACKED = 2,      /* enabled, and its source counts it */
    VPMU_COUNTER_STARVED = 3,     /* enabled, but its source has stopped counting it */
    VPMU_COUNTER_FILTERED = 4,    /* its event is denied by the operator's policy */
    VPMU_COUNTER_UNSUPPORTED = 5, /* its event is one that the source cannot count */
    VPMU_COUNTER_REVOKED = 6,     /* was granted, and has been taken back */
};

#define VPMU_COUNTER_STATES 7

/* Classes of events for tenants, each with what the one before it has. filter.h says what is in
 * them. */
enum vpmu_event_class {
    VPMU_EVENTS_ANY = 0,           /* no class: whatever is not denied */
    VPMU_EVENTS_ARCHITECTURAL = 1, /* cycles, instructions, branches: none of the caches */
    VPMU_EVENTS_STANDARD = 2,      /* the documented events of the core and of its L2 */
    VPMU_EVENTS_ENHANCED = 3,      /* those of the last-level cache and of what is behind it too */
};

#define VPMU_EVENT_CLASSES 4

#endif
