/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#define HEADER(type) {sizeof(struct type), VPMU_IOCTL_VERSION}

static uint32_t ask(const struct source_device *device, uint32_t code, const void *in,
                    uint32_t in_size, void *out, uint32_t out_size)
{
    return device->request(device->context, code, in, in_size, out, out_size);
}

uint32_t device_info(const struct source_device *device, struct vpmu_info *info)
{
    return ask(device, VPMU_IOCTL_INFO, NULL, 0, info, sizeof(*info));
}

uint32_t device_event(const struct source_device *device, uint32_t event, struct vpmu_event *out)
{
    struct vpmu_event_request in = {.header = HEADER(vpmu_event_request), .event = event};

    return ask(device, VPMU_IOCTL_EVENT, &in, sizeof(in), out, sizeof(*out));
}

uint32_t device_grant(const struct source_device *device, struct vpmu_grant *grant)
{
    return ask(device, VPMU_IOCTL_GRANT, NULL, 0, grant, sizeof(*grant));
}

/* Of one processor. */
static uint32_t ask_of(const struct source_device *device, uint32_t code, uint32_t processor,
                       void *out, uint32_t out_size)
{
    struct vpmu_processor_request in = {
        .header = HEADER(vpmu_processor_request),
        .processor = processor,
    };

    return ask(device, code, &in, sizeof(in), out, out_size);
}

uint32_t device_read(const struct source_device *device, uint32_t processor,
                     struct vpmu_reading *reading)
{
    return ask_of(device, VPMU_IOCTL_READ, processor, reading, sizeof(*reading));
}

uint32_t device_states(const struct source_device *device, uint32_t processor,
                       struct vpmu_states *states)
{
    return ask_of(device, VPMU_IOCTL_STATES, processor, states, sizeof(*states));
}

uint32_t device_host(const struct source_device *device, struct vpmu_host *host)
{
    return ask(device, VPMU_IOCTL_HOST, NULL, 0, host, sizeof(*host));
}

uint32_t device_acquire(const struct source_device *device, uint64_t counters,
                        struct vpmu_grant *grant)
{
    struct vpmu_acquire_request in = {
        .header = HEADER(vpmu_acquire_request),
        .counters = counters,
    };

    return ask(device, VPMU_IOCTL_ACQUIRE, &in, sizeof(in), grant, sizeof(*grant));
}

uint32_t device_release(const struct source_device *device)
{
    return ask(device, VPMU_IOCTL_RELEASE, NULL, 0, NULL, 0);
}

uint32_t device_program(const struct source_device *device, uint32_t counter, uint32_t event,
                        uint32_t flags)
{
    struct vpmu_program_request in = {
        .header = HEADER(vpmu_program_request),
        .counter = counter,
        .event = event,
        .flags = flags,
    };

    return ask(device, VPMU_IOCTL_PROGRAM, &in, sizeof(in), NULL, 0);
}

static uint32_t start_or_stop(const struct source_device *device, uint32_t code, uint64_t counters)
{
    struct vpmu_counters_request in = {
        .header = HEADER(vpmu_counters_request),
        .counters = counters,
    };

    return ask(device, code, &in, sizeof(in), NULL, 0);
}

uint32_t device_start(const struct source_device *device, uint64_t counters)
{
    return start_or_stop(device, VPMU_IOCTL_START, counters);
}

uint32_t device_stop(const struct source_device *device, uint64_t counters)
{
    return start_or_stop(device, VPMU_IOCTL_STOP, counters);
}

uint32_t device_profile(const struct source_device *device, uint64_t counters, uint32_t flags,
                        struct vpmu_profile *profile)
{
    struct vpmu_profile_request in = {
        .header = HEADER(vpmu_profile_request),
        .counters = counters,
        .flags = flags,
    };

    return ask(device, VPMU_IOCTL_PROFILE, &in, sizeof(in), profile, sizeof(*profile));
}

uint32_t device_verify(const struct source_device *device, uint32_t processor, uint32_t iterations,
                       uint32_t flags, struct vpmu_verification *verification)
{
    struct vpmu_verify_request in = {
        .header = HEADER(vpmu_verify_request),
        .processor = processor,
        .iterations = iterations,
        .flags = flags,
    };

    return ask(device, VPMU_IOCTL_VERIFY, &in, sizeof(in), verification, sizeof(*verification));
}
