/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys as a user program calls it, with NT statuses; see vpmu_ioctl.h. */
#ifndef NT_VPMU_USER_H
#define NT_VPMU_USER_H

#include "io.h"
#include "ntmore.h"
#include "vpmu_ioctl.h"

#define HEADER(type) {sizeof(struct type), VPMU_IOCTL_VERSION}
#define VERIFY_ITERATIONS 1000u

/** When (time_now()) a test stops to wait for what the host does by its own clock. */
uint64_t patience_end(void);

/** Active processors. */
unsigned processor_total(void);

/** Every counter that the kernel found, as a set of indices. */
uint64_t vpmu_all_counters(void);

/** Reports whether a request of vpmu.sys ended as it should. */
void vpmu_status_is(NTSTATUS got, NTSTATUS want, const char *name);

/** Runs start(argument) in a process of its own, which dies at its end, open handles or not. */
void run_as_process(void (*start)(void *), void *argument);

/** Opens vpmu.sys, and reports it. */
HANDLE vpmu_open(void);

NTSTATUS vpmu_request(HANDLE vpmu, ULONG code, const void *in, ULONG in_size, void *out,
                      ULONG out_size);
NTSTATUS vpmu_acquire(HANDLE vpmu, uint64_t counters, uint32_t flags, struct vpmu_grant *grant);
NTSTATUS vpmu_program(HANDLE vpmu, uint32_t counter, uint32_t event, uint32_t flags,
                      uint64_t period);

/** code: VPMU_IOCTL_START or VPMU_IOCTL_STOP. */
NTSTATUS vpmu_start_or_stop(HANDLE vpmu, ULONG code, uint64_t counters);
NTSTATUS vpmu_read(HANDLE vpmu, uint32_t processor, struct vpmu_reading *reading);

/** flags: VPMU_VERIFY_... */
NTSTATUS vpmu_verify(HANDLE vpmu, uint32_t processor, uint32_t flags,
                     struct vpmu_verification *out);

NTSTATUS vpmu_host(HANDLE vpmu, struct vpmu_host *out);
NTSTATUS vpmu_states(HANDLE vpmu, uint32_t processor, struct vpmu_states *out);

/** Begins to wait for a change; *out is written at the end of the request. */
struct user_request *vpmu_wait(HANDLE vpmu, uint32_t changes, struct vpmu_host *out);
struct user_request *vpmu_resize(HANDLE vpmu, uint32_t gp, uint32_t fixed, struct vpmu_host *out);

#endif
