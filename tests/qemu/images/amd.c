/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * As the worker's phase "user", on AMD's PMU: counts of ring 3 while whoever runs this machine
 * moves it about, with EFER.SVME set, so that the modes must be right behind each move, too.
 */
#include "amd.h"
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define APIC_LVT_LINT1 ((enum apic_register)0x360)
#define VECTOR_PMI 0x50
#define PERIODIC 5
#define PERIOD 10007

/* Rounds of 4 instructions, counted in %rax and at gs:16, until gs:8 is set; then RET. */
uint64_t rounds(uint64_t unused);
extern const uint8_t nmi_entry[];
asm(".pushsection .text\n"
    "rounds:\n"
    "    xor %eax, %eax\n"
    "1:  add $1, %rax\n"
    "    mov %rax, %gs:16\n"
    "    cmpl $0, %gs:8\n"
    "    je 1b\n"
    "    ret\n"
    "nmi_entry:\n"
    "    movl $1, %gs:8\n"
    "    iretq\n"
    ".popsection\n");

/* What a round retires, and what XOR, RET and the INT n back from ring 3 do. */
static const struct row {
    const char *name;
    uint64_t select, round, once;
} rows[] = {
    {"instructions", AMD_INSTRUCTIONS, 4, 2 + USER_EXIT_INSNS},
    {"conditional branches", AMD_COND_BRANCHES, 1, 0},
    {"branches, HostOnly", AMD_BRANCHES | HOST_ONLY, 1, 1 + USER_EXIT_INSNS},
    {"cycles, both", AMD_CYCLES | HOST_ONLY | GUEST_ONLY, 4, 2 + USER_EXIT_INSNS},
    {"instructions, GuestOnly", AMD_INSTRUCTIONS | GUEST_ONLY, 0, 0},
};

struct client {
    volatile uint64_t told, rounds;
};

static uint64_t pmis[MAX_CPUS];

static struct client *client(void)
{
    return (struct client *)this_cpu()->client;
}

static void rearm(void)
{
    wrmsr(MSR_PERF_CTR(PERIODIC), -(uint64_t)PERIOD);
}

static void on_pmi(struct trap_frame *frame)
{
    (void)frame;
    pmis[this_cpu()->id]++;
    rearm();
    apic_eoi();
}

static void start(void)
{
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    apic_write(APIC_LVT_LINT1, APIC_DELIVERY_NMI);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    client()->told = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        wrmsr(MSR_PERF_CTL(i), rows[i].select | EVTSEL_USR | EVTSEL_EN);
    rearm();
    wrmsr(MSR_PERF_CTL(PERIODIC), AMD_INSTRUCTIONS | EVTSEL_USR | EVTSEL_INT | EVTSEL_EN);
    wrmsr(MSR_HWCR, HWCR_IRPERF_EN);
}

static void stop(void)
{
    wrmsr(MSR_HWCR, 0);
    for (unsigned i = 0; i <= PERIODIC; i++)
        wrmsr(MSR_PERF_CTL(i), 0);
}

static void check(void)
{
    unsigned id = this_cpu()->id;
    uint64_t n = client()->rounds, all = 4 * n + 2 + USER_EXIT_INSNS;

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        report_equal(rdmsr(MSR_PERF_CTR(i)), rows[i].round * n + rows[i].once, "CPU %u: %s", id,
                     rows[i].name);
    report_equal((rdmsr(MSR_PERF_CTR(PERIODIC)) + PERIOD) & AMD_COUNTER_MASK,
                 all - PERIOD * pmis[id], "CPU %u: the periodic counter", id);
    report(rdmsr(MSR_IRPERF) > all, "CPU %u: IRPERF counts ring 0, too", id);
}

static void count_here(void *unused)
{
    (void)unused;
    start();
    enter_user(rounds, 0, FLAG_IF, user_stack_top());
    stop();
    check();
}

void guest_main(void)
{
    trap_set(VECTOR_PMI, on_pmi);
    trap_set_entry(EXC_NMI, nmi_entry);
    printf("READY user\n");
    on_all_cpus(count_here, NULL);
    client()->told = 0;
    printf("DONE user\n");
    while (!client()->told)
        pause();
}
