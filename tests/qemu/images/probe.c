/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What software can find of a PMU, as text: CPUID, and what the PMU's registers and RDPMC do. Two
 * virtual processors with the same text are the same to it.
 *
 * With "mistakes" on the command line: every access that faults, one line "MISTAKE cpu what index
 * value" each, on all CPUs one after the other, while a counter runs.
 */
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "x86.h"

#define SUBLEAVES 4

static void print_leaves(uint32_t first)
{
    uint32_t last = cpuid(first, 0).eax;

    for (uint32_t leaf = first; leaf <= last; leaf++)
        for (uint32_t sub = 0; sub < SUBLEAVES; sub++) {
            struct cpuid r = cpuid(leaf, sub);

            printf("CPUID %x/%u: %08x %08x %08x %08x\n", leaf, sub, r.eax, r.ebx, r.ecx, r.edx);
        }
}

static const struct {
    uint32_t first, count;
} msrs[] = {
    {MSR_PMC(0), 8},          {MSR_PERFEVTSEL(0), 8},     {MSR_MISC_ENABLE, 1},
    {MSR_DEBUGCTL, 1},        {MSR_FIXED_CTR(0), 4},      {MSR_PERF_CAPABILITIES, 1},
    {MSR_FIXED_CTR_CTRL, 1},  {MSR_GLOBAL_STATUS, 1},     {MSR_GLOBAL_CTRL, 1},
    {MSR_GLOBAL_OVF_CTRL, 1}, {MSR_GLOBAL_STATUS_SET, 2}, {MSR_A_PMC(0), 8},
};

static void print_msr(uint32_t index)
{
    uint64_t value, then;
    unsigned read = rdmsr_safe(index, &value), write = wrmsr_safe(index, value | 1),
             again = rdmsr_safe(index, &then);

    printf("MSR %x: RDMSR #%u %lx, WRMSR #%u, RDMSR #%u %lx\n", index, read, value, write, again,
           then);
    wrmsr_safe(index, value);
}

static void probe(void)
{
    uint64_t value;

    print_leaves(0);
    print_leaves(0x80000000);
    for (unsigned i = 0; i < ARRAY_SIZE(msrs); i++)
        for (uint32_t n = 0; n < msrs[i].count; n++)
            print_msr(msrs[i].first + n);
    for (uint32_t i = 0; i < 4; i++) {
        printf("RDPMC %x: #%u\n", i, rdpmc_safe(i, &value));
        printf("RDPMC %x: #%u\n", RDPMC_FIXED | i, rdpmc_safe(RDPMC_FIXED | i, &value));
    }
}

/* Of version 2 with 4 general-purpose and 3 fixed counters, 48 bits wide. */
static const struct mistake {
    enum { READ_MSR, WRITE_MSR, READ_PMC } what;
    uint32_t index;
    uint64_t value;
} mistakes[] = {
    {READ_MSR, MSR_PMC(4), 0},
    {READ_MSR, MSR_PERFEVTSEL(7), 0},
    {READ_MSR, MSR_FIXED_CTR(3), 0},
    {READ_MSR, MSR_GLOBAL_STATUS_SET, 0},
    {READ_MSR, MSR_GLOBAL_INUSE, 0},
    {WRITE_MSR, MSR_PERFEVTSEL(0), 1ul << 32},
    {WRITE_MSR, MSR_PERFEVTSEL(1), EVTSEL_ANY},
    {WRITE_MSR, MSR_PERFEVTSEL(4), 0},
    {WRITE_MSR, MSR_FIXED_CTR_CTRL, FIXED_ANY},
    {WRITE_MSR, MSR_FIXED_CTR_CTRL, 1ul << 12},
    {WRITE_MSR, MSR_GLOBAL_CTRL, 1ul << 4},
    {WRITE_MSR, MSR_GLOBAL_STATUS, 1},
    {WRITE_MSR, MSR_GLOBAL_OVF_CTRL, 1ul << 40},
    {WRITE_MSR, MSR_PERF_CAPABILITIES, 0x2000},
    {WRITE_MSR, MSR_A_PMC(0), 1ul << 48},
    {READ_PMC, 4, 0},
    {READ_PMC, RDPMC_FIXED | 3, 0},
    {READ_PMC, 0x80000000, 0},
    {READ_PMC, 0xffffffff, 0},
};

static const char *const what_name[] = {"RDMSR of", "WRMSR to", "RDPMC of"};

static unsigned make(const struct mistake *m)
{
    uint64_t value;

    switch (m->what) {
    case READ_MSR:
        return rdmsr_safe(m->index, &value);
    case WRITE_MSR:
        return wrmsr_safe(m->index, m->value);
    default:
        return rdpmc_safe(m->index, &value);
    }
}

static unsigned vectors[ARRAY_SIZE(mistakes)];

static uint64_t make_all(uint64_t rounds)
{
    for (unsigned i = 0; i < ARRAY_SIZE(mistakes); i++)
        vectors[i] = make(&mistakes[i]);
    return spin(rounds);
}

static void make_mistakes(void *unused)
{
    unsigned id = this_cpu()->id;

    (void)unused;
    pmu_clear();
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_USR, 0);
    pmu_program(pmu_counter(1), EVENT_BRANCHES, EVTSEL_USR, 0);
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits());
    make_all(1);
    run_user(spin, 1000);
    make_all(1);
    wrmsr(MSR_GLOBAL_CTRL, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(mistakes); i++) {
        printf("MISTAKE %u %s %x %lx\n", id, what_name[mistakes[i].what], mistakes[i].index,
               mistakes[i].value);
        report_equal(vectors[i], EXC_GP, "CPU %u: %s %x", id, what_name[mistakes[i].what],
                     mistakes[i].index);
    }
    report_equal(pmu_read(pmu_counter(0)), SPIN_INSNS(1000) + USER_EXIT_INSNS,
                 "CPU %u: instructions", id);
    report_equal(pmu_read(pmu_counter(1)), SPIN_BRANCHES(1000) + 1, "CPU %u: branches", id);
}

void guest_main(void)
{
    pmu_detect();
    if (boot_option("mistakes"))
        for (unsigned i = 0; i < cpu_count(); i++)
            on_cpu(i, make_mistakes, NULL);
    else
        probe();
    report(true, "end");
}
