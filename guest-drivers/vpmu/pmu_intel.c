/* SPDX-License-Identifier: BSD-3-Clause */
/* Intel: CPUID leaf 0AH (SDM Vol. 3, "Architectural Performance Monitoring"). */

#include "pmu.h"

#include "os.h"

enum {
    IA32_PMC0 = 0xc1,
    IA32_PERFEVTSEL0 = 0x186,
    IA32_FIXED_CTR0 = 0x309,
    IA32_FIXED_CTR_CTRL = 0x38d,
    IA32_PERF_GLOBAL_CTRL = 0x38f,
    RDPMC_FIXED = 0x40000000,
    USUAL_GP = 4,
    USUAL_FIXED = 3,
    USUAL_WIDTH = 48,
};

static void add_gp(struct pmu *pmu, uint32_t count, uint32_t width)
{
    for (uint32_t i = 0; i < count; i++) {
        pmu->counter[i] = (struct pmu_counter){
            .control_msr = IA32_PERFEVTSEL0 + i,
            .value_msr = IA32_PMC0 + i,
            .control_mask = ~0ull,
            .selector = i,
            .fixed_event = VPMU_NONE,
            .width = width,
        };
        pmu->counters |= 1ull << i;
    }
}

static void add_fixed(struct pmu *pmu, uint32_t count, uint32_t width)
{
    static const uint32_t event_of[] = {VPMU_EVENT_INSTRUCTIONS, VPMU_EVENT_CYCLES,
                                        VPMU_EVENT_REF_CYCLES, VPMU_EVENT_SLOTS};

    for (uint32_t i = 0; i < count && i < sizeof(event_of) / sizeof(event_of[0]); i++) {
        pmu->counter[VPMU_FIRST_FIXED + i] = (struct pmu_counter){
            .control_msr = IA32_FIXED_CTR_CTRL,
            .value_msr = IA32_FIXED_CTR0 + i,
            .control_mask = PMU_FIXED_FIELD << (4 * i),
            .control_shift = 4 * i,
            .selector = RDPMC_FIXED | i,
            .fixed_event = event_of[i],
            .width = width,
        };
        pmu->counters |= 1ull << (VPMU_FIRST_FIXED + i);
    }
}

static void add_events(struct pmu *pmu, uint32_t length, uint32_t unavailable)
{
#define VPMU_EVENT(id, name, intel, bit, fixed, amd)                                               \
    pmu->event[VPMU_EVENT_##id] = (struct pmu_event){                                              \
        .config = (intel),                                                                         \
        .available = (bit) < length && !(unavailable >> (bit) & 1),                                \
    };
#include "events.def"
#undef VPMU_EVENT
}

/* A width that no processor has would make every shift below meaningless. */
static uint32_t width_of(uint32_t listed)
{
    return listed >= 32 && listed <= 63 ? listed : USUAL_WIDTH;
}

static uint32_t at_most(uint32_t value, uint32_t limit)
{
    return value < limit ? value : limit;
}

void pmu_discover_intel(struct pmu *pmu)
{
    uint32_t r[4] = {0};

    os_cpuid(0, 0, r);
    if (r[0] >= 0xa)
        os_cpuid(0xa, 0, r);
    else
        r[0] = r[1] = r[2] = r[3] = 0;

    pmu->vendor = VPMU_VENDOR_INTEL;
    pmu->version = r[0] & 0xff;
    pmu->raw_config = PMU_EVENT_AND_UMASK | PMU_EDGE | PMU_INVERT | PMU_COUNTER_MASK;
    if (pmu->version) {
        pmu->gp_counters = at_most(r[0] >> 8 & 0xff, VPMU_MAX_COUNTERS - 8);
        pmu->gp_width = width_of(r[0] >> 16 & 0xff);
    }
    if (pmu->version >= 2) {
        pmu->global_ctrl = IA32_PERF_GLOBAL_CTRL;
        pmu->fixed_counters = at_most(r[3] & 0x1f, 4);
        pmu->fixed_width = width_of(r[3] >> 5 & 0xff);
    }
    if (pmu->gp_counters || pmu->fixed_counters) {
        add_gp(pmu, pmu->gp_counters, pmu->gp_width);
        add_fixed(pmu, pmu->fixed_counters, pmu->fixed_width);
        add_events(pmu, r[0] >> 24, r[1]);
        pmu->enumerated = pmu->counters;
    } else {
        add_gp(pmu, USUAL_GP, USUAL_WIDTH);
        add_fixed(pmu, USUAL_FIXED, USUAL_WIDTH);
        add_events(pmu, 0, 0);
    }
}
