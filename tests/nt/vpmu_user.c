/* SPDX-License-Identifier: BSD-3-Clause */
#include "vpmu_user.h"

#include "check.h"
#include "hal.h"
#include "io.h"
#include "process.h"
#include "processor.h"

#define PATIENCE_S 90u

uint64_t patience_end(void)
{
    return time_now() + PATIENCE_S * 10000000ull;
}

unsigned processor_total(void)
{
    return KeQueryActiveProcessorCountEx(0);
}

uint64_t vpmu_all_counters(void)
{
    return ((1ull << hal_pmu.gp) - 1) | ((1ull << hal_pmu.fixed) - 1) << VPMU_FIRST_FIXED;
}

NTSTATUS vpmu_request(HANDLE vpmu, ULONG code, const void *in, ULONG in_size, void *out,
                      ULONG out_size)
{
    ULONG returned;

    return user_ioctl(vpmu, code, in, in_size, out, out_size, &returned);
}

void vpmu_status_is(NTSTATUS got, NTSTATUS want, const char *name)
{
    check_equal((ULONG)got, (ULONG)want, "vpmu: %s", name);
}

HANDLE vpmu_open(void)
{
    HANDLE vpmu;

    vpmu_status_is(user_open("vpmu", &vpmu), STATUS_SUCCESS, "open");
    return vpmu;
}

NTSTATUS vpmu_acquire(HANDLE vpmu, uint64_t counters, uint32_t flags, struct vpmu_grant *grant)
{
    struct vpmu_acquire_request in = {HEADER(vpmu_acquire_request), counters, flags, 0};

    return vpmu_request(vpmu, VPMU_IOCTL_ACQUIRE, &in, sizeof(in), grant, sizeof(*grant));
}

NTSTATUS vpmu_program(HANDLE vpmu, uint32_t counter, uint32_t event, uint32_t flags,
                      uint64_t period)
{
    struct vpmu_program_request in = {
        .header = HEADER(vpmu_program_request),
        .counter = counter,
        .event = event,
        .flags = flags,
        .period = period,
    };

    return vpmu_request(vpmu, VPMU_IOCTL_PROGRAM, &in, sizeof(in), NULL, 0);
}

NTSTATUS vpmu_start_or_stop(HANDLE vpmu, ULONG code, uint64_t counters)
{
    struct vpmu_counters_request in = {HEADER(vpmu_counters_request), counters};

    return vpmu_request(vpmu, code, &in, sizeof(in), NULL, 0);
}

NTSTATUS vpmu_read(HANDLE vpmu, uint32_t processor, struct vpmu_reading *reading)
{
    struct vpmu_processor_request in = {HEADER(vpmu_processor_request), processor, 0};

    return vpmu_request(vpmu, VPMU_IOCTL_READ, &in, sizeof(in), reading, sizeof(*reading));
}

NTSTATUS vpmu_verify(HANDLE vpmu, uint32_t processor, uint32_t flags, struct vpmu_verification *out)
{
    struct vpmu_verify_request in = {
        .header = HEADER(vpmu_verify_request),
        .processor = processor,
        .iterations = VERIFY_ITERATIONS,
        .flags = flags,
    };

    return vpmu_request(vpmu, VPMU_IOCTL_VERIFY, &in, sizeof(in), out, sizeof(*out));
}

/* Runs program in a process of its own, which dies at its end, open handles or not. */
void run_as_process(void (*start)(void *), void *argument)
{
    process_run(process_create(), start, argument, true);
}

NTSTATUS vpmu_host(HANDLE vpmu, struct vpmu_host *out)
{
    return vpmu_request(vpmu, VPMU_IOCTL_HOST, NULL, 0, out, sizeof(*out));
}

NTSTATUS vpmu_states(HANDLE vpmu, uint32_t processor, struct vpmu_states *out)
{
    struct vpmu_processor_request in = {HEADER(vpmu_processor_request), processor, 0};

    return vpmu_request(vpmu, VPMU_IOCTL_STATES, &in, sizeof(in), out, sizeof(*out));
}

struct user_request *vpmu_wait(HANDLE vpmu, uint32_t changes, struct vpmu_host *out)
{
    struct vpmu_wait_request in = {HEADER(vpmu_wait_request), changes, 0};

    return user_ioctl_begin(vpmu, VPMU_IOCTL_WAIT, &in, sizeof(in), out, sizeof(*out));
}

struct user_request *vpmu_resize(HANDLE vpmu, uint32_t gp, uint32_t fixed, struct vpmu_host *out)
{
    struct vpmu_resize_request in = {HEADER(vpmu_resize_request), gp, fixed};

    return user_ioctl_begin(vpmu, VPMU_IOCTL_RESIZE, &in, sizeof(in), out, sizeof(*out));
}
