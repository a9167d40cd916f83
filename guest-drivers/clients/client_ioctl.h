/* SPDX-License-Identifier: BSD-3-Clause */
/* What the client drivers report, to tests. Device names are \Device\vpmu-probe and so on. */
#ifndef VPMU_CLIENT_IOCTL_H
#define VPMU_CLIENT_IOCTL_H

#include <assert.h>
#include <stdint.h>

/* CTL_CODE(FILE_DEVICE_UNKNOWN, 0x900 + function, METHOD_BUFFERED, FILE_ANY_ACCESS) */
#define CLIENT_CODE(function) (0x22u << 16 | (0x900u + (function)) << 2)
#define CLIENT_IOCTL_RUN CLIENT_CODE(0)   /* nothing; client_report */
#define CLIENT_IOCTL_FREE CLIENT_CODE(1)  /* nothing; client_report */
#define CLIENT_IOCTL_RDMSR CLIENT_CODE(2) /* client_msr; client_msr: wholepmu.sys alone */
#define CLIENT_IOCTL_WRMSR CLIENT_CODE(3)

/* The loop of vpmu/guarded.S with so many rounds, on the processor that handles the request. */
#define CLIENT_ITERATIONS 1000u
#define CLIENT_INSTRUCTIONS 2004u
#define CLIENT_BRANCHES 1000u

#define CLIENT_MAX_CALLS 120u

enum client_what {
    CLIENT_PROBE = 1,    /* HalAllocateHardwareCounters for one counter: index */
    CLIENT_ALLOCATE = 2, /* HalAllocateHardwareCounters that stands: value is the handle */
    CLIENT_FREE = 3,
    CLIENT_SET = 4,       /* KeSetHardwareCounterConfiguration: index is the selector */
    CLIENT_COUNT = 5,     /* index: the counter; value: what it counted of the known work */
    CLIENT_INTERRUPT = 6, /* index: the processor; value: interrupts that its hook has seen */
};

struct client_call {
    uint32_t what; /* enum client_what */
    uint32_t index;
    int32_t status; /* NTSTATUS */
    uint32_t processor;
    uint64_t value;
};
static_assert(sizeof(struct client_call) == 24, "client_call is not 24 bytes");

struct client_report {
    uint32_t count; /* valid entries of `calls`, in the order of the calls */
    uint32_t reserved;
    struct client_call calls[CLIENT_MAX_CALLS];
};
static_assert(sizeof(struct client_report) == 2888, "client_report is not 2888 bytes");

struct client_msr {
    uint32_t processor;
    uint32_t msr;
    uint64_t value;
};
static_assert(sizeof(struct client_msr) == 16, "client_msr is not 16 bytes");

#endif
