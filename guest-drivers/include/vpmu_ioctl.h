/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between vpmu.sys and user mode. docs/windows.md explains it call by call.
 *
 * All requests are METHOD_BUFFERED. A structure that carries anything begins with vpmu_header; a
 * caller sets size and version in what it hands over and checks them in what it gets back. Input
 * must have exactly the length of its structure, output at least that. A request that fails gives
 * no output.
 *
 *   STATUS_INVALID_DEVICE_REQUEST  no such code
 *   STATUS_INVALID_PARAMETER       input length, size field, reserved field, or a value
 *   STATUS_REVISION_MISMATCH       version field
 *   STATUS_BUFFER_TOO_SMALL        output length
 *   STATUS_DEVICE_BUSY             another handle owns the counters
 *   STATUS_INVALID_DEVICE_STATE    the request does not fit what the counters are doing
 *   STATUS_NOT_SUPPORTED           an event that this processor does not offer; sampling without an
 *                                  overflow interrupt
 *   STATUS_IO_DEVICE_ERROR         a register of the counter faults
 *   STATUS_NO_SUCH_DEVICE          WAIT, RESIZE: there is no status device
 *   STATUS_DEVICE_REMOVED          it was there
 *   STATUS_DEVICE_NOT_CONNECTED    it does not answer
 *   STATUS_DEVICE_DATA_ERROR       it says what cannot be
 *   STATUS_IO_TIMEOUT              it changes so fast that no state of it could be read
 *   STATUS_CANCELLED               WAIT, RESIZE: cancelled, or the handle was closed
 *   anything else                  the kernel's own answer, passed on: HalAllocateHardwareCounters,
 *                                  KeSetHardwareCounterConfiguration
 *
 * A counter is named by its index for the HAL: general-purpose counter i is i, Intel's fixed
 * counter i is 32 + i. A set of counters is a mask over these indices.
 */
#ifndef VPMU_IOCTL_H
#define VPMU_IOCTL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu/abi.h"

#define VPMU_IOCTL_VERSION 1u

#define VPMU_KERNEL_DEVICE u"\\Device\\vpmu"
#define VPMU_KERNEL_LINK u"\\DosDevices\\vpmu"
#define VPMU_USER_PATH u"\\\\.\\vpmu"

#define VPMU_MAX_COUNTERS 24u /* the driver drives no more at once */
#define VPMU_MAX_CHECKS 48u   /* two events for each of them */
#define VPMU_MAX_PROFILED 16u /* MAX_HW_COUNTERS */
#define VPMU_FIRST_FIXED 32u
#define VPMU_NONE 0xffffffffu
#define VPMU_NOT_KNOWN UINT64_MAX
#define VPMU_MAX_STATES 48u /* counters of a processor */

/* CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + function, METHOD_BUFFERED, access) */
#define VPMU_ACCESS_READ 1u
#define VPMU_ACCESS_WRITE 3u
#define VPMU_CODE(function, access) (0x22u << 16 | (access) << 14 | (0x800u + (function)) << 2)

enum vpmu_ioctl_code {
#define VPMU_IOCTL(name, function, access, in, out)                                                \
    VPMU_IOCTL_##name = VPMU_CODE(function, VPMU_ACCESS_##access),
#include "ioctls.def"
#undef VPMU_IOCTL
};

enum vpmu_event_id {
#define VPMU_EVENT(id, name, intel, bit, fixed, amd) VPMU_EVENT_##id,
#include "events.def"
#undef VPMU_EVENT
    VPMU_EVENTS,
    VPMU_EVENT_RAW = 0xff, /* the event select bits are given by the caller */
};

enum vpmu_vendor { VPMU_VENDOR_OTHER = 0, VPMU_VENDOR_INTEL = 1, VPMU_VENDOR_AMD = 2 };
enum vpmu_owner { VPMU_OWNER_NONE = 0, VPMU_OWNER_YOU = 1, VPMU_OWNER_ANOTHER = 2 };

#define VPMU_LAYOUT(name, bytes)                                                                   \
    static_assert(sizeof(struct name) == (bytes), #name " is not " #bytes " bytes")
#define VPMU_FIELD(name, field, at)                                                                \
    static_assert(offsetof(struct name, field) == (at), #name "." #field " is not at " #at)

struct vpmu_header {
    uint32_t size;    /* of the whole structure, in bytes */
    uint32_t version; /* VPMU_IOCTL_VERSION */
};
VPMU_LAYOUT(vpmu_header, 8);

/* INFO: what this system has. Needs no input, so that any caller can learn the version first. */
struct vpmu_info {
    struct vpmu_header header;
    uint32_t driver_version; /* major << 16 | minor */
    uint32_t os_build;       /* lists are honoured from build 18362 on */
    uint32_t vendor;         /* enum vpmu_vendor */
    uint32_t pmu_version;    /* CPUID.0AH:EAX[7:0]; AMD: 2 with PerfMonV2, else 1 */
    uint32_t gp_counters;    /* as CPUID enumerates them: 0 when there is no PMU */
    uint32_t fixed_counters;
    uint32_t gp_width; /* bits; a value is counted modulo 2^width */
    uint32_t fixed_width;
    uint32_t processors; /* active ones, numbered 0 to processors - 1 */
    uint32_t events;     /* EVENT answers for 0 to events - 1 */
    uint32_t owner;      /* enum vpmu_owner */
    uint32_t reserved;
    uint64_t held;    /* the counters that the driver holds */
    uint64_t running; /* those of them that are started */
};
VPMU_FIELD(vpmu_info, held, 56);
VPMU_LAYOUT(vpmu_info, 72);

/* EVENT: one row of the event table. */
struct vpmu_event_request {
    struct vpmu_header header;
    uint32_t event; /* enum vpmu_event_id */
    uint32_t reserved;
};
VPMU_LAYOUT(vpmu_event_request, 16);

struct vpmu_event {
    struct vpmu_header header;
    uint32_t event;
    uint32_t available; /* 1: this processor says that it can count it */
    uint32_t config;    /* umask << 8 | event code, or VPMU_NONE */
    uint32_t fixed;     /* the fixed counter's index that counts it, or VPMU_NONE */
    char name[32];      /* ends in a zero */
};
VPMU_FIELD(vpmu_event, name, 24);
VPMU_LAYOUT(vpmu_event, 56);

/* ACQUIRE: take counters. GRANT: how the last ACQUIRE went, also when it was refused. */
enum {
    VPMU_ACQUIRE_WHOLE = 1, /* the whole PMU, as before 1903 */
};

struct vpmu_acquire_request {
    struct vpmu_header header;
    uint64_t counters; /* those wanted; 0: all that are free */
    uint32_t flags;    /* VPMU_ACQUIRE_WHOLE */
    uint32_t reserved;
};
VPMU_FIELD(vpmu_acquire_request, counters, 8);
VPMU_LAYOUT(vpmu_acquire_request, 24);

enum {
    VPMU_GRANT_WHOLE = 1,    /* by one whole-PMU allocation */
    VPMU_GRANT_OVERFLOW = 2, /* with the overflow interrupt: sampling is possible */
};

struct vpmu_grant {
    struct vpmu_header header;
    uint64_t granted;         /* the counters now held by this allocation */
    uint64_t probed;          /* those that were asked for one by one */
    int32_t allocate_status;  /* of the allocation that holds them */
    uint32_t flags;           /* VPMU_GRANT_... */
    int32_t probe_status[64]; /* by index; valid where `probed` has the bit */
};
VPMU_FIELD(vpmu_grant, granted, 8);
VPMU_FIELD(vpmu_grant, allocate_status, 24);
VPMU_FIELD(vpmu_grant, probe_status, 32);
VPMU_LAYOUT(vpmu_grant, 288);

/* PROGRAM: what a held, stopped counter counts on every processor; its value becomes 0. */
enum {
    VPMU_COUNT_USER = 1,
    VPMU_COUNT_KERNEL = 2,
};

#define VPMU_MAX_PERIOD 0x7fffffffu /* a legacy write to a counter is 32 bits, sign-extended */

/*
 * The least period of a counter that counts kernel mode. The overflow handler and the kernel's way
 * in and out of it run in kernel mode, so they count too. If they filled a period, the next
 * overflow would come before the interrupted code has gone on by one instruction, and the processor
 * would stand still for good. They take some hundreds of instructions, and on a processor some
 * thousands of cycles; this is well above both. User mode alone needs no minimum: the handler adds
 * nothing.
 */
#define VPMU_MIN_KERNEL_PERIOD 10000u

struct vpmu_program_request {
    struct vpmu_header header;
    uint32_t counter; /* index */
    uint32_t event;   /* enum vpmu_event_id */
    uint32_t flags;   /* VPMU_COUNT_..., at least one */
    uint32_t reserved;
    uint64_t config; /* VPMU_EVENT_RAW: event, umask, edge, invert and counter mask; else 0 */
    /* A PMI after so many events: 1, or with VPMU_COUNT_KERNEL VPMU_MIN_KERNEL_PERIOD, to
     * VPMU_MAX_PERIOD. 0: none. */
    uint64_t period;
};
VPMU_FIELD(vpmu_program_request, config, 24);
VPMU_LAYOUT(vpmu_program_request, 40);

/* START and STOP, on every processor. */
struct vpmu_counters_request {
    struct vpmu_header header;
    uint64_t counters; /* held and programmed ones */
};
VPMU_LAYOUT(vpmu_counters_request, 16);

/* READ: the counters of one processor. */
struct vpmu_processor_request {
    struct vpmu_header header;
    uint32_t processor;
    uint32_t reserved;
};
VPMU_LAYOUT(vpmu_processor_request, 16);

struct vpmu_value {
    uint32_t counter; /* index */
    uint32_t event;   /* enum vpmu_event_id, or VPMU_NONE if not programmed */
    uint32_t state;   /* enum vpmu_counter_state; GRANTED until VERIFY has looked */
    uint32_t reserved;
    uint64_t config;    /* umask << 8 | event code and so on */
    uint64_t value;     /* events since PROGRAM */
    uint64_t period;    /* 0: not sampling */
    uint64_t overflows; /* periods that have ended */
};
VPMU_FIELD(vpmu_value, config, 16);
VPMU_LAYOUT(vpmu_value, 48);

struct vpmu_reading {
    struct vpmu_header header;
    uint32_t processor;
    uint32_t count;         /* valid entries of `values`, in the order of their indices */
    uint64_t tsc;           /* when they were read */
    uint64_t pmis;          /* calls of the overflow handler on this processor since ACQUIRE */
    uint64_t foreign_pmis;  /* those with a handle that is not ours */
    uint64_t overflow_bits; /* of the last call */
    uint32_t pmi_irql;      /* at the last call */
    uint32_t reserved;
    struct vpmu_value values[VPMU_MAX_COUNTERS];
};
VPMU_FIELD(vpmu_reading, tsc, 16);
VPMU_FIELD(vpmu_reading, pmi_irql, 48);
VPMU_FIELD(vpmu_reading, values, 56);
VPMU_LAYOUT(vpmu_reading, 1208);

/* PROFILE: which held counters the kernel reads at each context switch of a profiled thread. */
enum {
    VPMU_PROFILE_USER_RDPMC = 1, /* CR4.PCE on every processor: RDPMC works in user mode */
};

struct vpmu_profile_request {
    struct vpmu_header header;
    uint64_t counters; /* at most VPMU_MAX_PROFILED; 0 empties the configuration */
    uint32_t flags;    /* VPMU_PROFILE_... */
    uint32_t reserved;
};
VPMU_LAYOUT(vpmu_profile_request, 24);

struct vpmu_profile {
    struct vpmu_header header;
    uint32_t count; /* as KeQueryHardwareCounterConfiguration gives them back */
    uint32_t reserved;
    uint64_t selectors[VPMU_MAX_PROFILED]; /* for RDPMC */
};
VPMU_FIELD(vpmu_profile, selectors, 16);
VPMU_LAYOUT(vpmu_profile, 144);

/*
 * VERIFY: do a known piece of work on one processor with each held counter, and compare. No counter
 * may be running; afterwards all that were programmed start again from 0.
 */
enum {
    VPMU_VERIFY_INTERRUPT =
        1, /* also that an overflow reaches the handler; READ counts these too */
};

#define VPMU_MAX_ITERATIONS 1000000u /* interrupts are off while one piece of work runs */

struct vpmu_verify_request {
    struct vpmu_header header;
    uint32_t processor;
    uint32_t iterations; /* 1 to VPMU_MAX_ITERATIONS */
    uint32_t flags;      /* VPMU_VERIFY_... */
    uint32_t reserved;
};
VPMU_FIELD(vpmu_verify_request, flags, 16);
VPMU_LAYOUT(vpmu_verify_request, 24);

enum {
    VPMU_CHECK_EXACT = 1,          /* `expected` is the count; otherwise the least plausible one */
    VPMU_CHECK_NOT_ENUMERATED = 2, /* CPUID does not list the counter */
    VPMU_CHECK_FAULT = 4,          /* its registers fault */
    VPMU_CHECK_NOT_KEPT = 8,       /* its control register drops what is written */
    VPMU_CHECK_GLOBAL_CLEAR = 16,  /* its bit in GLOBAL_CTRL was clear; the driver set it */
    VPMU_CHECK_RDPMC_FAULT = 32,   /* RDPMC faults, so thread profiling would crash the system */
    VPMU_CHECK_RDPMC_WRONG = 64,   /* RDPMC and RDMSR disagree */
    VPMU_CHECK_NO_EVENT = 128,     /* CPUID says that the event is not available */
    VPMU_CHECK_INTERRUPT = 256,    /* its overflow reached the handler: it can sample */
    VPMU_CHECK_NO_INTERRUPT = 512, /* its overflow did not */
};

struct vpmu_check {
    uint32_t counter;  /* index */
    uint32_t event;    /* enum vpmu_event_id */
    uint32_t state;    /* enum vpmu_counter_state */
    uint32_t flags;    /* VPMU_CHECK_... */
    uint64_t expected; /* events */
    uint64_t counted;
    uint64_t rdpmc;
};
VPMU_FIELD(vpmu_check, expected, 16);
VPMU_LAYOUT(vpmu_check, 40);

struct vpmu_verification {
    struct vpmu_header header;
    uint32_t processor;
    uint32_t count;       /* valid entries of `checks` */
    uint64_t global_ctrl; /* as found, 0 where there is none */
    uint64_t not_backed;  /* the held counters of which no event is backed */
    struct vpmu_check checks[VPMU_MAX_CHECKS];
};
VPMU_FIELD(vpmu_verification, global_ctrl, 16);
VPMU_FIELD(vpmu_verification, checks, 32);
VPMU_LAYOUT(vpmu_verification, 1952);

/*
 * HOST: the VM as its status device has it (vpmu/status.h). Without the device the request succeeds
 * too; then the flag is clear, device_status says why, and each fact is VPMU_NONE.
 *
 * WAIT: the same, once `changes` is no longer the caller's. RESIZE: the same, once the host has
 * answered; it fails with the host's own status.
 */
enum {
    VPMU_HOST_DEVICE = 1,    /* there is a status device, and what follows is its word */
    VPMU_HOST_INTERRUPT = 2, /* it tells of changes: WAIT and RESIZE are possible */
};

struct vpmu_host {
    struct vpmu_header header;
    uint32_t flags;         /* VPMU_HOST_... */
    int32_t device_status;  /* STATUS_SUCCESS, or why there is no device */
    uint32_t vcpus;         /* that it has a page for */
    uint32_t source;        /* enum vpmu_status_source */
    uint32_t event_class;   /* enum vpmu_event_class */
    uint32_t policy;        /* enum vpmu_shortage_policy */
    uint32_t shape_gp;      /* counters that CPUID lists */
    uint32_t shape_fixed;   /* a set: bit i is fixed counter i */
    uint32_t granted_gp;    /* how many of them the host has granted */
    uint32_t granted_fixed; /* a set */
    uint32_t changes;       /* goes up with each change of a state or a grant */
    uint32_t revocations;   /* how often the host has taken counters back */
    int32_t request_status; /* of the last RESIZE of any client; STATUS_PENDING until answered */
    uint32_t reserved;
};
VPMU_FIELD(vpmu_host, vcpus, 16);
VPMU_FIELD(vpmu_host, changes, 48);
VPMU_LAYOUT(vpmu_host, 64);

struct vpmu_wait_request {
    struct vpmu_header header;
    uint32_t changes; /* as the caller has seen it */
    uint32_t reserved;
};
VPMU_LAYOUT(vpmu_wait_request, 16);

/* Nobody owns the counters, or the caller does. What is held and given back is absent. */
struct vpmu_resize_request {
    struct vpmu_header header;
    uint32_t gp;    /* counters to have from now on, at most shape_gp */
    uint32_t fixed; /* a set, within shape_fixed */
};
VPMU_LAYOUT(vpmu_resize_request, 16);

/*
 * STATES: the counters of one processor, as the status device has them or, without it, as far as
 * VERIFY knows: then selectors and times are VPMU_NOT_KNOWN.
 */
enum {
    VPMU_STATES_DEVICE = 1, /* the device's word; otherwise VERIFY's, GRANTED until it has looked */
};

struct vpmu_state {
    uint32_t counter;    /* index */
    uint32_t state;      /* enum vpmu_counter_state */
    uint64_t selector;   /* as the guest has written it; of a fixed counter: its control bits */
    uint64_t enabled_ns; /* for how long it has been enabled while its processor ran */
    uint64_t backed_ns;  /* for how much of that it has counted */
};
VPMU_FIELD(vpmu_state, selector, 8);
VPMU_LAYOUT(vpmu_state, 32);

struct vpmu_states {
    struct vpmu_header header;
    uint32_t processor;
    uint32_t count; /* valid entries of `states`, in the order of their indices */
    uint32_t flags; /* VPMU_STATES_... */
    uint32_t reserved;
    uint64_t updated_ns; /* for how long the processor has run, as of these states */
    struct vpmu_state states[VPMU_MAX_STATES];
};
VPMU_FIELD(vpmu_states, updated_ns, 24);
VPMU_FIELD(vpmu_states, states, 32);
VPMU_LAYOUT(vpmu_states, 1568);

#endif
