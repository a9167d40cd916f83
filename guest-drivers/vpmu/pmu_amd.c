/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD: APM Vol. 2, "Performance Monitoring Counters". */

#include "pmu.h"

#include "os.h"

enum {
    WIDTH = 48,
    LEGACY_COUNTERS = 4,
    EXTENDED_COUNTERS = 6,
    MAX_EXTENDED = 16,
};

/* Four counters in two banks of their own, or pairs of control and value side by side. */
#define PERF_LEGACY_CTL0 0xc0010000u
#define PERF_LEGACY_CTR0 0xc0010004u
#define PERF_CTL0 0xc0010200u
#define PERF_CTR0 0xc0010201u
#define PERF_CNTR_GLOBAL_CTL 0xc0000301u

#define EVENT_HIGH (0xfull << 32) /* event select, bits 11:8 */

static void add_counters(struct pmu *pmu, uint32_t control, uint32_t value, uint32_t stride)
{
    for (uint32_t i = 0; i < pmu->gp_counters; i++) {
        pmu->counter[i] = (struct pmu_counter){
            .control_msr = control + i * stride,
            .value_msr = value + i * stride,
            .control_mask = ~0ull,
            .selector = i,
            .fixed_event = VPMU_NONE,
            .width = WIDTH,
        };
        pmu->counters |= 1ull << i;
    }
}

static void add_events(struct pmu *pmu)
{
#define VPMU_EVENT(id, name, intel, bit, fixed, amd)                                               \
    pmu->event[VPMU_EVENT_##id] =                                                                  \
        (struct pmu_event){.config = (amd), .available = (amd) != VPMU_NONE};
#include "events.def"
#undef VPMU_EVENT
}

void pmu_discover_amd(struct pmu *pmu)
{
    uint32_t highest[4], features[4] = {0}, v2[4] = {0};

    os_cpuid(0x80000000, 0, highest);
    if (highest[0] >= 0x80000001)
        os_cpuid(0x80000001, 0, features);
    if (highest[0] >= 0x80000022)
        os_cpuid(0x80000022, 0, v2);

    pmu->vendor = VPMU_VENDOR_AMD;
    pmu->version = 1;
    pmu->gp_width = WIDTH;
    pmu->raw_config = PMU_EVENT_AND_UMASK | PMU_EDGE | PMU_INVERT | PMU_COUNTER_MASK | EVENT_HIGH;
    if (features[2] >> 23 & 1) { /* PerfCtrExtCore */
        pmu->gp_counters = EXTENDED_COUNTERS;
        if (v2[0] & 1) { /* PerfMonV2: the number is listed, and there is a GLOBAL_CTRL */
            uint32_t listed = v2[1] & 0xf;
            if (listed && listed <= MAX_EXTENDED)
                pmu->gp_counters = listed;
            pmu->version = 2;
            pmu->global_ctrl = PERF_CNTR_GLOBAL_CTL;
        }
        add_counters(pmu, PERF_CTL0, PERF_CTR0, 2);
    } else {
        pmu->gp_counters = LEGACY_COUNTERS;
        add_counters(pmu, PERF_LEGACY_CTL0, PERF_LEGACY_CTR0, 1);
    }
    add_events(pmu);
    pmu->enumerated = pmu->counters;
}
