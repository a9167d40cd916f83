/* SPDX-License-Identifier: BSD-3-Clause */
/* What an event selector counts. */
#include "model_internal.h"

/*
 * Every instruction takes one core cycle, so the events that an instruction can cause but once
 * happen at most once in a cycle, and two of them in every cycle.
 */
#define ONCE_PER_CYCLE                                                                             \
    (EVERY_CYCLE | VPMU_EVENT_BIT(VPMU_EVENT_BRANCHES) |                                           \
     VPMU_EVENT_BIT(VPMU_EVENT_COND_BRANCHES) | VPMU_EVENT_BIT(VPMU_EVENT_NEAR_CALLS) |            \
     VPMU_EVENT_BIT(VPMU_EVENT_NEAR_RETURNS) | VPMU_EVENT_BIT(VPMU_EVENT_FAR_BRANCHES) |           \
     VPMU_EVENT_BIT(VPMU_EVENT_BRANCH_MISSES))
#define EVERY_CYCLE (VPMU_EVENT_BIT(VPMU_EVENT_INSTRUCTIONS) | VPMU_EVENT_BIT(VPMU_EVENT_CYCLES))

#define CLASSES_OS (VPMU_CLASS_BIT(VPMU_CLASS_KERNEL) | VPMU_CLASS_BIT(VPMU_CLASS_GUEST_KERNEL))
#define CLASSES_USR (VPMU_CLASS_BIT(VPMU_CLASS_USER) | VPMU_CLASS_BIT(VPMU_CLASS_GUEST_USER))

static const struct vpmu_selection nothing = {VPMU_EVENT_NONE, true};
static const struct vpmu_selection unsupported = {VPMU_EVENT_NONE, false};

uint8_t vpmu_classes(bool os, bool usr)
{
    return (uint8_t)((os ? CLASSES_OS : 0) | (usr ? CLASSES_USR : 0));
}

static enum vpmu_event event_of(const struct vpmu_config *config, uint32_t code)
{
    const struct vpmu_vendor_ops *vendor = vpmu_vendor_ops(config);

    for (unsigned i = 0; i < vendor->encoding_count; i++) {
        const struct vpmu_encoding *encoding = &vendor->encodings[i];

        if (encoding->code == code && config->version >= encoding->since) {
            return encoding->event;
        }
    }
    return VPMU_EVENT_NONE;
}

struct vpmu_selection vpmu_select_event(const struct vpmu_config *config, enum vpmu_event event)
{
    if (!(config->events & VPMU_EVENT_BIT(event))) {
        return unsupported;
    }
    return (struct vpmu_selection){(uint8_t)event, true};
}

/* The cycles in which fewer than `cmask` events happen. */
static struct vpmu_selection select_inverted(const struct vpmu_config *config,
                                             enum vpmu_event event, unsigned cmask)
{
    if (cmask > 1) {
        return vpmu_select_event(config, VPMU_EVENT_CYCLES);
    }
    return VPMU_EVENT_BIT(event) & EVERY_CYCLE ? nothing : unsupported;
}

/*
 * SDM Vol. 3, section "Architectural Performance Monitoring Version 1 Facilities", and APM Vol. 2,
 * table "Count Control Using CNT_MASK and INV": a counter mask other than 0 counts the cycles in
 * which at least so many events happen, or, inverted, fewer; INV is ignored with a mask of 0. Edges
 * need the order of events, which no total tells.
 */
struct vpmu_selection vpmu_select(const struct vpmu_config *config, uint32_t code, unsigned cmask,
                                  bool invert, bool edge)
{
    enum vpmu_event event = event_of(config, code);
    struct vpmu_selection plain = vpmu_select_event(config, event);

    if (!plain.supported || edge) {
        return unsupported;
    }
    if (cmask == 0) {
        return plain;
    }
    if (!(VPMU_EVENT_BIT(event) & ONCE_PER_CYCLE)) {
        return unsupported;
    }
    if (invert) {
        return select_inverted(config, event, cmask);
    }
    return cmask == 1 ? plain : nothing;
}
