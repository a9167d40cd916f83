/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys, seen by user programs through its ioctl contract (vpmu_ioctl.h). */
#include "check.h"
#include "clients/client_ioctl.h"
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
#include "vpmu_ioctl.h"

#define HEADER(type) {sizeof(struct type), VPMU_IOCTL_VERSION}
#define ITERATIONS 1000u
#define ROUNDS 5000u

static unsigned processor_total(void)
{
    return KeQueryActiveProcessorCountEx(0);
}

static uint64_t all_counters(void)
{
    return ((1ull << hal_pmu.gp) - 1) | ((1ull << hal_pmu.fixed) - 1) << VPMU_FIRST_FIXED;
}

static NTSTATUS request(HANDLE vpmu, ULONG code, const void *in, ULONG in_size, void *out,
                        ULONG out_size)
{
    ULONG returned;

    return user_ioctl(vpmu, code, in, in_size, out, out_size, &returned);
}

static void status_is(NTSTATUS got, NTSTATUS want, const char *name)
{
    check_equal((ULONG)got, (ULONG)want, "vpmu: %s", name);
}

static HANDLE open_vpmu(void)
{
    HANDLE vpmu;

    status_is(user_open("vpmu", &vpmu), STATUS_SUCCESS, "open");
    return vpmu;
}

static NTSTATUS acquire(HANDLE vpmu, uint64_t counters, uint32_t flags, struct vpmu_grant *grant)
{
    struct vpmu_acquire_request in = {HEADER(vpmu_acquire_request), counters, flags, 0};

    return request(vpmu, VPMU_IOCTL_ACQUIRE, &in, sizeof(in), grant, sizeof(*grant));
}

static NTSTATUS program(HANDLE vpmu, uint32_t counter, uint32_t event, uint32_t flags,
                        uint64_t period)
{
    struct vpmu_program_request in = {
        .header = HEADER(vpmu_program_request),
        .counter = counter,
        .event = event,
        .flags = flags,
        .period = period,
    };

    return request(vpmu, VPMU_IOCTL_PROGRAM, &in, sizeof(in), NULL, 0);
}

static NTSTATUS start_or_stop(HANDLE vpmu, ULONG code, uint64_t counters)
{
    struct vpmu_counters_request in = {HEADER(vpmu_counters_request), counters};

    return request(vpmu, code, &in, sizeof(in), NULL, 0);
}

static NTSTATUS read_processor(HANDLE vpmu, uint32_t processor, struct vpmu_reading *reading)
{
    struct vpmu_processor_request in = {HEADER(vpmu_processor_request), processor, 0};

    return request(vpmu, VPMU_IOCTL_READ, &in, sizeof(in), reading, sizeof(*reading));
}

static NTSTATUS verify(HANDLE vpmu, uint32_t processor, struct vpmu_verification *out)
{
    struct vpmu_verify_request in = {HEADER(vpmu_verify_request), processor, ITERATIONS};

    return request(vpmu, VPMU_IOCTL_VERIFY, &in, sizeof(in), out, sizeof(*out));
}

/* Runs program in a process of its own, which dies at its end, open handles or not. */
static void as_process(void (*start)(void *), void *argument)
{
    process_run(process_create(), start, argument, true);
}

/* ---- What the driver says about the system ---- */

static void check_info(HANDLE vpmu)
{
    struct vpmu_info info = {0};

    status_is(request(vpmu, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info)), STATUS_SUCCESS, "info");
    check_equal(info.header.version, VPMU_IOCTL_VERSION, "vpmu: info: version");
    check_equal(info.gp_counters, hal_pmu.gp, "vpmu: info: GP counters");
    check_equal(info.fixed_counters, hal_pmu.fixed, "vpmu: info: fixed counters");
    check_equal(info.gp_width, hal_pmu.gp ? hal_pmu.gp_width : 0, "vpmu: info: width");
    check_equal(info.processors, processor_total(), "vpmu: info: processors");
    check_equal(info.os_build, boot_option_number("build", 18362), "vpmu: info: build");
}

/* ---- Verification ---- */

static void report_check(const struct vpmu_check *c, unsigned processor)
{
    if (c->flags & VPMU_CHECK_EXACT)
        check_equal(c->counted, c->expected, "vpmu: processor %u, counter %u, event %u: count",
                    processor, c->counter, c->event);
    check_equal(c->state, VPMU_COUNTER_BACKED, "vpmu: processor %u, counter %u, event %u: state",
                processor, c->counter, c->event);
    check_equal(c->flags & ~(uint32_t)VPMU_CHECK_EXACT, 0,
                "vpmu: processor %u, counter %u, event %u: remarks", processor, c->counter,
                c->event);
}

static void verify_all(HANDLE vpmu)
{
    static struct vpmu_verification v;

    for (unsigned p = 0; p < processor_total(); p++) {
        status_is(verify(vpmu, p, &v), STATUS_SUCCESS, "verify");
        check_equal(v.not_backed, 0, "vpmu: processor %u: counters that are not backed", p);
        for (unsigned i = 0; i < v.count; i++)
            report_check(&v.checks[i], p);
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
            status_is(program(vpmu, i, event_for(i), VPMU_COUNT_USER, 0), STATUS_SUCCESS,
                      "program");
    return counters;
}

static void check_values(HANDLE vpmu, unsigned processor, bool worked)
{
    static struct vpmu_reading reading;
    uint64_t count;

    status_is(read_processor(vpmu, processor, &reading), STATUS_SUCCESS, "read");
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
        status_is(start_or_stop(vpmu, VPMU_IOCTL_START, counters), STATUS_SUCCESS, "start");
        thread_run_user(user_work, ROUNDS);
        status_is(start_or_stop(vpmu, VPMU_IOCTL_STOP, counters), STATUS_SUCCESS, "stop");
        thread_set_affinity(processor_mask());
        for (unsigned other = 0; other < processor_total(); other++)
            check_values(vpmu, other, other == p);
    }
}

/* ---- Sampling ---- */

enum { PERIOD = 1000 };

static void sample_on(HANDLE vpmu, uint32_t counter, unsigned processor, uint64_t earlier)
{
    static struct vpmu_reading reading;
    uint64_t bit = 1ull << counter;

    status_is(program(vpmu, counter, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, PERIOD),
              STATUS_SUCCESS, "program a period");
    thread_set_affinity(1ull << processor);
    status_is(start_or_stop(vpmu, VPMU_IOCTL_START, bit), STATUS_SUCCESS, "start");
    thread_run_user(user_work, ROUNDS);
    status_is(start_or_stop(vpmu, VPMU_IOCTL_STOP, bit), STATUS_SUCCESS, "stop");
    thread_set_affinity(processor_mask());
    status_is(read_processor(vpmu, processor, &reading), STATUS_SUCCESS, "read");
    check_equal(reading.pmis - earlier, USER_INSTRUCTIONS(ROUNDS) / PERIOD,
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
        sample_on(vpmu, first, p, 0);
        if (counters >> VPMU_FIRST_FIXED & 1)
            sample_on(vpmu, VPMU_FIRST_FIXED, p, USER_INSTRUCTIONS(ROUNDS) / PERIOD);
    }
}

/* ---- Scenario: counts, exact, on every processor ---- */

static void without_privilege(void *argument)
{
    HANDLE vpmu;

    (void)argument;
    process_current()->may_profile = false;
    status_is(user_open("vpmu", &vpmu), STATUS_PRIVILEGE_NOT_HELD, "open without the privilege");
}

/* Lists, and with them the overflow interrupt, are honoured from Windows 10 1903 on. */
static bool lists_honoured(void)
{
    return boot_option_number("build", 18362) >= 18362;
}

static void counts_program(void *argument)
{
    HANDLE vpmu = open_vpmu(), second = open_vpmu();
    bool lists = lists_honoured();
    struct vpmu_grant grant;
    struct vpmu_info info;

    (void)argument;
    check_info(vpmu);
    status_is(acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    check_equal(grant.granted, all_counters(), "vpmu: granted counters");
    check_equal(grant.flags, lists ? VPMU_GRANT_OVERFLOW : VPMU_GRANT_WHOLE,
                "vpmu: by a list with the overflow interrupt, or the whole PMU before 1903");
    check_equal(hal_leases(), 1, "vpmu: one allocation holds them");
    status_is(acquire(second, 0, 0, &grant), STATUS_DEVICE_BUSY, "acquire by a second client");
    request(second, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info));
    check_equal(info.owner, VPMU_OWNER_ANOTHER, "vpmu: the second client sees an owner");
    verify_all(vpmu);
    count_all(vpmu, all_counters());
    if (lists)
        sample_all(vpmu, all_counters());
    else
        status_is(program(vpmu, 0, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, PERIOD),
                  STATUS_NOT_SUPPORTED, "program a period without the overflow interrupt");
    status_is(user_close(second), STATUS_SUCCESS, "close of the second client");
    check_equal(hal_leases(), 1, "vpmu: the first still holds");
    status_is(request(vpmu, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0), STATUS_SUCCESS, "release");
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the release");
    status_is(acquire(vpmu, 2, 0, &grant), lists ? STATUS_SUCCESS : STATUS_NOT_SUPPORTED,
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
    as_process(without_privilege, NULL);
    as_process(counts_program, NULL);
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the death of the process");
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    driver_unload(driver);
}

/* ---- Scenario: a grant with nothing behind it ---- */

static void off_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = open_vpmu();
    struct vpmu_grant grant;
    unsigned absent = 0;

    (void)argument;
    check_info(vpmu);
    status_is(acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS,
              "acquire: HalAllocateHardwareCounters grants what is not there");
    check_equal(grant.flags, VPMU_GRANT_WHOLE, "vpmu: the whole PMU");
    for (unsigned p = 0; p < processor_total(); p++) {
        status_is(verify(vpmu, p, &v), STATUS_SUCCESS, "verify");
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
    as_process(off_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: another driver holds and samples counters ---- */

static uint64_t left_beside_holder(void)
{
    return all_counters() & ~1ull & ~(1ull << (hal_pmu.gp - 1));
}

static void beside_program(void *argument)
{
    HANDLE vpmu = open_vpmu();
    struct vpmu_grant grant;
    NTSTATUS refusal;

    (void)argument;
    status_is(acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire what is left");
    check_equal(grant.granted, left_beside_holder(), "vpmu: granted counters");
    check_equal((ULONG)grant.probe_status[0], (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "vpmu: the first GP counter is held");
    verify_all(vpmu);
    count_all(vpmu, left_beside_holder());
    sample_all(vpmu, left_beside_holder());
    status_is(request(vpmu, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0), STATUS_SUCCESS, "release");
    refusal = acquire(vpmu, 1, 0, &grant);
    status_is(refusal, STATUS_INSUFFICIENT_RESOURCES, "acquire the held one by name");
    status_is(acquire(vpmu, 0, VPMU_ACQUIRE_WHOLE, &grant), STATUS_INSUFFICIENT_RESOURCES,
              "acquire the whole PMU");
}

void vpmu_beside_others(void)
{
    struct driver *holder = scenario_load("contract.sys");
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver || !holder)
        return;
    scenario_section("contract", CONTRACT_HOLD);
    as_process(beside_program, NULL);
    scenario_section("contract", CONTRACT_LET_GO);
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    driver_unload(driver);
    driver_unload(holder);
}

/* ---- Scenario: thread profiling ---- */

static void profiling_program(void *argument)
{
    struct vpmu_profile_request in = {HEADER(vpmu_profile_request), 3, VPMU_PROFILE_USER_RDPMC, 0};
    HANDLE vpmu = open_vpmu();
    struct vpmu_profile profile;
    struct vpmu_grant grant;

    (void)argument;
    status_is(acquire(vpmu, 3, 0, &grant), STATUS_SUCCESS, "acquire two");
    program_all(vpmu, 3);
    status_is(request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &profile, sizeof(profile)),
              STATUS_SUCCESS, "profile");
    check_equal(profile.count, 2, "vpmu: configured counters");
    status_is(start_or_stop(vpmu, VPMU_IOCTL_START, 3), STATUS_SUCCESS, "start");
    profiling_test_threads();
    status_is(start_or_stop(vpmu, VPMU_IOCTL_STOP, 3), STATUS_SUCCESS, "stop");
    in.counters = in.flags = 0;
    status_is(request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &profile, sizeof(profile)),
              STATUS_SUCCESS, "profile nothing");
    check_equal(profile.count, 0, "vpmu: configured counters afterwards");
}

void vpmu_profiling(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    as_process(profiling_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: every code, every length, bad pointers ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

struct request_kind {
    ULONG code, in_size, out_size;
};

struct vpmu_nothing {
    char none[1];
};
#define LENGTH(type)                                                                               \
    (__builtin_types_compatible_p(struct type, struct vpmu_nothing) ? 0 : sizeof(struct type))

static const struct request_kind kinds[] = {
#define VPMU_IOCTL(name, function, access, in, out) {VPMU_IOCTL_##name, LENGTH(in), LENGTH(out)},
#include "ioctls.def"
#undef VPMU_IOCTL
};

enum { BUFFER = 4096 };
static uint32_t in_buffer[BUFFER / 4], out_buffer[BUFFER / 4];

/* Small numbers hit valid fields; a period stays 0, for a short one never lets the system go on. */
static void fill_request(const struct request_kind *kind, bool with_header)
{
    for (unsigned i = 0; i < BUFFER / 4; i++)
        in_buffer[i] = random_below(4) ? random_below(8) : random_below(UINT32_MAX);
    if (with_header) {
        in_buffer[0] = kind->in_size;
        in_buffer[1] = VPMU_IOCTL_VERSION;
    }
    if (kind->code == VPMU_IOCTL_PROGRAM)
        in_buffer[8] = in_buffer[9] = 0;
    if (kind->code == VPMU_IOCTL_VERIFY)
        in_buffer[3] %= 1000;
}

static ULONG some_size(ULONG right)
{
    switch (random_below(4)) {
    case 0:
        return random_below(BUFFER + 1);
    case 1:
        return right + random_below(3) - (right ? 1 : 0);
    default:
        return right;
    }
}

static ULONG some_code(ULONG right)
{
    switch (random_below(8)) {
    case 0:
        return right ^ 1u << random_below(32);
    case 1:
        return VPMU_CODE(random_below(64), random_below(4));
    default:
        return right;
    }
}

static unsigned one_random_request(HANDLE vpmu)
{
    const struct request_kind *kind = &kinds[random_below(ARRAY_SIZE(kinds))];
    ULONG returned, out_size = some_size(kind->out_size);
    NTSTATUS status;

    fill_request(kind, random_below(8) != 0);
    status = user_ioctl(vpmu, some_code(kind->code), in_buffer, some_size(kind->in_size),
                        out_buffer, out_size, &returned);
    if (returned > out_size || (!NT_SUCCESS(status) && returned))
        violation("vpmu: %u bytes of answer, status %08x", returned, (ULONG)status);
    return NT_SUCCESS(status);
}

/* Each code with each length of input and of output around the right ones. */
static unsigned all_lengths(HANDLE vpmu)
{
    unsigned wrong = 0;

    for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
        for (ULONG size = 0; size < 64; size++) {
            ULONG returned;

            fill_request(&kinds[k], true);
            if (size != kinds[k].in_size)
                wrong += NT_SUCCESS(user_ioctl(vpmu, kinds[k].code, in_buffer, size, out_buffer,
                                               BUFFER, &returned));
            if (size < kinds[k].out_size)
                wrong += NT_SUCCESS(user_ioctl(vpmu, kinds[k].code, in_buffer, kinds[k].in_size,
                                               out_buffer, size, &returned));
        }
    }
    return wrong;
}

static void bad_pointers(HANDLE vpmu)
{
    void *const bad[] = {NULL, (void *)16, (void *)0xfffff80000000000ull, (void *)~0xfull};

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        status_is(request(vpmu, VPMU_IOCTL_EVENT, bad[i], 16, out_buffer, BUFFER),
                  STATUS_ACCESS_VIOLATION, "input from a bad pointer");
        status_is(request(vpmu, VPMU_IOCTL_INFO, NULL, 0, bad[i], sizeof(struct vpmu_info)),
                  STATUS_ACCESS_VIOLATION, "output to a bad pointer");
    }
}

static void requests_program(void *argument)
{
    const unsigned count = (unsigned)boot_option_number("requests", 20000);
    HANDLE vpmu = open_vpmu();
    struct vpmu_grant grant;
    unsigned succeeded = 0;

    (void)argument;
    random_state = boot_option_number("seed", 20260101) | 1;
    note("seed=%lu requests=%u", random_state, count);
    check_equal(all_lengths(vpmu), 0, "vpmu: requests of a wrong length that succeeded");
    bad_pointers(vpmu);
    acquire(vpmu, 0, 0, &grant);
    check_equal(all_lengths(vpmu), 0, "vpmu: the same by the owner");
    for (unsigned i = 0; i < count; i++) {
        succeeded += one_random_request(vpmu);
        if (i % 64 == 0)
            acquire(vpmu, 0, 0, &grant);
    }
    check(succeeded > count / 50, "vpmu: %u random requests, %u succeeded", count, succeeded);
}

void vpmu_requests(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    as_process(requests_program, NULL);
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the death of the process");
    as_process(counts_program, NULL);
    driver_unload(driver);
}

/* ---- Scenario: loading while memory runs out, loading twice, dying at each step ---- */

static void dies_holding(void *argument)
{
    HANDLE vpmu = open_vpmu();
    struct vpmu_grant grant;

    (void)argument;
    status_is(acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    program_all(vpmu, all_counters());
    status_is(start_or_stop(vpmu, VPMU_IOCTL_START, all_counters()), STATUS_SUCCESS, "start");
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
        as_process(dies_holding, NULL);
        check_equal(hal_leases(), 0, "vpmu: nothing is held after a death while counting");
    }
    driver_unload(driver);
}

/* ---- Scenario: drivers in the style of the public ones ---- */

struct client_run {
    const char *device;
    ULONG code;
    struct client_report report;
};

static void client_program(void *argument)
{
    struct client_run *run = argument;
    HANDLE client;
    NTSTATUS status = user_open(run->device, &client);

    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "%s: open", run->device);
    if (!NT_SUCCESS(status))
        return;
    status = request(client, run->code, NULL, 0, &run->report, sizeof(run->report));
    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "%s: request", run->device);
}

static const struct client_report *ask_client(const char *device, ULONG code)
{
    static struct client_run run;

    memset(&run, 0, sizeof(run));
    run.device = device;
    run.code = code;
    as_process(client_program, &run);
    return &run.report;
}

static NTSTATUS client_status(const struct client_report *report, uint32_t what)
{
    for (unsigned i = 0; i < report->count; i++)
        if (report->calls[i].what == what)
            return report->calls[i].status;
    return STATUS_NOT_FOUND;
}

/* Counts of the first GP counter are instructions, in every client; the others' events differ. */
static void check_client_counts(const char *name, const struct client_report *report,
                                bool instructions_only)
{
    unsigned count = 0;

    for (unsigned i = 0; i < report->count; i++) {
        const struct client_call *call = &report->calls[i];
        bool instructions = instructions_only || call->index == 0;

        if (call->what != CLIENT_COUNT)
            continue;
        count++;
        check_equal(call->value, instructions ? CLIENT_INSTRUCTIONS : CLIENT_BRANCHES,
                    "%s: processor %u, counter %u", name, call->processor, call->index);
    }
    check(count > 0, "%s: counted with %u counters", name, count);
}

static void client_alone(void)
{
    struct driver *probe = scenario_load("probe.sys"), *whole = scenario_load("wholepmu.sys");
    const struct client_report *report;

    if (!probe || !whole)
        return;
    report = ask_client("vpmu-probe", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "probe.sys: takes its counters");
    check_client_counts("probe.sys", report, true);
    report = ask_client("vpmu-wholepmu", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "wholepmu.sys: is refused while probe.sys holds");
    ask_client("vpmu-probe", CLIENT_IOCTL_FREE);
    report = ask_client("vpmu-wholepmu", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "wholepmu.sys: takes the whole PMU");
    report = ask_client("vpmu-probe", CLIENT_IOCTL_RUN);
    check(!NT_SUCCESS(client_status(report, CLIENT_PROBE)),
          "probe.sys: each probe is refused while wholepmu.sys holds");
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_INSUFFICIENT_RESOURCES,
                "probe.sys: and says so");
    driver_unload(probe);
    driver_unload(whole); /* holds still: its unload lets go */
    check_equal(hal_leases(), 0, "clients: nothing is held after the unloads");
}

static void client_without_hal(void)
{
    struct driver *driver = scenario_load("nohal.sys");
    const struct client_report *report;
    unsigned interrupts = 0;

    if (!driver)
        return;
    report = ask_client("vpmu-nohal", CLIENT_IOCTL_RUN);
    check_client_counts("nohal.sys", report, false);
    for (unsigned i = 0; i < report->count; i++)
        if (report->calls[i].what == CLIENT_INTERRUPT)
            interrupts += report->calls[i].value == 1;
    check_equal(interrupts, processor_total(), "nohal.sys: processors with one interrupt");
    driver_unload(driver);
}

static void client_amd(void)
{
    struct driver *driver = scenario_load("amdpower.sys");
    const struct client_report *report;

    if (!driver)
        return;
    report = ask_client("vpmu-amdpower", CLIENT_IOCTL_RUN);
    check_equal((ULONG)client_status(report, CLIENT_ALLOCATE), (ULONG)STATUS_SUCCESS,
                "amdpower.sys: takes the whole PMU");
    check_equal((ULONG)client_status(report, CLIENT_FREE), (ULONG)STATUS_SUCCESS,
                "amdpower.sys: gives it back");
    driver_unload(driver);
}

void vpmu_clients(void)
{
    client_alone();
    client_without_hal();
    client_amd();
}

/* ---- Demonstration: a table for people ---- */

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [VPMU_COUNTER_ABSENT] = "ABSENT",     [VPMU_COUNTER_GRANTED] = "granted",
        [VPMU_COUNTER_BACKED] = "backed",     [VPMU_COUNTER_STARVED] = "STARVED",
        [VPMU_COUNTER_FILTERED] = "FILTERED", [VPMU_COUNTER_UNSUPPORTED] = "UNSUPPORTED",
        [VPMU_COUNTER_REVOKED] = "REVOKED",
    };

    _Static_assert(ARRAY_SIZE(names) == VPMU_COUNTER_STATES, "a name per state");
    return state < VPMU_COUNTER_STATES ? names[state] : "?";
}

static void event_name(HANDLE vpmu, uint32_t event, char name[32])
{
    struct vpmu_event_request in = {HEADER(vpmu_event_request), event, 0};
    struct vpmu_event out;

    if (NT_SUCCESS(request(vpmu, VPMU_IOCTL_EVENT, &in, sizeof(in), &out, sizeof(out))))
        memcpy(name, out.name, 32);
    else
        snprintf(name, 32, "?");
}

/* The answer of HalAllocateHardwareCounters for this counter alone, or for all of them. */
static NTSTATUS allocate_status(const struct vpmu_grant *grant, uint32_t counter)
{
    return grant->probed >> counter & 1 ? grant->probe_status[counter] : grant->allocate_status;
}

static void print_check(HANDLE vpmu, unsigned processor, const struct vpmu_check *c,
                        NTSTATUS allocated)
{
    char counter[16], event[32];

    snprintf(counter, sizeof(counter), "%s %u", c->counter < VPMU_FIRST_FIXED ? "GP" : "fixed",
             c->counter % VPMU_FIRST_FIXED);
    event_name(vpmu, c->event, event);
    note("TABLE | %9u | %-7s | %-11s%08x | %-12s | %s %7lu | %8lu | %s", processor, counter,
         NT_SUCCESS(allocated) ? "success" : "refused", (ULONG)allocated, event,
         c->flags & VPMU_CHECK_EXACT ? "        " : "at least", c->expected, c->counted,
         state_name(c->state));
}

static unsigned count_of(uint64_t set)
{
    unsigned count = 0;

    for (; set; set &= set - 1)
        count++;
    return count;
}

static void demo_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = open_vpmu();
    struct vpmu_grant grant = {0};
    NTSTATUS status;

    (void)argument;
    status = acquire(vpmu, 0, 0, &grant);
    note("TABLE vpmu.sys asks for all counters: HalAllocateHardwareCounters answers %08x (%s)",
         (ULONG)grant.allocate_status, NT_SUCCESS(grant.allocate_status) ? "success" : "refused");
    status_is(status, STATUS_SUCCESS, "acquire all");
    note("TABLE | processor | counter | HalAllocate...      | event        | expected         |  "
         "counted | verdict");
    for (unsigned p = 0; p < processor_total(); p++) {
        status_is(verify(vpmu, p, &v), STATUS_SUCCESS, "verify");
        for (unsigned i = 0; i < v.count; i++)
            print_check(vpmu, p, &v.checks[i], allocate_status(&grant, v.checks[i].counter));
    }
    if (v.not_backed)
        note("TABLE vpmu.sys: the grant is worth nothing: %u of %u counters are not backed",
             count_of(v.not_backed), count_of(grant.granted));
    else
        note("TABLE vpmu.sys: all %u counters are backed", count_of(grant.granted));
}

void vpmu_demo(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    as_process(demo_program, NULL);
    driver_unload(driver);
}
