/* SPDX-License-Identifier: BSD-3-Clause */
/* When a counter is called starved, and when it must not be. */
#include "vpmu/validity.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
#define SELECTOR 0x4300C0u

/* Instructions in every ring, granted and enabled. */
static const struct vpmu_look counting = {
    .selector = SELECTOR,
    .value = 1000,
    .exists = true,
    .enabled = true,
    .moves = true,
    .user = true,
    .kernel = true,
};

static const struct vpmu_moment ran = {.ran_ns = 500 * MS};

/* Looks n times more, the value going up by step. */
static uint8_t looks(struct vpmu_validity *v, struct vpmu_look *look,
                     const struct vpmu_moment *moment, unsigned n, uint64_t step)
{
    for (unsigned i = 0; i < n; i++) {
        look->value += step;
        vpmu_validity_look(v, look, moment);
    }
    return v->state;
}

Test(validity, starves_and_recovers)
{
    struct vpmu_validity v = {0};
    struct vpmu_look look = counting;

    cr_assert_eq(looks(&v, &look, &ran, 3, 1), VPMU_COUNTER_BACKED);
    cr_assert_eq(looks(&v, &look, &ran, VPMU_VALIDITY_LOOKS - 1, 0), VPMU_COUNTER_BACKED);
    cr_assert(vpmu_validity_look(&v, &look, &ran), "the verdict is a change");
    cr_assert_eq(v.state, VPMU_COUNTER_STARVED);
    cr_assert_not(vpmu_validity_look(&v, &look, &ran), "and stands");
    cr_assert_eq(v.enabled_ns, 6 * ran.ran_ns);
    cr_assert_eq(v.backed_ns, 3 * ran.ran_ns, "the looks that led to the verdict are not backed");
    look.value++;
    cr_assert(vpmu_validity_look(&v, &look, &ran), "one count ends it");
    cr_assert_eq(v.state, VPMU_COUNTER_BACKED);
    cr_assert_eq(v.backed_ns, 4 * ran.ran_ns);
}

Test(validity, halted_is_no_evidence)
{
    const struct vpmu_moment halted = {.ran_ns = 500 * MS, .halted = true};
    struct vpmu_validity v = {0};
    struct vpmu_look look = counting;

    looks(&v, &look, &ran, 2, 1);
    cr_assert_eq(looks(&v, &look, &halted, 10, 0), VPMU_COUNTER_BACKED);
    cr_assert_eq(v.backed_ns, v.enabled_ns);
    cr_assert_eq(looks(&v, &look, &ran, VPMU_VALIDITY_LOOKS, 0), VPMU_COUNTER_STARVED);
    cr_assert_eq(looks(&v, &look, &halted, 10, 0), VPMU_COUNTER_STARVED, "nor against");
}

Test(validity, a_doubt_that_proves_wrong_costs_nothing)
{
    struct vpmu_validity v = {0};
    struct vpmu_look look = counting;

    looks(&v, &look, &ran, 1, 1);
    for (unsigned i = 0; i < 10; i++) {
        cr_assert_eq(looks(&v, &look, &ran, VPMU_VALIDITY_LOOKS - 1, 0), VPMU_COUNTER_BACKED);
        cr_assert_eq(looks(&v, &look, &ran, 1, 1), VPMU_COUNTER_BACKED);
    }
    cr_assert_eq(v.backed_ns, v.enabled_ns);
}

/* Nothing follows from a counter that stands still in any of these. */
struct innocent {
    char name[24]; /* a parameter may hold no pointer */
    struct vpmu_look look;
    struct vpmu_moment moment;
    uint8_t state;
};

#define LOOK(...)                                                                                  \
    {.selector = SELECTOR, .exists = true, .enabled = true, .moves = true, __VA_ARGS__}
#define BOTH .user = true, .kernel = true

static struct innocent innocents[] = {
    {"halted", LOOK(BOTH), {.ran_ns = 0}, VPMU_COUNTER_BACKED},
    {"nearly idle", LOOK(BOTH), {.ran_ns = VPMU_VALIDITY_RUN_NS - 1}, VPMU_COUNTER_BACKED},
    {"user's, in the kernel", LOOK(.user = true), {.ran_ns = 500 * MS}, VPMU_COUNTER_BACKED},
    {"kernel's, in user", LOOK(.kernel = true), {500 * MS, true, true}, VPMU_COUNTER_BACKED},
    {"user's, came from it", LOOK(.user = true), {500 * MS, false, true}, VPMU_COUNTER_BACKED},
    {"user's, went to it", LOOK(.user = true), {500 * MS, true, false}, VPMU_COUNTER_BACKED},
    {"neither ring", LOOK(.user = false), {500 * MS, true, true}, VPMU_COUNTER_BACKED},
    {"another event", LOOK(BOTH, .moves = false), {500 * MS}, VPMU_COUNTER_BACKED},
    {"off", LOOK(BOTH, .enabled = false), {500 * MS}, VPMU_COUNTER_GRANTED},
    {"denied", LOOK(BOTH, .filtered = true), {500 * MS}, VPMU_COUNTER_FILTERED},
    {"unknown", LOOK(BOTH, .unsupported = true), {500 * MS}, VPMU_COUNTER_UNSUPPORTED},
    {"denied and unknown",
     LOOK(.unsupported = true, .filtered = true),
     {500 * MS},
     VPMU_COUNTER_UNSUPPORTED},
    {"not there", LOOK(BOTH, .exists = false), {500 * MS}, VPMU_COUNTER_ABSENT},
    {"taken back", LOOK(BOTH, .revoked = true), {500 * MS}, VPMU_COUNTER_REVOKED},
    {"taken back, off", LOOK(.revoked = true, .enabled = false), {0}, VPMU_COUNTER_REVOKED},
};

ParameterizedTestParameters(validity, innocent)
{
    return cr_make_param_array(struct innocent, innocents, sizeof(innocents) / sizeof(*innocents));
}

ParameterizedTest(struct innocent *row, validity, innocent)
{
    struct vpmu_validity v = {0};
    bool counts = row->state == VPMU_COUNTER_BACKED;
    bool enabled = row->look.enabled && row->state != VPMU_COUNTER_ABSENT;

    cr_assert_eq(looks(&v, &row->look, &row->moment, 100, 0), row->state, "%s", row->name);
    cr_assert_eq(v.enabled_ns, enabled ? 100 * row->moment.ran_ns : 0, "%s", row->name);
    cr_assert_eq(v.backed_ns, counts ? v.enabled_ns : 0, "%s", row->name);
}

/* One ring: the guest was seen in it at both ends of the interval. */
Test(validity, one_ring)
{
    static const struct vpmu_moment in_user = {500 * MS, true, true}, in_kernel = {500 * MS};
    struct vpmu_look user = LOOK(.user = true), kernel = LOOK(.kernel = true);
    struct vpmu_validity v = {0}, w = {0};

    cr_assert_eq(looks(&v, &user, &in_user, 1 + VPMU_VALIDITY_LOOKS, 0), VPMU_COUNTER_STARVED);
    cr_assert_eq(looks(&v, &user, &in_kernel, 5, 0), VPMU_COUNTER_STARVED, "no evidence ends none");
    cr_assert_eq(looks(&w, &kernel, &in_kernel, 1 + VPMU_VALIDITY_LOOKS, 0), VPMU_COUNTER_STARVED);
}

/* A counter that is programmed anew, or stopped and started, gets its chance anew. */
Test(validity, changes_begin_anew)
{
    struct vpmu_validity v = {0};
    struct vpmu_look look = counting;

    for (unsigned i = 0; i < 20; i++) {
        look.selector ^= 0x800000;
        cr_assert_eq(looks(&v, &look, &ran, VPMU_VALIDITY_LOOKS, 0), VPMU_COUNTER_BACKED);
    }
    for (unsigned i = 0; i < 20; i++) {
        look.enabled = !look.enabled;
        looks(&v, &look, &ran, 1, 0);
        cr_assert_eq(v.state, look.enabled ? VPMU_COUNTER_BACKED : VPMU_COUNTER_GRANTED);
    }
}

/*
 * Random lives: a counter that counts one event for each interval in which the guest executes in a
 * ring of its is never called starved, and one that never counts is, once there was evidence
 * enough.
 */
Test(validity, random_lives)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct vpmu_validity healthy = {0}, dead = {0};
        struct vpmu_look look = LOOK(.user = seed & 1, .kernel = seed & 2), still = look;
        struct vpmu_moment moment = {0};
        unsigned state = seed, evident = 0;

        for (unsigned i = 0; i < 1000; i++) {
            unsigned dice = (unsigned)rand_r(&state);

            moment.user_before = moment.user;
            moment.user = dice & 1;
            moment.ran_ns = dice & 2 ? 0 : dice % 1000 * MS;
            if (moment.ran_ns && (moment.user ? look.user : look.kernel)) {
                look.value++;
            }
            vpmu_validity_look(&healthy, &look, &moment);
            vpmu_validity_look(&dead, &still, &moment);
            cr_assert_neq(healthy.state, VPMU_COUNTER_STARVED, "seed %u, look %u", seed, i);
            cr_assert_leq(healthy.backed_ns + healthy.doubted_ns, healthy.enabled_ns);
            evident += i > 0 && moment.ran_ns >= VPMU_VALIDITY_RUN_NS &&
                       ((look.user && look.kernel) || (moment.user == moment.user_before &&
                                                       (moment.user ? look.user : look.kernel)));
        }
        cr_assert_eq(dead.state == VPMU_COUNTER_STARVED, evident >= VPMU_VALIDITY_LOOKS, "seed %u",
                     seed);
    }
}
