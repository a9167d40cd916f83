// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a guest has been granted, as text: the shape of its PMU, what the PMU's registers hold
 * before anything was written, what Hyper-V's leaves say, and what events count in a loop of
 * ring 3.
 *
 * Command line: e0=CODE e1=CODE...: the events (as perf's raw codes), a counter each. "reset": the
 * counters are left counting, and a reset brings the image once more. "spin", "halt", "pulse": all
 * vCPUs count for ever, while they run, halt, or wake up now and then; "os": in ring 0, too.
 * A module is numbers in hexadecimal: the first counter is given one after the other as its
 * control.
 */
#include "amd.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define ROUNDS 1000ul
#define MARK_ADDRESS 0x3000000ul
#define MARK 0x76706d756772616eul
#define RESET_PORT 0xcf9
#define RESET_COMMAND 0x06
#define HYPERVISOR (1u << 31)    /* CPUID leaf 1, ECX */
#define PERF_CTR_EXT_CORE 23     /* leaf 80000001H, ECX */
#define HV_INTERFACE 0x31237648u /* "Hv#1" */
#define NO_EVENT (~0ul)
#define VECTOR_TIMER 0x50
#define PULSE 20000000u /* between two wakings, of the local APIC's timer */

/* A PMU of either vendor, as CPUID describes it. */
struct shape {
    const char *vendor;
    unsigned version, gp, fixed;
    uint32_t ctl, ctr, step; /* general-purpose counters' registers */
    uint32_t global;         /* 0: there is none */
};

static struct shape shape;

static uint32_t amd_leaf(uint32_t leaf, bool wants_ebx)
{
    if (cpuid(0x80000000, 0).eax < leaf)
        return 0;
    return wants_ebx ? cpuid(leaf, 0).ebx : cpuid(leaf, 0).eax;
}

static struct shape detect_amd(void)
{
    bool v2 = amd_leaf(0x80000022, false) & 1;

    if (!(cpuid(0x80000001, 0).ecx >> PERF_CTR_EXT_CORE & 1))
        return (struct shape){"amd", LEGACY, 4, 0, MSR_LEGACY_CTL(0), MSR_LEGACY_CTR(0), 1, 0};
    return (struct shape){"amd",
                          v2 ? PERFMON_V2 : EXT_CORE,
                          v2 ? amd_leaf(0x80000022, true) & 0xf : 6,
                          0,
                          MSR_PERF_CTL(0),
                          MSR_PERF_CTR(0),
                          2,
                          v2 ? MSR_AMD_CTL : 0};
}

static struct shape detect_intel(void)
{
    return (struct shape){
        "intel",           pmu.version, pmu.gp, pmu.fixed,
        MSR_PERFEVTSEL(0), MSR_PMC(0),  1,      pmu.version > 1 ? MSR_GLOBAL_CTRL : 0};
}

static void print_shape(void)
{
    printf("SHAPE %s version %u gp %u fixed %u unavailable %#x\n", shape.vendor, shape.version,
           shape.gp, shape.fixed, pmu.intel ? cpuid(0xa, 0).ebx : 0);
}

static void print_hyperv(void)
{
    if (!(cpuid(1, 0).ecx & HYPERVISOR) || cpuid(0x40000001, 0).eax != HV_INTERFACE) {
        printf("HYPERV none\n");
        return;
    }
    printf("HYPERV last %#x features %#x hardware %#x\n", cpuid(0x40000000, 0).eax,
           cpuid(0x40000003, 0).edx,
           cpuid(0x40000000, 0).eax >= 0x40000006 ? cpuid(0x40000006, 0).eax : 0);
}

static void print_found(void)
{
    if (shape.global)
        printf("FOUND global %#lx\n", rdmsr(shape.global));
    for (unsigned i = 0; i < shape.gp; i++)
        printf("FOUND %u select %#lx value %#lx\n", i, rdmsr(shape.ctl + i * shape.step),
               rdmsr(shape.ctr + i * shape.step));
}

/* Without one, AMD's legacy registers may be there all the same, but RDPMC is not. */
static bool has_pmu(void)
{
    uint64_t value;

    return !rdpmc_safe(0, &value);
}

static unsigned long event(unsigned i)
{
    char name[] = {'e', (char)('0' + i), 0};

    return boot_option_number(name, NO_EVENT);
}

/* Global enables stay as reset left them: that they are set is part of what is granted. */
static void start(void)
{
    uint64_t rings = EVTSEL_USR | (boot_option("os") ? EVTSEL_OS : 0);

    for (unsigned i = 0; i < shape.gp; i++)
        if (event(i) != NO_EVENT) {
            wrmsr(shape.ctr + i * shape.step, 0);
            wrmsr(shape.ctl + i * shape.step, event(i) | rings | EVTSEL_EN);
        }
}

static void on_timer(struct trap_frame *frame)
{
    (void)frame;
    apic_eoi();
}

static void stay(void *unused)
{
    (void)unused;
    start();
    if (boot_option("spin"))
        run_user(spin, ~0ul >> 1);
    if (boot_option("pulse"))
        apic_timer_start(VECTOR_TIMER, PULSE);
    for (;;)
        asm volatile("sti; hlt");
}

static void count(void)
{
    start();
    run_user(spin, ROUNDS);
    for (unsigned i = 0; i < shape.gp; i++)
        if (event(i) != NO_EVENT)
            printf("COUNT %#lx %lu RDPMC %lu\n", event(i), rdmsr(shape.ctr + i * shape.step),
                   has_pmu() ? rdpmc(i) : 0);
}

static void try_controls(const struct boot_module *list)
{
    const char *text = (const char *)list->data, *end = text + list->size;
    char *next;

    while (text < end) {
        wrmsr(shape.ctl, strtoul(text, &next, 16));
        wrmsr(shape.ctl, 0);
        text = next + 1;
    }
}

static void reset_system(void)
{
    outb(RESET_PORT, RESET_COMMAND);
    for (;;)
        pause();
}

void guest_main(void)
{
    volatile uint64_t *const mark = (uint64_t *)MARK_ADDRESS;
    bool again = *mark == MARK;

    pmu_detect();
    shape = pmu.intel ? detect_intel() : detect_amd();
    print_shape();
    print_hyperv();
    print_found();
    if (boot_option("spin") || boot_option("halt") || boot_option("pulse")) {
        trap_set(VECTOR_TIMER, on_timer);
        printf("READY\n");
        on_all_cpus(stay, NULL);
    }
    if (boot_module_count())
        try_controls(boot_module(0));
    count();
    printf("LOOP instructions %lu branches %lu\n", SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS,
           SPIN_BRANCHES(ROUNDS) + 1);
    *mark = again ? 0 : MARK;
    if (boot_option("reset") && !again)
        reset_system();
    report(true, "end");
}
