/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof that a counter counts, over counters that do and counters that do not. */

#include <criterion/criterion.h>

#include "driver_fake.h"

static const char me;
enum { ROUNDS = 1000, INSTRUCTIONS = 2004, BRANCHES = 1000 };

static void set_up(void)
{
    fake_intel(2, 4, 3);
}

TestSuite(driver_verify, .init = set_up);

static void acquire(void)
{
    struct vpmu_acquire_request request = {.header = HEADER(request)};
    struct vpmu_grant grant;

    cr_assert_eq(fake_request(&me, VPMU_IOCTL_ACQUIRE, &request, sizeof(request), &grant,
                              sizeof(grant), NULL),
                 STATUS_SUCCESS);
}

static NTSTATUS verify_with(uint32_t flags, uint32_t processor, uint32_t iterations,
                            struct vpmu_verification *verification)
{
    struct vpmu_verify_request request = {.header = HEADER(request),
                                          .processor = processor,
                                          .iterations = iterations,
                                          .flags = flags};

    return fake_request(&me, VPMU_IOCTL_VERIFY, &request, sizeof(request), verification,
                        sizeof(*verification), NULL);
}

static NTSTATUS verify_on(uint32_t processor, uint32_t iterations,
                          struct vpmu_verification *verification)
{
    return verify_with(0, processor, iterations, verification);
}

static struct vpmu_verification verification_of(uint32_t processor)
{
    struct vpmu_verification verification;

    acquire();
    cr_assert_eq(verify_on(processor, ROUNDS, &verification), STATUS_SUCCESS);
    cr_expect(fake_is_quiet(), "nothing is left behind");
    return verification;
}

static const struct vpmu_check *find(const struct vpmu_verification *verification, uint32_t counter,
                                     uint32_t event)
{
    uint32_t i = 0;

    while (i < verification->count &&
           (verification->checks[i].counter != counter || verification->checks[i].event != event))
        i++;
    cr_assert_lt(i, verification->count, "no check of counter %u, event %u", counter, event);
    return &verification->checks[i];
}

Test(driver_verify, states)
{
    static const struct {
        uint32_t flags;
        uint64_t expected, counted;
        enum vpmu_counter_state state;
    } rows[] = {
        {VPMU_CHECK_EXACT, 2004, 2004, VPMU_COUNTER_BACKED},
        {VPMU_CHECK_EXACT, 2004, 0, VPMU_COUNTER_STARVED},
        {VPMU_CHECK_EXACT, 2004, 2003, VPMU_COUNTER_STARVED},
        {VPMU_CHECK_EXACT, 2004, 2004 + 2004 / 16 + 64, VPMU_COUNTER_BACKED},
        {VPMU_CHECK_EXACT, 2004, 2004 + 2004 / 16 + 65, VPMU_COUNTER_UNSUPPORTED},
        {VPMU_CHECK_EXACT, 2004, ~0ull, VPMU_COUNTER_UNSUPPORTED},
        {0, 1, 1000000, VPMU_COUNTER_BACKED},
        {0, 1, 0, VPMU_COUNTER_STARVED},
        {VPMU_CHECK_EXACT | VPMU_CHECK_NO_EVENT, 2004, 0, VPMU_COUNTER_UNSUPPORTED},
        {VPMU_CHECK_EXACT | VPMU_CHECK_FAULT, 2004, 0, VPMU_COUNTER_ABSENT},
        {VPMU_CHECK_EXACT | VPMU_CHECK_NOT_KEPT, 2004, 0, VPMU_COUNTER_ABSENT},
        {VPMU_CHECK_EXACT | VPMU_CHECK_NOT_ENUMERATED, 2004, 2004, VPMU_COUNTER_ABSENT},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        cr_expect_eq(verify_state(rows[i].flags, rows[i].expected, rows[i].counted), rows[i].state,
                     "row %zu", i);
}

Test(driver_verify, counters_that_count)
{
    struct vpmu_verification verification = verification_of(3);

    cr_assert_eq(verification.count, 4 * 2 + 3);
    cr_expect_eq(verification.not_backed, 0);
    cr_expect_eq(verification.processor, 3);
    cr_expect_eq(verification.global_ctrl, 0xf);
    for (uint32_t i = 0; i < 4; i++) {
        const struct vpmu_check *instructions = find(&verification, i, VPMU_EVENT_INSTRUCTIONS);
        const struct vpmu_check *branches = find(&verification, i, VPMU_EVENT_BRANCHES);

        cr_expect_eq(instructions->expected, INSTRUCTIONS);
        cr_expect_eq(instructions->counted, INSTRUCTIONS);
        cr_expect_eq(instructions->rdpmc, INSTRUCTIONS);
        cr_expect_eq(instructions->flags, VPMU_CHECK_EXACT);
        cr_expect_eq(branches->expected, BRANCHES);
        cr_expect_eq(branches->counted, BRANCHES);
    }
    cr_expect_eq(find(&verification, 32, VPMU_EVENT_INSTRUCTIONS)->counted, INSTRUCTIONS);
    cr_expect_eq(find(&verification, 33, VPMU_EVENT_CYCLES)->state, VPMU_COUNTER_BACKED);
    cr_expect_eq(find(&verification, 34, VPMU_EVENT_REF_CYCLES)->flags, 0);
}

Test(driver_verify, a_starved_counter_is_named)
{
    fake.starved = 1ull << 2 | 1ull << 32;
    fake.slow = 1ull << 1;
    fake.wild = 1ull << 0;
    struct vpmu_verification verification = verification_of(0);

    cr_expect_eq(verification.not_backed, 7 | 1ull << 32);
    cr_expect_eq(find(&verification, 2, VPMU_EVENT_INSTRUCTIONS)->state, VPMU_COUNTER_STARVED);
    cr_expect_eq(find(&verification, 2, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_STARVED);
    cr_expect_eq(find(&verification, 32, VPMU_EVENT_INSTRUCTIONS)->state, VPMU_COUNTER_STARVED);
    cr_expect_eq(find(&verification, 1, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_STARVED);
    cr_expect_eq(find(&verification, 0, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_UNSUPPORTED);
    cr_expect_eq(find(&verification, 3, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_BACKED);
    cr_expect_eq(fake.per_processor[0].state[2], VPMU_COUNTER_STARVED);
    cr_expect_eq(fake.per_processor[1].state[2], VPMU_COUNTER_GRANTED, "not looked at");
}

Test(driver_verify, a_denied_event_is_not_a_dead_counter)
{
    fake.denied = 0xc4;
    struct vpmu_verification verification = verification_of(0);

    cr_expect_eq(verification.not_backed, 0);
    for (uint32_t i = 0; i < 4; i++) {
        cr_expect_eq(find(&verification, i, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_FILTERED);
        cr_expect_eq(find(&verification, i, VPMU_EVENT_INSTRUCTIONS)->state, VPMU_COUNTER_BACKED);
    }
}

Test(driver_verify, an_event_that_cpuid_takes_back)
{
    fake.unavailable = 1 << 5;
    vpmu_init(&driver, fake.per_processor, FAKE_PROCESSORS);
    struct vpmu_verification verification = verification_of(0);

    cr_expect_eq(find(&verification, 0, VPMU_EVENT_BRANCHES)->state, VPMU_COUNTER_UNSUPPORTED);
    cr_expect_eq(find(&verification, 0, VPMU_EVENT_BRANCHES)->flags,
                 VPMU_CHECK_EXACT | VPMU_CHECK_NO_EVENT);
}

/* Windows sets only the fixed bits of GLOBAL_CTRL: clear ones after reset are a counter that stands
 * still under Windows. */
Test(driver_verify, a_closed_gate_is_told_and_opened)
{
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++)
        *fake_msr(p, 0x38f) = 0xd;
    struct vpmu_verification verification = verification_of(2);
    const struct vpmu_check *check = find(&verification, 1, VPMU_EVENT_INSTRUCTIONS);

    cr_expect_eq(verification.global_ctrl, 0xd);
    cr_expect_eq(check->flags, VPMU_CHECK_EXACT | VPMU_CHECK_GLOBAL_CLEAR);
    cr_expect_eq(check->counted, INSTRUCTIONS);
    cr_expect_eq(find(&verification, 0, VPMU_EVENT_INSTRUCTIONS)->flags, VPMU_CHECK_EXACT);
    cr_expect_eq(*fake_msr(2, 0x38f), 0xf);
    cr_expect_eq(*fake_msr(1, 0x38f), 0xd);
}

Test(driver_verify, registers_that_drop_or_fault)
{
    fake.drops = 1ull << 1;
    fake.rdpmc_faults = 1ull << 3;
    struct vpmu_verification verification = verification_of(0);
    const struct vpmu_check *check = find(&verification, 1, VPMU_EVENT_INSTRUCTIONS);

    cr_expect_eq(check->state, VPMU_COUNTER_ABSENT);
    cr_expect(check->flags & VPMU_CHECK_NOT_KEPT);
    cr_expect_eq(check->counted, 0);
    cr_expect(find(&verification, 3, VPMU_EVENT_BRANCHES)->flags & VPMU_CHECK_RDPMC_FAULT);
    cr_expect_eq(verification.not_backed, 1ull << 1);
}

/* The whole PMU is granted, as on Hyper-V, and there is none. */
Test(driver_verify, success_without_a_pmu)
{
    struct vpmu_grant grant;

    fake_intel(0, 0, 0);
    struct vpmu_verification verification = verification_of(1);
    cr_assert_eq(fake_request(&me, VPMU_IOCTL_GRANT, NULL, 0, &grant, sizeof(grant), NULL), 0);
    cr_expect_eq(grant.flags, VPMU_GRANT_WHOLE);
    cr_expect_eq(grant.allocate_status, STATUS_SUCCESS);
    cr_expect_eq(verification.count, 4 * 2 + 3);
    cr_expect_eq(verification.not_backed, 0x70000000full);
    for (uint32_t i = 0; i < verification.count; i++) {
        cr_expect_eq(verification.checks[i].state, VPMU_COUNTER_ABSENT);
        cr_expect(verification.checks[i].flags & VPMU_CHECK_NOT_ENUMERATED);
        cr_expect_eq(verification.checks[i].counted, 0);
        cr_expect_gt(verification.checks[i].expected, 0);
    }
}

Test(driver_verify, only_while_nothing_runs_and_within_limits)
{
    struct vpmu_verification verification;

    acquire();
    cr_expect_eq(verify_on(FAKE_PROCESSORS, 1, &verification), STATUS_INVALID_PARAMETER);
    cr_expect_eq(verify_on(0, 0, &verification), STATUS_INVALID_PARAMETER);
    cr_expect_eq(verify_on(0, VPMU_MAX_ITERATIONS + 1, &verification), STATUS_INVALID_PARAMETER);
    driver.running = 1;
    cr_expect_eq(verify_on(0, 1, &verification), STATUS_INVALID_DEVICE_STATE);
    driver.running = 0;
    cr_expect_eq(verify_on(0, VPMU_MAX_ITERATIONS, &verification), STATUS_SUCCESS);
    cr_expect_eq(find(&verification, 0, VPMU_EVENT_INSTRUCTIONS)->counted, 2000004);
}

Test(driver_verify, interrupts_that_arrive)
{
    struct vpmu_verification verification;

    acquire();
    for (uint32_t iterations = 1; iterations < 3000; iterations += 997) {
        cr_assert_eq(verify_with(VPMU_VERIFY_INTERRUPT, 2, iterations, &verification),
                     STATUS_SUCCESS);
        cr_expect(fake_is_quiet());
        cr_expect_eq(driver.programmed, 0);
        for (uint32_t i = 0; i < verification.count; i++) {
            const struct vpmu_check *check = &verification.checks[i];
            uint32_t flags = check->flags & (VPMU_CHECK_INTERRUPT | VPMU_CHECK_NO_INTERRUPT);

            cr_expect_eq(flags, check->flags & VPMU_CHECK_EXACT ? VPMU_CHECK_INTERRUPT : 0);
            cr_expect_eq(check->state, VPMU_COUNTER_BACKED);
        }
    }
    cr_expect_eq(fake.per_processor[2].overflows.calls, 4 * 9, "one for each exact check");
    cr_expect_eq(fake.per_processor[1].overflows.calls, 0);
}

Test(driver_verify, interrupts_that_do_not)
{
    struct vpmu_verification verification;
    const struct vpmu_check *check;

    acquire();
    fake.loses_interrupts = true;
    fake.starved = 2;
    cr_assert_eq(verify_with(VPMU_VERIFY_INTERRUPT, 0, ROUNDS, &verification), STATUS_SUCCESS);
    check = find(&verification, 0, VPMU_EVENT_BRANCHES);
    cr_expect_eq(check->flags, VPMU_CHECK_EXACT | VPMU_CHECK_NO_INTERRUPT);
    cr_expect_eq(check->state, VPMU_COUNTER_BACKED, "it counts, but cannot sample");
    check = find(&verification, 1, VPMU_EVENT_BRANCHES);
    cr_expect_eq(check->flags, VPMU_CHECK_EXACT, "a starved one is not tried");
}

Test(driver_verify, interrupts_need_the_overflow_resource)
{
    struct vpmu_verification verification;

    fake.overflow_status = STATUS_NOT_SUPPORTED;
    acquire();
    cr_expect_eq(verify_with(VPMU_VERIFY_INTERRUPT, 0, 1, &verification), STATUS_NOT_SUPPORTED);
    cr_expect_eq(verify_with(2, 0, 1, &verification), STATUS_INVALID_PARAMETER);
}
