/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiling.h"

#include "check.h"
#include "hal.h"
#include "libc.h"
#include "pool.h"

struct profile {
    struct thread *thread;
    ULONG flags;
    unsigned count;
    uint32_t selectors[MAX_HW_COUNTERS];
    uint32_t last[MAX_HW_COUNTERS];         /* at the last switch to the thread */
    volatile uint64_t sum[MAX_HW_COUNTERS]; /* of its finished turns */
    uint64_t cycles, cycles_last;
    volatile uint32_t switches;
    PERFORMANCE_DATA *reading; /* for the code in ring 3 */
};

/* Deltas are kept modulo 2^32, as counters of 32 bits and more allow. */
static void begin_turn(struct profile *profile)
{
    for (unsigned i = 0; i < profile->count; i++)
        profile->last[i] = (uint32_t)rdpmc(profile->selectors[i]);
    profile->cycles_last = rdtsc();
}

static void end_turn(struct profile *profile)
{
    for (unsigned i = 0; i < profile->count; i++)
        profile->sum[i] += (uint32_t)rdpmc(profile->selectors[i]) - profile->last[i];
    profile->cycles += rdtsc() - profile->cycles_last;
}

void profiling_switch(struct thread *from, struct thread *to)
{
    if (from->profile)
        end_turn(from->profile);
    if (to->profile) {
        to->profile->switches++;
        begin_turn(to->profile);
    }
}

/* Fills selectors from the standing configuration; false if the mask asks for more than it has. */
static bool choose_counters(struct profile *profile, ULONG64 counters)
{
    HARDWARE_COUNTER set[MAX_HW_COUNTERS];
    ULONG count = 0;

    if (counters == 0)
        return true;
    if (!NT_SUCCESS(KeQueryHardwareCounterConfiguration(set, MAX_HW_COUNTERS, &count)))
        return false;
    if (counters >> count)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (counters >> i & 1)
            profile->selectors[profile->count++] = (uint32_t)set[i].Index;
    return true;
}

NTSTATUS EnableThreadProfiling(struct thread *thread, ULONG flags, ULONG64 counters, HANDLE *handle)
{
    struct profile *profile;
    KIRQL old;

    *handle = NULL;
    if (flags & ~(ULONG)THREAD_PROFILING_FLAG_DISPATCH)
        return STATUS_INVALID_PARAMETER_2;
    if (thread != thread_current())
        return STATUS_NOT_SUPPORTED;
    if (thread->profile)
        return STATUS_WMI_ALREADY_ENABLED;
    profile = pool_allocate(sizeof(*profile), POOL_OWN_TAG, NULL);
    if (!profile)
        return STATUS_NO_MEMORY;
    memset(profile, 0, sizeof(*profile));
    profile->thread = thread;
    profile->flags = flags;
    if (!choose_counters(profile, counters)) {
        pool_free(profile, POOL_OWN_TAG);
        return STATUS_INVALID_PARAMETER_3;
    }
    if (profile->count)
        hal_thread_profiling(true);
    old = irql_raise(DISPATCH_LEVEL);
    begin_turn(profile);
    thread->profile = profile;
    irql_set(old);
    *handle = profile;
    return STATUS_SUCCESS;
}

void profiling_forget(struct thread *thread)
{
    KIRQL old = irql_raise(DISPATCH_LEVEL);
    struct profile *profile = thread->profile;

    thread->profile = NULL;
    irql_set(old);
    if (!profile)
        return;
    if (profile->count)
        hal_thread_profiling(false);
    pool_free(profile, POOL_OWN_TAG);
}

NTSTATUS DisableThreadProfiling(HANDLE handle)
{
    struct thread *self = thread_current();

    if (!handle || self->profile != handle)
        return STATUS_WMI_ALREADY_DISABLED;
    profiling_forget(self);
    return STATUS_SUCCESS;
}

NTSTATUS QueryThreadProfiling(struct thread *thread, BOOLEAN *enabled)
{
    *enabled = thread->profile != NULL;
    return STATUS_SUCCESS;
}

/* Runs in ring 3. A switch between the two looks at its count makes it read again. */
static uint64_t read_in_ring_3(uint64_t argument)
{
    struct profile *profile = (struct profile *)argument;
    PERFORMANCE_DATA *data = profile->reading;
    uint32_t switches;

    for (;;) {
        switches = profile->switches;
        for (unsigned i = 0; i < profile->count; i++)
            data->HwCounters[i].Value =
                profile->sum[i] + ((uint32_t)rdpmc(profile->selectors[i]) - profile->last[i]);
        if (profile->switches == switches)
            return switches;
        data->RetryCount++;
    }
}

NTSTATUS ReadThreadProfilingData(HANDLE handle, ULONG flags, PERFORMANCE_DATA *data)
{
    struct profile *profile = thread_current()->profile;

    if (!handle || profile != handle)
        return STATUS_WMI_ALREADY_DISABLED;
    if (flags & ~(ULONG)(READ_THREAD_PROFILING_FLAG_DISPATCHING |
                         READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS))
        return STATUS_INVALID_PARAMETER_2;
    if (data->Size != sizeof(*data))
        return STATUS_INVALID_BUFFER_SIZE;
    if (data->Version != PERFORMANCE_DATA_VERSION)
        return STATUS_INVALID_PARAMETER_3;
    data->RetryCount = 0;
    data->HwCountersCount = (UCHAR)profile->count;
    profile->reading = data;
    data->ContextSwitchCount = profile->switches;
    if (flags & READ_THREAD_PROFILING_FLAG_HARDWARE_COUNTERS && profile->count)
        data->ContextSwitchCount = (ULONG)thread_run_user(read_in_ring_3, (uint64_t)profile);
    data->CycleTime = profile->cycles + (rdtsc() - profile->cycles_last);
    return STATUS_SUCCESS;
}
