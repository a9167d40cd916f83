/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The architectural PMU, register by register: what CPUID says, reset values, reserved bits, what
 * is absent, how counters are written and read, what they count, and what an overflow does.
 *
 * Command line: version= gp= fixed= width= full= (what the virtual processor was asked to have),
 * icount (time is counted in instructions).
 */
#include "pmu.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define ROUNDS 5000ul
#define VECTOR_PMI 0x50
#define VECTOR_TICK 0x51
#define GP_BANK 8
#define FIXED_BANK 4

#define BITS(from, to) ((~0ul >> (63 - (to))) & (~0ul << (from)))

/* An architectural event, and what pmu_measure(spin, ROUNDS) is to make of it. */
struct expectation {
    const char *name;
    enum pmu_event event;
    unsigned ebx_bit;
    int fixed; /* the counter that counts it, -1 for none */
    uint64_t count;
};

static const struct expectation exact_events[] = {
    {"instructions", EVENT_INSTRUCTIONS, 1, 0, MEASURE_INSNS + SPIN_INSNS(ROUNDS)},
    {"core cycles", EVENT_CYCLES, 0, 1, MEASURE_INSNS + SPIN_INSNS(ROUNDS)},
    {"branches", EVENT_BRANCHES, 5, -1, MEASURE_BRANCHES + SPIN_BRANCHES(ROUNDS)},
};

static const struct expectation model_events[] = {
    {"conditional branches", EVENT_COND_BRANCHES, 0, -1, SPIN_COND_BRANCHES(ROUNDS)},
};

/* In the order of the bits of EBX. */
static const struct {
    const char *name;
    bool available;
} availability[] = {
    {"core cycles", true},     {"instructions", true}, {"reference cycles", true},
    {"LLC references", false}, {"LLC misses", false},  {"branches", true},
    {"branch misses", false},
};

/* Bit i of the result: the i-th register of a bank of n exists. */
static uint64_t low_bits(unsigned n)
{
    return (1ul << n) - 1;
}

/* One counter, ring 0, around fn(arg): its value at the end. */
static uint64_t run_one(struct pmu_counter c, uint32_t select, uint32_t flags, uint64_t preset,
                        uint64_t (*fn)(uint64_t), uint64_t arg)
{
    if (pmu.version >= 2) {
        pmu_program(c, select, flags, preset);
        pmu_measure(MSR_GLOBAL_CTRL, 1ul << c.status_bit, 0, fn, arg);
    } else {
        pmu_write(c, preset);
        pmu_measure(MSR_PERFEVTSEL(c.index), select | flags | EVTSEL_EN, 0, fn, arg);
    }
    return pmu_read(c);
}

static const char *name_of(struct pmu_counter c)
{
    static char text[16];

    snprintf(text, sizeof(text), "%s %u", c.fixed ? "fixed" : "GP", c.index);
    return text;
}

static void test_cpuid(void)
{
    report_prefix_push("CPUID");
    report_equal(pmu.version, boot_option_number("version", 2), "version");
    report_equal(pmu.gp, boot_option_number("gp", 4), "GP counters");
    report_equal(pmu.gp_width, boot_option_number("width", 48), "GP width");
    report(pmu.events >= ARRAY_SIZE(availability), "at least 7 events in EBX");
    for (unsigned i = 0; i < ARRAY_SIZE(availability); i++)
        report_equal(pmu_event_available(i), availability[i].available, "%s available",
                     availability[i].name);
    report_equal(pmu.events_unavailable >> (pmu.events < 31 ? pmu.events : 31), 0,
                 "no bits of EBX beyond its length");
    if (pmu.version >= 2) {
        report_equal(pmu.fixed, boot_option_number("fixed", 3), "fixed counters");
        if (pmu.fixed)
            report_equal(pmu.fixed_width, boot_option_number("width", 48), "fixed width");
    } else {
        report_equal(cpuid(0xa, 0).edx, 0, "EDX is 0 in version 1");
    }
    report_equal(pmu.fixed_mask, pmu.version >= 5 ? low_bits(pmu.fixed) : 0, "mask of fixed ones");
    report_equal(pmu.full_width, boot_option_number("full", 1), "full-width writes");
    report_equal(cpuid(7, 1).eax >> 8 & 1, 0, "no leaf 0x23");
    report_prefix_pop();
}

/* Registers that are there with this many of their bank, from this version on. */
static const struct {
    const char *name;
    uint32_t first;
    unsigned since;
    enum { ONE, EACH_GP, EACH_FIXED } bank;
    enum { ZERO, GP_BITS, ANY } reset;
} registers[] = {
    {"PMC", MSR_PMC(0), 1, EACH_GP, ZERO},
    {"PERFEVTSEL", MSR_PERFEVTSEL(0), 1, EACH_GP, ZERO},
    {"FIXED_CTR", MSR_FIXED_CTR(0), 2, EACH_FIXED, ZERO},
    {"FIXED_CTR_CTRL", MSR_FIXED_CTR_CTRL, 2, ONE, ZERO},
    {"GLOBAL_STATUS", MSR_GLOBAL_STATUS, 2, ONE, ZERO},
    {"GLOBAL_CTRL", MSR_GLOBAL_CTRL, 2, ONE, GP_BITS},
    {"GLOBAL_OVF_CTRL", MSR_GLOBAL_OVF_CTRL, 2, ONE, ZERO},
    {"GLOBAL_STATUS_SET", MSR_GLOBAL_STATUS_SET, 4, ONE, ANY},
    {"GLOBAL_INUSE", MSR_GLOBAL_INUSE, 4, ONE, ZERO},
    {"DEBUGCTL", MSR_DEBUGCTL, 2, ONE, ZERO},
};

/* Before anything is written: SDM Vol. 3, table of processor states after reset. */
static void test_reset_values(void)
{
    report_prefix_push("reset");
    for (unsigned r = 0; r < ARRAY_SIZE(registers); r++) {
        unsigned n = registers[r].bank == EACH_GP      ? pmu.gp
                     : registers[r].bank == EACH_FIXED ? pmu.fixed
                                                       : 1;
        uint64_t want = registers[r].reset == GP_BITS ? pmu_gp_bits() : 0, value;

        for (unsigned i = 0; i < n && pmu.version >= registers[r].since; i++) {
            unsigned vector = rdmsr_safe(registers[r].first + i, &value);

            report_equal(vector, 0, "%s %u reads", registers[r].name, i);
            if (registers[r].reset != ANY)
                report_equal(value, want, "%s %u", registers[r].name, i);
        }
    }
    report_equal(rdmsr(MSR_MISC_ENABLE) & (BITS(7, 7) | BITS(11, 12)), BITS(7, 7) | BITS(11, 12),
                 "MISC_ENABLE: PMU, no BTS, no PEBS");
    report_prefix_pop();
}

static void expect_gp(uint32_t msr, const char *name, unsigned i)
{
    uint64_t value;

    report_equal(rdmsr_safe(msr, &value), EXC_GP, "RDMSR of %s %u", name, i);
    report_equal(wrmsr_safe(msr, 0), EXC_GP, "WRMSR of %s %u", name, i);
}

static void test_absent_msrs(void)
{
    report_prefix_push("absent");
    for (unsigned i = pmu.gp; i < GP_BANK; i++) {
        expect_gp(MSR_PMC(i), "PMC", i);
        expect_gp(MSR_PERFEVTSEL(i), "PERFEVTSEL", i);
    }
    for (unsigned i = pmu.full_width ? pmu.gp : 0; i < GP_BANK; i++)
        expect_gp(MSR_A_PMC(i), "A_PMC", i);
    for (unsigned i = pmu.fixed; i < FIXED_BANK; i++)
        expect_gp(MSR_FIXED_CTR(i), "FIXED_CTR", i);
    for (unsigned r = 0; r < ARRAY_SIZE(registers); r++)
        if (registers[r].bank == ONE && registers[r].first != MSR_DEBUGCTL &&
            pmu.version < registers[r].since)
            expect_gp(registers[r].first, registers[r].name, 0);
    if (!pmu.pdcm)
        expect_gp(MSR_PERF_CAPABILITIES, "PERF_CAPABILITIES", 0);
    report_prefix_pop();
}

static void test_rdpmc(void)
{
    static const uint32_t bad[] = {8,          16,         0x20000000, 0x20000001, 0x60000000,
                                   0x40000004, 0x40000020, 0x10000000, 0x7fffffff};
    uint64_t value;

    report_prefix_push("RDPMC");
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        report_equal(rdpmc_safe(bad[i], &value), EXC_GP, "%#x", bad[i]);
    for (unsigned i = pmu.gp; i < GP_BANK; i++)
        report_equal(rdpmc_safe(i, &value), EXC_GP, "absent GP %u", i);
    for (unsigned i = pmu.fixed; i < FIXED_BANK; i++)
        report_equal(rdpmc_safe(RDPMC_FIXED | i, &value), EXC_GP, "absent fixed %u", i);
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);
        uint64_t want = 0x123456789abc & c.mask;
        unsigned vector;

        pmu_write(c, want);
        want = pmu_read(c);
        report_equal(rdpmc_safe(c.rdpmc, &value), 0, "%s: no fault", name_of(c));
        report_equal(value, want, "%s", name_of(c));
        vector = rdpmc_safe(c.rdpmc | 1u << 31, &value);
        report(vector == EXC_GP || (!vector && value == (uint32_t)want), "%s: with bit 31",
               name_of(c));
    }
    pmu_clear();
    report_prefix_pop();
}

static uint64_t user_rdpmc(uint64_t selector)
{
    uint64_t value;
    uint64_t vector = rdpmc_safe((uint32_t)selector, &value);

    return vector ? -vector : value;
}

static void test_user_rdpmc(void)
{
    uint64_t cr4 = read_cr4();

    report_prefix_push("RDPMC in ring 3");
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);

        pmu_write(c, 1000 + i);
        write_cr4(cr4 & ~CR4_PCE);
        report_equal(run_user(user_rdpmc, c.rdpmc), (uint64_t)-EXC_GP, "%s without CR4.PCE",
                     name_of(c));
        write_cr4(cr4 | CR4_PCE);
        report_equal(run_user(user_rdpmc, c.rdpmc), 1000 + i, "%s with CR4.PCE", name_of(c));
    }
    report_equal(run_user(user_rdpmc, pmu.gp), (uint64_t)-EXC_GP, "absent GP");
    report_equal(run_user(user_rdpmc, RDPMC_FIXED | pmu.fixed), (uint64_t)-EXC_GP, "absent fixed");
    write_cr4(cr4);
    pmu_clear();
    report_prefix_pop();
}

/*
 * Each bit of a register by itself: one that is neither legal nor open must fault and change
 * nothing; a legal one must not fault, and is read back where the register holds it.
 */
static void test_bits(const char *name, uint32_t msr, uint64_t legal, uint64_t open, bool holds)
{
    uint64_t before, value;
    unsigned wrong = 0;

    wrmsr(msr, 0);
    before = rdmsr(msr);
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t mask = 1ul << bit;
        unsigned vector = wrmsr_safe(msr, mask), want = legal & mask ? 0 : EXC_GP;
        uint64_t want_value = vector || !holds ? before : mask;

        if (open & mask) {
            wrmsr_safe(msr, 0);
            continue;
        }
        value = rdmsr(msr);
        if (vector != want || value != want_value) {
            printf("# %s bit %u: vector %u, want %u; reads %#lx, want %#lx\n", name, bit, vector,
                   want, value, want_value);
            wrong++;
        }
        if (!vector)
            wrmsr(msr, 0);
    }
    report_equal(wrong, 0, "%s: wrong bits", name);
}

static void expect_read_only(const char *name, uint32_t msr)
{
    uint64_t before = rdmsr(msr);

    report_equal(wrmsr_safe(msr, before), EXC_GP, "%s: is read-only", name);
    report_equal(wrmsr_safe(msr, ~before), EXC_GP, "%s: is read-only, other value", name);
    report_equal(rdmsr(msr), before, "%s: unchanged", name);
}

static uint64_t legal_select(void)
{
    bool any = pmu.version >= 3 && !pmu.any_thread_deprecated;

    return BITS(0, 31) & ~(any ? 0 : (uint64_t)EVTSEL_ANY);
}

static uint64_t legal_fixed(void)
{
    bool any = pmu.version >= 3 && !pmu.any_thread_deprecated;
    uint64_t each = FIXED_OS | FIXED_USR | FIXED_PMI | (any ? FIXED_ANY : 0), all = 0;

    for (unsigned i = 0; i < pmu.fixed; i++)
        all |= each << 4 * i;
    return all;
}

static void test_reserved_bits(void)
{
    uint64_t counters = pmu_gp_bits() | pmu_fixed_bits();

    report_prefix_push("reserved bits");
    for (unsigned i = 0; i < pmu.gp; i++)
        test_bits("PERFEVTSEL", MSR_PERFEVTSEL(i), legal_select(), EVTSEL_PC, true);
    if (pmu.pdcm)
        expect_read_only("PERF_CAPABILITIES", MSR_PERF_CAPABILITIES);
    if (pmu.version >= 2) {
        test_bits("FIXED_CTR_CTRL", MSR_FIXED_CTR_CTRL, legal_fixed(), 0, true);
        test_bits("GLOBAL_CTRL", MSR_GLOBAL_CTRL, counters, 0, true);
        test_bits("DEBUGCTL", MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON,
                  BITS(0, 2) | BITS(6, 11) | BITS(13, 15), true);
        test_bits("GLOBAL_OVF_CTRL", MSR_GLOBAL_OVF_CTRL,
                  counters | STATUS_OVF_BUF | STATUS_COND_CHGD |
                      (pmu.version >= 4 ? STATUS_CTR_FRZ : 0),
                  BITS(55, 55) | (pmu.version >= 3 ? BITS(60, 61) : 0) |
                      (pmu.version >= 4 ? BITS(58, 58) : 0),
                  false);
        expect_read_only("GLOBAL_STATUS", MSR_GLOBAL_STATUS);
    }
    if (pmu.version >= 4)
        expect_read_only("GLOBAL_INUSE", MSR_GLOBAL_INUSE);
    pmu_clear();
    report_prefix_pop();
}

static void test_writes(void)
{
    static const struct {
        uint64_t written, legacy;
    } values[] = {
        {0, 0},
        {0x7fffffff, 0x7fffffff},
        {0x80000000, 0xffffffff80000000},
        {0xffffffff, 0xffffffffffffffff},
        {0x0000000100000001, 1},
        {0xffffffff7ffffffe, 0x7ffffffe},
    };

    report_prefix_push("writes");
    for (unsigned i = 0; i < pmu.gp; i++) {
        struct pmu_counter c = pmu_counter(i);

        for (unsigned v = 0; v < ARRAY_SIZE(values); v++) {
            wrmsr(MSR_PMC(i), values[v].written);
            report_equal(rdmsr(MSR_PMC(i)), values[v].legacy & c.mask, "PMC %u = %#lx", i,
                         values[v].written);
        }
        if (!pmu.full_width)
            continue;
        wrmsr(MSR_A_PMC(i), c.mask - 5);
        report_equal(rdmsr(MSR_A_PMC(i)), c.mask - 5, "A_PMC %u: whole width", i);
        report_equal(rdmsr(MSR_PMC(i)), c.mask - 5, "PMC %u: same counter as A_PMC", i);
        wrmsr(MSR_A_PMC(i), 0x80000000);
        report_equal(rdmsr(MSR_A_PMC(i)), 0x80000000, "A_PMC %u: no sign extension", i);
        report_equal(wrmsr_safe(MSR_A_PMC(i), c.mask + 1), EXC_GP, "A_PMC %u: one bit too wide", i);
        report_equal(wrmsr_safe(MSR_A_PMC(i), ~0ul), EXC_GP, "A_PMC %u: 64 bits", i);
        report_equal(rdmsr(MSR_PMC(i)), 0x80000000, "A_PMC %u: unchanged after the fault", i);
    }
    for (unsigned i = 0; i < pmu.fixed; i++) {
        struct pmu_counter c = pmu_counter(pmu.gp + i);

        wrmsr(c.msr, c.mask - 5);
        report_equal(rdmsr(c.msr), c.mask - 5, "FIXED_CTR %u: whole width", i);
    }
    pmu_clear();
    report_prefix_pop();
}

static void test_event(const struct expectation *e)
{
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);

        if (c.fixed && (int)c.index != e->fixed)
            continue;
        pmu_clear();
        report_equal(run_one(c, e->event, EVTSEL_OS, 0, spin, ROUNDS), e->count, "%s on %s",
                     e->name, name_of(c));
        pmu_clear();
        report_equal(run_one(c, e->event, EVTSEL_USR, 0, spin, ROUNDS), 0, "%s on %s: not in USR",
                     e->name, name_of(c));
        pmu_clear();
        report_equal(run_one(c, e->event, 0, 0, spin, ROUNDS), 0, "%s on %s: neither USR nor OS",
                     e->name, name_of(c));
    }
}

static void test_events(void)
{
    report_prefix_push("events");
    for (unsigned e = 0; e < ARRAY_SIZE(exact_events); e++)
        if (pmu_event_available(exact_events[e].ebx_bit))
            test_event(&exact_events[e]);
    for (unsigned e = 0; e < ARRAY_SIZE(model_events); e++)
        test_event(&model_events[e]);
    pmu_clear();
    report_prefix_pop();
}

/* An event that the CPU says is unavailable, or an unknown one, counts nothing. */
static void test_uncounted_events(void)
{
    static const uint32_t events[] = {
        EVENT_LLC_REFERENCES, EVENT_LLC_MISSES, EVENT_BRANCH_MISSES, 0xff, 0xffff, 0};

    report_prefix_push("not counted");
    for (unsigned e = 0; e < ARRAY_SIZE(events); e++) {
        pmu_clear();
        report_equal(run_one(pmu_counter(0), events[e], EVTSEL_OS | EVTSEL_USR, 0, spin, ROUNDS), 0,
                     "event %#x", events[e]);
    }
    pmu_clear();
    report_prefix_pop();
}

/* Events by turns on all GP counters, and all fixed ones, at the same time. */
static void test_all_at_once(void)
{
    report_prefix_push("all at once");
    for (unsigned i = 0; i < pmu.gp; i++)
        pmu_program(pmu_counter(i), exact_events[i % ARRAY_SIZE(exact_events)].event, EVTSEL_OS, 0);
    for (unsigned i = 0; i < pmu.fixed; i++)
        pmu_program(pmu_counter(pmu.gp + i), 0, EVTSEL_OS, 0);
    pmu_measure(MSR_GLOBAL_CTRL, pmu_gp_bits() | pmu_fixed_bits(), 0, spin, ROUNDS);
    for (unsigned i = 0; i < pmu.gp; i++)
        report_equal(pmu_read(pmu_counter(i)), exact_events[i % ARRAY_SIZE(exact_events)].count,
                     "GP %u", i);
    for (unsigned i = 0; i < pmu.fixed && i < 2; i++)
        report_equal(pmu_read(pmu_counter(pmu.gp + i)), MEASURE_INSNS + SPIN_INSNS(ROUNDS),
                     "fixed %u", i);
    pmu_clear();
    report_prefix_pop();
}

/* Counting past bit 31 carries, unless that is the end of the counter. */
static void test_carry(void)
{
    uint64_t preset = (1ul << 32) - 100, count = MEASURE_INSNS + SPIN_INSNS(ROUNDS);

    report_prefix_push("carry");
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);

        /* the legacy register would extend the sign of that */
        if ((c.fixed && c.index > 1) || (!c.fixed && !pmu.full_width))
            continue;
        pmu_clear();
        report_equal(run_one(c, c.index == 1 ? EVENT_CYCLES : EVENT_INSTRUCTIONS, EVTSEL_OS, preset,
                             spin, ROUNDS),
                     (preset + count) & c.mask, "%s", name_of(c));
    }
    pmu_clear();
    report_prefix_pop();
}

/* GLOBAL_CTRL and the counter's own enable must both be set. */
static void test_enables(void)
{
    struct pmu_counter c = pmu_counter(0);

    report_prefix_push("enables");
    wrmsr(MSR_PERFEVTSEL(0), EVENT_INSTRUCTIONS | EVTSEL_OS);
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, spin, ROUNDS);
    report_equal(pmu_read(c), 0, "GP: EN clear");
    wrmsr(MSR_PERFEVTSEL(0), EVENT_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN);
    spin(ROUNDS);
    report_equal(pmu_read(c), 0, "GP: GLOBAL_CTRL clear");
    wrmsr(MSR_PERFEVTSEL(0), 0);
    wrmsr(MSR_GLOBAL_CTRL, 1);
    pmu_measure(MSR_PERFEVTSEL(0), EVENT_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN, 0, spin, ROUNDS);
    report_equal(pmu_read(c), MEASURE_INSNS + SPIN_INSNS(ROUNDS), "GP: switched by EN");
    pmu_clear();
    if (pmu.fixed) {
        c = pmu_counter(pmu.gp);
        wrmsr(MSR_GLOBAL_CTRL, pmu_fixed_bits());
        pmu_measure(MSR_FIXED_CTR_CTRL, FIXED_OS, 0, spin, ROUNDS);
        report_equal(pmu_read(c), MEASURE_INSNS + SPIN_INSNS(ROUNDS), "fixed: switched by control");
    }
    pmu_clear();
    report_prefix_pop();
}

static volatile unsigned pmis;
static volatile uint64_t pmi_lvt, pmi_status;

static void count_pmi(struct trap_frame *frame)
{
    (void)frame;
    pmis++;
    pmi_lvt = apic_read(APIC_LVT_PMI);
    pmi_status = pmu.version >= 2 ? rdmsr(MSR_GLOBAL_STATUS) : 0;
    apic_eoi();
}

/* Lets an interrupt that is pending be taken. */
static void take_interrupts(void)
{
    sti();
    asm volatile("nop");
    cli();
}

static void overflow_one(struct pmu_counter c, uint32_t interrupt)
{
    uint64_t want = MEASURE_INSNS + SPIN_INSNS(ROUNDS);
    uint64_t bit = 1ul << c.status_bit;
    enum pmu_event event = c.index == 1 ? EVENT_CYCLES : EVENT_INSTRUCTIONS;

    pmu_clear();
    pmis = 0;
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    report_equal(
        run_one(c, event, EVTSEL_OS | interrupt, pmu_before_overflow(c, want - 1), spin, ROUNDS), 1,
        "%s: count", name_of(c));
    if (pmu.version >= 2)
        report_equal(rdmsr(MSR_GLOBAL_STATUS), bit, "%s: status", name_of(c));
    take_interrupts();
    report_equal(pmis, interrupt ? 1 : 0, "%s: PMIs", name_of(c));
    report_equal(apic_read(APIC_LVT_PMI), VECTOR_PMI | (interrupt ? APIC_LVT_MASKED : 0),
                 "%s: LVT entry", name_of(c));
    if (pmu.version >= 2) {
        wrmsr(MSR_GLOBAL_OVF_CTRL, bit);
        report_equal(rdmsr(MSR_GLOBAL_STATUS), 0, "%s: status cleared", name_of(c));
    }
    pmu_clear();
    report_equal(
        run_one(c, event, EVTSEL_OS | interrupt, pmu_before_overflow(c, want + 1), spin, ROUNDS),
        c.mask, "%s: one below", name_of(c));
    if (pmu.version >= 2)
        report_equal(rdmsr(MSR_GLOBAL_STATUS), 0, "%s: one below, status", name_of(c));
}

static void test_overflow(void)
{
    trap_set(VECTOR_PMI, count_pmi);
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);

        if (c.fixed && c.index > 1)
            continue;
        report_prefix_push("overflow");
        overflow_one(c, 0);
        report_prefix_pop();
        report_prefix_push("overflow with INT");
        overflow_one(c, EVTSEL_INT);
        report_prefix_pop();
    }
    pmu_clear();
}

/* Events are at most one in a cycle: CMASK of 1 is as none, CMASK of 2 is never met. */
static void test_cmask(void)
{
    struct pmu_counter c = pmu_counter(0);
    uint64_t all = MEASURE_INSNS + SPIN_INSNS(ROUNDS);

    report_prefix_push("CMASK");
    report_equal(run_one(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_CMASK(1), 0, spin, ROUNDS), all,
                 "1");
    pmu_clear();
    report_equal(run_one(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_CMASK(2), 0, spin, ROUNDS), 0,
                 "2");
    pmu_clear();
    report_equal(run_one(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_CMASK(255), 0, spin, ROUNDS), 0,
                 "255");
    pmu_clear();
    report_prefix_pop();
}

/*
 * A counter that counts, written by an instruction that is counted too: it takes the value, then
 * its own WRMSR retires.
 */
static uint32_t running_msr;

static uint64_t write_running(uint64_t value)
{
    wrmsr(running_msr, value);
    return 0;
}

static void test_write_running(void)
{
    static const struct {
        const char *name;
        uint64_t value; /* sign-extended from 32 bits in both forms of the register */
        bool overflows;
    } rows[] = {
        {"0", 0, false},    {"1000", 1000, false},           {"-1", -1ul, true},
        {"-2", -2ul, true}, {"-1000000", -1000000ul, false},
    };
    unsigned forms = pmu.full_width ? 2 : 1;

    report_prefix_push("write while it counts");
    for (unsigned form = 0; form < forms; form++)
        for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
            struct pmu_counter c = pmu_counter(0);
            uint64_t first, written = rows[r].value & c.mask;

            running_msr = form ? MSR_A_PMC(0) : MSR_PMC(0);
            pmu_clear();
            first = run_one(c, EVENT_INSTRUCTIONS, EVTSEL_OS, 0, write_running, 0);
            pmu_clear();
            report_equal(run_one(c, EVENT_INSTRUCTIONS, EVTSEL_OS, 50, write_running, written),
                         (written + first) & c.mask, "%s: %s", form ? "A_PMC" : "PMC",
                         rows[r].name);
            if (pmu.version >= 2)
                report_equal(rdmsr(MSR_GLOBAL_STATUS), rows[r].overflows, "%s: %s: status",
                             form ? "A_PMC" : "PMC", rows[r].name);
        }
    pmu_clear();
    report_prefix_pop();
}

/* The exact distance from a write: WRMSR, RDPMC, RDMSR in a row, all counted. */
static uint64_t seen_by_rdpmc, seen_by_rdmsr, seen_again;

static uint64_t read_running(uint64_t value)
{
    uint32_t first, second, third, low = (uint32_t)value, high = 0, msr = MSR_PMC(0);

    asm volatile("wrmsr\n"
                 "xor %%ecx, %%ecx\n"
                 "rdpmc\n" /* after WRMSR and XOR: 2 */
                 "mov %%eax, %0\n"
                 "rdpmc\n" /* 4 */
                 "mov %%eax, %1\n"
                 "mov %6, %%ecx\n"
                 "rdmsr\n" /* 7 */
                 "mov %%eax, %2\n"
                 : "=&r"(first), "=&r"(second), "=&r"(third), "+a"(low), "+d"(high), "+c"(msr)
                 : "i"(MSR_PMC(0))
                 : "memory");
    seen_by_rdpmc = first;
    seen_again = second;
    seen_by_rdmsr = third;
    return 0;
}

static void test_read_running(void)
{
    report_prefix_push("read while it counts");
    run_one(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_OS, 0, read_running, 1000);
    report_equal(seen_by_rdpmc, 1002, "RDPMC");
    report_equal(seen_again, 1004, "RDPMC again");
    report_equal(seen_by_rdmsr, 1007, "RDMSR");
    pmu_clear();
    report_prefix_pop();
}

static void test_status_set(void)
{
    uint64_t counters = pmu_gp_bits() | pmu_fixed_bits();
    uint64_t legal = counters | STATUS_CTR_FRZ, open = BITS(55, 55) | BITS(58, 58) | BITS(60, 62);
    unsigned wrong = 0;

    report_prefix_push("GLOBAL_STATUS_SET");
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t mask = 1ul << bit;
        unsigned vector = open & mask ? 0 : wrmsr_safe(MSR_GLOBAL_STATUS_SET, mask);

        if (open & mask)
            continue;
        if (vector != (legal & mask ? 0 : EXC_GP) || rdmsr(MSR_GLOBAL_STATUS) != (legal & mask)) {
            printf("# bit %u: vector %u, status %#lx\n", bit, vector, rdmsr(MSR_GLOBAL_STATUS));
            wrong++;
        }
        if (legal & mask)
            wrmsr(MSR_GLOBAL_OVF_CTRL, mask);
    }
    report_equal(wrong, 0, "wrong bits");
    wrmsr(MSR_GLOBAL_STATUS_SET, counters);
    report_equal(rdmsr(MSR_GLOBAL_STATUS), counters, "all counters");
    wrmsr(MSR_GLOBAL_STATUS_SET, 0);
    report_equal(rdmsr(MSR_GLOBAL_STATUS), counters, "0 clears nothing");
    wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
    report_equal(rdmsr(MSR_GLOBAL_STATUS), counters & ~1ul, "one cleared");
    pmu_clear();
    report_prefix_pop();
}

/* SDM Vol. 3, "IA32_PERF_GLOBAL_INUSE". */
static void test_in_use(void)
{
    report_prefix_push("GLOBAL_INUSE");
    report_equal(rdmsr(MSR_GLOBAL_INUSE), 0, "nothing");
    for (unsigned i = 0; i < pmu.gp; i++) {
        wrmsr(MSR_PERFEVTSEL(i), EVENT_INSTRUCTIONS);
        report_equal(rdmsr(MSR_GLOBAL_INUSE), 1ul << i, "GP %u: event select", i);
        wrmsr(MSR_PERFEVTSEL(i), EVENT_INSTRUCTIONS | EVTSEL_INT);
        report_equal(rdmsr(MSR_GLOBAL_INUSE), 1ul << i | 1ul << 63, "GP %u: with INT", i);
        wrmsr(MSR_PERFEVTSEL(i), 0);
    }
    for (unsigned i = 0; i < pmu.fixed; i++) {
        wrmsr(MSR_FIXED_CTR_CTRL, (uint64_t)FIXED_USR << 4 * i);
        report_equal(rdmsr(MSR_GLOBAL_INUSE), 1ul << (STATUS_FIXED + i), "fixed %u", i);
        wrmsr(MSR_FIXED_CTR_CTRL, (uint64_t)(FIXED_OS | FIXED_PMI) << 4 * i);
        report_equal(rdmsr(MSR_GLOBAL_INUSE), 1ul << (STATUS_FIXED + i) | 1ul << 63,
                     "fixed %u: with PMI", i);
    }
    pmu_clear();
    report_prefix_pop();
}

/*
 * Freeze on PMI (SDM Vol. 3, "Freezing LBR and Performance Counters on PMI"): the counters stop
 * with the overflow. Version 4 sets CTR_FRZ, which holds until it is cleared; 2 and 3 clear
 * GLOBAL_CTRL.
 */
static void test_freeze(void)
{
    struct pmu_counter c = pmu_counter(0), other = pmu_counter(1);
    uint64_t on = 1ul << c.status_bit | 1ul << other.status_bit;

    report_prefix_push("freeze on PMI");
    pmis = 0;
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON);
    pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT, pmu_before_overflow(c, 100));
    pmu_program(other, EVENT_INSTRUCTIONS, EVTSEL_OS, 0);
    pmu_measure(MSR_GLOBAL_CTRL, on, on, spin, ROUNDS);
    report_equal(pmu_read(c), 0, "the counter that overflowed");
    report_equal(pmu_read(other), 100, "the other counter");
    report_equal(rdmsr(MSR_GLOBAL_STATUS), STATUS_CTR_FRZ | 1, "status");
    report_equal(rdmsr(MSR_GLOBAL_CTRL), on, "GLOBAL_CTRL stays");
    take_interrupts();
    report_equal(pmis, 1, "PMIs");
    spin(ROUNDS);
    report_equal(pmu_read(other), 100, "still frozen");
    wrmsr(MSR_GLOBAL_CTRL, 0);
    wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
    pmu_measure(MSR_GLOBAL_CTRL, on, 0, spin, ROUNDS);
    report_equal(pmu_read(other), 100, "frozen until CTR_FRZ is cleared");
    wrmsr(MSR_GLOBAL_OVF_CTRL, STATUS_CTR_FRZ);
    pmu_measure(MSR_GLOBAL_CTRL, on, 0, spin, ROUNDS);
    report_equal(pmu_read(other), 100 + MEASURE_INSNS + SPIN_INSNS(ROUNDS), "counts again");
    pmu_clear();
    report_prefix_pop();
}

static uint64_t control_after, count_after;

static uint64_t spin_and_look(uint64_t n)
{
    spin(n);
    control_after = rdmsr(MSR_GLOBAL_CTRL);
    count_after = rdmsr(MSR_PMC(0));
    return 0;
}

static void test_freeze_legacy(void)
{
    struct pmu_counter c = pmu_counter(0);

    report_prefix_push("freeze on PMI");
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    pmis = 0;
    pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT, pmu_before_overflow(c, 100));
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, spin_and_look, ROUNDS);
    report_equal(control_after, 0, "GLOBAL_CTRL cleared");
    report_equal(count_after, 0, "the counter stands");
    report_equal(rdmsr(MSR_GLOBAL_STATUS), 1, "status");
    take_interrupts();
    report_equal(pmis, 1, "PMIs");
    pmu_clear();

    pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT, pmu_before_overflow(c, 100));
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, spin_and_look, ROUNDS);
    report_equal(control_after, 1, "not without DEBUGCTL");
    report(count_after > ROUNDS, "not without DEBUGCTL: counts on");
    pmu_clear();
    report_prefix_pop();
}

static uint64_t tsc_inside;

static uint64_t spin_by_tsc(uint64_t n)
{
    uint64_t start = rdtsc();

    spin(n);
    tsc_inside = rdtsc() - start;
    return 0;
}

/* At the TSC's rate: between what the TSC went on inside and outside of the enabled time. */
static void test_ref_cycles(void)
{
    report_prefix_push("reference cycles");
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);
        uint64_t start, outside, count;

        if (c.fixed && c.index != 2)
            continue;
        pmu_clear();
        start = rdtsc();
        count = run_one(c, EVENT_REF_CYCLES, EVTSEL_OS, 0, spin_by_tsc, 100 * ROUNDS);
        outside = rdtsc() - start;
        if (count < tsc_inside || count > outside)
            printf("# %lu, TSC inside %lu, outside %lu\n", count, tsc_inside, outside);
        report(count >= tsc_inside && count <= outside, "%s", name_of(c));
    }
    pmu_clear();
    report_prefix_pop();
}

static void end_of_interrupt(struct trap_frame *frame)
{
    (void)frame;
    apic_eoi();
}

static uint64_t halt_for(uint64_t ns)
{
    apic_timer_once(VECTOR_TICK, (uint32_t)ns);
    sti_hlt();
    cli();
    apic_timer_stop();
    return 0;
}

/* No cycles while halted. Under -icount, where halted time is exactly the timer's. */
static void test_halted(void)
{
    struct pmu_counter c = pmu_counter(0);
    uint64_t start, count, elapsed;

    report_prefix_push("halted");
    trap_set(VECTOR_TICK, end_of_interrupt);
    start = rdtsc();
    count = run_one(c, EVENT_REF_CYCLES, EVTSEL_OS, 0, halt_for, 1000000);
    elapsed = rdtsc() - start;
    report(elapsed > 900000 && count < elapsed / 2, "reference cycles: %lu of %lu", count, elapsed);
    pmu_clear();
    report_prefix_pop();
}

void guest_main(void)
{
    pmu_detect();
    test_cpuid();
    if (!pmu.version || pmu_counters() == 0)
        return;
    test_reset_values();
    pmu_clear();
    test_absent_msrs();
    test_rdpmc();
    test_user_rdpmc();
    test_reserved_bits();
    test_writes();
    test_events();
    test_uncounted_events();
    test_carry();
    if (pmu.version >= 2) {
        test_all_at_once();
        test_enables();
    }
    test_overflow();
    test_cmask();
    test_write_running();
    test_read_running();
    if (pmu.version >= 4) {
        test_status_set();
        test_in_use();
        test_freeze();
    } else if (pmu.version >= 2) {
        test_freeze_legacy();
    }
    test_ref_cycles();
    if (boot_option("icount"))
        test_halted();
}
