/* SPDX-License-Identifier: BSD-3-Clause */
#include "vpmu/validity.h"

/* The states that a look alone decides, the first that applies; the rest is a matter of time. */
static uint8_t plain_state(const struct vpmu_look *look)
{
    if (look->revoked) {
        return VPMU_COUNTER_REVOKED;
    }
    if (!look->exists) {
        return VPMU_COUNTER_ABSENT;
    }
    if (look->unsupported) {
        return VPMU_COUNTER_UNSUPPORTED;
    }
    if (look->filtered) {
        return VPMU_COUNTER_FILTERED;
    }
    return look->enabled ? VPMU_COUNTER_BACKED : VPMU_COUNTER_GRANTED;
}

/* The guest executed something between the two looks that the counter had to count. */
static bool is_evidence(const struct vpmu_look *look, const struct vpmu_moment *moment)
{
    if (!look->moves || moment->halted || moment->ran_ns < VPMU_VALIDITY_RUN_NS) {
        return false;
    }
    if (look->user && look->kernel) {
        return true;
    }
    if (moment->user != moment->user_before) {
        return false;
    }
    return moment->user ? look->user : look->kernel;
}

/* The counter was enabled as it is now all the time, as far as two looks can tell. */
static bool unchanged(const struct vpmu_validity *validity, const struct vpmu_look *look)
{
    uint8_t before = plain_state(&validity->last);

    return before == VPMU_COUNTER_BACKED && validity->last.selector == look->selector;
}

static void believe(struct vpmu_validity *validity)
{
    validity->backed_ns += validity->doubted_ns;
    validity->doubted_ns = 0;
    validity->still = 0;
}

/* An interval in which a counter that may count was enabled from beginning to end. */
static uint8_t judge(struct vpmu_validity *validity, const struct vpmu_look *look,
                     const struct vpmu_moment *moment)
{
    validity->enabled_ns += moment->ran_ns;
    if (look->value != validity->last.value) {
        believe(validity);
        validity->backed_ns += moment->ran_ns;
        return VPMU_COUNTER_BACKED;
    }
    if (validity->state == VPMU_COUNTER_STARVED) {
        return VPMU_COUNTER_STARVED;
    }
    if (!is_evidence(look, moment)) {
        validity->backed_ns += moment->ran_ns;
        return VPMU_COUNTER_BACKED;
    }
    validity->doubted_ns += moment->ran_ns;
    validity->still++;
    if (validity->still < VPMU_VALIDITY_LOOKS) {
        return VPMU_COUNTER_BACKED;
    }
    validity->doubted_ns = 0; /* it was not backed then either */
    return VPMU_COUNTER_STARVED;
}

bool vpmu_validity_look(struct vpmu_validity *validity, const struct vpmu_look *look,
                        const struct vpmu_moment *moment)
{
    uint8_t before = validity->state;
    uint8_t state = plain_state(look);

    if (state == VPMU_COUNTER_BACKED && unchanged(validity, look)) {
        state = judge(validity, look, moment);
    } else {
        believe(validity);
        if (look->enabled && state != VPMU_COUNTER_ABSENT) {
            validity->enabled_ns += moment->ran_ns;
            validity->backed_ns += state == VPMU_COUNTER_BACKED ? moment->ran_ns : 0;
        }
    }
    validity->last = *look;
    validity->state = state;
    return state != before;
}
