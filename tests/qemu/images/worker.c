/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts until it is told to stop, and knows what the counters must then say.
 *
 * Whoever runs QEMU chooses the moment: an NMI from the monitor ends a phase. The work counts its
 * own rounds, so every count is known to the last instruction however long the phase took and
 * whatever was done to QEMU in the meantime.
 *
 * Command line: the phases (user, kernel, hold, halt, stop), which run in this order; period= (of
 * the interrupts in ring 3, 0 for none). Of each phase it prints "READY phase", then the results
 * and "VALUE cpu counter value" for each counter, then "DONE phase", and goes on after another NMI.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "multiboot.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_PMI 0x50
#define APIC_LVT_LINT1 ((enum apic_register)0x360)
#define DEFAULT_PERIOD 100003

#define EVENT_NEAR_CALLS ((enum pmu_event)0x02c4)
#define EVENT_NEAR_RETURNS ((enum pmu_event)0x08c4)
#define EVENT_FAR_BRANCHES ((enum pmu_event)0x40c4)

/* The counter that interrupts in ring 3, and the one whose event nobody counts. */
#define PERIODIC 2
#define UNSUPPORTED 3

/*
 * work(): rounds of WORK_INSNS instructions, counted in %rax and at gs:16, until gs:8 is set.
 * work_at[i] is the address of the i-th instruction of a round, and behind them that of the RET.
 *
 * nmi_entry: the way of an NMI, straight from its gate: two instructions, one of them a far branch.
 */
#define WORK_INSNS 9
#define NMI_INSNS 2
#define NMI_BRANCHES 1

uint64_t work(uint64_t unused);
extern const uint8_t nmi_entry[];
extern const uint64_t work_at[WORK_INSNS + 1];

asm(".pushsection .text\n"
    ".globl work, work_loop\n"
    "work:\n"
    "    xor %eax, %eax\n"
    "work_loop:\n"
    "    add $1, %rax\n"
    "work_1:\n"
    "    mov %rax, %gs:16\n"
    "work_2:\n"
    "    test $7, %al\n"
    "work_3:\n"
    "    je work_4\n"
    "work_4:\n"
    "    call work_5\n"
    "work_6:\n"
    "    mov %rax, %rdx\n"
    "work_7:\n"
    "    cmpl $0, %gs:8\n"
    "work_8:\n"
    "    je work_loop\n"
    "work_9:\n"
    "    ret\n"
    "work_5:\n"
    "    ret\n"
    "nmi_entry:\n"
    "    movl $1, %gs:8\n"
    "    iretq\n"
    ".popsection\n"
    ".pushsection .rodata\n"
    ".balign 8\n"
    "work_at:\n"
    "    .quad work_loop, work_1, work_2, work_3, work_4, work_5, work_6, work_7, work_8, work_9\n"
    ".popsection\n");

/* What a round retires, and what is retired once in each ring: work()'s first and last instruction,
 * INT n back from ring 3, pmu_measure() and the NMI in ring 0. */
static const struct row {
    const char *name;
    bool fixed;
    unsigned index;
    enum pmu_event event;
    uint64_t round, user, kernel;
} rows[] = {
    {"instructions", true, 0, EVENT_INSTRUCTIONS, WORK_INSNS, 2 + USER_EXIT_INSNS,
     2 + MEASURE_INSNS + NMI_INSNS},
    {"cycles", true, 1, EVENT_CYCLES, WORK_INSNS, 2 + USER_EXIT_INSNS,
     2 + MEASURE_INSNS + NMI_INSNS},
    {"branches", false, 0, EVENT_BRANCHES, 4, 1 + 1, 1 + MEASURE_BRANCHES + NMI_BRANCHES},
    {"conditional branches", false, 1, EVENT_COND_BRANCHES, 2, 0, 0},
    {"unsupported", false, UNSUPPORTED, EVENT_LLC_MISSES, 0, 0, 0},
    {"near calls", false, 4, EVENT_NEAR_CALLS, 1, 0, 1},
    {"near returns", false, 5, EVENT_NEAR_RETURNS, 1, 1, 1},
    {"far branches", false, 6, EVENT_FAR_BRANCHES, 0, 1, NMI_BRANCHES},
};

/* What the interrupts of a CPU's periodic counter were seen to do. */
static struct watch {
    uint64_t period; /* 0: it does not go on after its interrupt */
    uint64_t pmis, misplaced, elsewhere;
} watches[MAX_CPUS];

static uint64_t period;

/* What is at gs:8 and gs:16. */
struct client {
    volatile uint64_t told, rounds;
};

static struct client *client(void)
{
    return (struct client *)this_cpu()->client;
}

static void wait_until_told(void)
{
    while (!client()->told)
        pause();
}

static struct pmu_counter counter(bool fixed, unsigned index)
{
    return pmu_counter(fixed ? pmu.gp + index : index);
}

static bool exists(const struct row *row)
{
    return row->index < (row->fixed ? pmu.fixed : pmu.gp);
}

static uint64_t all_bits(void)
{
    return pmu_gp_bits() | pmu_fixed_bits();
}

/* Instructions of work() that have retired where the frame was taken; ~0 outside of its loop. */
static uint64_t retired_at(const struct trap_frame *frame)
{
    if (frame->rip == work_at[0])
        return 1 + WORK_INSNS * frame->rax;
    for (unsigned i = 1; i <= WORK_INSNS; i++)
        if (frame->rip == work_at[i])
            return 1 + WORK_INSNS * (frame->rax - 1) + i;
    return ~0ul;
}

static void on_pmi(struct trap_frame *frame)
{
    struct watch *watch = &watches[this_cpu()->id];
    uint64_t retired = retired_at(frame);

    watch->pmis++;
    if (retired == ~0ul)
        watch->elsewhere++;
    else if (retired != watch->pmis * watch->period)
        watch->misplaced++;
    if (watch->period) {
        struct pmu_counter c = counter(false, PERIODIC);

        pmu_write(c, pmu_before_overflow(c, watch->period));
        wrmsr(MSR_GLOBAL_OVF_CTRL, 1ul << PERIODIC);
        apic_write(APIC_LVT_PMI, VECTOR_PMI);
    }
    apic_eoi();
}

static void program_rows(uint32_t flags)
{
    pmu_clear();
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
        if (exists(&rows[i]))
            pmu_program(counter(rows[i].fixed, rows[i].index), rows[i].event, flags, 0);
    client()->told = 0;
}

static void check_rows(bool user)
{
    uint64_t rounds = client()->rounds;

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];

        if (exists(row))
            report_equal(pmu_read(counter(row->fixed, row->index)),
                         row->round * rounds + (user ? row->user : row->kernel), "CPU %u: %s",
                         this_cpu()->id, row->name);
    }
}

static void check_watch(void)
{
    const struct watch *watch = &watches[this_cpu()->id];
    struct pmu_counter c = counter(false, PERIODIC);
    uint64_t total = WORK_INSNS * client()->rounds + 2 + USER_EXIT_INSNS;

    report_equal(watch->misplaced, 0, "CPU %u: interrupts at the instruction", this_cpu()->id);
    report(watch->elsewhere <= 1, "CPU %u: interrupts in the loop", this_cpu()->id);
    report_equal(pmu_read(c) - pmu_before_overflow(c, period), total - period * watch->pmis,
                 "CPU %u: periodic counter", this_cpu()->id);
    printf("CPU %u: %lu interrupts, %lu rounds\n", this_cpu()->id, watch->pmis, client()->rounds);
}

/* In ring 3, with interrupts. */
static void count_user(void *unused)
{
    (void)unused;
    program_rows(EVTSEL_USR);
    watches[this_cpu()->id] = (struct watch){.period = period};
    if (period) {
        struct pmu_counter c = counter(false, PERIODIC);

        pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT, pmu_before_overflow(c, period));
        apic_write(APIC_LVT_PMI, VECTOR_PMI);
    }
    wrmsr(MSR_GLOBAL_CTRL, all_bits());
    enter_user(work, 0, FLAG_IF, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    check_rows(true);
    if (period)
        check_watch();
}

/* In ring 0, with no interrupt but the NMI. */
static void count_kernel(void *unused)
{
    (void)unused;
    program_rows(EVTSEL_OS);
    pmu_measure(MSR_GLOBAL_CTRL, all_bits(), 0, work, 0);
    check_rows(false);
}

/* Every register of the PMU, with the number that its bank has. */
static const struct {
    const char *name;
    uint32_t first;
    unsigned since;
    enum { ONE, EACH_GP, EACH_FIXED } bank;
} registers[] = {
    {"PMC", MSR_PMC(0), 1, EACH_GP},
    {"PERFEVTSEL", MSR_PERFEVTSEL(0), 1, EACH_GP},
    {"FIXED_CTR", MSR_FIXED_CTR(0), 2, EACH_FIXED},
    {"FIXED_CTR_CTRL", MSR_FIXED_CTR_CTRL, 2, ONE},
    {"GLOBAL_STATUS", MSR_GLOBAL_STATUS, 2, ONE},
    {"GLOBAL_CTRL", MSR_GLOBAL_CTRL, 2, ONE},
    {"GLOBAL_INUSE", MSR_GLOBAL_INUSE, 4, ONE},
    {"DEBUGCTL", MSR_DEBUGCTL, 2, ONE},
    {"MISC_ENABLE", MSR_MISC_ENABLE, 1, ONE},
    {"PERF_CAPABILITIES", MSR_PERF_CAPABILITIES, 1, ONE},
};

#define BANK_MAX 8

struct snapshot {
    uint64_t value[ARRAY_SIZE(registers)][BANK_MAX];
    uint32_t lvt;
};

static unsigned bank_size(unsigned r)
{
    if (pmu.version < registers[r].since)
        return 0;
    return registers[r].bank == EACH_GP ? pmu.gp : registers[r].bank == EACH_FIXED ? pmu.fixed : 1;
}

static void take(struct snapshot *s)
{
    for (unsigned r = 0; r < ARRAY_SIZE(registers); r++)
        for (unsigned i = 0; i < bank_size(r); i++)
            s->value[r][i] = rdmsr(registers[r].first + i);
    s->lvt = apic_read(APIC_LVT_PMI);
}

static void compare(const struct snapshot *now, const struct snapshot *before)
{
    for (unsigned r = 0; r < ARRAY_SIZE(registers); r++)
        for (unsigned i = 0; i < bank_size(r); i++)
            report_equal(now->value[r][i], before->value[r][i], "CPU %u: %s %u", this_cpu()->id,
                         registers[r].name, i);
    report_equal(now->lvt, before->lvt, "CPU %u: LVT entry", this_cpu()->id);
}

static const enum pmu_event events[] = {EVENT_CYCLES,        EVENT_INSTRUCTIONS, EVENT_BRANCHES,
                                        EVENT_COND_BRANCHES, EVENT_LLC_MISSES,   EVENT_NEAR_CALLS,
                                        EVENT_NEAR_RETURNS,  EVENT_FAR_BRANCHES};

/* Everything to a value of its own, and the first counter over its end: its interrupt waits. */
static void fill(void)
{
    pmu_clear();
    for (unsigned i = 0; i < pmu_counters(); i++) {
        struct pmu_counter c = pmu_counter(i);

        pmu_program(c, events[i % ARRAY_SIZE(events)], EVTSEL_USR | (i & 1 ? 0 : EVTSEL_INT),
                    (0x123456789abful << i) & c.mask >> 2);
    }
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT,
                pmu_before_overflow(pmu_counter(0), 5));
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON);
    wrmsr(MSR_GLOBAL_CTRL, all_bits());
    run_user(spin, 100);
}

/* The freeze of version 2 clears what enables, that of version 4 is a bit of the status. */
static void check_frozen(void)
{
    if (pmu.version >= 4)
        report_equal(rdmsr(MSR_GLOBAL_STATUS), STATUS_CTR_FRZ | 1, "CPU %u: frozen",
                     this_cpu()->id);
    else
        report_equal(rdmsr(MSR_GLOBAL_CTRL), 0, "CPU %u: frozen", this_cpu()->id);
    report(apic_pending(VECTOR_PMI), "CPU %u: the interrupt waits", this_cpu()->id);
}

static void check_interrupt_comes_once(void)
{
    watches[this_cpu()->id] = (struct watch){0};
    sti();
    pause();
    cli();
    report_equal(watches[this_cpu()->id].pmis, 1, "CPU %u: the interrupt comes", this_cpu()->id);
    apic_write(APIC_LVT_PMI, APIC_LVT_MASKED);
}

static void check_counts_on(const struct snapshot *before)
{
    struct pmu_counter c = counter(true, 0);

    wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
    wrmsr(MSR_GLOBAL_CTRL, all_bits());
    run_user(spin, 1000);
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report_equal(pmu_read(counter(false, 0)) - before->value[0][0],
                 SPIN_INSNS(1000) + USER_EXIT_INSNS, "CPU %u: GP 0 counts on", this_cpu()->id);
    if (pmu.fixed)
        report_equal(pmu_read(c) - before->value[2][0], SPIN_INSNS(1000) + USER_EXIT_INSNS,
                     "CPU %u: fixed 0 counts on", this_cpu()->id);
}

static struct snapshot befores[MAX_CPUS], nows[MAX_CPUS];

/* Frozen by an overflow whose interrupt waits. */
static void hold(void *unused)
{
    struct snapshot *before = &befores[this_cpu()->id], *now = &nows[this_cpu()->id];

    (void)unused;
    client()->told = 0;
    fill();
    take(before);
    wait_until_told();
    take(now);
    compare(now, before);
    check_frozen();
    check_interrupt_comes_once();
    check_counts_on(before);
}

/* Reference cycles and instructions, and nothing to do. */
static void halt(void *unused)
{
    (void)unused;
    if (this_cpu()->id)
        return;
    pmu_clear();
    pmu_program(counter(true, 0), EVENT_INSTRUCTIONS, EVTSEL_OS, 0);
    pmu_program(counter(true, 2), EVENT_REF_CYCLES, EVTSEL_OS | EVTSEL_USR, 0);
    client()->told = 0;
    wrmsr(MSR_GLOBAL_CTRL, all_bits());
    while (!client()->told)
        asm volatile("hlt" : : : "memory");
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report(true, "woken");
}

/*
 * Stops the machine with the instruction that overflows: pmu_measure()'s WRMSR and CALL, two MOVs
 * and the OUT are counted. pvpanic's port and bit: docs/specs/pvpanic.rst of QEMU.
 */
#define STOP_INSNS 5
uint64_t stop_machine(uint64_t unused);
extern const uint8_t stopped_at[];
asm(".pushsection .text\n"
    "stop_machine:\n"
    "    mov $0x505, %edx\n"
    "    mov $1, %eax\n"
    "    out %al, %dx\n"
    "stopped_at:\n"
    "    cmpl $0, %gs:8\n"
    "    je stopped_at\n"
    "    ret\n"
    ".popsection\n");

static volatile uint64_t stop_pmis, stop_pmi_at;

static void on_stop_pmi(struct trap_frame *frame)
{
    stop_pmis++;
    stop_pmi_at = frame->rip;
    apic_eoi();
}

/* Between an overflow and its interrupt: whoever runs QEMU lets it go on, here or elsewhere. */
static void stop(void *unused)
{
    (void)unused;
    if (this_cpu()->id)
        return;
    pmu_clear();
    pmu_program(counter(false, 0), EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT,
                pmu_before_overflow(counter(false, 0), STOP_INSNS));
    trap_set(VECTOR_PMI, on_stop_pmi);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    client()->told = 0;
    sti();
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, stop_machine, 0);
    cli();
    trap_set(VECTOR_PMI, on_pmi);
    report_equal(stop_pmis, 1, "interrupts of the overflow");
    report_equal(stop_pmi_at, (uintptr_t)stopped_at, "where");
}

static const struct {
    const char *name;
    cpu_work *fn;
} phases[] = {
    {"user", count_user}, {"kernel", count_kernel}, {"hold", hold}, {"halt", halt}, {"stop", stop},
};

static void print_values(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < pmu_counters(); i++)
        printf("VALUE %u %u %lu\n", this_cpu()->id, i, pmu_read(pmu_counter(i)));
}

static void run_phase(unsigned i)
{
    report_prefix_push("%s", phases[i].name);
    printf("READY %s\n", phases[i].name);
    on_all_cpus(phases[i].fn, NULL);
    for (unsigned cpu = 0; cpu < cpu_count(); cpu++)
        on_cpu(cpu, print_values, NULL);
    client()->told = 0;
    printf("DONE %s\n", phases[i].name);
    wait_until_told();
    report_prefix_pop();
}

static void accept_nmi(void *unused)
{
    (void)unused;
    apic_write(APIC_LVT_LINT1, APIC_DELIVERY_NMI);
}

void guest_main(void)
{
    period = boot_option_number("period", DEFAULT_PERIOD);
    pmu_detect();
    trap_set(VECTOR_PMI, on_pmi);
    trap_set_entry(EXC_NMI, nmi_entry);
    on_all_cpus(accept_nmi, NULL);
    for (unsigned i = 0; i < ARRAY_SIZE(phases); i++)
        if (boot_option(phases[i].name))
            run_phase(i);
}
