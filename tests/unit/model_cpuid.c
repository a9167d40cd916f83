/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processor says it has, and which processors there cannot be. */
#include "model_source.h"

#include <string.h>

#define BIT(event) VPMU_EVENT_BIT(VPMU_EVENT_##event)
#define HONEST                                                                                     \
    (BIT(INSTRUCTIONS) | BIT(CYCLES) | BIT(REF_CYCLES) | BIT(BRANCHES) | BIT(COND_BRANCHES))

Test(model_cpuid, leaf_0a)
{
    static const struct {
        struct vpmu_config config;
        uint32_t regs[4];
    } rows[] = {
        {{0, 1, 2, 0, 40, 0, false, ALL_EVENTS}, {0x08280201, 0, 0, 0}},
        {{0, 2, 4, 3, 48, 48, true, ALL_EVENTS}, {0x08300402, 0, 0, 0x603}},
        {{0, 2, 4, 3, 48, 48, true, HONEST}, {0x07300402, 0x58, 0, 0x603}},
        {{0, 2, 4, 0, 48, 48, true, BIT(INSTRUCTIONS)}, {0x07300402, 0x7D, 0, 0}},
        {{0, 3, 1, 1, 32, 33, true, HONEST}, {0x07200103, 0x58, 0, 0x421}},
        {{0, 4, 8, 3, 48, 40, true, HONEST}, {0x07300804, 0x58, 0, 0x503}},
        {{0, 5, 8, 4, 48, 48, true, HONEST | BIT(SLOTS)}, {0x08300805, 0x58, 0xF, 0x8604}},
        {{0, 5, 8, 3, 48, 48, true, HONEST | BIT(LLC_MISSES)}, {0x07300805, 0x48, 7, 0x8603}},
        {{0, 5, 8, 0, 48, 48, true, BIT(BRANCH_MISSES)}, {0x07300805, 0x3F, 0, 0x8000}},
        {{VPMU_VENDOR_AMD, 2, 6, 0, 48, 0, false, HONEST}, {0, 0, 0, 0}},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t regs[4] = {1, 1, 1, 1};

        vpmu_cpuid_0a(&rows[i].config, regs);
        for (unsigned r = 0; r < 4; r++) {
            cr_assert_eq(regs[r], rows[i].regs[r], "row %u, register %u: %#x", i, r, regs[r]);
        }
    }
}

static struct vpmu_config good;

static void setup(void)
{
    good = config_of(2);
}

static void refused(struct vpmu_config config, const char *word)
{
    const char *error = vpmu_config_error(&config);

    cr_assert_not_null(error, "not refused: %s", word);
    cr_assert(strstr(error, word), "\"%s\" says nothing of %s", error, word);
}

#define REFUSED(field, value, word)                                                                \
    do {                                                                                           \
        struct vpmu_config config = good;                                                          \
        config.field = (value);                                                                    \
        refused(config, word);                                                                     \
    } while (0)

Test(model_cpuid, refused_configurations, .init = setup)
{
    REFUSED(vendor, 2, "vendor");
    REFUSED(vendor, 255, "vendor");
    REFUSED(version, 0, "version");
    REFUSED(version, 6, "version");
    REFUSED(version, 1, "version 1");
    REFUSED(gp, 0, "general-purpose");
    REFUSED(gp, 9, "general-purpose");
    REFUSED(fixed, 5, "fixed");
    REFUSED(gp_width, 31, "general-purpose");
    REFUSED(gp_width, 49, "general-purpose");
    REFUSED(gp_width, 64, "general-purpose");
    REFUSED(fixed_width, 31, "fixed");
    REFUSED(fixed_width, 49, "fixed");
    REFUSED(events, ALL_EVENTS | 1, "event");
    REFUSED(events, 1u << VPMU_EVENTS, "event");
    REFUSED(events, ALL_EVENTS & ~BIT(INSTRUCTIONS), "fixed");
    REFUSED(events, ALL_EVENTS & ~BIT(CYCLES), "fixed");
    REFUSED(events, ALL_EVENTS & ~BIT(REF_CYCLES), "fixed");
}

Test(model_cpuid, accepted_configurations, .init = setup)
{
    for (unsigned version = 1; version <= 5; version++) {
        for (unsigned gp = 1; gp <= 8; gp++) {
            for (unsigned fixed = 0; fixed <= (version == 1 ? 0 : 4); fixed++) {
                for (unsigned width = 32; width <= 48; width++) {
                    struct vpmu_config config = {0,
                                                 (uint8_t)version,
                                                 (uint8_t)gp,
                                                 (uint8_t)fixed,
                                                 (uint8_t)width,
                                                 (uint8_t)width,
                                                 true,
                                                 ALL_EVENTS};

                    cr_assert_null(vpmu_config_error(&config));
                }
            }
        }
    }
}

/* A fixed counter is only advertised if its event is counted; three need no slots. */
Test(model_cpuid, fixed_counters_need_their_events, .init = setup)
{
    good.events = HONEST;
    cr_assert_null(vpmu_config_error(&good));
    REFUSED(fixed, 4, "fixed");
    good.fixed = 0;
    good.events = 0;
    good.fixed_width = 0;
    cr_assert_null(vpmu_config_error(&good));
}

Test(model_cpuid, misc_enable)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    cr_assert_eq(vpmu_misc_enable(&m.pmu, 0), 0x1880);
    cr_assert_eq(vpmu_misc_enable(&m.pmu, 0x400000001), 0x400001881);
    cr_assert_eq(vpmu_misc_enable(&m.pmu, UINT64_MAX), UINT64_MAX);
}

Test(model_cpuid, perf_capabilities)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    cr_assert_eq(rdmsr(&m, IA32_PERF_CAPABILITIES), 0x2000);
    config.full_width = false;
    power_on(&m, &config);
    cr_assert_eq(rdmsr(&m, IA32_PERF_CAPABILITIES), 0);
}
