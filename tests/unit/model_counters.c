/* SPDX-License-Identifier: BSD-3-Clause */
/* What counters count, and what happens when they overflow. */
#include "model_source.h"

#define CTR_FRZ (UINT64_C(1) << 59)

/* The encodings, written again: a typing mistake in events.def must not pass. */
struct encoding {
    uint32_t code;
    enum vpmu_event event;
};

static struct encoding encodings[] = {
    {0x003C, VPMU_EVENT_CYCLES},        {0x00C0, VPMU_EVENT_INSTRUCTIONS},
    {0x013C, VPMU_EVENT_REF_CYCLES},    {0x4F2E, VPMU_EVENT_LLC_REFERENCES},
    {0x412E, VPMU_EVENT_LLC_MISSES},    {0x00C4, VPMU_EVENT_BRANCHES},
    {0x00C5, VPMU_EVENT_BRANCH_MISSES}, {0x01A4, VPMU_EVENT_SLOTS},
    {0x01C4, VPMU_EVENT_COND_BRANCHES}, {0x11C4, VPMU_EVENT_COND_BRANCHES},
    {0x02C4, VPMU_EVENT_NEAR_CALLS},    {0x08C4, VPMU_EVENT_NEAR_RETURNS},
    {0x40C4, VPMU_EVENT_FAR_BRANCHES},  {0x01CB, VPMU_EVENT_INTERRUPTS},
};

#define ENCODINGS (sizeof(encodings) / sizeof(encodings[0]))

ParameterizedTestParameters(model_counters, events)
{
    return cr_make_param_array(struct encoding, encodings, ENCODINGS);
}

/* Each event, in each class, on each counter. Classes: USR is 2 and 8, OS is 1 and 4. */
ParameterizedTest(struct encoding *encoding, model_counters, events)
{
    static const struct {
        uint32_t flags;
        unsigned classes;
    } rings[] = {{0, 0}, {USR, 0xA}, {OS, 0x5}, {USR | OS, 0xF}};
    struct vpmu_config config = config_of(2);
    struct machine m;

    config.gp = 8;
    for (unsigned n = 0; n < 4 * 8; n++) {
        uint32_t counter = n % 8, flags = rings[n / 8].flags;
        unsigned classes = rings[n / 8].classes;

        power_on(&m, &config);
        something_of_everything(&m);
        wrmsr(&m, IA32_PERFEVTSEL0 + counter, EN | flags | encoding->code);
        something_of_everything(&m);
        cr_assert_eq(rdmsr(&m, IA32_PMC0 + counter), something_of(encoding->event, classes));
        cr_assert_eq(m.demands, flags != 0);
        if (flags) {
            cr_assert_eq(m.demand[0].event, encoding->event);
            cr_assert_eq(m.demand[0].classes, classes);
            cr_assert_eq(m.demand[0].distance, UINT64_C(1) << 48);
        }
    }
}

/* All 65536 encodings: those of the table count, no other does. */
Test(model_counters, unknown_events_count_nothing)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    for (uint32_t code = 0; code < 0x10000; code++) {
        enum vpmu_event event = VPMU_EVENT_NONE;
        struct vpmu_counter_info info;

        for (unsigned i = 0; i < ENCODINGS; i++) {
            event = encodings[i].code == code ? encodings[i].event : event;
        }
        wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | code);
        vpmu_counter_info(&m.pmu, 0, &info);
        cr_assert_eq(info.event, event, "%#x", code);
        cr_assert_eq(info.code, code);
        cr_assert_eq(info.state, event ? VPMU_COUNTER_BACKED : VPMU_COUNTER_UNSUPPORTED);
        cr_assert_eq(m.demands, event != VPMU_EVENT_NONE);
    }
}

Test(model_counters, events_not_kept_are_unsupported)
{
    for (unsigned i = 0; i < ENCODINGS; i++) {
        check_event_not_kept(config_of(2), encodings[i].event, IA32_PERFEVTSEL0, encodings[i].code);
    }
}

/* Fixed counters: their events, and each of the four settings of their enable field. */
Test(model_counters, fixed_counters)
{
    static const enum vpmu_event events[] = {VPMU_EVENT_INSTRUCTIONS, VPMU_EVENT_CYCLES,
                                             VPMU_EVENT_REF_CYCLES, VPMU_EVENT_SLOTS};
    static const unsigned classes[] = {0, 0x5, 0xA, 0xF};
    struct vpmu_config config = config_of(2);
    struct machine m;

    config.fixed = 4;
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned enable = 0; enable < 4; enable++) {
            power_on(&m, &config);
            wrmsr(&m, IA32_FIXED_CTR_CTRL, enable << 4 * i);
            something_of_everything(&m);
            cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0 + i), 0, "reset leaves fixed counters off");
            wrmsr(&m, IA32_PERF_GLOBAL_CTRL, UINT64_C(1) << (32 + i));
            something_of_everything(&m);
            cr_assert_eq(rdmsr(&m, IA32_FIXED_CTR0 + i), something_of(events[i], classes[enable]));
        }
    }
}

/* What a comparison makes of an event. "never" is a true zero, "unsupported" is none. */
enum outcome { PLAIN, CYCLES, NEVER, UNSUPPORTED };

struct comparison {
    uint32_t flags;
    enum outcome each_cycle; /* instructions, cycles */
    enum outcome once;       /* branches of all kinds */
    enum outcome many;       /* what can happen often in a cycle, or has no cycle */
};

static struct comparison comparisons[] = {
    {0, PLAIN, PLAIN, PLAIN},
    {INV, PLAIN, PLAIN, PLAIN},
    {CMASK(1), PLAIN, PLAIN, UNSUPPORTED},
    {CMASK(2), NEVER, NEVER, UNSUPPORTED},
    {CMASK(255), NEVER, NEVER, UNSUPPORTED},
    {CMASK(1) | INV, NEVER, UNSUPPORTED, UNSUPPORTED},
    {CMASK(2) | INV, CYCLES, CYCLES, UNSUPPORTED},
    {CMASK(255) | INV, CYCLES, CYCLES, UNSUPPORTED},
    {EDGE, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED},
    {EDGE | CMASK(1), UNSUPPORTED, UNSUPPORTED, UNSUPPORTED},
    {EDGE | CMASK(2) | INV, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED},
};

ParameterizedTestParameters(model_counters, comparisons)
{
    return cr_make_param_array(struct comparison, comparisons,
                               sizeof(comparisons) / sizeof(comparisons[0]));
}

static enum outcome outcome_for(const struct comparison *c, enum vpmu_event event)
{
    switch (event) {
    case VPMU_EVENT_INSTRUCTIONS:
    case VPMU_EVENT_CYCLES:
        return c->each_cycle;
    case VPMU_EVENT_REF_CYCLES:
    case VPMU_EVENT_SLOTS:
    case VPMU_EVENT_INTERRUPTS:
    case VPMU_EVENT_LLC_REFERENCES:
    case VPMU_EVENT_LLC_MISSES:
        return c->many;
    default:
        return c->once;
    }
}

ParameterizedTest(struct comparison *c, model_counters, comparisons)
{
    struct vpmu_config config = config_of(2);
    struct vpmu_counter_info info;
    struct machine m;

    for (unsigned i = 0; i < ENCODINGS; i++) {
        enum outcome outcome = outcome_for(c, encodings[i].event);
        const uint64_t expected[] = {
            [PLAIN] = something_of(encodings[i].event, 0xA),
            [CYCLES] = something_of(VPMU_EVENT_CYCLES, 0xA),
        };

        power_on(&m, &config);
        wrmsr(&m, IA32_PERFEVTSEL0 + 1, EN | USR | c->flags | encodings[i].code);
        something_of_everything(&m);
        vpmu_counter_info(&m.pmu, 1, &info);
        cr_assert_eq(info.value, outcome <= CYCLES ? expected[outcome] : 0, "code %#x",
                     encodings[i].code);
        cr_assert_eq(info.state,
                     outcome == UNSUPPORTED ? VPMU_COUNTER_UNSUPPORTED : VPMU_COUNTER_BACKED);
        cr_assert_eq(m.demands, outcome <= CYCLES);
    }
}

/* Inverted comparisons count cycles, so they need a source of those. */
Test(model_counters, inverted_comparison_needs_cycles)
{
    struct vpmu_config config = config_of(2);
    struct vpmu_counter_info info;
    struct machine m;

    config.fixed = 0;
    config.events = VPMU_EVENT_BIT(VPMU_EVENT_INSTRUCTIONS);
    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | CMASK(2) | INV | 0xC0);
    vpmu_counter_info(&m.pmu, 0, &info);
    cr_assert_eq(info.state, VPMU_COUNTER_UNSUPPORTED);
}

/* Enables: every combination of a counter's own and its global one, on every version. */
Test(model_counters, enables)
{
    for (unsigned n = 0; n < 5 * 4; n++) {
        unsigned version = n / 4 + 1;
        bool own = n & 1, global = n & 2;
        struct vpmu_config config = config_of(version);
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        if (version >= 2) {
            wrmsr(&m, IA32_PERF_GLOBAL_CTRL, global ? 0x4 : 0xB);
        }
        wrmsr(&m, IA32_PERFEVTSEL0 + 2, (own ? EN : 0) | OS | 0xC0);
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 10);
        vpmu_counter_info(&m.pmu, 2, &info);
        cr_assert_eq(info.value, own && (global || version == 1) ? 10 : 0, "row %u", n);
        cr_assert_eq(info.enabled, own && (global || version == 1));
    }
}

/* A counter stopped and started again goes on from where it was, and missed what was between. */
Test(model_counters, stop_and_start)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
    for (unsigned i = 0; i < 10; i++) {
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 7);
        wrmsr(&m, IA32_PERF_GLOBAL_CTRL, 0);
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 1000);
        wrmsr(&m, IA32_PERF_GLOBAL_CTRL, 1);
    }
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 70);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC4); /* another event, the same value */
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    happen(&m, VPMU_EVENT_BRANCHES, VPMU_CLASS_KERNEL, 3);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 73);
    wrmsr(&m, IA32_PMC0, 100); /* while it counts */
    happen(&m, VPMU_EVENT_BRANCHES, VPMU_CLASS_KERNEL, 1);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 101);
}

/* Reading is no change: it costs the source no new demand. */
Test(model_counters, reads_tell_no_demand)
{
    struct vpmu_config config = config_of(2);
    struct machine m;
    unsigned tellings;
    uint64_t value;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
    tellings = m.tellings;
    for (unsigned i = 1; i <= 10; i++) {
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 7);
        cr_assert_eq(rdmsr(&m, IA32_PMC0), 7 * i);
        cr_assert_eq(vpmu_rdpmc(&m.pmu, 0, &value), VPMU_OK);
        cr_assert_eq(value, 7 * i);
    }
    cr_assert_eq(m.tellings, tellings);
    vpmu_sync(&m.pmu);
    cr_assert_eq(m.tellings, tellings + 1);
    cr_assert_eq(m.demand[0].distance, (UINT64_C(1) << 48) - 70);
}

/* A source's totals may wrap. */
Test(model_counters, totals_wrap)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, UINT64_MAX - 3);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 10);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 10);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), 0);
}

static unsigned widths[] = {32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48};

ParameterizedTestParameters(model_counters, overflow_at_each_width)
{
    return cr_make_param_array(unsigned, widths, sizeof(widths) / sizeof(widths[0]));
}

/* One counter from `start` by `events`: the value, the status and the PMI are those of arithmetic
 * in more bits than the counter has. */
static void check_overflow(unsigned width, bool fixed, uint64_t start, uint64_t events)
{
    struct vpmu_config config = config_of(2);
    uint64_t mask = (UINT64_C(1) << width) - 1;
    unsigned __int128 sum = (unsigned __int128)start + events;
    struct machine m;

    config.gp_width = (uint8_t)(fixed ? 40 : width);
    config.fixed_width = (uint8_t)(fixed ? width : 40);
    power_on(&m, &config);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, UINT64_C(0x70000000F));
    if (fixed) {
        wrmsr(&m, IA32_FIXED_CTR0, start);
        wrmsr(&m, IA32_FIXED_CTR_CTRL, 0x9);
    } else {
        wrmsr(&m, IA32_A_PMC0, start);
        wrmsr(&m, IA32_PERFEVTSEL0, EN | INT | OS | 0xC0);
    }
    cr_assert_eq(m.demands, 1);
    cr_assert_eq(m.demand[0].distance, mask + 1 - start);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, events);
    vpmu_sync(&m.pmu);
    cr_assert_eq(rdmsr(&m, fixed ? IA32_FIXED_CTR0 : IA32_PMC0), (uint64_t)sum & mask);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS),
                 sum > mask ? UINT64_C(1) << (fixed ? 32 : 0) : 0);
    cr_assert_eq(m.pmis, sum > mask);
    cr_assert_eq(m.demand[0].distance, mask + 1 - ((uint64_t)sum & mask));
}

ParameterizedTest(unsigned *width, model_counters, overflow_at_each_width)
{
    const uint64_t size = UINT64_C(1) << *width;
    const uint64_t starts[] = {0, 1, size / 2, size - 1000, size - 2, size - 1};
    const uint64_t events[] = {0,
                               1,
                               2,
                               999,
                               1000,
                               1001,
                               size - 1,
                               size,
                               size + 1,
                               2 * size,
                               7 * size + 5,
                               UINT64_MAX - 1000,
                               UINT64_MAX - 1,
                               UINT64_MAX};

    for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (unsigned e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
            check_overflow(*width, false, starts[s], events[e]);
            check_overflow(*width, true, starts[s], events[e]);
        }
    }
}

/* Status and PMI of every counter, with its interrupt on and off. */
Test(model_counters, overflow_of_each_counter)
{
    for (unsigned n = 0; n < 12 * 2; n++) {
        unsigned counter = n / 2;
        bool fixed = counter >= 8, interrupt = n & 1;
        uint64_t bit = UINT64_C(1) << (fixed ? 32 + counter - 8 : counter);
        struct vpmu_config config = config_of(2);
        struct vpmu_counter_info info;
        struct machine m;

        config.gp = 8;
        config.fixed = 4;
        power_on(&m, &config);
        wrmsr(&m, IA32_PERF_GLOBAL_CTRL, bit);
        if (fixed) {
            wrmsr(&m, IA32_FIXED_CTR_CTRL, (interrupt ? UINT64_C(0xB) : 3) << 4 * (counter - 8));
            wrmsr(&m, IA32_FIXED_CTR0 + counter - 8, (uint64_t)-3);
        } else {
            wrmsr(&m, IA32_PERFEVTSEL0 + counter, EN | OS | USR | (interrupt ? INT : 0) | 0xC0);
            wrmsr(&m, IA32_PMC0 + counter, (uint64_t)-3);
        }
        run(&m, (enum vpmu_event)m.demand[0].event, VPMU_CLASS_USER, 3);
        cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), bit);
        cr_assert_eq(m.pmis, interrupt);
        vpmu_counter_info(&m.pmu, counter, &info);
        cr_assert_eq(info.overflowed, true);
        cr_assert_eq(info.interrupt, interrupt);
        cr_assert_eq(info.value, 0);
        wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, bit);
        cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), 0);
    }
}

/* Each period ends at its own event, whether or not the status of the one before was cleared. */
Test(model_counters, periods)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | INT | OS | 0xC0);
    for (unsigned i = 1; i <= 100; i++) {
        wrmsr(&m, IA32_PMC0, (uint64_t)-100);
        run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 99);
        cr_assert_eq(m.pmis, i - 1);
        cr_assert_eq(m.demand[0].distance, 1);
        run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 1);
        cr_assert_eq(m.pmis, i);
    }
}

/* Counters that overflow together: all their status bits, one PMI. */
Test(model_counters, overflows_at_once)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, UINT64_C(0x70000000F));
    for (unsigned i = 0; i < 4; i++) {
        wrmsr(&m, IA32_PMC0 + i, (uint64_t)-5);
        wrmsr(&m, IA32_PERFEVTSEL0 + i, EN | (i % 2 ? INT : 0) | OS | 0xC0);
    }
    wrmsr(&m, IA32_FIXED_CTR0, (uint64_t)-5);
    wrmsr(&m, IA32_FIXED_CTR_CTRL, 0x1);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), UINT64_C(0x10000000F));
    cr_assert_eq(m.pmis, 1);
}

/* An overflow that nobody has told the model of is found before anything is read or changed. */
Test(model_counters, late_overflow_is_found)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | INT | OS | 0xC0);
    wrmsr(&m, IA32_PMC0, (uint64_t)-5);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 8);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), 1);
    cr_assert_eq(m.pmis, 1);
    cr_assert_eq(m.demand[0].distance, (UINT64_C(1) << 48) - 3);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, 1);
    wrmsr(&m, IA32_PMC0, (uint64_t)-5);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 8);
    wrmsr(&m, IA32_PERFEVTSEL0, 0); /* would have stopped it */
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), 1);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 3);
    cr_assert_eq(m.pmis, 2);
}

/* Version 1 has a PMI and no status. */
Test(model_counters, version_1_overflow)
{
    struct vpmu_config config = config_of(1);
    struct vpmu_counter_info info;
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | INT | OS | 0xC0);
    wrmsr(&m, IA32_PMC0, (uint64_t)-5);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 7);
    cr_assert_eq(m.pmis, 1);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 2);
    vpmu_counter_info(&m.pmu, 0, &info);
    cr_assert_eq(info.overflowed, false);
}

static unsigned freezing_versions[] = {2, 3, 4, 5};

ParameterizedTestParameters(model_counters, freeze_on_pmi)
{
    return cr_make_param_array(unsigned, freezing_versions, 4);
}

/* Versions 2 and 3 clear the enables, 4 and 5 set CTR_FRZ; either way every counter stands still
 * from the PMI on until the guest undoes it. */
ParameterizedTest(unsigned *version, model_counters, freeze_on_pmi)
{
    bool streamlined = *version >= 4;
    struct vpmu_config config = config_of(*version);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_DEBUGCTL, 0x1000);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | INT | OS | 0xC0);
    wrmsr(&m, IA32_PERFEVTSEL0 + 1, EN | OS | 0xC0);
    wrmsr(&m, IA32_PMC0, (uint64_t)-5);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 20);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 0);
    cr_assert_eq(rdmsr(&m, IA32_PMC0 + 1), 5);
    cr_assert_eq(m.demands, 0);
    cr_assert_eq(m.pmis, 1);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_CTRL), streamlined ? 0xF : 0);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), streamlined ? CTR_FRZ | 1 : 1);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, streamlined ? CTR_FRZ | 1 : 1);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, 0xF);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 3);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 3);
    cr_assert_eq(rdmsr(&m, IA32_PMC0 + 1), 8);
}

/* Without INT there is no PMI, and so no freeze. */
ParameterizedTestParameters(model_counters, no_freeze_without_pmi)
{
    return cr_make_param_array(unsigned, freezing_versions, 4);
}

ParameterizedTest(unsigned *version, model_counters, no_freeze_without_pmi)
{
    struct vpmu_config config = config_of(*version);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_DEBUGCTL, 0x1000);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
    wrmsr(&m, IA32_PMC0, (uint64_t)-5);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 20);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 15);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_STATUS), 1);
    cr_assert_eq(rdmsr(&m, IA32_PERF_GLOBAL_CTRL), 0xF);
}

/* Software may freeze by itself (version 4). */
Test(model_counters, freeze_by_status_set)
{
    struct vpmu_config config = config_of(4);
    struct vpmu_counter_info info;
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERFEVTSEL0, EN | OS | 0xC0);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_SET, CTR_FRZ);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    vpmu_counter_info(&m.pmu, 0, &info);
    cr_assert_eq(info.enabled, false);
    cr_assert_eq(info.state, VPMU_COUNTER_GRANTED);
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, CTR_FRZ);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 10);
    cr_assert_eq(m.pmis, 0);
}

/* An unmodified Windows clears the fixed bits of IA32_PERF_GLOBAL_CTRL by read, modify and write
 * and leaves the others as reset made them: its general-purpose counters must count. */
Test(model_counters, windows_relies_on_reset_value)
{
    struct vpmu_config config = config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, IA32_PERF_GLOBAL_CTRL, rdmsr(&m, IA32_PERF_GLOBAL_CTRL) & ~UINT64_C(0x700000000));
    wrmsr(&m, IA32_PERF_GLOBAL_STATUS_RESET, UINT64_C(0x70000000F));
    wrmsr(&m, IA32_PMC0, (uint64_t)-10);
    wrmsr(&m, IA32_PERFEVTSEL0, 0xC0 | INT | EN | OS | USR);
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_USER, 12);
    cr_assert_eq(rdmsr(&m, IA32_PMC0), 2);
    cr_assert_eq(m.pmis, 1);
}
