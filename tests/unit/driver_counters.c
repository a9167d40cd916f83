/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking, programming, reading and giving back; sampling; the profiling configuration. */

#include <criterion/criterion.h>

#include "driver_fake.h"

static const char me, you;
#define ALL_4_3 0x70000000full

static void set_up(void)
{
    fake_intel(2, 4, 3);
}

TestSuite(driver_counters, .init = set_up);

static NTSTATUS acquire(uint64_t counters, uint32_t flags, struct vpmu_grant *grant)
{
    struct vpmu_acquire_request request = {
        .header = HEADER(request), .counters = counters, .flags = flags};

    return fake_request(&me, VPMU_IOCTL_ACQUIRE, &request, sizeof(request), grant, sizeof(*grant),
                        NULL);
}

static struct vpmu_grant last_grant(void)
{
    struct vpmu_grant grant;

    cr_assert_eq(fake_request(&you, VPMU_IOCTL_GRANT, NULL, 0, &grant, sizeof(grant), NULL), 0);
    return grant;
}

static NTSTATUS program_as(struct vpmu_program_request request)
{
    request.header = (struct vpmu_header)HEADER(request);
    return fake_request(&me, VPMU_IOCTL_PROGRAM, &request, sizeof(request), NULL, 0, NULL);
}

static NTSTATUS program(uint32_t counter, uint32_t event, uint64_t period)
{
    return program_as((struct vpmu_program_request){
        .counter = counter, .event = event, .flags = VPMU_COUNT_USER, .period = period});
}

static NTSTATUS start_or_stop(uint32_t code, uint64_t counters)
{
    struct vpmu_counters_request request = {.header = HEADER(request), .counters = counters};

    return fake_request(&me, code, &request, sizeof(request), NULL, 0, NULL);
}

static NTSTATUS start(uint64_t counters)
{
    return start_or_stop(VPMU_IOCTL_START, counters);
}

static NTSTATUS stop(uint64_t counters)
{
    return start_or_stop(VPMU_IOCTL_STOP, counters);
}

static NTSTATUS release(void)
{
    return fake_request(&me, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0, NULL);
}

static struct vpmu_reading read_processor(uint32_t processor)
{
    struct vpmu_processor_request request = {.header = HEADER(request), .processor = processor};
    struct vpmu_reading reading;

    cr_assert_eq(fake_request(&you, VPMU_IOCTL_READ, &request, sizeof(request), &reading,
                              sizeof(reading), NULL),
                 STATUS_SUCCESS);
    return reading;
}

Test(driver_counters, takes_all_that_are_free_in_one_set)
{
    struct vpmu_grant grant;

    fake.taken = 1ull << 1 | 1ull << 33;
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(grant.granted, ALL_4_3 & ~fake.taken);
    cr_expect_eq(grant.probed, ALL_4_3);
    cr_expect_eq(grant.flags, VPMU_GRANT_OVERFLOW);
    cr_expect_eq(grant.probe_status[0], STATUS_SUCCESS);
    cr_expect_eq(grant.probe_status[1], STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq(grant.probe_status[33], STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq(fake.lists, 7 + 1);
    cr_expect_eq(fake_live(), 1);
    cr_expect_eq(fake.set[0].counters, grant.granted);
    cr_expect_eq(release(), STATUS_SUCCESS);
    cr_expect_eq(fake_live(), 0);
    cr_expect_eq(fake.bad_frees, 0);
}

Test(driver_counters, named_ones_all_or_none)
{
    struct vpmu_grant grant;

    fake.taken = 1ull << 2;
    fake.refusal = STATUS_UNSUCCESSFUL;
    cr_expect_eq(acquire(0x6, 0, &grant), STATUS_UNSUCCESSFUL);
    cr_expect_eq(fake_live(), 0);
    cr_expect_eq(last_grant().probe_status[1], STATUS_SUCCESS);
    cr_expect_eq(last_grant().probe_status[2], STATUS_UNSUCCESSFUL);
    cr_expect_eq(last_grant().allocate_status, STATUS_UNSUCCESSFUL);
    cr_expect_eq(acquire(0x3, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(grant.granted, 0x3);
}

Test(driver_counters, none_free_is_a_refusal_that_stays_visible)
{
    struct vpmu_grant grant;

    fake.taken = ALL_4_3;
    cr_expect_eq(acquire(0, 0, &grant), STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq(last_grant().granted, 0);
    cr_expect_eq(last_grant().allocate_status, STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq(release(), STATUS_INVALID_DEVICE_STATE);
    cr_expect_eq(fake.bad_frees, 0, "the handle of a failure is no handle");
}

Test(driver_counters, no_overflow_interrupt_no_sampling)
{
    struct vpmu_grant grant;

    fake.overflow_status = STATUS_NOT_SUPPORTED;
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(grant.flags, 0);
    cr_expect_eq(grant.granted, ALL_4_3);
    cr_expect_eq(program(0, VPMU_EVENT_INSTRUCTIONS, 100), STATUS_NOT_SUPPORTED);
    cr_expect_eq(program(0, VPMU_EVENT_INSTRUCTIONS, 0), STATUS_SUCCESS);
}

Test(driver_counters, older_windows_gives_the_whole_pmu)
{
    struct vpmu_grant grant;

    fake.build = 17763;
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(grant.flags, VPMU_GRANT_WHOLE);
    cr_expect_eq(grant.granted, ALL_4_3);
    cr_expect_eq(grant.probed, 0);
    cr_expect_eq(fake.wholes, 1);
    cr_expect_eq(release(), STATUS_SUCCESS);
    cr_expect_eq(acquire(1, 0, &grant), STATUS_NOT_SUPPORTED);
    fake.taken = 1;
    cr_expect_eq(acquire(0, 0, &grant), STATUS_UNSUCCESSFUL);
}

Test(driver_counters, whole_pmu_on_request)
{
    struct vpmu_grant grant;

    cr_expect_eq(acquire(1, VPMU_ACQUIRE_WHOLE, &grant), STATUS_INVALID_PARAMETER);
    cr_assert_eq(acquire(0, VPMU_ACQUIRE_WHOLE, &grant), STATUS_SUCCESS);
    cr_expect_eq(fake.lists, 0);
    cr_expect_eq(grant.granted, ALL_4_3);
}

Test(driver_counters, bad_acquisitions)
{
    struct vpmu_grant grant;

    cr_expect_eq(acquire(1ull << 4, 0, &grant), STATUS_INVALID_PARAMETER, "no such counter");
    cr_expect_eq(acquire(0, 2, &grant), STATUS_INVALID_PARAMETER, "no such flag");
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(acquire(0, 0, &grant), STATUS_INVALID_DEVICE_STATE, "twice");
    cr_expect_eq(fake_live(), 1);
}

Test(driver_counters, bad_programs)
{
    struct vpmu_grant grant;
    struct vpmu_program_request good = {
        .counter = 0, .event = VPMU_EVENT_INSTRUCTIONS, .flags = VPMU_COUNT_USER};
    struct vpmu_program_request bad;

    fake.unavailable = 1 << 6;
    vpmu_init(&driver, fake.per_processor, FAKE_PROCESSORS);
    fake.taken = 1ull << 3;
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);

    bad = good, bad.counter = 3;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "not held");
    bad = good, bad.counter = 64;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "no index");
    bad = good, bad.event = VPMU_EVENTS;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "no event");
    bad = good, bad.event = VPMU_EVENT_BRANCH_MISSES;
    cr_expect_eq(program_as(bad), STATUS_NOT_SUPPORTED, "not available");
    bad = good, bad.flags = 0;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "counts nothing");
    bad = good, bad.flags = 4;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "no such flag");
    bad = good, bad.reserved = 1;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "reserved");
    bad = good, bad.config = 1;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "a select without RAW");
    bad = good, bad.event = VPMU_EVENT_RAW, bad.config = PMU_ENABLE;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "a bit that is not the caller's");
    bad = good, bad.period = VPMU_MAX_PERIOD + 1ull;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "too long a period");
    bad = good, bad.counter = 33;
    cr_expect_eq(program_as(bad), STATUS_INVALID_PARAMETER, "not this fixed counter's event");
    cr_expect_eq(start(1), STATUS_INVALID_PARAMETER, "not programmed");

    cr_expect_eq(program_as(good), STATUS_SUCCESS);
    cr_expect_eq(start(1), STATUS_SUCCESS);
    cr_expect_eq(start(1), STATUS_INVALID_DEVICE_STATE, "started twice");
    cr_expect_eq(program_as(good), STATUS_INVALID_DEVICE_STATE, "running");
    cr_expect_eq(stop(3), STATUS_INVALID_PARAMETER, "one of them does not run");
    cr_expect_eq(stop(1), STATUS_SUCCESS);
}

/* The overflow handler counts too where the kernel does: it must not fill a period. */
Test(driver_counters, least_period)
{
    static const struct {
        uint32_t flags;
        uint64_t period;
        NTSTATUS status;
    } row[] = {
        {VPMU_COUNT_USER, 1, STATUS_SUCCESS},
        {VPMU_COUNT_KERNEL, 0, STATUS_SUCCESS},
        {VPMU_COUNT_KERNEL, 1, STATUS_INVALID_PARAMETER},
        {VPMU_COUNT_KERNEL, VPMU_MIN_KERNEL_PERIOD - 1, STATUS_INVALID_PARAMETER},
        {VPMU_COUNT_KERNEL, VPMU_MIN_KERNEL_PERIOD, STATUS_SUCCESS},
        {VPMU_COUNT_USER | VPMU_COUNT_KERNEL, VPMU_MIN_KERNEL_PERIOD - 1, STATUS_INVALID_PARAMETER},
        {VPMU_COUNT_USER | VPMU_COUNT_KERNEL, VPMU_MAX_PERIOD, STATUS_SUCCESS},
    };
    static const uint32_t counter[] = {0, 32};
    struct vpmu_grant grant;

    cr_assert_eq(acquire(1ull << 32 | 1, 0, &grant), STATUS_SUCCESS);
    for (uint32_t c = 0; c < 2; c++) {
        for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
            struct vpmu_program_request request = {.counter = counter[c],
                                                   .event = VPMU_EVENT_INSTRUCTIONS};

            request.flags = VPMU_COUNT_USER, request.period = 77;
            cr_assert_eq(program_as(request), STATUS_SUCCESS);
            request.flags = row[i].flags, request.period = row[i].period;
            cr_expect_eq(program_as(request), row[i].status, "counter %u, row %u", counter[c], i);
            cr_expect_eq(read_processor(0).values[c].period, row[i].status ? 77 : row[i].period,
                         "counter %u, row %u", counter[c], i);
        }
    }
}

Test(driver_counters, counts_on_each_processor)
{
    struct vpmu_grant grant;
    uint64_t both = 1ull << 2 | 1ull << 32;

    fake.taken = 3;
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(2, VPMU_EVENT_BRANCHES, 0), STATUS_SUCCESS);
    cr_assert_eq(program(32, VPMU_EVENT_INSTRUCTIONS, 0), STATUS_SUCCESS);
    fake_count(0, 1000);
    cr_assert_eq(start(both), STATUS_SUCCESS);
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++)
        fake_count(p, 10 + p);
    cr_assert_eq(stop(both), STATUS_SUCCESS);
    fake_count(1, 1000);
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++) {
        struct vpmu_reading reading = read_processor(p);
        cr_assert_eq(reading.count, 5);
        cr_expect_eq(reading.values[0].counter, 2);
        cr_expect_eq(reading.values[0].event, VPMU_EVENT_BRANCHES);
        cr_expect_eq(reading.values[0].value, 10 + p);
        cr_expect_eq(reading.values[1].event, VPMU_NONE);
        cr_expect_eq(reading.values[2].counter, 32);
        cr_expect_eq(reading.values[2].value, 10 + p);
    }
    cr_expect_eq(start(both), STATUS_SUCCESS, "it goes on from where it stood");
    fake_count(0, 5);
    cr_expect_eq(read_processor(0).values[0].value, 15);
}

/* Another driver's fields of a shared register, and its counters, stay as they are. */
Test(driver_counters, leaves_others_alone)
{
    struct vpmu_grant grant;

    fake.taken = 1ull << 33 | 1;
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++) {
        *fake_msr(p, 0x38d) = 0x0b0;
        *fake_msr(p, 0x38f) = 0x20000000full;
        *fake_msr(p, 0x186) = 0x5300c5;
    }
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(32, VPMU_EVENT_INSTRUCTIONS, 0), STATUS_SUCCESS);
    cr_assert_eq(start(1ull << 32), STATUS_SUCCESS);
    cr_expect_eq(*fake_msr(3, 0x38d), 0x0b2);
    cr_expect_eq(*fake_msr(3, 0x38f), 0x30000000full);
    cr_assert_eq(release(), STATUS_SUCCESS);
    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++) {
        cr_expect_eq(*fake_msr(p, 0x38d), 0x0b0);
        cr_expect_eq(*fake_msr(p, 0x38f), 0x20000000full);
        cr_expect_eq(*fake_msr(p, 0x186), 0x5300c5);
    }
}

Test(driver_counters, a_client_that_goes_gives_everything_back)
{
    struct vpmu_grant grant;
    struct vpmu_profile_request request = {
        .header = HEADER(request), .counters = 3, .flags = VPMU_PROFILE_USER_RDPMC};
    struct vpmu_profile profile;

    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(0, VPMU_EVENT_INSTRUCTIONS, 50), STATUS_SUCCESS);
    cr_assert_eq(program(34, VPMU_EVENT_REF_CYCLES, 0), STATUS_SUCCESS);
    cr_assert_eq(start(1ull << 34 | 1), STATUS_SUCCESS);
    cr_assert_eq(fake_request(&me, VPMU_IOCTL_PROFILE, &request, sizeof(request), &profile,
                              sizeof(profile), NULL),
                 STATUS_SUCCESS);
    fake_count(2, 70);
    vpmu_client_gone(&driver, &you);
    cr_expect_eq(fake_live(), 1, "somebody else went");
    vpmu_client_gone(&driver, &me);
    cr_expect_eq(fake_live(), 0);
    cr_expect(fake_is_quiet());
    cr_expect_eq(fake.standing_count, 0);
    vpmu_client_gone(&driver, &me);
    cr_expect_eq(fake.bad_frees, 0);
}

Test(driver_counters, sampling_counts_every_event)
{
    struct vpmu_grant grant;
    struct vpmu_reading reading;

    cr_assert_eq(acquire(0x5, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(2, VPMU_EVENT_INSTRUCTIONS, 100), STATUS_SUCCESS);
    cr_assert_eq(start(4), STATUS_SUCCESS);
    fake_count(1, 99);
    cr_expect_eq(read_processor(1).pmis, 0);
    cr_expect_eq(read_processor(1).values[1].value, 99);
    fake_count(1, 1); /* the 100th: the PMI comes */
    fake_count(1, 130);
    fake_count(1, 370); /* the handler comes late by several periods */
    reading = read_processor(1);
    cr_expect_eq(reading.pmis, 3);
    cr_expect_eq(reading.foreign_pmis, 0);
    cr_expect_eq(reading.overflow_bits, 4);
    cr_expect_eq(reading.pmi_irql, PROFILE_LEVEL);
    cr_expect_eq(reading.values[1].overflows, 6);
    cr_expect_eq(reading.values[1].value, 600);
    cr_expect_eq(read_processor(0).pmis, 0);
}

Test(driver_counters, every_beginning_is_at_zero)
{
    struct vpmu_grant grant;
    struct vpmu_verify_request request = {.header = HEADER(request), .iterations = 10};
    struct vpmu_verification verification;

    cr_assert_eq(acquire(1, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(0, VPMU_EVENT_INSTRUCTIONS, 100), STATUS_SUCCESS);
    cr_assert_eq(start(1), STATUS_SUCCESS);
    fake_count(0, 250);
    cr_assert_eq(stop(1), STATUS_SUCCESS);
    cr_assert_eq(program(0, VPMU_EVENT_BRANCHES, 50), STATUS_SUCCESS);
    cr_expect_eq(read_processor(0).values[0].overflows, 0, "PROGRAM");
    cr_expect_eq(read_processor(0).values[0].value, 0);

    cr_assert_eq(start(1), STATUS_SUCCESS);
    fake_count(0, 120);
    cr_assert_eq(stop(1), STATUS_SUCCESS);
    cr_assert_eq(fake_request(&me, VPMU_IOCTL_VERIFY, &request, sizeof(request), &verification,
                              sizeof(verification), NULL),
                 STATUS_SUCCESS);
    cr_expect_eq(read_processor(0).values[0].value, 0, "VERIFY");
    cr_assert_eq(start(1), STATUS_SUCCESS);
    fake_count(0, 60);
    cr_expect_eq(read_processor(0).values[0].overflows, 1, "it counts on as it was programmed");
    cr_expect_eq(read_processor(0).values[0].value, 60);

    cr_assert_eq(release(), STATUS_SUCCESS);
    overflow_handler(1, NULL);
    cr_assert_eq(acquire(1, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(read_processor(0).pmis, 0, "ACQUIRE");
    cr_expect_eq(read_processor(0).values[0].event, VPMU_NONE);
}

Test(driver_counters, a_late_overflow_after_release_is_nobodys)
{
    struct vpmu_grant grant;

    cr_assert_eq(acquire(1, 0, &grant), STATUS_SUCCESS);
    overflow_handler(1, driver.set);
    cr_assert_eq(release(), STATUS_SUCCESS);
    overflow_handler(1, (HANDLE)(uintptr_t)1);
    cr_expect_eq(fake.per_processor[0].overflows.calls, 1);
}

Test(driver_counters, an_overflow_that_is_not_ours_is_counted_apart)
{
    struct vpmu_grant grant;

    cr_assert_eq(acquire(0x1, 0, &grant), STATUS_SUCCESS);
    cr_assert_eq(program(0, VPMU_EVENT_INSTRUCTIONS, 100), STATUS_SUCCESS);
    cr_assert_eq(start(1), STATUS_SUCCESS);
    overflow_handler(1, (HANDLE)(uintptr_t)7);
    cr_expect_eq(read_processor(0).foreign_pmis, 1);
    cr_expect_eq(read_processor(0).values[0].overflows, 0);
    overflow_handler(1, driver.set); /* a spurious one: the counter has not overflowed */
    cr_expect_eq(read_processor(0).pmis, 2);
    cr_expect_eq(read_processor(0).values[0].overflows, 0);
}

Test(driver_counters, a_register_that_faults_is_an_error)
{
    struct vpmu_grant grant;

    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    for (uint32_t i = 0; i < fake.msrs; i++) {
        if (fake.msr[3][i].number == 0x187)
            fake.msr[3][i].number = 0;
    }
    cr_expect_eq(program(1, VPMU_EVENT_INSTRUCTIONS, 0), STATUS_IO_DEVICE_ERROR);
    cr_expect_eq(start(2), STATUS_IO_DEVICE_ERROR);
    cr_expect_eq(driver.running, 0);
    cr_expect_eq(*fake_msr(0, 0x187), 0, "what had started is stopped");
}

Test(driver_counters, profiling_is_emptied_set_and_asked_for)
{
    struct vpmu_grant grant;
    struct vpmu_profile_request request = {
        .header = HEADER(request),
        .counters = 1ull << 1 | 1ull << 33,
        .flags = VPMU_PROFILE_USER_RDPMC,
    };
    struct vpmu_profile profile;

#define PROFILE()                                                                                  \
    fake_request(&me, VPMU_IOCTL_PROFILE, &request, sizeof(request), &profile, sizeof(profile),    \
                 NULL)
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    fake.standing_count = 2; /* left by somebody */
    cr_assert_eq(PROFILE(), STATUS_SUCCESS);
    cr_expect_eq(profile.count, 2);
    cr_expect_eq(profile.selectors[0], 1);
    cr_expect_eq(profile.selectors[1], 0x40000001);
    cr_expect(fake.user_rdpmc[0] && fake.user_rdpmc[3]);

    request.flags = 0;
    cr_assert_eq(PROFILE(), STATUS_SUCCESS);
    cr_expect(!fake.user_rdpmc[0] && !fake.user_rdpmc[3]);
    fake.set_status = STATUS_NOT_IMPLEMENTED;
    cr_expect_eq(PROFILE(), STATUS_NOT_IMPLEMENTED);
    fake.set_status = 0;
    fake.set_forgets = true;
    cr_expect_eq(PROFILE(), STATUS_UNSUCCESSFUL, "success, but the set does not stand");
    fake.set_forgets = false;
    request.counters = 0;
    cr_expect_eq(PROFILE(), STATUS_SUCCESS);
    cr_expect_eq(fake.standing_count, 0);
    request.counters = 1ull << 5;
    cr_expect_eq(PROFILE(), STATUS_INVALID_PARAMETER, "not held");
}

Test(driver_counters, amd)
{
    struct vpmu_grant grant;

    fake_amd();
    cr_assert_eq(acquire(0, 0, &grant), STATUS_SUCCESS);
    cr_expect_eq(grant.granted, 0x3f);
    cr_expect_eq(program(5, VPMU_EVENT_REF_CYCLES, 0), STATUS_NOT_SUPPORTED);
    cr_assert_eq(program(5, VPMU_EVENT_BRANCHES, 1000), STATUS_SUCCESS);
    cr_expect_eq(*fake_msr(2, 0xc001020a), 0x1100c2);
    cr_expect_eq(*fake_msr(2, 0xc001020b), 0x1000000000000ull - 1000);
    cr_assert_eq(start(1 << 5), STATUS_SUCCESS);
    cr_expect_eq(*fake_msr(2, 0xc001020a), 0x5100c2);
    fake_count(2, 2500);
    cr_expect_eq(read_processor(2).values[5].value, 2500);
    cr_expect_eq(read_processor(2).values[5].overflows, 2);
    cr_assert_eq(release(), STATUS_SUCCESS);
    cr_expect(fake_is_quiet());
}
