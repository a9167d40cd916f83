/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine and a Windows for vpmu.sys without its edges: registers, processors, HAL and kernel. It
 * keeps its own books, so that a test can ask what is really held and what really counts.
 */
#ifndef TESTS_UNIT_DRIVER_FAKE_H
#define TESTS_UNIT_DRIVER_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "os.h"
#include "vpmu.h"

enum { FAKE_PROCESSORS = 4, FAKE_MSRS = 64, FAKE_LIVE = 8 };

struct fake_msr {
    uint32_t number;
    uint64_t value;
};

struct fake {
    /* The machine */
    struct vpmu_processor per_processor[FAKE_PROCESSORS];
    struct fake_msr msr[FAKE_PROCESSORS][FAKE_MSRS];
    uint32_t msrs;
    uint32_t vendor; /* enum vpmu_vendor */
    uint32_t version, gp, fixed, width;
    uint32_t unavailable; /* CPUID.0AH:EBX */
    uint32_t processors;
    uint32_t here;
    bool interrupts_off;
    uint64_t pending; /* overflows whose interrupt is held back */
    bool user_rdpmc[FAKE_PROCESSORS];
    uint32_t rests;        /* calls of os_rest() */
    void (*on_rest)(void); /* what happens meanwhile */

    /* What is wrong with it: masks over counter indices */
    uint64_t starved;      /* counts nothing */
    uint64_t slow;         /* counts half */
    uint64_t wild;         /* counts ten times as much */
    uint64_t drops;        /* its control register drops what is written */
    uint64_t rdpmc_faults; /* RDPMC of it faults */
    bool loses_interrupts;
    uint32_t denied; /* an event select that counts nothing */

    /* The HAL */
    uint32_t build;
    uint64_t taken; /* counters that somebody else holds */
    NTSTATUS refusal;
    NTSTATUS overflow_status; /* of a list with an overflow handler */
    struct fake_set {
        bool live;
        bool whole;
        uint64_t counters;
        PHYSICAL_COUNTER_OVERFLOW_HANDLER *handler;
    } set[FAKE_LIVE];
    uint32_t lists; /* list allocations so far */
    uint32_t wholes;
    uint32_t bad_frees;

    /* The profiling configuration */
    HARDWARE_COUNTER standing[MAX_HW_COUNTERS];
    uint32_t standing_count;
    NTSTATUS set_status;
    bool set_forgets; /* success, but nothing stands */
};

/* The status device's two regions. */
struct fake_status {
    struct vpmu_status_registers registers;
    uint32_t unused[1004];
    union {
        struct vpmu_status_page page;
        uint8_t bytes[VPMU_STATUS_PAGE_SIZE];
    } pages[FAKE_PROCESSORS];
};

extern struct fake_status fake_status;

/* A sound one: page i is of APIC id FAKE_APIC_ID(i), and each vCPU has two GP counters. */
void fake_status_reset(void);
NTSTATUS fake_status_attach(void); /* to `driver`, with an interrupt */
#define FAKE_APIC_ID(processor) (2 * (processor))

extern struct fake fake;
extern struct vpmu driver; /* over it */

/* A fresh machine of four processors and a fresh driver. Version 0 means: no PMU, MSRs fault. */
void fake_intel(uint32_t version, uint32_t gp, uint32_t fixed);
void fake_amd(void);

uint64_t *fake_msr(uint32_t processor, uint32_t number); /* NULL: none */
uint32_t fake_live(void);                                /* sets that are held */
/* No counter of the driver is set up on any processor. */
bool fake_is_quiet(void);
/* Count `events` on each counter of a processor that is enabled, and deliver overflows at the end.
 */
void fake_count(uint32_t processor, uint64_t events);

/* The request, in a buffer of exactly the larger length; `out` may be NULL. */
NTSTATUS fake_request(const void *client, uint32_t code, const void *in, uint32_t in_length,
                      void *out, uint32_t out_length, uint32_t *written);

#define HEADER(type) {.size = sizeof(type), .version = VPMU_IOCTL_VERSION}

#endif
