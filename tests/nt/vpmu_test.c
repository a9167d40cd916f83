/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys counts, samples, profiles, shares and fails as its contract says. */
#include "check.h"
#include "drivers/lib/testdriver.h"
#include "hal.h"
#include "io.h"
#include "libc.h"
#include "multiboot.h"
#include "pool.h"
#include "process.h"
#include "profiling_test.h"
#include "scenarios.h"
#include "user_work.h"
#include "vpmu_user.h"

#define ROUNDS 5000u

/* ---- What the driver says about the system ---- */

static void check_info(HANDLE vpmu)
{
    struct vpmu_info info = {0};

    vpmu_status_is(vpmu_request(vpmu, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info)),
                   STATUS_SUCCESS, "info");
    check_equal(info.header.version, VPMU_IOCTL_VERSION, "vpmu: info: version");
    check_equal(info.gp_counters, hal_pmu.gp, "vpmu: info: GP counters");
    check_equal(info.fixed_counters, hal_pmu.fixed, "vpmu: info: fixed counters");
    check_equal(info.gp_width, hal_pmu.gp ? hal_pmu.gp_width : 0, "vpmu: info: width");
    check_equal(info.processors, processor_total(), "vpmu: info: processors");
    check_equal(info.os_build, boot_option_number("build", 18362), "vpmu: info: build");
}

/* ---- Verification ---- */

static void report_check(const struct vpmu_check *c, unsigned processor, uint32_t remarks)
{
    if (c->flags & VPMU_CHECK_EXACT)
        check_equal(c->counted, c->expected, "vpmu: processor %u, counter %u, event %u: count",
                    processor, c->counter, c->event);
    check_equal(c->state, VPMU_COUNTER_BACKED, "vpmu: processor %u, counter %u, event %u: state",
                processor, c->counter, c->event);
    check_equal(c->rdpmc, c->counted, "vpmu: processor %u, counter %u, event %u: RDPMC", processor,
                c->counter, c->event);
    check_equal(c->flags & ~(uint32_t)VPMU_CHECK_EXACT, remarks,
                "vpmu: processor %u, counter %u, event %u: remarks", processor, c->counter,
                c->event);
}

/* flags: VPMU_VERIFY_...; remarks: the flags that each check of a known count shall carry. */
static void verify_all(HANDLE vpmu, uint32_t flags, uint32_t remarks)
{
    static struct vpmu_verification v;

    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_verify(vpmu, p, flags, &v), STATUS_SUCCESS, "verify");
        check_equal(v.not_backed, 0, "vpmu: processor %u: counters that are not backed", p);
        for (unsigned i = 0; i < v.count; i++)
            report_check(&v.checks[i], p, v.checks[i].flags & VPMU_CHECK_EXACT ? remarks : 0);
    }
}

/* ---- Counts of a user program's work ---- */

/* GP counters take turns; a fixed counter counts its own event. Cycles are instructions here. */
static uint32_t event_for(unsigned counter)
{
    static const uint32_t fixed[] = {VPMU_EVENT_INSTRUCTIONS, VPMU_EVENT_CYCLES,
                                     VPMU_EVENT_REF_CYCLES, VPMU_EVENT_SLOTS};

    if (counter >= VPMU_FIRST_FIXED)
        return fixed[counter - VPMU_FIRST_FIXED];
    return counter % 2 ? VPMU_EVENT_BRANCHES : VPMU_EVENT_INSTRUCTIONS;
}

static bool known_count(uint32_t event, uint64_t *count)
{
    *count = event == VPMU_EVENT_BRANCHES ? USER_BRANCHES(ROUNDS) : USER_INSTRUCTIONS(ROUNDS);
    return event == VPMU_EVENT_BRANCHES || event == VPMU_EVENT_INSTRUCTIONS ||
           event == VPMU_EVENT_CYCLES;
}

static uint64_t program_all(HANDLE vpmu, uint64_t counters)
{
    for (unsigned i = 0; i < 64; i++)
        if (counters >> i & 1)
            vpmu_status_is(vpmu_program(vpmu, i, event_for(i), VPMU_COUNT_USER, 0), STATUS_SUCCESS,
                           "program");
    return counters;
}

static void check_values(HANDLE vpmu, unsigned processor, bool worked)
{
    static struct vpmu_reading reading;
    uint64_t count;

    vpmu_status_is(vpmu_read(vpmu, processor, &reading), STATUS_SUCCESS, "read");
    for (unsigned i = 0; i < reading.count; i++) {
        const struct vpmu_value *v = &reading.values[i];

        if (known_count(v->event, &count))
            check_equal(v->value, worked ? count : 0, "vpmu: processor %u, counter %u, %s",
                        processor, v->counter, worked ? "known work" : "no work there");
    }
}

/* The work is done on one processor after the other; each sees its own alone. */
static void count_all(HANDLE vpmu, uint64_t counters)
{
    for (unsigned p = 0; p < processor_total(); p++) {
        program_all(vpmu, counters);
        thread_set_affinity(1ull << p);
        vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_START, counters), STATUS_SUCCESS,
                       "start");
        thread_run_user(user_work, ROUNDS);
        vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_STOP, counters), STATUS_SUCCESS, "stop");
        thread_set_affinity(processor_mask());
        for (unsigned other = 0; other < processor_total(); other++)
            check_values(vpmu, other, other == p);
    }
}

/* ---- Sampling ---- */

enum { PERIOD = 1000 };

static void sample_on(HANDLE vpmu, uint32_t counter, unsigned processor, uint64_t period)
{
    static struct vpmu_reading before, reading;
    uint64_t bit = 1ull << counter;

    vpmu_status_is(vpmu_program(vpmu, counter, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, period),
                   STATUS_SUCCESS, "program a period");
    vpmu_status_is(vpmu_read(vpmu, processor, &before), STATUS_SUCCESS, "read");
    thread_set_affinity(1ull << processor);
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_START, bit), STATUS_SUCCESS, "start");
    thread_run_user(user_work, ROUNDS);
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_STOP, bit), STATUS_SUCCESS, "stop");
    thread_set_affinity(processor_mask());
    vpmu_status_is(vpmu_read(vpmu, processor, &reading), STATUS_SUCCESS, "read");
    check_equal(reading.pmis - before.pmis, USER_INSTRUCTIONS(ROUNDS) / period,
                "vpmu: processor %u, counter %u: calls of the overflow handler", processor,
                counter);
    check_equal(reading.foreign_pmis, 0, "vpmu: processor %u: calls with a foreign handle",
                processor);
    check_equal(reading.overflow_bits, bit, "vpmu: processor %u: OverflowBits", processor);
    check_equal(reading.pmi_irql, PROFILE_LEVEL, "vpmu: processor %u: IRQL of the call", processor);
    for (unsigned i = 0; i < reading.count; i++)
        if (reading.values[i].counter == counter)
            check_equal(reading.values[i].value, USER_INSTRUCTIONS(ROUNDS),
                        "vpmu: processor %u, counter %u: count while sampling", processor, counter);
}

static void sample_all(HANDLE vpmu, uint64_t counters)
{
    unsigned first = (unsigned)__builtin_ctzll(counters);

    for (unsigned p = 0; p < processor_total(); p++) {
        sample_on(vpmu, first, p, PERIOD);
        if (counters >> VPMU_FIRST_FIXED & 1)
            sample_on(vpmu, VPMU_FIRST_FIXED, p, PERIOD);
    }
}

/* ---- Scenario: counts, exact, on every processor ---- */

static void without_privilege(void *argument)
{
    HANDLE vpmu;

    (void)argument;
    process_current()->may_profile = false;
    vpmu_status_is(user_open("vpmu", &vpmu), STATUS_PRIVILEGE_NOT_HELD,
                   "open without the privilege");
}

/* Lists, and with them the overflow interrupt, are honoured from Windows 10 1903 on. */
static bool lists_honoured(void)
{
    return boot_option_number("build", 18362) >= 18362;
}

static void counts_program(void *argument)
{
    HANDLE vpmu = vpmu_open(), second = vpmu_open();
    bool lists = lists_honoured();
    struct vpmu_grant grant;
    struct vpmu_info info;

    (void)argument;
    check_info(vpmu);
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    check_equal(grant.granted, vpmu_all_counters(), "vpmu: granted counters");
    check_equal(grant.flags, lists ? VPMU_GRANT_OVERFLOW : VPMU_GRANT_WHOLE,
                "vpmu: by a list with the overflow interrupt, or the whole PMU before 1903");
    check_equal(hal_leases(), 1, "vpmu: one allocation holds them");
    vpmu_status_is(vpmu_acquire(second, 0, 0, &grant), STATUS_DEVICE_BUSY,
                   "acquire by a second client");
    vpmu_request(second, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info));
    check_equal(info.owner, VPMU_OWNER_ANOTHER, "vpmu: the second client sees an owner");
    verify_all(vpmu, 0, 0);
    if (lists)
        verify_all(vpmu, VPMU_VERIFY_INTERRUPT, VPMU_CHECK_INTERRUPT);
    count_all(vpmu, vpmu_all_counters());
    if (lists)
        sample_all(vpmu, vpmu_all_counters());
    else
        vpmu_status_is(vpmu_program(vpmu, 0, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, PERIOD),
                       STATUS_NOT_SUPPORTED, "program a period without the overflow interrupt");
    vpmu_status_is(user_close(second), STATUS_SUCCESS, "close of the second client");
    check_equal(hal_leases(), 1, "vpmu: the first still holds");
    vpmu_status_is(vpmu_request(vpmu, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0), STATUS_SUCCESS,
                   "release");
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the release");
    vpmu_status_is(vpmu_acquire(vpmu, 2, 0, &grant), lists ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED,
                   "acquire one by name");
    if (lists)
        check_equal(grant.granted, 2, "vpmu: that one");
    /* The process dies with it. */
}

void vpmu_counts(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    check(hal_pmu.version >= 2, "the machine has a PMU");
    run_as_process(without_privilege, NULL);
    run_as_process(counts_program, NULL);
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the death of the process");
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    driver_unload(driver);
}

/* ---- Scenario: IA32_PERF_GLOBAL_CTRL is clear, so that no GP counter counts by itself ---- */

enum { MSR_EVNTSEL0 = 0x186, MSR_GLOBAL_CTRL = 0x38f };

/* The driver opens the gate of a GP counter at its first check; that of a fixed one is its own. */
static uint32_t gate_remark(const struct vpmu_verification *v, unsigned i)
{
    bool first = i == 0 || v->checks[i - 1].counter != v->checks[i].counter;

    return first && v->checks[i].counter < VPMU_FIRST_FIXED ? VPMU_CHECK_GLOBAL_CLEAR : 0;
}

static void cleared_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    for (unsigned p = 0; p < processor_total(); p++) {
        thread_set_affinity(1ull << p);
        wrmsr(MSR_GLOBAL_CTRL, 0);
        thread_set_affinity(processor_mask());
        vpmu_status_is(vpmu_verify(vpmu, p, 0, &v), STATUS_SUCCESS, "verify");
        check_equal(v.global_ctrl, 0, "vpmu: processor %u: GLOBAL_CTRL as found", p);
        for (unsigned i = 0; i < v.count; i++)
            report_check(&v.checks[i], p, gate_remark(&v, i));
    }
}

void vpmu_cleared(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    run_as_process(cleared_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: a grant with nothing behind it ---- */

static void off_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;
    unsigned absent = 0;

    (void)argument;
    check_info(vpmu);
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS,
                   "acquire: HalAllocateHardwareCounters grants what is not there");
    check_equal(grant.flags, VPMU_GRANT_WHOLE, "vpmu: the whole PMU");
    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_verify(vpmu, p, 0, &v), STATUS_SUCCESS, "verify");
        check(v.count > 0, "vpmu: processor %u: something was verified", p);
        check_equal(v.not_backed, grant.granted, "vpmu: processor %u: no counter is backed", p);
        for (unsigned i = 0; i < v.count; i++)
            absent += v.checks[i].state == VPMU_COUNTER_ABSENT;
        check_equal(absent, v.count, "vpmu: processor %u: and each is called absent", p);
        absent = 0;
    }
}

void vpmu_off(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    check(hal_pmu.version == 0, "the machine has no PMU");
    run_as_process(off_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: another driver holds and samples counters ---- */

static uint64_t left_beside_holder(void)
{
    return vpmu_all_counters() & ~1ull & ~(1ull << (hal_pmu.gp - 1));
}

static void beside_program(void *argument)
{
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;
    NTSTATUS refusal;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire what is left");
    check_equal(grant.granted, left_beside_holder(), "vpmu: granted counters");
    check_equal((ULONG)grant.probe_status[0], (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "vpmu: the first GP counter is held");
    verify_all(vpmu, 0, 0);
    count_all(vpmu, left_beside_holder());
    sample_all(vpmu, left_beside_holder());
    vpmu_status_is(vpmu_request(vpmu, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0), STATUS_SUCCESS,
                   "release");
    refusal = vpmu_acquire(vpmu, 1, 0, &grant);
    vpmu_status_is(refusal, STATUS_INSUFFICIENT_RESOURCES, "acquire the held one by name");
    vpmu_status_is(vpmu_acquire(vpmu, 0, VPMU_ACQUIRE_WHOLE, &grant), STATUS_INSUFFICIENT_RESOURCES,
                   "acquire the whole PMU");
}

void vpmu_beside_others(void)
{
    struct driver *holder = scenario_load("contract.sys");
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver || !holder)
        return;
    scenario_section("contract", CONTRACT_HOLD);
    run_as_process(beside_program, NULL);
    scenario_section("contract", CONTRACT_LET_GO);
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    driver_unload(driver);
    driver_unload(holder);
}

/* ---- Scenario: the shortest periods ---- */

enum { KERNEL_PERIODS = 20 };

static struct vpmu_value value_of(HANDLE vpmu, unsigned processor, uint32_t counter)
{
    static struct vpmu_reading reading;

    vpmu_status_is(vpmu_read(vpmu, processor, &reading), STATUS_SUCCESS, "read");
    for (unsigned i = 0; i < reading.count; i++)
        if (reading.values[i].counter == counter)
            return reading.values[i];
    check(false, "vpmu: counter %u is in the reading", counter);
    return (struct vpmu_value){0};
}

/* A refused program leaves the one that stands. */
static void refuse_period(HANDLE vpmu, uint32_t counter, uint32_t flags, uint64_t period)
{
    struct vpmu_value value;

    vpmu_status_is(vpmu_program(vpmu, counter, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, PERIOD),
                   STATUS_SUCCESS, "program a period");
    vpmu_status_is(vpmu_program(vpmu, counter, VPMU_EVENT_INSTRUCTIONS, flags, period),
                   STATUS_INVALID_PARAMETER, "program a period of kernel mode below the least");
    value = value_of(vpmu, 0, counter);
    check_equal(value.period, PERIOD, "vpmu: counter %u: the earlier period stands", counter);
    check_equal(value.event, VPMU_EVENT_INSTRUCTIONS, "vpmu: counter %u: so does its event",
                counter);
}

/* The handler counts itself here, and yet the thread goes on to the end of its work. */
static void sample_kernel_on(HANDLE vpmu, uint32_t counter, unsigned processor)
{
    uint64_t bit = 1ull << counter;
    struct vpmu_value value;

    vpmu_status_is(vpmu_program(vpmu, counter, VPMU_EVENT_INSTRUCTIONS,
                                VPMU_COUNT_USER | VPMU_COUNT_KERNEL, VPMU_MIN_KERNEL_PERIOD),
                   STATUS_SUCCESS, "program the least period of kernel mode");
    thread_set_affinity(1ull << processor);
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_START, bit), STATUS_SUCCESS, "start");
    for (unsigned left = KERNEL_PERIODS * VPMU_MIN_KERNEL_PERIOD; left; left--)
        __asm__ volatile(""); /* at least one instruction */
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_STOP, bit), STATUS_SUCCESS, "stop");
    thread_set_affinity(processor_mask());
    value = value_of(vpmu, processor, counter);
    check(value.overflows >= KERNEL_PERIODS, "vpmu: processor %u, counter %u: %u periods or more",
          processor, counter, KERNEL_PERIODS);
    check_equal(value.value / VPMU_MIN_KERNEL_PERIOD, value.overflows,
                "vpmu: processor %u, counter %u: the count has as many periods", processor,
                counter);
}

static void periods_program(void *argument)
{
    static const uint32_t counters[] = {0, VPMU_FIRST_FIXED};
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    for (unsigned i = 0; i < ARRAY_SIZE(counters); i++) {
        refuse_period(vpmu, counters[i], VPMU_COUNT_KERNEL, VPMU_MIN_KERNEL_PERIOD - 1);
        refuse_period(vpmu, counters[i], VPMU_COUNT_USER | VPMU_COUNT_KERNEL, 1);
        for (unsigned p = 0; p < processor_total(); p++) {
            sample_kernel_on(vpmu, counters[i], p);
            sample_on(vpmu, counters[i], p, 1); /* user mode alone: at each instruction */
        }
    }
}

void vpmu_periods(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    run_as_process(periods_program, NULL);
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    driver_unload(driver);
}

/* ---- Scenario: thread profiling ---- */

static void profiling_program(void *argument)
{
    struct vpmu_profile_request in = {HEADER(vpmu_profile_request), 3, VPMU_PROFILE_USER_RDPMC, 0};
    HANDLE vpmu = vpmu_open();
    struct vpmu_profile profile;
    struct vpmu_grant grant;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 3, 0, &grant), STATUS_SUCCESS, "acquire two");
    program_all(vpmu, 3);
    vpmu_status_is(
        vpmu_request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &profile, sizeof(profile)),
        STATUS_SUCCESS, "profile");
    check_equal(profile.count, 2, "vpmu: configured counters");
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_START, 3), STATUS_SUCCESS, "start");
    profiling_test_threads();
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_STOP, 3), STATUS_SUCCESS, "stop");
    in.counters = in.flags = 0;
    vpmu_status_is(
        vpmu_request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &profile, sizeof(profile)),
        STATUS_SUCCESS, "profile nothing");
    check_equal(profile.count, 0, "vpmu: configured counters afterwards");
}

void vpmu_profiling(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    run_as_process(profiling_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: loading while memory runs out, loading twice, dying at each step ---- */

static void dies_holding(void *argument)
{
    struct vpmu_profile_request in = {HEADER(vpmu_profile_request), 3, VPMU_PROFILE_USER_RDPMC, 0};
    struct vpmu_profile profile;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    program_all(vpmu, vpmu_all_counters());
    vpmu_status_is(
        vpmu_request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &profile, sizeof(profile)),
        STATUS_SUCCESS, "profile");
    vpmu_status_is(vpmu_start_or_stop(vpmu, VPMU_IOCTL_START, vpmu_all_counters()), STATUS_SUCCESS,
                   "start");
}

/* What the dead process left in the registers and in the kernel. */
static void check_nothing_left(void)
{
    ULONG configured = 1;

    check_equal(hal_leases(), 0, "vpmu: after a death while counting: allocations");
    KeQueryHardwareCounterConfiguration(NULL, 0, &configured);
    check_equal(configured, 0, "vpmu: after a death while counting: profiling configuration");
    for (unsigned p = 0; p < processor_total(); p++) {
        uint64_t selects = 0;

        thread_set_affinity(1ull << p);
        for (unsigned i = 0; i < hal_pmu.gp; i++)
            selects |= rdmsr(MSR_EVNTSEL0 + i);
        check_equal(selects, 0, "vpmu: processor %u: event selects after a death", p);
        check_equal(read_cr4() & CR4_PCE, 0, "vpmu: processor %u: CR4.PCE after a death", p);
    }
    thread_set_affinity(processor_mask());
}

void vpmu_failures(void)
{
    struct driver *driver, *twin;
    NTSTATUS status;

    for (unsigned n = 0;; n++) {
        bool failed;

        pool_fail_after(n);
        driver = driver_load("vpmu.sys", &status, NULL);
        failed = pool_failed();
        if (driver)
            driver_unload(driver);
        if (!failed)
            break;
        check_equal((ULONG)status, (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                    "vpmu.sys: allocation %u of pool fails: DriverEntry", n);
    }
    driver = scenario_load("vpmu.sys");
    if (!driver)
        return;
    twin = driver_load("vpmu.sys", &status, NULL);
    check_equal((ULONG)status, (ULONG)STATUS_OBJECT_NAME_COLLISION, "vpmu.sys: loaded twice");
    check(!twin, "vpmu.sys: the second did not stay");
    for (unsigned i = 0; i < 3; i++) {
        run_as_process(dies_holding, NULL);
        check_nothing_left();
    }
    driver_unload(driver);
}
