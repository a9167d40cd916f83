/* SPDX-License-Identifier: BSD-3-Clause */
/* Saving, restoring, and what people are told of a counter. */
#include "model_source.h"

#include <string.h>

/* A machine in the middle of counting. */
static void busy(struct machine *m, unsigned version)
{
    struct vpmu_config config = config_of(version);

    power_on(m, &config);
    wrmsr(m, IA32_PERFEVTSEL0 + 1, EN | INT | USR | 0xC4);
    wrmsr(m, IA32_PMC0 + 1, (uint64_t)-100);
    if (version >= 2) {
        wrmsr(m, IA32_PERF_GLOBAL_CTRL, UINT64_C(0x300000003));
        wrmsr(m, IA32_FIXED_CTR_CTRL, 0x3A);
        wrmsr(m, IA32_DEBUGCTL, 0x1000);
    }
    happen(m, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 40);
    happen(m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_USER, 400);
}

static unsigned versions[] = {1, 2, 3, 4, 5};

ParameterizedTestParameters(model_state, goes_on_elsewhere)
{
    return cr_make_param_array(unsigned, versions, 5);
}

/* Saved in one machine and loaded into another, whose source has other totals, it goes on. */
ParameterizedTest(unsigned *version, model_state, goes_on_elsewhere)
{
    struct vpmu_config config = config_of(*version);
    struct machine here, there;
    struct vpmu_state state;

    busy(&here, *version);
    vpmu_save(&here.pmu, &state);
    power_on(&there, &config);
    happen(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 123456789);
    cr_assert_null(vpmu_load(&there.pmu, &state));
    cr_assert_eq(there.demands, here.demands);
    cr_assert_eq(there.demand[0].distance, 60);
    run(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 59);
    cr_assert_eq(there.pmis, 0);
    run(&there, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 1);
    cr_assert_eq(there.pmis, 1);
    cr_assert_eq(rdmsr(&there, IA32_PMC0 + 1), 0);
    if (*version >= 2) {
        cr_assert_eq(rdmsr(&there, IA32_FIXED_CTR0), 400);
        cr_assert_eq(rdmsr(&there, IA32_PERF_GLOBAL_STATUS) & 0xF, 2);
    }
    if (*version == 2 || *version == 3) {
        cr_assert_eq(rdmsr(&there, IA32_PERF_GLOBAL_CTRL), 0, "frozen");
    }
}

Test(model_state, save_changes_nothing_visible)
{
    struct machine m;
    struct vpmu_state first, second;

    busy(&m, 4);
    vpmu_save(&m.pmu, &first);
    vpmu_save(&m.pmu, &second);
    cr_assert_eq(memcmp(&first, &second, sizeof(first)), 0);
    happen(&m, VPMU_EVENT_BRANCHES, VPMU_CLASS_USER, 1);
    cr_assert_eq(rdmsr(&m, IA32_PMC0 + 1), (UINT64_C(1) << 48) - 59);
}

/* What each word of a saved state may hold, with 4 + 3 counters of 48 bits (4 + 0 in version 1). */
static uint64_t holds(unsigned version, size_t word)
{
    const uint64_t width = 0xFFFFFFFFFFFF;
    const uint64_t select = version == 3 || version == 4 ? 0xFFFFFFFF : 0xFFDFFFFF;
    const uint64_t control = version == 3 || version == 4 ? 0xFFF : 0xBBB;
    const uint64_t status = UINT64_C(0x70000000F) | (version >= 4 ? UINT64_C(0x1B) << 58 : 0);
    const size_t gp_select = VPMU_GP_MAX, fixed_value = 2 * VPMU_GP_MAX,
                 fixed_control = fixed_value + VPMU_FIXED_MAX;

    if (word < fixed_value) {
        return word % VPMU_GP_MAX >= 4 ? 0 : word < gp_select ? width : select;
    }
    if (version == 1) {
        return 0;
    }
    if (word < fixed_control) {
        return word - fixed_value < 3 ? width : 0;
    }
    return (const uint64_t[]){control, UINT64_C(0x70000000F), status, 0x1000}[word - fixed_control];
}

ParameterizedTestParameters(model_state, load_checks_every_bit)
{
    return cr_make_param_array(unsigned, versions, 5);
}

ParameterizedTest(unsigned *version, model_state, load_checks_every_bit)
{
    struct machine m;

    busy(&m, *version);
    check_load_bits(&m, *version, holds);
}

Test(model_state, load_names_the_register)
{
    struct machine m;
    struct vpmu_state state = {.gp_select[7] = 1};

    busy(&m, 2);
    cr_assert(strstr(vpmu_load(&m.pmu, &state), "IA32_PERFEVTSELx"));
    state = (struct vpmu_state){.global_status = UINT64_C(1) << 59};
    cr_assert(strstr(vpmu_load(&m.pmu, &state), "IA32_PERF_GLOBAL_STATUS"));
}

/* A frozen machine stays frozen. */
Test(model_state, load_frozen)
{
    struct vpmu_state state = {
        .gp_select[0] = EN | OS | 0xC0, .global_control = 1, .global_status = UINT64_C(1) << 59};
    struct machine m;

    busy(&m, 4);
    cr_assert_null(vpmu_load(&m.pmu, &state));
    cr_assert_eq(m.demands, 0);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, UINT64_C(1) << 59);
    cr_assert_eq(m.demands, 1);
}

Test(model_state, info)
{
    static const struct {
        uint32_t select;
        enum vpmu_counter_state state;
        enum vpmu_event event;
        unsigned classes;
        bool enabled, interrupt;
    } rows[] = {
        {0, VPMU_COUNTER_GRANTED, VPMU_EVENT_NONE, 0, false, false},
        {OS | 0xC0, VPMU_COUNTER_GRANTED, VPMU_EVENT_INSTRUCTIONS, 0x5, false, false},
        {EN | 0xC0, VPMU_COUNTER_GRANTED, VPMU_EVENT_INSTRUCTIONS, 0, false, false},
        {EN | INT | USR | 0xC0, VPMU_COUNTER_BACKED, VPMU_EVENT_INSTRUCTIONS, 0xA, true, true},
        {EN | OS | CMASK(2) | 0xC0, VPMU_COUNTER_BACKED, VPMU_EVENT_NONE, 0x5, true, false},
        {EN | OS, VPMU_COUNTER_UNSUPPORTED, VPMU_EVENT_NONE, 0x5, true, false},
        {EN | OS | 0xFFFF, VPMU_COUNTER_UNSUPPORTED, VPMU_EVENT_NONE, 0x5, true, false},
        {OS | 0xFFFF, VPMU_COUNTER_GRANTED, VPMU_EVENT_NONE, 0x5, false, false},
    };
    struct vpmu_config config = config_of(2);
    struct vpmu_counter_info info;
    struct machine m;

    power_on(&m, &config);
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        wrmsr(&m, IA32_PERFEVTSEL0 + 3, rows[i].select);
        vpmu_counter_info(&m.pmu, 3, &info);
        cr_assert_eq(info.state, rows[i].state, "row %u", i);
        cr_assert_eq(info.event, rows[i].event, "row %u", i);
        cr_assert_eq(info.classes, rows[i].classes, "row %u", i);
        cr_assert_eq(info.enabled, rows[i].enabled, "row %u", i);
        cr_assert_eq(info.interrupt, rows[i].interrupt, "row %u", i);
        cr_assert_eq(info.code, rows[i].select & 0xFFFF);
    }
}

/* Every counter has its place, and its RDPMC selector reads it. */
Test(model_state, info_of_each_counter)
{
    struct vpmu_config config = config_of(5);
    struct machine m;

    power_on(&m, &config);
    cr_assert_eq(vpmu_counters(&m.pmu), 7);
    for (unsigned i = 0; i < 7; i++) {
        struct vpmu_counter_info info;
        uint64_t value;

        wrmsr(&m, i < 4 ? IA32_PMC0 + i : IA32_FIXED_CTR0 + i - 4, 1000 + i);
        vpmu_counter_info(&m.pmu, i, &info);
        cr_assert_eq(info.fixed, i >= 4);
        cr_assert_eq(info.index, i < 4 ? i : i - 4);
        cr_assert_eq(info.value, 1000 + i);
        cr_assert_eq(vpmu_rdpmc(&m.pmu, info.rdpmc_selector, &value), VPMU_OK);
        cr_assert_eq(value, 1000 + i);
    }
}
