/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMU of a processor as rows, one for each counter. What CPUID says fills them (pmu_intel.c,
 * pmu_amd.c); from then on no code asks which vendor it is (pmu.c).
 */
#ifndef VPMU_PMU_H
#define VPMU_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include "vpmu_ioctl.h"

#define PMU_INDICES 64u /* indices of the HAL: 0 to 63 */

/* Bits of an event select register, Intel's and AMD's alike (SDM Vol. 3, IA32_PERFEVTSELx). */
#define PMU_EVENT_AND_UMASK 0x0000ffffull
#define PMU_USER (1ull << 16)
#define PMU_KERNEL (1ull << 17)
#define PMU_EDGE (1ull << 18)
#define PMU_INTERRUPT (1ull << 20)
#define PMU_ENABLE (1ull << 22)
#define PMU_INVERT (1ull << 23)
#define PMU_COUNTER_MASK 0xff000000ull

/* A counter's field of IA32_FIXED_CTR_CTRL. */
#define PMU_FIXED_KERNEL 1ull
#define PMU_FIXED_USER 2ull
#define PMU_FIXED_INTERRUPT 8ull
#define PMU_FIXED_FIELD 0xfull

/* What a counter is to count. */
struct pmu_program {
    uint64_t config; /* event, umask and so on; of no meaning to a fixed counter */
    uint32_t event;  /* enum vpmu_event_id */
    uint32_t flags;  /* VPMU_COUNT_... */
    uint64_t period; /* events to a PMI, or 0 */
};

struct pmu_counter {
    uint32_t control_msr;
    uint32_t value_msr;
    uint64_t control_mask;  /* the counter's field of the control register, in place */
    uint32_t control_shift; /* of that field */
    uint32_t selector;      /* ECX of RDPMC */
    uint32_t fixed_event;   /* the one event that it counts, or VPMU_NONE */
    uint32_t width;         /* bits */
};

struct pmu_event {
    uint32_t config; /* or VPMU_NONE */
    bool available;
};

struct pmu {
    uint32_t vendor;  /* enum vpmu_vendor */
    uint32_t version; /* 0: no PMU */
    uint32_t gp_counters;
    uint32_t fixed_counters;
    uint32_t gp_width;
    uint32_t fixed_width;
    uint32_t global_ctrl; /* MSR whose bit i must be set for counter i to count, or 0 */
    uint64_t raw_config;  /* the bits that a caller's own event select may have */
    uint64_t counters;    /* rows that are filled, by index */
    uint64_t enumerated;  /* those of them that CPUID lists */
    struct pmu_event event[VPMU_EVENTS];
    struct pmu_counter counter[PMU_INDICES];
};

/* Fill `pmu` from CPUID. Where CPUID lists no counter, the rows are the usual ones of the vendor,
 * not enumerated, so that a verification can show that nothing is behind them. */
void pmu_discover(struct pmu *pmu);
void pmu_discover_intel(struct pmu *pmu);
void pmu_discover_amd(struct pmu *pmu);

/* The rest acts on the processor that it runs on, and returns false if a register faults. */

/* Set a counter up, stopped, at 0 (or one period before its overflow). */
bool pmu_program(const struct pmu *pmu, uint32_t index, const struct pmu_program *program);
bool pmu_start(const struct pmu *pmu, uint32_t index, const struct pmu_program *program);
bool pmu_stop(const struct pmu *pmu, uint32_t index);
/* Stop and leave nothing behind, as HalFreeHardwareCounters wants it. */
bool pmu_clear(const struct pmu *pmu, uint32_t index);
/* Events since the counter was programmed, given the periods that have ended. */
bool pmu_read(const struct pmu *pmu, uint32_t index, const struct pmu_program *program,
              uint64_t overflows, uint64_t *value);
/* Begin the next period from within the overflow handler. `ended` is 1, or more if the handler came
 * later than one period. */
bool pmu_reload(const struct pmu *pmu, uint32_t index, uint64_t period, uint64_t *ended);
/* The counter's bit of GLOBAL_CTRL: set it; *was tells whether it was set already. */
bool pmu_open_gate(const struct pmu *pmu, uint32_t index, bool *was);
/* The whole control register with the counter running as programmed, and with it stopped. */
bool pmu_control(const struct pmu *pmu, uint32_t index, const struct pmu_program *program,
                 uint64_t *on, uint64_t *off);

static inline bool pmu_is_fixed(uint32_t index)
{
    return index >= VPMU_FIRST_FIXED;
}

static inline uint64_t pmu_width_mask(uint32_t width)
{
    return width >= 64 ? ~0ull : (1ull << width) - 1;
}

/* The lowest index in a mask that is not empty. */
static inline uint32_t pmu_first(uint64_t mask)
{
    return (uint32_t)__builtin_ctzll(mask);
}

#endif
