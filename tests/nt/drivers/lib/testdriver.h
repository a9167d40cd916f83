/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the test drivers have in common. A test driver has one device, one
 * request, and answers with rows: what a call gave and what it should give.
 * The guest kernel, which is the user program here, compares them.
 */
#ifndef TESTDRIVER_H
#define TESTDRIVER_H

#include "ntmore.h"

#define TEST_IOCTL_RUN CTL_CODE(FILE_DEVICE_UNKNOWN, 0x900, METHOD_BUFFERED, FILE_ANY_ACCESS)
#define TEST_MAX_ROWS 160

struct test_input {
    uint32_t section;                         /* of the driver's own choosing */
    uint32_t observed;                        /* the HAL behaves as observed, not as documented */
    uint32_t gp, fixed, fixed_width, version; /* the PMU that the kernel found */
    uint32_t processors;
    uint32_t event_buffer; /* the kernel says that there is PEBS */
};

struct test_row {
    uint64_t got, want;
    char name[112];
};

struct test_output {
    uint32_t count;
    uint32_t dropped; /* rows that found no room */
    struct test_row rows[TEST_MAX_ROWS];
};

/* Sections of contract.sys. */
enum contract_section {
    CONTRACT_NO_PMU,   /* no counter behind the routines */
    CONTRACT_ALLOCATE, /* one request at a time */
    CONTRACT_CONFLICT, /* one request while another holds something */
    CONTRACT_FREE,
    CONTRACT_EVENT_BUFFER, /* with PEBS */
    CONTRACT_FULL,         /* with room for two allocations */
    CONTRACT_KERNEL_HOLDS, /* the kernel's own profiling holds GP counter 0 */
    CONTRACT_BEFORE_1903,
    CONTRACT_PROFILING,
    CONTRACT_NO_PROFILING,
    CONTRACT_OVERFLOW,      /* the overflow handler, on every processor */
    CONTRACT_COUNT,         /* exact counts, on every processor */
    CONTRACT_WRONG_IRQL,    /* each call breaks a rule */
    CONTRACT_PROFILE_BEGIN, /* sets the profiling configuration up, and down */
    CONTRACT_PROFILE_BUSY,  /* a thread profiles with the configuration */
    CONTRACT_PROFILE_END,
    CONTRACT_HOLD, /* holds and samples the first and the last GP counter, and lets go */
    CONTRACT_LET_GO,
};

/* Sections of routines.sys. */
enum routines_section {
    ROUTINES_PLAIN,
    ROUTINES_EXCEPTIONS,
    ROUTINES_WRONG_IRQL,
    ROUTINES_LEAK, /* leaves pool and counters behind */
};

/** Each driver's own. */
extern const WCHAR test_device[], test_link[];
void test_run(const struct test_input *input, struct test_output *output);
void test_unload(void);

/** Adds a row. */
void test_equal(struct test_output *output, uint64_t got, uint64_t want, const char *name);

/** Adds a row whose name ends in ", processor N". */
void test_equal_on(struct test_output *output, uint64_t got, uint64_t want, const char *name,
                   uint32_t processor);

/** Runs work(context) on a processor, through the thread's affinity. */
void test_on_processor(uint32_t processor, void (*work)(void *), void *context);

#endif
