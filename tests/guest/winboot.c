/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accesses of an unmodified x64 Windows guest to the PMU, in its order: the probe, the set-up
 * of every processor, counting and sampling on GP counters and on fixed ones. None may fault.
 *
 * Command line: "off": this virtual processor is to have no PMU.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_PROFILE 0xfe
#define MSR_DS_AREA 0x600u
#define MSR_TOPA 0x570u
#define MSR_AMD_LEGACY_CTL(i) (0xc0010000u + (i))
#define MSR_AMD_LEGACY_CTR(i) (0xc0010004u + (i))
#define MSR_AMD_CTL(i) (0xc0010200u + 2 * (i))
#define MSR_AMD_HWCR 0xc0010015u
#define AMD_LEGACY_COUNTERS 4
#define AMD_COUNTERS 6
#define HWCR_IRPERF (1ul << 30)
#define COUNT 0x400000u  /* EN */
#define SAMPLE 0x500000u /* EN, INT */
#define INTERVAL 65536ul
#define GP_FLAGS (EVTSEL_USR | EVTSEL_OS)

/* Faults of the MSR accesses of one step. */
static unsigned fault_count;

static uint64_t get(uint32_t msr)
{
    uint64_t value;

    if (rdmsr_safe(msr, &value)) {
        printf("# RDMSR %#x faults\n", msr);
        fault_count++;
    }
    return value;
}

static void set(uint32_t msr, uint64_t value)
{
    if (wrmsr_safe(msr, value)) {
        printf("# WRMSR %#x = %#lx faults\n", msr, value);
        fault_count++;
    }
}

static void report_faults(const char *step)
{
    report_equal(fault_count, 0, "%s: faults", step);
    fault_count = 0;
}

/* Is there a PMU that Windows would use? */
static bool probe_intel(void)
{
    struct cpuid leaf = cpuid(0xa, 0);

    return cpuid(0, 0).eax >= 0xa && (leaf.eax & 0xff) && leaf.eax >> 24 && !(leaf.ebx & 1);
}

/* PEBS is looked for where DS is advertised and MISC_ENABLE does not deny it. */
static void probe_pebs(void)
{
    if (cpuid(1, 0).edx >> 21 & 1 && !(get(MSR_MISC_ENABLE) >> 12 & 1)) {
        get(MSR_PERF_CAPABILITIES);
        get(MSR_DS_AREA);
    }
    report_faults("PEBS probe");
}

static void set_up_processor(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < pmu.gp; i++)
        set(MSR_PERFEVTSEL(i), 0);
    if (pmu.version >= 2) {
        set(MSR_FIXED_CTR_CTRL, 0);
        set(MSR_GLOBAL_CTRL, get(MSR_GLOBAL_CTRL) & ~pmu_fixed_bits());
        set(MSR_GLOBAL_OVF_CTRL, pmu_gp_bits() | pmu_fixed_bits());
    }
}

/* GP counters are only programmed: that they count relies on the reset value of GLOBAL_CTRL. */
static void test_count_gp(void)
{
    for (unsigned i = 0; i < pmu.gp; i++) {
        uint64_t count;

        set(MSR_PMC(i), 0);
        set(MSR_PERFEVTSEL(i), EVENT_INSTRUCTIONS | GP_FLAGS | COUNT);
        spin(1000);
        count = get(MSR_PMC(i));
        set(MSR_PERFEVTSEL(i), 0);
        report(count > SPIN_INSNS(1000), "GP %u counts: %lu", i, count);
    }
    report_faults("counting on GP counters");
}

static void test_count_fixed(void)
{
    for (unsigned i = 0; i < pmu.fixed; i++) {
        uint64_t count;

        set(MSR_FIXED_CTR(i), 0);
        set(MSR_GLOBAL_CTRL, get(MSR_GLOBAL_CTRL) | 1ul << (STATUS_FIXED + i));
        set(MSR_FIXED_CTR_CTRL, (uint64_t)(FIXED_OS | FIXED_USR) << 4 * i);
        spin(1000);
        count = get(MSR_FIXED_CTR(i));
        set(MSR_FIXED_CTR_CTRL, 0);
        set(MSR_GLOBAL_CTRL, get(MSR_GLOBAL_CTRL) & ~(1ul << (STATUS_FIXED + i)));
        report(count > 0, "fixed %u counts: %lu", i, count);
    }
    report_faults("counting on fixed counters");
}

static volatile unsigned samples;
static uint32_t sampled_msr;
static uint64_t preset; /* what makes it overflow after INTERVAL */
static uint64_t status_wrong, sampled_bit;

/* The profile interrupt: which counter, acknowledge, the next interval, rearm. */
static void profile_interrupt(struct trap_frame *frame)
{
    uint64_t status = get(MSR_GLOBAL_STATUS);

    (void)frame;
    samples++;
    status_wrong += status != sampled_bit;
    if (status >> 55 & 1)
        get(MSR_TOPA);
    set(MSR_GLOBAL_OVF_CTRL, status);
    set(sampled_msr, preset);
    apic_write(APIC_LVT_PMI, VECTOR_PROFILE);
    apic_eoi();
}

static void start_sampling(uint32_t msr, unsigned status_bit, uint64_t value)
{
    preset = value;
    samples = 0;
    status_wrong = 0;
    sampled_msr = msr;
    sampled_bit = 1ul << status_bit;
    trap_set(VECTOR_PROFILE, profile_interrupt);
    apic_write(APIC_LVT_PMI, VECTOR_PROFILE);
}

/* What is retired in ring 0 by the handler comes on top, so that more samples are no error. */
static void end_sampling(const char *name)
{
    cli();
    apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
    report(samples >= 16, "%s: %u samples", name, samples);
    report_equal(status_wrong, 0, "%s: wrong status", name);
    report_faults(name);
}

static void test_sample(void)
{
    start_sampling(MSR_PMC(0), 0, (uint32_t)-INTERVAL);
    set(MSR_PMC(0), preset);
    set(MSR_PERFEVTSEL(0), EVENT_INSTRUCTIONS | GP_FLAGS | SAMPLE);
    sti();
    spin(8 * INTERVAL);
    set(MSR_PERFEVTSEL(0), 0);
    end_sampling("sampling on GP 0");

    if (!pmu.fixed)
        return;
    start_sampling(MSR_FIXED_CTR(0), STATUS_FIXED, -INTERVAL & pmu_counter(pmu.gp).mask);
    set(MSR_FIXED_CTR(0), preset);
    set(MSR_GLOBAL_CTRL, get(MSR_GLOBAL_CTRL) | 1ul << STATUS_FIXED);
    set(MSR_FIXED_CTR_CTRL, FIXED_OS | FIXED_USR | FIXED_PMI);
    sti();
    spin(8 * INTERVAL);
    set(MSR_FIXED_CTR_CTRL, 0);
    end_sampling("sampling on fixed 0");
}

/* The scheduler reads counters by RDPMC, and so does ReadThreadProfilingData in ring 3. */
static uint64_t read_selector(uint64_t selector)
{
    uint64_t value;

    return rdpmc_safe((uint32_t)selector, &value);
}

static void test_thread_profiling(void)
{
    write_cr4(read_cr4() | CR4_PCE);
    for (unsigned i = 0; i < pmu_counters(); i++) {
        uint32_t selector = pmu_counter(i).rdpmc;

        report_equal(read_selector(selector), 0, "RDPMC %#x in ring 0", selector);
        report_equal(run_user(read_selector, selector), 0, "RDPMC %#x in ring 3", selector);
    }
}

static void test_intel(void)
{
    report(probe_intel(), "the probe finds a PMU");
    probe_pebs();
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, set_up_processor, NULL);
    report_faults("set-up of every processor");
    test_count_gp();
    test_count_fixed();
    if (pmu.version >= 2)
        test_sample();
    test_thread_profiling();
}

static void zero_amd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < AMD_LEGACY_COUNTERS; i++) {
        set(MSR_AMD_LEGACY_CTL(i), 0);
        set(MSR_AMD_LEGACY_CTR(i), 0);
    }
    if (cpuid(0x80000001, 0).ecx >> 23 & 1)
        for (unsigned i = 0; i < AMD_COUNTERS; i++)
            set(MSR_AMD_CTL(i), 0);
    if (cpuid(0x80000000, 0).eax >= 0x80000008 && cpuid(0x80000008, 0).ebx >> 1 & 1)
        set(MSR_AMD_HWCR, get(MSR_AMD_HWCR) | HWCR_IRPERF);
}

static void test_off(void)
{
    struct cpuid leaf = cpuid(0, 0).eax >= 0xa ? cpuid(0xa, 0) : (struct cpuid){0};

    report((leaf.eax | leaf.ebx | leaf.ecx | leaf.edx) == 0, "leaf 0xA is empty");
    report(!pmu.pdcm, "no PERF_CAPABILITIES");
    if (pmu.intel) {
        report(!probe_intel(), "the probe finds no PMU");
        probe_pebs();
        return;
    }
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, zero_amd, NULL);
    report_faults("AMD: PERF_CTL of every processor set to 0");
}

void guest_main(void)
{
    pmu_detect();
    if (boot_option("off"))
        test_off();
    else
        test_intel();
}
