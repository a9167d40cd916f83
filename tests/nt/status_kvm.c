/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpmu.sys as a guest of KVM, on an AMD processor, whose PMU this kernel's HAL does not know: the
 * whole PMU is granted and nothing is proved by that. What the host does meanwhile is told by lines
 * that it waits for: NT-READY (take all counters), NT-STARVED (give them back); NT-GIVEN (take what
 * this guest has given back), NT-REFUSED (the same).
 */
#include "check.h"
#include "processor.h"
#include "status_test.h"
#include "thread.h"
#include "user_work.h"
#include "vpmu/status.h"
#include "vpmu_user.h"

enum { ROUNDS = 5000, IDLE = 100, BRANCHES = 0xc2 };

static uint64_t acquire_whole(HANDLE vpmu)
{
    struct vpmu_grant grant = {0};

    vpmu_status_is(vpmu_acquire(vpmu, 0, VPMU_ACQUIRE_WHOLE, &grant), STATUS_SUCCESS,
                   "acquire the whole PMU");
    return grant.granted;
}

static void start_or_stop(HANDLE vpmu, ULONG code, uint64_t counters)
{
    vpmu_status_is(vpmu_start_or_stop(vpmu, code, counters), STATUS_SUCCESS,
                   code == VPMU_IOCTL_START ? "start" : "stop");
}

static void check_host(HANDLE vpmu)
{
    struct vpmu_host host = {0};

    vpmu_status_is(vpmu_host(vpmu, &host), STATUS_SUCCESS, "host");
    check_equal(host.flags, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT, "vpmu: host: flags");
    check_equal(host.source, VPMU_SOURCE_KVM, "vpmu: host: KVM is the source");
    check_equal(host.granted_gp, host.shape_gp, "vpmu: host: all counters are granted");
    check_equal(host.vcpus, processor_total(), "vpmu: host: vCPUs");
}

/* A user program's work, counted on each processor by each counter. */
static void check_exact(HANDLE vpmu, uint64_t counters)
{
    static struct vpmu_reading reading;

    for (unsigned p = 0; p < processor_total(); p++) {
        for (unsigned i = 0; i < 64; i++)
            if (counters >> i & 1)
                vpmu_status_is(vpmu_program(vpmu, i, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, 0),
                               STATUS_SUCCESS, "program");
        thread_set_affinity(1ull << p);
        start_or_stop(vpmu, VPMU_IOCTL_START, counters);
        thread_run_user(user_work, ROUNDS);
        start_or_stop(vpmu, VPMU_IOCTL_STOP, counters);
        thread_set_affinity(processor_mask());
        vpmu_status_is(vpmu_read(vpmu, p, &reading), STATUS_SUCCESS, "read");
        for (unsigned i = 0; i < reading.count; i++)
            check_equal(reading.values[i].value, USER_INSTRUCTIONS(ROUNDS),
                        "vpmu: processor %u, counter %u: the exact count", p,
                        reading.values[i].counter);
    }
}

static uint64_t not_backed(HANDLE vpmu, unsigned processor)
{
    static struct vpmu_verification v;

    vpmu_status_is(vpmu_verify(vpmu, processor, 0, &v), STATUS_SUCCESS, "verify");
    return v.not_backed;
}

static void check_verified(HANDLE vpmu, uint64_t want, const char *when)
{
    for (unsigned p = 0; p < processor_total(); p++)
        check_equal(not_backed(vpmu, p), want, "vpmu: processor %u: not backed, by VERIFY, %s", p,
                    when);
}

static unsigned count_in(const struct vpmu_states *now, uint32_t state)
{
    unsigned count = 0;

    for (unsigned i = 0; i < now->count; i++)
        count += now->states[i].state == state;
    return count;
}

/* Works on processor 0 until all its counters are in a state; looks when a change is told. */
static void work_to_state(HANDLE vpmu, uint32_t state, struct vpmu_states *now)
{
    uint64_t deadline = patience_end();
    struct vpmu_host host = {0};
    struct user_request *request;
    ULONG returned;

    *now = (struct vpmu_states){0};
    thread_set_affinity(1);
    while (time_now() < deadline && NT_SUCCESS(vpmu_host(vpmu, &host)) &&
           NT_SUCCESS(vpmu_states(vpmu, 0, now)) && count_in(now, state) < now->count) {
        request = vpmu_wait(vpmu, host.changes, &host);
        while (!user_ioctl_done(request) && time_now() < deadline)
            thread_run_user(user_work, ROUNDS);
        user_ioctl_cancel(request);
        user_ioctl_end(request, &returned);
    }
    thread_set_affinity(processor_mask());
    check(now->count > 0, "vpmu: there are states");
    check_equal(count_in(now, state), now->count, "vpmu: counters in state %u", state);
}

static void kvm_program(void *argument)
{
    static struct vpmu_states now;
    HANDLE vpmu = vpmu_open();
    uint64_t counters;

    (void)argument;
    check_host(vpmu);
    counters = acquire_whole(vpmu);
    check_verified(vpmu, 0, "on an idle host");
    check_exact(vpmu, counters);

    start_or_stop(vpmu, VPMU_IOCTL_START, counters);
    work_to_state(vpmu, VPMU_COUNTER_BACKED, &now);
    note("NT-READY");
    work_to_state(vpmu, VPMU_COUNTER_STARVED, &now);
    for (unsigned i = 0; i < now.count; i++)
        check(now.states[i].backed_ns < now.states[i].enabled_ns,
              "vpmu: counter %u: it has not counted all the time", now.states[i].counter);
    start_or_stop(vpmu, VPMU_IOCTL_STOP, counters);
    check_verified(vpmu, counters, "while the host has the counters");
    note("NT-STARVED");

    start_or_stop(vpmu, VPMU_IOCTL_START, counters);
    work_to_state(vpmu, VPMU_COUNTER_BACKED, &now);
    start_or_stop(vpmu, VPMU_IOCTL_STOP, counters);
    check_verified(vpmu, 0, "when they are back");
    check_exact(vpmu, counters);
}

void status_kvm(void)
{
    status_on_device(kvm_program, status_remove);
}

/* Branches are denied: they read 0, and that is called filtered. */
static void denied_program(void *argument)
{
    static struct vpmu_states now;
    static struct vpmu_reading reading;
    HANDLE vpmu = vpmu_open();
    uint64_t counters = acquire_whole(vpmu);

    (void)argument;
    for (unsigned i = 0; i < 64; i++) {
        struct vpmu_program_request in = {.header = HEADER(vpmu_program_request),
                                          .counter = i,
                                          .event = VPMU_EVENT_RAW,
                                          .flags = VPMU_COUNT_USER,
                                          .config = BRANCHES};
        if (counters >> i & 1)
            vpmu_status_is(vpmu_request(vpmu, VPMU_IOCTL_PROGRAM, &in, sizeof(in), NULL, 0),
                           STATUS_SUCCESS, "program a denied event");
    }
    start_or_stop(vpmu, VPMU_IOCTL_START, counters);
    work_to_state(vpmu, VPMU_COUNTER_FILTERED, &now);
    start_or_stop(vpmu, VPMU_IOCTL_STOP, counters);
    vpmu_status_is(vpmu_read(vpmu, 0, &reading), STATUS_SUCCESS, "read");
    for (unsigned i = 0; i < reading.count; i++)
        check_equal(reading.values[i].value, 0, "vpmu: counter %u: it counts nothing",
                    reading.values[i].counter);
    check_exact(vpmu, counters); /* another event does count */
}

void status_kvm_denied(void)
{
    status_on_device(denied_program, status_remove);
}

/* Asks for so many counters; what the host answers. */
static NTSTATUS resize(HANDLE vpmu, uint32_t gp, struct vpmu_host *host)
{
    bool done;

    return status_end(vpmu_resize(vpmu, gp, 0, host), &done);
}

static void give_all_but_one(HANDLE vpmu, struct vpmu_host *host)
{
    vpmu_status_is(resize(vpmu, 1, host), STATUS_SUCCESS, "resize to one counter");
    check_equal(host->granted_gp, 1, "vpmu: counters after that");
}

/* The host's profiler takes what is given back when it comes to it, and gives it back later. */
static void resize_program(void *argument)
{
    uint64_t deadline = patience_end();
    HANDLE vpmu = vpmu_open();
    struct vpmu_host host = {0};
    NTSTATUS status;

    (void)argument;
    check_host(vpmu);
    give_all_but_one(vpmu, &host);
    note("NT-GIVEN");
    while (NT_SUCCESS(status = resize(vpmu, host.shape_gp, &host)) && time_now() < deadline) {
        give_all_but_one(vpmu, &host);
        for (unsigned i = 0; i < IDLE; i++)
            thread_run_user(user_work, ROUNDS);
    }
    vpmu_status_is(status, STATUS_INSUFFICIENT_RESOURCES, "resize, when a profiler has the others");
    vpmu_status_is(vpmu_host(vpmu, &host), STATUS_SUCCESS, "host");
    check_equal(host.granted_gp, 1, "vpmu: that changes nothing");
    note("NT-REFUSED");
    do
        status = resize(vpmu, host.shape_gp, &host);
    while (!NT_SUCCESS(status) && time_now() < deadline);
    vpmu_status_is(status, STATUS_SUCCESS, "resize, when they are free");
    check_host(vpmu);
    check_exact(vpmu, acquire_whole(vpmu));
}

void status_kvm_resize(void)
{
    status_on_device(resize_program, status_remove);
}
