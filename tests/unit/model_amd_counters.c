/* SPDX-License-Identifier: BSD-3-Clause */
/* What AMD's counters count, and what happens when they overflow. */
#include "model_source.h"

#define VERSIONS 3
#define SIZE (UINT64_C(1) << 48)

static unsigned versions[] = {0, 1, 2};

/* The encodings, written again: a typing mistake in events.def must not pass. `code` is as in
 * struct vpmu_counter_info, `select` as in PERF_CTL. */
struct encoding {
    uint32_t code;
    uint64_t select;
    enum vpmu_event event;
    unsigned since;
};

static struct encoding encodings[] = {
    {0x0002C, 0x2C, VPMU_EVENT_INTERRUPTS, 1},    {0x00076, 0x76, VPMU_EVENT_CYCLES, 0},
    {0x000C0, 0xC0, VPMU_EVENT_INSTRUCTIONS, 0},  {0x000C2, 0xC2, VPMU_EVENT_BRANCHES, 0},
    {0x000C3, 0xC3, VPMU_EVENT_BRANCH_MISSES, 0}, {0x000C8, 0xC8, VPMU_EVENT_NEAR_RETURNS, 0},
    {0x000D1, 0xD1, VPMU_EVENT_COND_BRANCHES, 1}, {0x10120, 0x100000120, VPMU_EVENT_REF_CYCLES, 2},
};

#define ENCODINGS (sizeof(encodings) / sizeof(encodings[0]))

static uint32_t ctl(unsigned version, unsigned counter)
{
    return version == 0 ? LEGACY_CTL0 + counter : PERF_CTL0 + 2 * counter;
}

static uint32_t ctr(unsigned version, unsigned counter)
{
    return version == 0 ? LEGACY_CTR0 + counter : PERF_CTR0 + 2 * counter;
}

ParameterizedTestParameters(model_amd_counters, events)
{
    return cr_make_param_array(struct encoding, encodings, ENCODINGS);
}

/* Each event on each counter of each version. Before its version it is unsupported. */
ParameterizedTest(struct encoding *encoding, model_amd_counters, events)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);
        bool known = version >= encoding->since;

        for (unsigned i = 0; i < config.gp; i++) {
            struct vpmu_counter_info info;
            struct machine m;

            power_on(&m, &config);
            something_of_everything(&m);
            wrmsr(&m, ctl(version, i), EN | OS | USR | encoding->select);
            something_of_everything(&m);
            cr_assert_eq(rdmsr(&m, ctr(version, i)),
                         known ? something_of(encoding->event, 0xF) : 0);
            cr_assert_eq(m.demands, known);
            vpmu_counter_info(&m.pmu, i, &info);
            cr_assert_eq(info.event, known ? encoding->event : VPMU_EVENT_NONE);
            cr_assert_eq(info.state, known ? VPMU_COUNTER_BACKED : VPMU_COUNTER_UNSUPPORTED);
            cr_assert_eq(info.code, encoding->code);
            cr_assert_eq(info.index, i);
            cr_assert_eq(info.fixed, false);
            cr_assert_eq(info.rdpmc_selector, i);
        }
    }
}

/* All 4096 event selects with several unit masks: those of the table count, no other does. */
Test(model_amd_counters, unknown_events_count_nothing)
{
    static const uint32_t masks[] = {0x00, 0x01, 0x02, 0x40, 0x80, 0xFF};
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    for (uint32_t n = 0; n < 4096 * 6; n++) {
        uint64_t select = n % 256 | masks[n / 4096] << 8 | (uint64_t)(n % 4096 / 256) << 32;
        enum vpmu_event event = VPMU_EVENT_NONE;
        struct vpmu_counter_info info;

        for (unsigned i = 0; i < ENCODINGS; i++) {
            event = encodings[i].select == select ? encodings[i].event : event;
        }
        wrmsr(&m, PERF_CTL0, EN | OS | select);
        vpmu_counter_info(&m.pmu, 0, &info);
        cr_assert_eq(info.event, event, "%#lx", select);
        cr_assert_eq(info.state, event ? VPMU_COUNTER_BACKED : VPMU_COUNTER_UNSUPPORTED);
        cr_assert_eq(m.demands, event != VPMU_EVENT_NONE);
    }
}

Test(model_amd_counters, events_not_kept_are_unsupported)
{
    for (unsigned i = 0; i < ENCODINGS; i++) {
        check_event_not_kept(amd_config_of(2), encodings[i].event, PERF_CTL0, encodings[i].select);
    }
}

/* APM Vol. 2, tables "Host/Guest Only Bits" and "Operating-System Mode and User Mode Bits": the
 * classes, bit 0 kernel, 1 user, 2 and 3 the same in nested guests. */
Test(model_amd_counters, classes)
{
    static const struct {
        uint64_t only;
        unsigned without_svme, with_svme;
    } modes[] = {
        {0, 0xF, 0xF}, {GUEST_ONLY, 0, 0xC}, {HOST_ONLY, 0, 0x3}, {GUEST_ONLY | HOST_ONLY, 0, 0xF}};
    static const struct {
        uint32_t flags;
        unsigned classes;
    } rings[] = {{0, 0}, {USR, 0xA}, {OS, 0x5}, {USR | OS, 0xF}};

    for (unsigned n = 0; n < 4 * 4 * 2 * VERSIONS; n++) {
        unsigned mode = n % 4, ring = n / 4 % 4, svme = n / 16 % 2, version = n / 32;
        unsigned expected =
            rings[ring].classes & (svme ? modes[mode].with_svme : modes[mode].without_svme);
        struct vpmu_config config = amd_config_of(version);
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        vpmu_set_svme(&m.pmu, svme);
        wrmsr(&m, ctl(version, 3), EN | rings[ring].flags | modes[mode].only | 0xC0);
        something_of_everything(&m);
        vpmu_counter_info(&m.pmu, 3, &info);
        cr_assert_eq(info.value, something_of(VPMU_EVENT_INSTRUCTIONS, expected), "row %u", n);
        cr_assert_eq(info.classes, expected, "row %u", n);
        cr_assert_eq(info.enabled, expected != 0, "row %u", n);
        cr_assert_eq(info.state, expected ? VPMU_COUNTER_BACKED : VPMU_COUNTER_GRANTED);
        cr_assert_eq(m.demands, expected != 0, "row %u", n);
        cr_assert(!expected || m.demand[0].classes == expected, "row %u", n);
    }
}

/* What was counted before a change of EFER.SVME stays, and an overflow before it is found. */
Test(model_amd_counters, svme_changes_while_counting)
{
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, PERF_CTL0, EN | OS | HOST_ONLY | 0xC0);
    wrmsr(&m, PERF_CTL0 + 2, EN | OS | 0xC0);
    for (unsigned i = 0; i < 10; i++) {
        vpmu_set_svme(&m.pmu, true);
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 7);
        vpmu_set_svme(&m.pmu, false);
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 1000);
    }
    cr_assert_eq(rdmsr(&m, PERF_CTR0), 70);
    cr_assert_eq(rdmsr(&m, PERF_CTR0 + 2), 10070);
    vpmu_set_svme(&m.pmu, true);
    wrmsr(&m, PERF_CTL0, EN | INT | OS | HOST_ONLY | 0xC0);
    wrmsr(&m, PERF_CTR0, (uint64_t)-5);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 6);
    vpmu_set_svme(&m.pmu, false);
    cr_assert_eq(m.pmis, 1);
    cr_assert_eq(rdmsr(&m, PERF_STATUS), 1);
    cr_assert_eq(rdmsr(&m, PERF_CTR0), 1);
    cr_assert_eq(m.demands, 1);
}

/* APM Vol. 2, table "Count Control Using CNT_MASK and INV", for events that happen in each cycle,
 * at most once, and otherwise. */
Test(model_amd_counters, comparisons)
{
    enum outcome { PLAIN, CYCLES, NEVER, UNSUPPORTED };
    static const struct {
        uint32_t flags;
        enum outcome instructions, branches, ref_cycles;
    } table[] = {
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
    };
    static const struct {
        uint64_t select;
        enum vpmu_event event;
    } events[] = {{0xC0, VPMU_EVENT_INSTRUCTIONS},
                  {0xC2, VPMU_EVENT_BRANCHES},
                  {0x100000120, VPMU_EVENT_REF_CYCLES}};
    struct vpmu_config config = amd_config_of(2);

    for (unsigned n = 0; n < 3 * sizeof(table) / sizeof(table[0]); n++) {
        const enum outcome outcomes[] = {table[n / 3].instructions, table[n / 3].branches,
                                         table[n / 3].ref_cycles};
        enum outcome outcome = outcomes[n % 3];
        enum vpmu_event event = outcome == CYCLES ? VPMU_EVENT_CYCLES : events[n % 3].event;
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        wrmsr(&m, PERF_CTL0, EN | USR | table[n / 3].flags | events[n % 3].select);
        something_of_everything(&m);
        vpmu_counter_info(&m.pmu, 0, &info);
        cr_assert_eq(info.value, outcome <= CYCLES ? something_of(event, 0xA) : 0, "row %u", n);
        cr_assert_eq(info.state,
                     outcome == UNSUPPORTED ? VPMU_COUNTER_UNSUPPORTED : VPMU_COUNTER_BACKED);
    }
}

ParameterizedTestParameters(model_amd_counters, overflow)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

/* From each start by each number of events: arithmetic in more bits than the counter has. */
static void check_overflow(unsigned version, uint64_t start, uint64_t events)
{
    struct vpmu_config config = amd_config_of(version);
    unsigned __int128 sum = (unsigned __int128)start + events;
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, ctr(version, 1), start);
    wrmsr(&m, ctl(version, 1), EN | INT | OS | 0xC0);
    cr_assert_eq(m.demands, 1);
    cr_assert_eq(m.demand[0].distance, SIZE - start);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, events);
    vpmu_sync(&m.pmu);
    cr_assert_eq(rdmsr(&m, ctr(version, 1)), (uint64_t)sum % SIZE);
    cr_assert_eq(m.pmis, sum >= SIZE);
    cr_assert_eq(m.pmu.state.global_status, version == 2 && sum >= SIZE ? 2 : 0);
    cr_assert_eq(m.demand[0].distance, SIZE - (uint64_t)sum % SIZE);
}

ParameterizedTest(unsigned *version, model_amd_counters, overflow)
{
    static const uint64_t starts[] = {0, 1, SIZE / 2, SIZE - 1000, SIZE - 2, SIZE - 1};
    static const uint64_t events[] = {0,        1,    2,        999,      1000,         1001,
                                      SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, 7 * SIZE + 5, UINT64_MAX};

    for (unsigned s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
        for (unsigned e = 0; e < sizeof(events) / sizeof(events[0]); e++) {
            check_overflow(*version, starts[s], events[e]);
        }
    }
}

ParameterizedTestParameters(model_amd_counters, overflow_of_each_counter)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

/* With the interrupt on and off: a PMI if on, a status bit either way, where there is a status. */
ParameterizedTest(unsigned *version, model_amd_counters, overflow_of_each_counter)
{
    struct vpmu_config config = amd_config_of(*version);

    config.gp = *version == 2 ? 8 : config.gp;
    for (unsigned n = 0; n < 2u * config.gp; n++) {
        unsigned counter = n / 2;
        bool interrupt = n & 1;
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        wrmsr(&m, ctl(*version, counter), EN | OS | USR | (interrupt ? INT : 0) | 0xC0);
        wrmsr(&m, ctr(*version, counter), (uint64_t)-3);
        run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_USER, 5);
        cr_assert_eq(m.pmis, interrupt);
        vpmu_counter_info(&m.pmu, counter, &info);
        cr_assert_eq(info.overflowed, *version == 2);
        cr_assert_eq(info.interrupt, interrupt);
        cr_assert_eq(info.value, 2, "it goes on");
        if (*version == 2) {
            cr_assert_eq(rdmsr(&m, PERF_STATUS), UINT64_C(1) << counter);
            wrmsr(&m, PERF_STATUS_CLR, ~(UINT64_C(1) << counter));
            cr_assert_eq(rdmsr(&m, PERF_STATUS), UINT64_C(1) << counter);
            wrmsr(&m, PERF_STATUS, 0);
            cr_assert_eq(rdmsr(&m, PERF_STATUS), UINT64_C(1) << counter, "read-only");
            wrmsr(&m, PERF_STATUS_CLR, UINT64_C(1) << counter);
            cr_assert_eq(rdmsr(&m, PERF_STATUS), 0);
        }
    }
}

/* Each period ends at its own event, whether or not the status of the one before was cleared. */
ParameterizedTestParameters(model_amd_counters, periods)
{
    return cr_make_param_array(unsigned, versions, VERSIONS);
}

ParameterizedTest(unsigned *version, model_amd_counters, periods)
{
    struct vpmu_config config = amd_config_of(*version);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, ctl(*version, 0), EN | INT | OS | 0x76);
    for (unsigned i = 1; i <= 50; i++) {
        wrmsr(&m, ctr(*version, 0), (uint64_t)-100);
        run(&m, VPMU_EVENT_CYCLES, VPMU_CLASS_KERNEL, 99);
        cr_assert_eq(m.pmis, i - 1);
        cr_assert_eq(m.demand[0].distance, 1);
        run(&m, VPMU_EVENT_CYCLES, VPMU_CLASS_KERNEL, 1);
        cr_assert_eq(m.pmis, i);
    }
}

/* Counters that overflow together: all their status bits, one PMI, and none is frozen by it. */
Test(model_amd_counters, overflows_at_once)
{
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    for (unsigned i = 0; i < 6; i++) {
        wrmsr(&m, PERF_CTR0 + 2 * i, (uint64_t)-5);
        wrmsr(&m, PERF_CTL0 + 2 * i, EN | (i % 2 ? INT : 0) | OS | 0xC0);
    }
    run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 9);
    cr_assert_eq(rdmsr(&m, PERF_STATUS), 0x3F);
    cr_assert_eq(m.pmis, 1);
    for (unsigned i = 0; i < 6; i++) {
        cr_assert_eq(rdmsr(&m, PERF_CTR0 + 2 * i), 4);
    }
}

/* Setting a status bit triggers nothing. */
Test(model_amd_counters, status_set)
{
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, PERF_CTL0, EN | INT | OS | 0xC0);
    wrmsr(&m, PERF_STATUS_SET, 0x5);
    wrmsr(&m, PERF_STATUS_SET, UINT64_C(3) << 58 | 0x3);
    cr_assert_eq(rdmsr(&m, PERF_STATUS), 0x7);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 5);
    cr_assert_eq(rdmsr(&m, PERF_CTR0), 5);
    cr_assert_eq(m.pmis, 0);
}

/* An overflow that nobody has told the model of is found before anything is read or changed. */
Test(model_amd_counters, late_overflow_is_found)
{
    struct vpmu_config config = amd_config_of(2);
    struct machine m;

    power_on(&m, &config);
    wrmsr(&m, PERF_CTL0, EN | INT | OS | 0xC0);
    wrmsr(&m, PERF_CTR0, (uint64_t)-5);
    happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 8);
    wrmsr(&m, PERF_GLOBAL_CTL, 0); /* would have stopped it */
    cr_assert_eq(m.pmis, 1);
    cr_assert_eq(rdmsr(&m, PERF_STATUS), 1);
    cr_assert_eq(rdmsr(&m, PERF_CTR0), 3);
}

/* Both enables are needed where there are two. Software that knows one finds the other set. */
Test(model_amd_counters, enables)
{
    for (unsigned n = 0; n < 3 * 2 * VERSIONS; n++) {
        unsigned version = n / 6, global = n / 2 % 3;
        bool own = n & 1, counts = own && (version < 2 || global != 1);
        struct vpmu_config config = amd_config_of(version);
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        if (version == 2 && global) {
            wrmsr(&m, PERF_GLOBAL_CTL, global == 1 ? 0x3B : 0x04);
        }
        wrmsr(&m, ctl(version, 2), (own ? EN : 0) | OS | 0xC0);
        happen(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_KERNEL, 10);
        vpmu_counter_info(&m.pmu, 2, &info);
        cr_assert_eq(info.value, counts ? 10 : 0, "row %u", n);
        cr_assert_eq(info.enabled, counts, "row %u", n);
        cr_assert_eq(m.demands, counts, "row %u", n);
    }
}

/* The Instructions Retired counter: one enable, all classes, no status, no interrupt. */
Test(model_amd_counters, irperf)
{
    for (unsigned version = 0; version < VERSIONS; version++) {
        struct vpmu_config config = amd_config_of(version);
        struct vpmu_counter_info info;
        struct machine m;

        power_on(&m, &config);
        something_of_everything(&m);
        cr_assert_eq(rdmsr(&m, IRPERF), 0);
        wrmsr(&m, HWCR, UINT64_MAX);
        if (version == 2) {
            wrmsr(&m, PERF_GLOBAL_CTL, 0);
        }
        something_of_everything(&m);
        cr_assert_eq(rdmsr(&m, IRPERF), something_of(VPMU_EVENT_INSTRUCTIONS, 0xF));
        wrmsr(&m, IRPERF, UINT64_MAX - 2);
        run(&m, VPMU_EVENT_INSTRUCTIONS, VPMU_CLASS_GUEST_KERNEL, 10);
        vpmu_counter_info(&m.pmu, config.gp, &info);
        cr_assert_eq(info.value, 7, "it wraps at 48 bits");
        cr_assert_eq(info.state, VPMU_COUNTER_BACKED);
        cr_assert_eq(info.event, VPMU_EVENT_INSTRUCTIONS);
        cr_assert_eq(info.classes, 0xF);
        cr_assert_eq(info.fixed, true);
        cr_assert_eq(info.index, 0);
        cr_assert_eq(info.code, 0);
        cr_assert_eq(info.interrupt, false);
        cr_assert_eq(info.overflowed, false);
        cr_assert_eq(info.rdpmc_selector, VPMU_NO_SELECTOR);
        cr_assert_eq(m.pmu.state.global_status, 0);
        cr_assert_eq(m.pmis, 0);
        wrmsr(&m, HWCR, ~IRPERF_EN);
        something_of_everything(&m);
        cr_assert_eq(rdmsr(&m, IRPERF), 7);
        vpmu_counter_info(&m.pmu, config.gp, &info);
        cr_assert_eq(info.state, VPMU_COUNTER_GRANTED);
    }
}

/* Without it, HWCR exists and has no enable to keep. */
Test(model_amd_counters, irperf_absent)
{
    struct vpmu_config config = amd_config_of(1);
    struct machine m;

    config.fixed = 0;
    power_on(&m, &config);
    cr_assert_eq(vpmu_counters(&m.pmu), 6);
    wrmsr(&m, HWCR, UINT64_MAX);
    cr_assert_eq(rdmsr(&m, HWCR), 0);
    cr_assert_eq(m.demands, 0);
}
