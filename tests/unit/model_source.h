/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine for tests of the model: a vpmu and a source whose totals the test sets by hand. */
#ifndef TESTS_UNIT_MODEL_SOURCE_H
#define TESTS_UNIT_MODEL_SOURCE_H

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "vpmu/model.h"

#define ALL_EVENTS ((1u << VPMU_EVENTS) - 2)

#define IA32_PMC0 0xC1u
#define IA32_PERFEVTSEL0 0x186u
#define IA32_DEBUGCTL 0x1D9u
#define IA32_FIXED_CTR0 0x309u
#define IA32_PERF_CAPABILITIES 0x345u
#define IA32_FIXED_CTR_CTRL 0x38Du
#define IA32_PERF_GLOBAL_STATUS 0x38Eu
#define IA32_PERF_GLOBAL_CTRL 0x38Fu
#define IA32_PERF_GLOBAL_STATUS_RESET 0x390u
#define IA32_PERF_GLOBAL_STATUS_SET 0x391u
#define IA32_PERF_GLOBAL_INUSE 0x392u
#define IA32_A_PMC0 0x4C1u

#define IRPERF 0xC00000E9u
#define PERF_STATUS 0xC0000300u
#define PERF_GLOBAL_CTL 0xC0000301u
#define PERF_STATUS_CLR 0xC0000302u
#define PERF_STATUS_SET 0xC0000303u
#define LEGACY_CTL0 0xC0010000u
#define LEGACY_CTR0 0xC0010004u
#define HWCR 0xC0010015u
#define PERF_CTL0 0xC0010200u
#define PERF_CTR0 0xC0010201u

#define IRPERF_EN (UINT64_C(1) << 30)

#define USR 0x10000u
#define OS 0x20000u
#define EDGE 0x40000u
#define INT 0x100000u
#define EN 0x400000u
#define INV 0x800000u
#define CMASK(n) ((uint32_t)(n) << 24)
#define GUEST_ONLY (UINT64_C(1) << 40)
#define HOST_ONLY (UINT64_C(1) << 41)

struct machine {
    struct vpmu pmu;
    uint64_t totals[VPMU_EVENTS][VPMU_CLASSES];
    struct vpmu_demand demand[VPMU_COUNTERS_MAX];
    unsigned demands; /* rows in demand */
    unsigned tellings;
    unsigned pmis;
    uint32_t denies; /* the code that the policy denies; 0: none */
};

/* Version `version`, 4 + 3 counters (4 + 0 for version 1) of 48 bits, full width, every event. */
struct vpmu_config config_of(unsigned version);

/* Version `version` of AMD's, 4 or 6 counters and IRPERF, every event. */
struct vpmu_config amd_config_of(unsigned version);

/* Power on. Fails the test if the model refuses the configuration. */
void power_on(struct machine *m, const struct vpmu_config *config);

/* `n` events of the class happen; the model is not told. */
void happen(struct machine *m, enum vpmu_event event, enum vpmu_class class, uint64_t n);

/* The same, one at a time as far as the model's demand goes: it is called at each overflow. */
void run(struct machine *m, enum vpmu_event event, enum vpmu_class class, uint64_t n);

/* Accesses that must succeed. */
void wrmsr(struct machine *m, uint32_t index, uint64_t value);
uint64_t rdmsr(struct machine *m, uint32_t index);

/* A write that must fault and change nothing. */
void wrmsr_faults(struct machine *m, uint32_t index, uint64_t value);

/*
 * Some events of every kind in every class, in such numbers that no sum of others can be mistaken
 * for one; and what they are of one event in classes (bit c: class c).
 */
void something_of_everything(struct machine *m);
uint64_t something_of(enum vpmu_event event, unsigned classes);

/* An event that the source does not keep is never asked for: the first counter, whose selector is
 * the register index, is unsupported. */
void check_event_not_kept(struct vpmu_config config, enum vpmu_event event, uint32_t index,
                          uint64_t selector);

/* A saved state is taken if each of its bits is one that holds() has for its word; else it changes
 * nothing. */
void check_load_bits(struct machine *m, unsigned version,
                     uint64_t (*holds)(unsigned version, size_t word));

#endif
