/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiling_test.h"

#include "check.h"
#include "libc.h"
#include "process.h"
#include "profiling.h"
#include "user_work.h"

#define READ_ALL                                                                                   \
    (READ_THREAD_PROFILING_FLAG_DISPATCHING | READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS)

static PERFORMANCE_DATA fresh_data(void)
{
    return (PERFORMANCE_DATA){.Size = sizeof(PERFORMANCE_DATA),
                              .Version = PERFORMANCE_DATA_VERSION};
}

static void status_is(NTSTATUS got, NTSTATUS want, const char *name)
{
    check_equal((ULONG)got, (ULONG)want, "thread profiling: %s", name);
}

static void read_statuses(HANDLE profile)
{
    PERFORMANCE_DATA data = fresh_data();

    status_is(ReadThreadProfilingData(profile, READ_ALL, &data), STATUS_SUCCESS, "read");
    check_equal(data.HwCountersCount, 0, "thread profiling: no counter was asked for");
    status_is(ReadThreadProfilingData(profile, 4, &data), STATUS_INVALID_PARAMETER_2,
              "read, bad flags");
    data.Size = sizeof(data) - 1;
    status_is(ReadThreadProfilingData(profile, READ_ALL, &data), STATUS_INVALID_BUFFER_SIZE,
              "read, wrong size");
    data = fresh_data();
    data.Version = 2;
    status_is(ReadThreadProfilingData(profile, READ_ALL, &data), STATUS_INVALID_PARAMETER_3,
              "read, wrong version");
}

static void statuses_program(void *argument)
{
    struct thread *self = thread_current();
    struct thread *other = argument;
    HANDLE profile, second;
    BOOLEAN enabled;

    QueryThreadProfiling(self, &enabled);
    check_equal(enabled, FALSE, "thread profiling: not enabled at first");
    status_is(EnableThreadProfiling(self, 2, 0, &profile), STATUS_INVALID_PARAMETER_2,
              "enable, bad flags");
    status_is(EnableThreadProfiling(other, 0, 0, &profile), STATUS_NOT_SUPPORTED,
              "enable for another thread");
    status_is(DisableThreadProfiling(NULL), STATUS_WMI_ALREADY_DISABLED, "disable when off");
    status_is(EnableThreadProfiling(self, 0, 1, &profile), STATUS_INVALID_PARAMETER_3,
              "enable a counter that is not configured");
    status_is(EnableThreadProfiling(self, THREAD_PROFILING_FLAG_DISPATCH, 0, &profile),
              STATUS_SUCCESS, "enable");
    QueryThreadProfiling(self, &enabled);
    check_equal(enabled, TRUE, "thread profiling: enabled");
    status_is(EnableThreadProfiling(self, 0, 0, &second), STATUS_WMI_ALREADY_ENABLED,
              "enable twice");
    read_statuses(profile);
    status_is(DisableThreadProfiling(profile), STATUS_SUCCESS, "disable");
    status_is(DisableThreadProfiling(profile), STATUS_WMI_ALREADY_DISABLED, "disable twice");
}

void profiling_test_statuses(void)
{
    process_run(process_create(), statuses_program, thread_current(), true);
}

asm(".globl user_work\n"
    "user_work: mov %rdi, %rax\n"
    "1: dec %rax\n"
    "jnz 1b\n"
    "ret");

enum { THREADS = 2, REPEATS = 40 };

struct profiled {
    uint64_t rounds;
    unsigned repeats, wrong_instructions, wrong_branches;
    uint64_t instructions, branches; /* of the first wrong repeat */
    ULONG switches;
    NTSTATUS enabled, disabled;
};

static volatile unsigned running;
static volatile bool stop_noise;

/* What reading costs lies between two readings without work; none of the three may have retried. */
static bool measure(HANDLE profile, struct profiled *p, uint64_t count[2])
{
    PERFORMANCE_DATA data[3] = {fresh_data(), fresh_data(), fresh_data()};
    ULONG retries = 0;

    ReadThreadProfilingData(profile, READ_ALL, &data[0]);
    ReadThreadProfilingData(profile, READ_ALL, &data[1]);
    thread_run_user(user_work, p->rounds);
    thread_yield();
    thread_run_user(user_work, p->rounds);
    ReadThreadProfilingData(profile, READ_ALL, &data[2]);
    for (unsigned i = 0; i < 3; i++)
        retries += data[i].RetryCount;
    for (unsigned i = 0; i < 2; i++)
        count[i] = data[2].HwCounters[i].Value - data[1].HwCounters[i].Value -
                   (data[1].HwCounters[i].Value - data[0].HwCounters[i].Value);
    p->switches = data[2].ContextSwitchCount;
    return retries == 0 && data[2].HwCountersCount == 2;
}

static void profiled_thread(void *argument)
{
    struct profiled *p = argument;
    HANDLE profile;

    p->enabled = EnableThreadProfiling(thread_current(), 0, 3, &profile);
    running++;
    while (running < THREADS)
        thread_yield();
    while (NT_SUCCESS(p->enabled) && p->repeats < REPEATS) {
        uint64_t count[2];

        if (!measure(profile, p, count))
            continue;
        p->repeats++;
        if (count[0] != 2 * USER_INSTRUCTIONS(p->rounds) && p->wrong_instructions++ == 0)
            p->instructions = count[0];
        if (count[1] != 2 * USER_BRANCHES(p->rounds) && p->wrong_branches++ == 0)
            p->branches = count[1];
    }
    p->disabled = DisableThreadProfiling(profile);
}

/* Works in ring 3 on the same processor, and is not profiled. */
static void noise_thread(void *argument)
{
    (void)argument;
    while (!stop_noise) {
        thread_run_user(user_work, 777);
        thread_yield();
    }
}

static void report_profiled(const struct profiled *p, unsigned i)
{
    status_is(p->enabled, STATUS_SUCCESS, "enable with two counters");
    check_equal(p->wrong_instructions, 0, "thread %u: %u exact deltas of instructions (%lu)", i,
                p->repeats, p->instructions ? p->instructions : 2 * USER_INSTRUCTIONS(p->rounds));
    check_equal(p->wrong_branches, 0, "thread %u: %u exact deltas of branches (%lu)", i, p->repeats,
                p->branches ? p->branches : 2 * USER_BRANCHES(p->rounds));
    check(p->switches >= REPEATS, "thread %u: the processor was shared: %u switches", i,
          p->switches);
    status_is(p->disabled, STATUS_SUCCESS, "disable");
}

void profiling_test_threads(void)
{
    struct profiled profiled[THREADS] = {{.rounds = 1000}, {.rounds = 34567}};
    struct thread *threads[THREADS], *noise;
    struct process *process = process_create();
    KAFFINITY one = processor_mask() & ~(processor_mask() >> 1); /* the last */

    running = 0;
    stop_noise = false;
    noise = thread_create(process, noise_thread, NULL, one);
    for (unsigned i = 0; i < THREADS; i++)
        threads[i] = thread_create(process, profiled_thread, &profiled[i], one);
    for (unsigned i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        object_release(threads[i]);
    }
    stop_noise = true;
    thread_join(noise);
    object_release(noise);
    thread_reap();
    process_exit(process);
    for (unsigned i = 0; i < THREADS; i++)
        report_profiled(&profiled[i], i);
}

static void profiled_while(void *argument)
{
    void (*const *during)(void) = argument;
    HANDLE profile;

    status_is(EnableThreadProfiling(thread_current(), 0, 3, &profile), STATUS_SUCCESS,
              "enable with two counters");
    (*during)();
    status_is(DisableThreadProfiling(profile), STATUS_SUCCESS, "disable");
}

void profiling_test_during(void (*during)(void))
{
    process_run(process_create(), profiled_while, &during, true);
}
