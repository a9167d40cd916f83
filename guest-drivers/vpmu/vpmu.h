/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpmu.sys: hardware counters for user mode, taken from Windows and proved to count.
 *
 *   driver.c      loads, opens, closes, unloads
 *   pnp.c         the status device as Plug and Play brings, stops and takes it
 *   pending.c     requests that wait for the status device; these three know I/O requests
 *   ioctl.c       one table row for each request, and the checks that all of them share
 *   counters.c    takes counters from the HAL, programs, starts, stops, reads and gives them back
 *   overflow.c    the overflow handler, at PROFILE_LEVEL
 *   profiling.c   which counters the kernel reads for profiled threads
 *   verify.c      a known piece of work, counted
 *   states.c      the state of each counter of a processor
 *   status.c      the status device, over its memory
 *   pmu*.c        registers
 *   os.c          everything else from the system
 *
 * The driver has one struct vpmu. Every request runs under one mutex at PASSIVE_LEVEL; the overflow
 * handler runs beside them and shares only struct vpmu_processor, and `programs` of started
 * counters, which no request changes while they run. The status device's DPC runs beside them, too,
 * and shares only struct status, which changes its shape when no DPC is queued.
 */
#ifndef VPMU_VPMU_H
#define VPMU_VPMU_H

#include <stdbool.h>
#include <stdint.h>

#include "nt/counters.h"
#include "pmu.h"
#include "status.h"
#include "vpmu_ioctl.h"

#define VPMU_DRIVER_VERSION (1u << 16 | 1u)

/* Written by the overflow handler on its own processor, read from anywhere: only by atomics. */
struct vpmu_overflows {
    uint64_t calls;
    uint64_t foreign;
    uint64_t bits; /* of the last call */
    uint64_t irql; /* at the last call */
    uint64_t periods[PMU_INDICES];
};

struct vpmu_processor {
    struct vpmu_overflows overflows;
    uint8_t state[PMU_INDICES]; /* enum vpmu_counter_state */
    bool user_rdpmc;            /* CR4.PCE was set by us */
};

struct vpmu {
    struct pmu pmu;
    struct vpmu_processor *processor; /* non-paged */
    uint32_t processors;              /* entries of it */
    uint32_t driven;                  /* active ones when the counters were acquired */

    const void *owner; /* the client that holds the counters, or NULL */
    HANDLE set;        /* of the HAL */
    struct vpmu_grant grant;
    uint64_t held; /* sets of counters; each is a subset of the one before */
    uint64_t programmed;
    uint64_t running;
    uint64_t profiled; /* a subset of `held` */
    struct pmu_program programs[PMU_INDICES];
    struct status status;
};

static_assert(sizeof(((struct vpmu_processor *)0)->state) == PMU_INDICES, "one state per index");

/* `processor` has `processors` zeroed entries, and all else is zero. */
void vpmu_init(struct vpmu *vpmu, struct vpmu_processor *processor, uint32_t processors);

/*
 * Answer one request. `buffer` holds `in_length` bytes of input and room for `out_length` bytes of
 * output, as METHOD_BUFFERED has it; *written is the length of the output, 0 on failure.
 * `client` tells callers apart. STATUS_PENDING: the buffer has what vpmu_answer() needs.
 */
NTSTATUS vpmu_ioctl(struct vpmu *vpmu, const void *client, uint32_t code, void *buffer,
                    uint32_t in_length, uint32_t out_length, uint32_t *written);

/* Answer a pending request, or STATUS_PENDING again. Needs no mutex; up to DISPATCH_LEVEL. */
NTSTATUS vpmu_answer(struct vpmu *vpmu, uint32_t code, void *buffer, uint32_t *written);

/* A client has gone: give back whatever it holds. */
void vpmu_client_gone(struct vpmu *vpmu, const void *client);

/* counters.c; the callers have checked that the client may, and that counters are held. */
NTSTATUS counters_acquire(struct vpmu *vpmu, const void *client,
                          const struct vpmu_acquire_request *request);
void counters_release(struct vpmu *vpmu);
NTSTATUS counters_program(struct vpmu *vpmu, const struct vpmu_program_request *request);
NTSTATUS counters_start(struct vpmu *vpmu, uint64_t counters);
NTSTATUS counters_stop(struct vpmu *vpmu, uint64_t counters);
NTSTATUS counters_read(struct vpmu *vpmu, uint32_t processor, struct vpmu_reading *reading);

/* overflow.c */
PHYSICAL_COUNTER_OVERFLOW_HANDLER overflow_handler;
void overflow_reset(struct vpmu_overflows *overflows);
/* From now on no period of the counter has ended. */
void overflow_forget(struct vpmu_overflows *overflows, uint32_t index);
void overflow_attach(struct vpmu *vpmu); /* NULL: detach */

/* profiling.c */
NTSTATUS profiling_set(struct vpmu *vpmu, const struct vpmu_profile_request *request,
                       struct vpmu_profile *profile);
void profiling_clear(struct vpmu *vpmu);

/* states.c */
NTSTATUS states_read(const struct vpmu *vpmu, uint32_t processor, struct vpmu_states *out);

/* verify.c */
NTSTATUS verify(struct vpmu *vpmu, const struct vpmu_verify_request *request,
                struct vpmu_verification *verification);
/* What one check says about its counter. */
enum vpmu_counter_state verify_state(uint32_t flags, uint64_t expected, uint64_t counted);

#endif
