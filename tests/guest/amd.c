/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AMD's core performance counters and IRPERF (APM Vol. 2, section "Performance Monitoring
 * Counters"; docs/device.md for what that leaves open): what CPUID says, every register, what is
 * dropped and what faults, exact counts in both rings, where an overflow interrupts, and the modes
 * that EFER.SVME has a say in.
 *
 * Command line: version= gp= irperf= (what the virtual processor was asked to have).
 */
#include "amd.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "multiboot.h"
#include "pmu.h"
#include "programs.h"
#include "report.h"
#include "step.h"
#include "trap.h"
#include "x86.h"

#define BANK 8
#define LEGACY_BANK 4
#define ROUNDS 3000ul
#define VECTOR_PMI 0x50
#define TRACE_PAGES 512

#define BITS(from, to) ((~0ul >> (63 - (to))) & (~0ul << (from)))

static struct {
    unsigned long version, gp;
    bool irperf;
} amd;

/* The names by which the first versions' software, and the later ones', know a counter. */
static uint32_t ctl(unsigned i)
{
    return amd.version == LEGACY ? MSR_LEGACY_CTL(i) : MSR_PERF_CTL(i);
}

static uint32_t ctr(unsigned i)
{
    return amd.version == LEGACY ? MSR_LEGACY_CTR(i) : MSR_PERF_CTR(i);
}

static uint64_t counter_bits(void)
{
    return BITS(0, amd.gp - 1);
}

/* Nothing counts, all values are 0, and so is the status; what is on after reset is on. */
static void clear(void)
{
    apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
    for (unsigned i = 0; i < amd.gp; i++) {
        wrmsr(ctl(i), 0);
        wrmsr(ctr(i), 0);
    }
    wrmsr(MSR_HWCR, 0);
    if (amd.irperf)
        wrmsr(MSR_IRPERF, 0);
    if (amd.version >= PERFMON_V2) {
        wrmsr(MSR_AMD_STATUS_CLR, counter_bits());
        wrmsr(MSR_AMD_CTL, counter_bits());
    }
}

/* One counter around fn(arg), started and stopped by its own enable: its value at the end. */
static uint64_t run_one(unsigned i, uint64_t select, uint64_t (*fn)(uint64_t), uint64_t arg)
{
    clear();
    pmu_measure(ctl(i), select | EVTSEL_EN, 0, fn, arg);
    return rdmsr(ctr(i));
}

/* ---- What there is ---- */

static void test_cpuid(void)
{
    struct cpuid v2 = {0};

    report_prefix_push("CPUID");
    report_equal(cpuid(0x80000001, 0).ecx >> 23 & 1, amd.version >= EXT_CORE, "PerfCtrExtCore");
    report_equal(cpuid(0x80000001, 0).ecx >> 24 & 1, 0, "no PerfCtrExtNB");
    report_equal(cpuid(0x80000001, 0).ecx >> 28 & 1, 0, "no PerfCtrExtLLC");
    report_equal(cpuid(0x80000001, 0).ecx >> 10 & 1, 0, "no IBS");
    report_equal(cpuid(0x80000008, 0).ebx >> 1 & 1, amd.irperf, "InstRetCntMsr");
    if (cpuid(0x80000000, 0).eax >= 0x80000022)
        v2 = cpuid(0x80000022, 0);
    report_equal(v2.eax, amd.version >= PERFMON_V2, "80000022H:EAX: PerfMonV2 alone");
    report_equal(v2.ebx, amd.version >= PERFMON_V2 ? amd.gp : 0, "80000022H:EBX: counters");
    report_equal(v2.ecx | v2.edx, 0, "80000022H:ECX and EDX");
    report_equal(cpuid(0, 0).eax >= 0xa ? cpuid(0xa, 0).eax : 0, 0, "no PMU of Intel's");
    report_prefix_pop();
}

static void test_reset_values(void)
{
    report_prefix_push("reset");
    for (unsigned i = 0; i < amd.gp; i++) {
        report_equal(rdmsr(ctl(i)), 0, "PERF_CTL %u", i);
        report_equal(rdmsr(ctr(i)), 0, "PERF_CTR %u", i);
    }
    if (amd.version >= PERFMON_V2) {
        report_equal(rdmsr(MSR_AMD_CTL), counter_bits(), "GlobalCtl: all counters are on");
        report_equal(rdmsr(MSR_AMD_STATUS), 0, "GlobalStatus");
    }
    report_equal(rdmsr(MSR_HWCR) & HWCR_IRPERF_EN, 0, "HWCR: IRPerfEn");
    if (amd.irperf)
        report_equal(rdmsr(MSR_IRPERF), 0, "IRPERF");
    report_prefix_pop();
}

static void expect_gp(uint32_t msr, const char *name, unsigned i)
{
    uint64_t value;

    report_equal(rdmsr_safe(msr, &value), EXC_GP, "RDMSR of %s %u", name, i);
    report_equal(wrmsr_safe(msr, 0), EXC_GP, "WRMSR of %s %u", name, i);
}

static void test_absent(void)
{
    report_prefix_push("absent");
    for (unsigned i = amd.version == LEGACY ? 0 : (unsigned)amd.gp; i < BANK; i++) {
        expect_gp(MSR_PERF_CTL(i), "PERF_CTL", i);
        expect_gp(MSR_PERF_CTR(i), "PERF_CTR", i);
    }
    for (unsigned i = 0; i < 4 && amd.version < PERFMON_V2; i++)
        expect_gp(MSR_AMD_STATUS + i, "PerfCntrGlobal", i);
    if (!amd.irperf)
        expect_gp(MSR_IRPERF, "IRPERF", 0);
    report_prefix_pop();
}

static void test_rdpmc(void)
{
    static const uint32_t bad[] = {8,          9,          10,         15,         28,
                                   0x20000000, 0x40000000, 0x40000001, 0x80000000, 0xffffffff};
    uint64_t value;

    report_prefix_push("RDPMC");
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        report_equal(rdpmc_safe(bad[i], &value), EXC_GP, "%#x", bad[i]);
    for (unsigned i = (unsigned)amd.gp; i < BANK; i++)
        report_equal(rdpmc_safe(i, &value), EXC_GP, "absent %u", i);
    for (unsigned i = 0; i < amd.gp; i++) {
        wrmsr(ctr(i), 0x923456789abc + i);
        report_equal(rdpmc_safe(i, &value), 0, "%u: no fault", i);
        report_equal(value, 0x923456789abc + i, "%u", i);
    }
    clear();
    report_prefix_pop();
}

static uint64_t user_rdpmc(uint64_t selector)
{
    uint64_t value, vector = rdpmc_safe((uint32_t)selector, &value);

    return vector ? -vector : value;
}

static void test_user_rdpmc(void)
{
    uint64_t cr4 = read_cr4();

    report_prefix_push("RDPMC in ring 3");
    for (unsigned i = 0; i < amd.gp; i++) {
        wrmsr(ctr(i), 1000 + i);
        write_cr4(cr4 & ~CR4_PCE);
        report_equal(run_user(user_rdpmc, i), (uint64_t)-EXC_GP, "%u without CR4.PCE", i);
        write_cr4(cr4 | CR4_PCE);
        report_equal(run_user(user_rdpmc, i), 1000 + i, "%u with CR4.PCE", i);
    }
    report_equal(run_user(user_rdpmc, amd.gp), (uint64_t)-EXC_GP, "absent");
    write_cr4(cr4);
    clear();
    report_prefix_pop();
}

/* ---- What registers keep ---- */

/* Each bit by itself, then all: no write faults, and what the register does not keep is dropped. */
static void test_kept(const char *name, uint32_t msr, uint64_t kept)
{
    unsigned wrong = 0;

    for (unsigned bit = 0; bit <= 64; bit++) {
        uint64_t value = bit < 64 ? 1ul << bit : ~0ul;
        unsigned vector;

        wrmsr(msr, 0);
        vector = wrmsr_safe(msr, value);
        if (vector || rdmsr(msr) != (value & kept)) {
            printf("# %s, %#lx written: vector %u, reads %#lx\n", name, value, vector, rdmsr(msr));
            wrong++;
        }
    }
    wrmsr(msr, 0);
    report_equal(wrong, 0, "%s: wrong bits", name);
}

static void test_writes(void)
{
    uint64_t select = BITS(0, 18) | BITS(20, 20) | BITS(22, 35) | BITS(40, 41);

    report_prefix_push("writes");
    if (amd.version >= PERFMON_V2)
        wrmsr(MSR_AMD_CTL, 0); /* nothing is to count here */
    for (unsigned i = 0; i < amd.gp; i++) {
        test_kept("PERF_CTR", ctr(i), AMD_COUNTER_MASK);
        /* USR | OS is not among the single bits, so nothing counts in the meantime */
        test_kept("PERF_CTL", ctl(i), select);
    }
    test_kept("HWCR", MSR_HWCR, amd.irperf ? HWCR_IRPERF_EN : 0);
    if (amd.irperf)
        test_kept("IRPERF", MSR_IRPERF, AMD_COUNTER_MASK);
    if (amd.version >= PERFMON_V2) {
        test_kept("GlobalCtl", MSR_AMD_CTL, counter_bits());
        test_kept("GlobalStatus", MSR_AMD_STATUS, 0);
        test_kept("GlobalStatusClr", MSR_AMD_STATUS_CLR, 0);
        wrmsr(MSR_AMD_STATUS_CLR, ~0ul);
    }
    clear();
    report_prefix_pop();
}

/* The K7's registers are further names of the first four counters. */
static void test_aliases(void)
{
    report_prefix_push("aliases");
    for (unsigned i = 0; i < LEGACY_BANK; i++) {
        wrmsr(MSR_PERF_CTR(i), 0x800000001000 + i);
        report_equal(rdmsr(MSR_LEGACY_CTR(i)), 0x800000001000 + i, "CTR %u by its old name", i);
        wrmsr(MSR_LEGACY_CTR(i), 0x2000 + i);
        report_equal(rdmsr(MSR_PERF_CTR(i)), 0x2000 + i, "CTR %u by its new name", i);
        wrmsr(MSR_PERF_CTL(i), AMD_BRANCHES | EVTSEL_USR | HOST_ONLY);
        report_equal(rdmsr(MSR_LEGACY_CTL(i)), AMD_BRANCHES | EVTSEL_USR | HOST_ONLY,
                     "CTL %u by its old name", i);
        wrmsr(MSR_LEGACY_CTL(i), AMD_CYCLES | EVTSEL_INT);
        report_equal(rdmsr(MSR_PERF_CTL(i)), AMD_CYCLES | EVTSEL_INT, "CTL %u by its new name", i);
    }
    clear();
    for (unsigned i = 0; i < LEGACY_BANK; i++) {
        pmu_measure(MSR_LEGACY_CTL(i), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN, 0, spin, ROUNDS);
        report_equal(rdmsr(MSR_PERF_CTR(i)), MEASURE_INSNS + SPIN_INSNS(ROUNDS),
                     "%u counts under its old name", i);
    }
    clear();
    report_prefix_pop();
}

/* Windows writes 0 to these at boot, whatever the processor is. */
static void test_windows(void)
{
    report_prefix_push("Windows' zeroes");
    for (unsigned i = 0; i < LEGACY_BANK; i++) {
        report_equal(wrmsr_safe(MSR_LEGACY_CTL(i), 0), 0, "PERF_LEGACY_CTL %u", i);
        report_equal(wrmsr_safe(MSR_LEGACY_CTR(i), 0), 0, "PERF_LEGACY_CTR %u", i);
    }
    for (unsigned i = 0; i < amd.gp && amd.version >= EXT_CORE; i++)
        report_equal(wrmsr_safe(MSR_PERF_CTL(i), 0), 0, "PERF_CTL %u", i);
    report_prefix_pop();
}

/* ---- What is counted ---- */

/* An event, and what fn = spin(ROUNDS) makes of it: in itself, and in what starts it. */
struct expectation {
    const char *name;
    uint64_t select;
    enum amd_version since;
    uint64_t spin, measure, user_exit;
};

static const struct expectation events[] = {
    {"instructions", AMD_INSTRUCTIONS, LEGACY, SPIN_INSNS(ROUNDS), MEASURE_INSNS, USER_EXIT_INSNS},
    {"cycles", AMD_CYCLES, LEGACY, SPIN_INSNS(ROUNDS), MEASURE_INSNS, USER_EXIT_INSNS},
    {"branches", AMD_BRANCHES, LEGACY, SPIN_BRANCHES(ROUNDS), MEASURE_BRANCHES, USER_EXIT_INSNS},
    {"near returns", AMD_NEAR_RETURNS, LEGACY, 1, 0, 0},
    {"conditional branches", AMD_COND_BRANCHES, EXT_CORE, SPIN_COND_BRANCHES(ROUNDS), 0, 0},
};

static uint64_t spin_in_ring3(uint64_t n)
{
    return run_user(spin, n);
}

static void expect_count(uint64_t got, uint64_t want, const char *what, const char *event,
                         unsigned counter)
{
    report_equal(got, want, "CPU %u: %s on %u: %s", this_cpu()->id, event, counter, what);
}

static void count_on_all_counters(const struct expectation *e)
{
    uint64_t want = amd.version >= e->since ? ~0ul : 0;

    for (unsigned i = 0; i < amd.gp; i++) {
        expect_count(run_one(i, e->select | EVTSEL_OS, spin, ROUNDS), (e->measure + e->spin) & want,
                     "ring 0", e->name, i);
        expect_count(run_one(i, e->select | EVTSEL_USR, spin, ROUNDS), 0, "ring 0, USR alone",
                     e->name, i);
        expect_count(run_one(i, e->select, spin, ROUNDS), 0, "neither USR nor OS", e->name, i);
        expect_count(run_one(i, e->select | EVTSEL_USR, spin_in_ring3, ROUNDS),
                     (e->spin + e->user_exit) & want, "ring 3", e->name, i);
    }
}

/* On all CPUs at the same time. */
static void count_here(void *arg)
{
    (void)arg;
    for (unsigned e = 0; e < ARRAY_SIZE(events); e++)
        count_on_all_counters(&events[e]);
    clear();
}

/* All counters at once, in both rings: ring 0 and ring 3 are the whole. */
static void test_both_rings(void)
{
    uint64_t flags[] = {EVTSEL_OS, EVTSEL_USR, EVTSEL_OS | EVTSEL_USR};
    uint64_t count[ARRAY_SIZE(flags)];

    report_prefix_push("both rings");
    for (unsigned i = 0; i < ARRAY_SIZE(flags); i++)
        count[i] = run_one(i, AMD_INSTRUCTIONS | flags[i], spin_in_ring3, ROUNDS);
    report_equal(count[1], SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS, "USR");
    report(count[0] > MEASURE_INSNS, "OS: the way there and back, %lu", count[0]);
    report_equal(count[2], count[0] + count[1], "USR and OS");
    clear();
    report_prefix_pop();
}

static void test_uncounted(void)
{
    static const uint64_t uncounted[] = {
        AMD_BRANCH_MISSES, 0xc6, 0xff,   0xffff, 0x1000000c0, 0x1c0, 0x1c2,
        0xf00000076,       0x41, 0x0729, 0};

    report_prefix_push("not counted");
    for (unsigned e = 0; e < ARRAY_SIZE(uncounted); e++)
        report_equal(run_one(0, uncounted[e] | EVTSEL_OS | EVTSEL_USR, spin, ROUNDS), 0,
                     "event %#lx", uncounted[e]);
    report_equal(run_one(0, AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_CMASK(2), spin, ROUNDS), 0,
                 "two instructions in a cycle");
    clear();
    report_prefix_pop();
}

static void end_of_interrupt(struct trap_frame *frame)
{
    (void)frame;
    apic_eoi();
}

static uint64_t interrupt_myself(uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        apic_send_fixed(this_cpu()->id, VECTOR_PMI);
        sti();
        asm volatile("nop");
        cli();
    }
    return 0;
}

static void test_interrupts(void)
{
    uint64_t want = amd.version >= EXT_CORE ? 10 : 0;

    trap_set(VECTOR_PMI, end_of_interrupt);
    report_equal(run_one(0, AMD_INTERRUPTS | EVTSEL_OS, interrupt_myself, 10), want,
                 "interrupts in ring 0");
    report_equal(run_one(0, AMD_INTERRUPTS | EVTSEL_USR, interrupt_myself, 10), 0,
                 "interrupts in ring 0, USR alone");
    clear();
}

static uint64_t tsc_inside;

static uint64_t spin_by_tsc(uint64_t n)
{
    uint64_t start = rdtsc();

    spin(n);
    tsc_inside = rdtsc() - start;
    return 0;
}

/* At the TSC's rate, from PerfMonV2 on. */
static void test_reference_cycles(void)
{
    uint64_t start = rdtsc();
    uint64_t count = run_one(1, AMD_REF_CYCLES | EVTSEL_OS, spin_by_tsc, 100 * ROUNDS);
    uint64_t outside = rdtsc() - start;

    if (amd.version >= PERFMON_V2)
        report(count >= tsc_inside && count <= outside, "reference cycles");
    else
        report_equal(count, 0, "no reference cycles");
    clear();
}

/* Counts of one WRMSR, RDPMC, RDMSR after the other, all counted. */
static void test_write_running(void)
{
    uint32_t low = 1000, high = 0, msr = ctr(0), first, second;

    clear();
    wrmsr(ctl(0), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN);
    asm volatile("wrmsr\n"
                 "mov %%ecx, %%esi\n"
                 "xor %%ecx, %%ecx\n"
                 "rdpmc\n" /* after WRMSR, MOV, XOR: 3 */
                 "mov %%eax, %0\n"
                 "mov %%esi, %%ecx\n"
                 "rdmsr\n" /* 6 */
                 "mov %%eax, %1\n"
                 : "=&r"(first), "=&r"(second), "+a"(low), "+d"(high), "+c"(msr)
                 :
                 : "rsi", "memory");
    clear();
    report_equal(first, 1003, "written while it counts: RDPMC");
    report_equal(second, 1006, "written while it counts: RDMSR");
}

/* GlobalCtl starts and stops all of its counters, each by its own bit. */
static void test_global_control(void)
{
    uint64_t all = MEASURE_INSNS + SPIN_INSNS(ROUNDS);

    report_prefix_push("GlobalCtl");
    clear();
    wrmsr(MSR_AMD_CTL, 0);
    for (unsigned i = 0; i < amd.gp; i++)
        wrmsr(ctl(i), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN);
    spin(ROUNDS);
    for (unsigned i = 0; i < amd.gp; i++)
        report_equal(rdmsr(ctr(i)), 0, "%u: is off", i);
    pmu_measure(MSR_AMD_CTL, counter_bits(), 0, spin, ROUNDS);
    for (unsigned i = 0; i < amd.gp; i++)
        report_equal(rdmsr(ctr(i)), all, "%u: all", i);
    for (unsigned i = 0; i < amd.gp; i++) {
        pmu_measure(MSR_AMD_CTL, 1ul << i, 0, spin, ROUNDS);
        report_equal(rdmsr(ctr(i)), 2 * all, "%u: alone", i);
    }
    wrmsr(ctl(0), AMD_INSTRUCTIONS | EVTSEL_OS);
    pmu_measure(MSR_AMD_CTL, 1, 0, spin, ROUNDS);
    report_equal(rdmsr(ctr(0)), 2 * all, "EN must be set too");
    clear();
    report_prefix_pop();
}

static void test_irperf(void)
{
    uint64_t both, kernel;

    report_prefix_push("IRPERF");
    clear();
    spin(ROUNDS);
    report_equal(rdmsr(MSR_IRPERF), 0, "IRPerfEn clear");
    if (amd.version >= PERFMON_V2)
        wrmsr(MSR_AMD_CTL, 0); /* has no say in it */
    pmu_measure(MSR_HWCR, HWCR_IRPERF_EN, 0, spin, ROUNDS);
    report_equal(rdmsr(MSR_IRPERF), MEASURE_INSNS + SPIN_INSNS(ROUNDS), "ring 0");
    kernel = run_one(0, AMD_INSTRUCTIONS | EVTSEL_OS, spin_in_ring3, ROUNDS);
    clear();
    pmu_measure(MSR_HWCR, HWCR_IRPERF_EN, 0, spin_in_ring3, ROUNDS);
    both = rdmsr(MSR_IRPERF);
    report_equal(both, kernel + SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS, "both rings");
    wrmsr(MSR_IRPERF, AMD_COUNTER_MASK - 10);
    pmu_measure(MSR_HWCR, HWCR_IRPERF_EN, 0, spin, ROUNDS);
    report_equal(rdmsr(MSR_IRPERF), MEASURE_INSNS + SPIN_INSNS(ROUNDS) - 11, "wraps");
    if (amd.version >= PERFMON_V2)
        report_equal(rdmsr(MSR_AMD_STATUS), 0, "and has no status");
    clear();
    report_prefix_pop();
}

/* Table "Host/Guest Only Bits". This code is the host. */
static void test_modes(void)
{
    static const struct {
        const char *name;
        uint64_t bits;
        bool without_svme, with_svme;
    } rows[] = {
        {"neither", 0, true, true},
        {"GuestOnly", GUEST_ONLY, false, false},
        {"HostOnly", HOST_ONLY, false, true},
        {"both", GUEST_ONLY | HOST_ONLY, false, true},
    };
    uint64_t efer = rdmsr(MSR_EFER), all = MEASURE_INSNS + SPIN_INSNS(ROUNDS);

    if (!(cpuid(0x80000001, 0).ecx & 4)) {
        report_skip("modes: no SVM");
        return;
    }
    report_prefix_push("modes");
    for (unsigned r = 0; r < ARRAY_SIZE(rows); r++) {
        uint64_t select = AMD_INSTRUCTIONS | EVTSEL_OS | rows[r].bits;

        report_equal(run_one(0, select, spin, ROUNDS), rows[r].without_svme ? all : 0,
                     "%s, EFER.SVME clear", rows[r].name);
        wrmsr(MSR_EFER, efer | EFER_SVME);
        report_equal(run_one(0, select, spin, ROUNDS), rows[r].with_svme ? all : 0,
                     "%s, EFER.SVME set", rows[r].name);
        wrmsr(MSR_EFER, efer);
    }
    /* The bit switches a counter that is set up already: as GlobalCtl would. */
    wrmsr(ctl(0), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN | HOST_ONLY);
    wrmsr(ctr(0), 0);
    pmu_measure(MSR_EFER, efer | EFER_SVME, efer, spin, ROUNDS);
    report_equal(rdmsr(ctr(0)), all, "HostOnly, from one WRMSR of EFER to the other");
    clear();
    report_prefix_pop();
}

static void program_host_only(void *arg)
{
    (void)arg;
    clear();
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    wrmsr(ctr(0), 1000);
    wrmsr(ctl(0), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN | HOST_ONLY);
}

static void look_after_init(void *arg)
{
    uint64_t first = rdmsr(ctr(0));

    (void)arg;
    report(first > 1000, "it has counted");
    report_equal(rdmsr(ctl(0)), AMD_INSTRUCTIONS | EVTSEL_OS | EVTSEL_EN | HOST_ONLY, "PERF_CTL");
    report_equal(rdmsr(MSR_EFER) & EFER_SVME, 0, "EFER.SVME is clear");
    spin(ROUNDS);
    report_equal(rdmsr(ctr(0)), first, "so HostOnly counts no longer");
    clear();
}

/* INIT leaves the counters alone, and clears EFER. */
static void test_init(unsigned cpu)
{
    report_prefix_push("INIT");
    on_cpu(cpu, program_host_only, NULL);
    cpu_restart(cpu);
    on_cpu(cpu, look_after_init, NULL);
    report_prefix_pop();
}

/* ---- Overflow ---- */

static const struct delivery {
    const char *name;
    uint32_t lvt;
    unsigned vector;
} deliveries[] = {
    {"NMI", APIC_DELIVERY_NMI, EXC_NMI},
    {"vector", APIC_DELIVERY_FIXED | VECTOR_PMI, VECTOR_PMI},
};

extern const uint8_t user_return[];

static struct step_trace trace;

static struct {
    const struct delivery *delivery;
    unsigned counter;
    uint64_t period, pmis, executed;
    uint64_t wrong_place, wrong_count, wrong_status, wrong_lvt;
} pmi;

static uint64_t before_overflow(uint64_t n)
{
    return (0 - n) & AMD_COUNTER_MASK;
}

/* Where the vCPU is after so many instructions of ring 3, over many runs of the program. */
static uint64_t expected_place(void)
{
    uint64_t in_run = pmi.executed % trace.length;

    if (!in_run && pmi.delivery->vector == EXC_NMI)
        return (uintptr_t)user_return; /* the INT that leaves ring 3 was the last */
    return trace.rips[in_run];
}

static void pmi_in_ring3(struct trap_frame *frame)
{
    uint64_t want;

    pmi.pmis++;
    pmi.executed += pmi.period;
    want = expected_place();
    if (frame->rip != want && !pmi.wrong_place++)
        printf("# PMI %lu: at %#lx, want %#lx\n", pmi.pmis, frame->rip, want);
    pmi.wrong_count += rdmsr(ctr(pmi.counter)) != 0;
    pmi.wrong_lvt += apic_read(APIC_LVT_PMI) != pmi.delivery->lvt; /* AMD's is not masked */
    wrmsr(ctr(pmi.counter), before_overflow(pmi.period));
    if (amd.version >= PERFMON_V2) {
        pmi.wrong_status += rdmsr(MSR_AMD_STATUS) != 1ul << pmi.counter;
        wrmsr(MSR_AMD_STATUS_CLR, 1ul << pmi.counter);
        pmi.wrong_status += rdmsr(MSR_AMD_STATUS) != 0;
    }
    if (pmi.delivery->vector != EXC_NMI)
        apic_eoi();
}

/* One that came with the last instruction of ring 3 may still be pending. */
static void drop_pending(void)
{
    trap_handler *before = trap_set(VECTOR_PMI, end_of_interrupt);

    sti();
    asm volatile("nop");
    cli();
    trap_set(VECTOR_PMI, before);
}

static void test_places(const struct delivery *d, unsigned counter, uint64_t period, uint64_t times)
{
    const struct named_program *p = &programs[period % ARRAY_SIZE(programs)];
    uint64_t size = 20;

    report_prefix_push("PMI by %s, counter %u, period %lu", d->name, counter, period);
    clear();
    drop_pending();
    step_user(p->fn, size, &trace);
    memset(&pmi, 0, sizeof(pmi));
    pmi.delivery = d;
    pmi.counter = counter;
    pmi.period = period;
    trap_set(d->vector, pmi_in_ring3);
    apic_write(APIC_LVT_PMI, d->lvt);
    wrmsr(ctr(counter), before_overflow(period));
    wrmsr(ctl(counter), AMD_INSTRUCTIONS | EVTSEL_USR | EVTSEL_INT | EVTSEL_EN);
    for (uint64_t runs = (times + 1) * period / trace.length + 2; runs && pmi.pmis < times; runs--)
        enter_user(p->fn, size, FLAG_IF, user_stack_top());
    clear();
    report(pmi.pmis >= times, "%lu PMIs, at least %lu", pmi.pmis, times);
    report_equal(pmi.wrong_place, 0, "PMIs not at the next instruction");
    report_equal(pmi.wrong_count, 0, "wrong counts");
    report_equal(pmi.wrong_status, 0, "wrong status");
    report_equal(pmi.wrong_lvt, 0, "LVT entries that changed");
    report_prefix_pop();
}

/* Each CPU at the same time would share `pmi`: one after the other. */
static void places_here(void *arg)
{
    static const uint64_t periods[] = {1, 7, 100, 1009};

    (void)arg;
    report_prefix_push("CPU %u", this_cpu()->id);
    for (unsigned d = 0; d < ARRAY_SIZE(deliveries); d++)
        for (unsigned i = 0; i < ARRAY_SIZE(periods); i++)
            test_places(&deliveries[d], i % (unsigned)amd.gp, periods[i], 300);
    test_places(&deliveries[0], (unsigned)amd.gp - 1, 11, 300);
    report_prefix_pop();
}

static volatile uint64_t pmis_counted;

static void count_pmi(struct trap_frame *frame)
{
    pmis_counted++;
    if (frame->vector != EXC_NMI)
        apic_eoi();
}

static void expect_status(uint64_t want, const char *what)
{
    if (amd.version >= PERFMON_V2)
        report_equal(rdmsr(MSR_AMD_STATUS), want, "status, %s", what);
}

/* The last instruction but one of ring 3 overflows, or none does. */
static void overflow_one(unsigned i, uint64_t interrupt)
{
    uint64_t select = AMD_INSTRUCTIONS | EVTSEL_USR | EVTSEL_EN | interrupt;
    uint64_t all = SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS;

    clear();
    apic_write(APIC_LVT_PMI, APIC_DELIVERY_NMI);
    pmis_counted = 0;
    wrmsr(ctr(i), before_overflow(all + 1));
    pmu_measure(ctl(i), select, 0, spin_in_ring3, ROUNDS);
    report_equal(rdmsr(ctr(i)), AMD_COUNTER_MASK, "count, one below");
    report_equal(pmis_counted, 0, "PMIs, one below");
    expect_status(0, "one below");
    wrmsr(ctr(i), before_overflow(all - 1));
    pmu_measure(ctl(i), select, 0, spin_in_ring3, ROUNDS);
    report_equal(rdmsr(ctr(i)), 1, "count");
    report_equal(pmis_counted, interrupt ? 1 : 0, "PMIs");
    expect_status(1ul << i, "overflow");
    if (amd.version >= PERFMON_V2) {
        wrmsr(MSR_AMD_STATUS_CLR, counter_bits() & ~(1ul << i));
        expect_status(1ul << i, "the others cleared");
        wrmsr(MSR_AMD_STATUS, 0);
        expect_status(1ul << i, "0 written to it: read-only");
        wrmsr(MSR_AMD_STATUS_CLR, 1ul << i);
        expect_status(0, "cleared");
    }
}

static void test_overflow(void)
{
    trap_set(EXC_NMI, count_pmi);
    for (unsigned i = 0; i < amd.gp; i++) {
        report_prefix_push("overflow of %u", i);
        overflow_one(i, 0);
        report_prefix_pop();
        report_prefix_push("overflow of %u with INT", i);
        overflow_one(i, EVTSEL_INT);
        report_prefix_pop();
    }
    clear();
}

/* Overflow counts on, and each one has its PMI: no mask, no freeze. */
static void test_counts_on(void)
{
    report_prefix_push("no freeze");
    trap_set(EXC_NMI, count_pmi);
    clear();
    apic_write(APIC_LVT_PMI, APIC_DELIVERY_NMI);
    for (uint64_t round = 1; round <= 3; round++) {
        pmis_counted = 0;
        wrmsr(ctr(0), before_overflow(100));
        wrmsr(ctr(1), 0);
        wrmsr(ctl(1), AMD_INSTRUCTIONS | EVTSEL_USR | EVTSEL_EN);
        pmu_measure(ctl(0), AMD_BRANCHES | EVTSEL_USR | EVTSEL_INT | EVTSEL_EN, 0, spin_in_ring3,
                    ROUNDS);
        report_equal(pmis_counted, 1, "PMIs of overflow %lu", round);
        report_equal(rdmsr(ctr(0)), SPIN_BRANCHES(ROUNDS) + USER_EXIT_INSNS - 100, "its counter");
        report_equal(rdmsr(ctr(1)), SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS, "another one");
        wrmsr(ctl(1), 0);
        expect_status(1, "set already or not");
    }
    clear();
    report_prefix_pop();
}

static void test_status_set(void)
{
    unsigned wrong = 0;

    report_prefix_push("GlobalStatusSet");
    clear();
    for (unsigned bit = 0; bit < 64; bit++) {
        wrong += wrmsr_safe(MSR_AMD_STATUS_SET, 1ul << bit) != 0;
        wrong += rdmsr(MSR_AMD_STATUS) != (counter_bits() & 1ul << bit);
        wrong += rdmsr(MSR_AMD_STATUS_SET) != 0;
        wrmsr(MSR_AMD_STATUS_CLR, ~0ul);
        wrong += rdmsr(MSR_AMD_STATUS) != 0;
    }
    report_equal(wrong, 0, "wrong bits");
    wrmsr(MSR_AMD_STATUS_SET, ~0ul);
    expect_status(counter_bits(), "all set");
    wrmsr(MSR_AMD_STATUS_SET, 0);
    expect_status(counter_bits(), "0 clears nothing");
    clear();
    report_prefix_pop();
}

void guest_main(void)
{
    amd.version = boot_option_number("version", 1);
    amd.gp = boot_option_number("gp", 6);
    amd.irperf = boot_option_number("irperf", 0);
    test_cpuid();
    test_reset_values();
    clear();
    test_absent();
    test_rdpmc();
    test_user_rdpmc();
    test_writes();
    if (amd.version >= EXT_CORE)
        test_aliases();
    test_windows();
    on_all_cpus(count_here, NULL);
    test_both_rings();
    test_uncounted();
    test_interrupts();
    test_reference_cycles();
    test_write_running();
    test_modes();
    test_overflow();
    test_counts_on();
    if (cpu_count() > 1)
        test_init(1);
    if (amd.irperf)
        test_irperf();
    if (amd.version >= PERFMON_V2) {
        test_global_control();
        test_status_set();
    }
    trace.size = TRACE_PAGES * PAGE_SIZE / sizeof(trace.rips[0]);
    trace.rips = pages_alloc(TRACE_PAGES);
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, places_here, NULL);
}
