/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intel's architectural PMU as the SDM has it (Vol. 3, chapter "Performance Monitoring", Vol. 4 for
 * the registers): what this CPU has, read once, and the few steps that every test takes.
 */
#ifndef GUEST_PMU_H
#define GUEST_PMU_H

#include <stdbool.h>
#include <stdint.h>

#define MSR_PMC(i) (0xc1u + (i))
#define MSR_PERFEVTSEL(i) (0x186u + (i))
#define MSR_MISC_ENABLE 0x1a0u
#define MSR_DEBUGCTL 0x1d9u
#define MSR_FIXED_CTR(i) (0x309u + (i))
#define MSR_PERF_CAPABILITIES 0x345u
#define MSR_FIXED_CTR_CTRL 0x38du
#define MSR_GLOBAL_STATUS 0x38eu
#define MSR_GLOBAL_CTRL 0x38fu
#define MSR_GLOBAL_OVF_CTRL 0x390u
#define MSR_GLOBAL_STATUS_SET 0x391u
#define MSR_GLOBAL_INUSE 0x392u
#define MSR_A_PMC(i) (0x4c1u + (i))

#define EVTSEL_USR (1u << 16)
#define EVTSEL_OS (1u << 17)
#define EVTSEL_EDGE (1u << 18)
#define EVTSEL_PC (1u << 19)
#define EVTSEL_INT (1u << 20)
#define EVTSEL_ANY (1u << 21)
#define EVTSEL_EN (1u << 22)
#define EVTSEL_INV (1u << 23)
#define EVTSEL_CMASK(n) ((uint32_t)(n) << 24)

#define FIXED_OS 1u
#define FIXED_USR 2u
#define FIXED_ANY 4u
#define FIXED_PMI 8u

#define STATUS_FIXED 32
#define STATUS_CTR_FRZ (1ul << 59)
#define STATUS_OVF_BUF (1ul << 62)
#define STATUS_COND_CHGD (1ul << 63)

#define DEBUGCTL_FREEZE_PERFMON (1ul << 12)

#define RDPMC_FIXED 0x40000000u

/* Unit mask << 8 | event select (SDM Vol. 3, "Pre-defined Architectural Performance Events"). */
enum pmu_event {
    EVENT_CYCLES = 0x003c,
    EVENT_INSTRUCTIONS = 0x00c0,
    EVENT_REF_CYCLES = 0x013c,
    EVENT_LLC_REFERENCES = 0x4f2e,
    EVENT_LLC_MISSES = 0x412e,
    EVENT_BRANCHES = 0x00c4,
    EVENT_BRANCH_MISSES = 0x00c5,
    EVENT_SLOTS = 0x01a4,
    EVENT_COND_BRANCHES = 0x01c4, /* of the models, not architectural */
};

/* CPUID leaf 0xA and its neighbours. */
struct pmu_caps {
    bool intel;
    unsigned version, gp, fixed, gp_width, fixed_width;
    unsigned events;             /* length of the EBX vector */
    uint32_t events_unavailable; /* EBX */
    uint32_t fixed_mask;         /* ECX, version 5 */
    bool any_thread_deprecated;
    bool pdcm, full_width;
};

extern struct pmu_caps pmu;

/* One counter of either kind; selector 0 to gp - 1, then the fixed ones. */
struct pmu_counter {
    bool fixed;
    unsigned index;
    unsigned status_bit;
    uint32_t msr, rdpmc;
    uint64_t mask; /* the largest value */
};

/* Reads the capabilities into `pmu`. */
void pmu_detect(void);

unsigned pmu_counters(void);
struct pmu_counter pmu_counter(unsigned i);

/* Bits of GLOBAL_CTRL: of the counters that exist, of one kind. */
uint64_t pmu_gp_bits(void);
uint64_t pmu_fixed_bits(void);

/* Is the architectural event with this bit of EBX available? */
bool pmu_event_available(unsigned bit);

/* Everything that is writable to 0, status cleared, LVT entry masked. */
void pmu_clear(void);

/*
 * Sets a counter to a value and programs it; flags are those of EVTSEL_ (USR, OS, INT). The event
 * of a fixed counter is its own. GLOBAL_CTRL stays as it is. Values that the legacy MSR cannot take
 * need full_width.
 */
void pmu_program(struct pmu_counter c, enum pmu_event event, uint32_t flags, uint64_t value);
void pmu_write(struct pmu_counter c, uint64_t value);
uint64_t pmu_read(struct pmu_counter c);

/* The value from which a counter overflows with the n-th event. */
uint64_t pmu_before_overflow(struct pmu_counter c, uint64_t n);

/*
 * WRMSR(msr, on); fn(arg); WRMSR(msr, off). Between the two, counters see MEASURE_INSNS ring 0
 * instructions and MEASURE_BRANCHES branches, and what fn executes including its RET: the WRMSR
 * that enables is counted, the one that disables is not.
 */
void pmu_measure(uint32_t msr, uint64_t on, uint64_t off, uint64_t (*fn)(uint64_t), uint64_t arg);
#define MEASURE_INSNS 6
#define MEASURE_BRANCHES 1

/* The enabling WRMSR in pmu_measure(). */
extern const uint8_t pmu_measure_start[];

/* A loop of n >= 1 rounds, and what it retires with its RET. */
uint64_t spin(uint64_t n);
#define SPIN_INSNS(n) (2 * (n) + 1)
#define SPIN_BRANCHES(n) ((n) + 1)
#define SPIN_COND_BRANCHES(n) (n)

#endif
