// SPDX-License-Identifier: BSD-3-Clause
/* What the operator's policy denies counts nothing, and says so. */
#include "model_source.h"

#define INSTRUCTIONS 0x00C0u
#define BRANCHES 0x00C4u
#define FIXED_INSTRUCTIONS 4u /* the first counter behind the general-purpose ones */
#define IRPERF_COUNTER 6u

static struct vpmu_counter_info info_of(struct machine *m, unsigned counter)
{
    struct vpmu_counter_info info;

    vpmu_counter_info(&m->pmu, counter, &info);
    return info;
}

Test(model_denied, a_denied_event_counts_nothing_and_others_count)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    m.denies = BRANCHES;
    wrmsr(&m, IA32_PERFEVTSEL0, EN | USR | INT | BRANCHES);
    wrmsr(&m, IA32_PERFEVTSEL0 + 1, EN | USR | INSTRUCTIONS);
    wrmsr(&m, IA32_PMC0, 0xFFFFFFFF);
    cr_assert_eq(m.demands, 1, "the source is asked for what is denied");
    happen(&m, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 100);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_USER, 100);
    vpmu_sync(&m.pmu);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 0xFFFFFFFFFFFF);
    cr_assert_eq(rdmsr(&m, IA32_PMC0 + 1), 100);
    cr_assert_eq(m.pmis, 0);
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_FILTERED);
    cr_assert_eq(info_of(&m, 0).event, VPMU_EVENT_NONE);
    cr_assert_eq(info_of(&m, 0).code, BRANCHES);
    cr_assert_eq(info_of(&m, 1).state, VPMU_COUNTER_BACKED);
}

/* The whole selector is looked at, and only of a counter that shall count. */
Test(model_denied, only_while_it_is_on_and_only_the_code)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    m.denies = BRANCHES;
    wrmsr(&m, IA32_PERFEVTSEL0, USR | BRANCHES);
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_GRANTED);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | USR | BRANCHES | 0x100);
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_BACKED);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | USR | BRANCHES);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, 0);
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_FILTERED);
}

/* A denied code that no source counts is denied first: the policy is what the operator can change.
 */
Test(model_denied, an_unsupported_event_can_be_denied)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | USR | 0x1234);
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_UNSUPPORTED);
    m.denies = 0x1234;
    cr_assert_eq(info_of(&m, 0).state, VPMU_COUNTER_FILTERED);
}

Test(model_denied, fixed_counters_are_denied_by_their_event)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    m.denies = INSTRUCTIONS;
    wrmsr(&m, IA32_FIXED_CTR_CTRL, 0x33);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, UINT64_C(3) << 32);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_USER, 100);
    happen(&m, VPMU_EVENT_CYCLES, VPMU_CLASS_USER, 100);
    cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0), 0);
    cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0 + 1), 100);
    cr_assert_eq(info_of(&m, FIXED_INSTRUCTIONS).state, VPMU_COUNTER_FILTERED);
    cr_assert_eq(info_of(&m, FIXED_INSTRUCTIONS + 1).state, VPMU_COUNTER_BACKED);
}

Test(model_denied, irperf_is_denied_with_instructions)
{
    struct vpmu_config config = amd_config_of(VPMU_AMD_PERFMON_V2);
    struct machine m;

    power_on(&m, &config);
    m.denies = INSTRUCTIONS;
    wrmsr(&m, HWCR, IRPERF_EN);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 100);
    cr_assert_eq(rdmsr(&m, IRPERF), 0);
    cr_assert_eq(info_of(&m, IRPERF_COUNTER).state, VPMU_COUNTER_FILTERED);
}
