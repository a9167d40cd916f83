/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpmu.sys as its callers reach it: a request, whatever carries it. On Windows that is
 * DeviceIoControl; tests have the driver itself, or the NT test guest's own way.
 */
#ifndef SOURCE_DEVICE_H
#define SOURCE_DEVICE_H

#include "source.h"

struct source_device {
    /* Returns an NTSTATUS; METHOD_BUFFERED, so out is as long as the answer that is wanted. */
    uint32_t (*request)(void *context, uint32_t code, const void *in, uint32_t in_size, void *out,
                        uint32_t out_size);
    void (*close)(void *context); /* may be NULL */
    void *context;
};

/** Opens vpmu.sys. Returns 0, or -1 with *error filled. Windows alone has it. */
int source_device_open(struct source_device *device, struct source_error *error);

/* The requests, typed. Each returns an NTSTATUS, 0 for success. */
uint32_t device_info(const struct source_device *device, struct vpmu_info *info);
uint32_t device_event(const struct source_device *device, uint32_t event, struct vpmu_event *out);
uint32_t device_grant(const struct source_device *device, struct vpmu_grant *grant);
uint32_t device_read(const struct source_device *device, uint32_t processor,
                     struct vpmu_reading *reading);
uint32_t device_host(const struct source_device *device, struct vpmu_host *host);
uint32_t device_states(const struct source_device *device, uint32_t processor,
                       struct vpmu_states *states);
uint32_t device_acquire(const struct source_device *device, uint64_t counters,
                        struct vpmu_grant *grant);
uint32_t device_release(const struct source_device *device);
uint32_t device_program(const struct source_device *device, uint32_t counter, uint32_t event,
                        uint32_t flags);
uint32_t device_start(const struct source_device *device, uint64_t counters);
uint32_t device_stop(const struct source_device *device, uint64_t counters);
uint32_t device_profile(const struct source_device *device, uint64_t counters, uint32_t flags,
                        struct vpmu_profile *profile);
uint32_t device_verify(const struct source_device *device, uint32_t processor, uint32_t iterations,
                       uint32_t flags, struct vpmu_verification *verification);

/* A source over a device, without any allocation. */
struct source_driver {
    struct source source;
    struct source_device device;
    bool owner;
    void (*release)(void *driver); /* frees it at its end; NULL: its storage is the caller's */
};

/** Makes driver a source over device, which it closes at its end. Returns it as a source. */
struct source *source_driver_init(struct source_driver *driver, struct source_device device);

#endif
