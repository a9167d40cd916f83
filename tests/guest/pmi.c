/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where and when the performance monitoring interrupt comes: at the very instruction that makes the
 * counter overflow, so that the return address on the stack is the next one. The oracle is a trace
 * of each program, taken by single-stepping.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "memory.h"
#include "pmu.h"
#include "programs.h"
#include "report.h"
#include "step.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_TICK 0x40
#define VECTOR_PMI 0x50
#define TRACE_PAGES 512
#define TICK_NS 30000

static struct step_trace trace;

/* The two ways of delivery that can be told where they arrive. */
static const struct delivery {
    const char *name;
    uint32_t lvt;
    unsigned vector;
} deliveries[] = {
    {"NMI", APIC_DELIVERY_NMI, EXC_NMI},
    {"vector", APIC_DELIVERY_FIXED | VECTOR_PMI, VECTOR_PMI},
};

/* clang-format off */
asm(".pushsection .text\n"
    "raw_tick:\n"
    "    incq %gs:8\n"
    "raw_tick_counted:\n"
    "    addr32 movl $0, 0xfee000b0\n" /* EOI */
    "raw_tick_last:\n"
    "    iretq\n"
    ".popsection\n");
/* clang-format on */
extern const uint8_t raw_tick[], raw_tick_counted[], raw_tick_last[], user_return[];
#define TICK_INSNS 3

static volatile uint64_t *ticks(void)
{
    return (uint64_t *)this_cpu()->client;
}

static void end_of_interrupt(struct trap_frame *frame)
{
    (void)frame;
    apic_eoi();
}

/* What a handler of any test says of its PMI. */
static struct {
    const struct delivery *delivery;
    struct pmu_counter counter;
    uint64_t period;
    uint64_t pmis, executed;
    uint64_t wrong_place, wrong_count, wrong_status, wrong_lvt;
    uint64_t rip, want, ticks, status;
} pmi;

/* One that came with the last instruction of ring 3 may still be pending. */
static void drop_pending(void)
{
    trap_handler *before = trap_set(VECTOR_PMI, end_of_interrupt);

    sti();
    asm volatile("nop");
    cli();
    trap_set(VECTOR_PMI, before);
}

static void start_test(const struct delivery *d, uint64_t period)
{
    pmu_clear();
    drop_pending();
    memset(&pmi, 0, sizeof(pmi));
    pmi.delivery = d;
    pmi.counter = pmu_counter(0);
    pmi.period = period;
    apic_write(APIC_LVT_PMI, d->lvt);
}

/* The handler's duties: acknowledge, rearm the LVT entry. */
static void check_and_acknowledge(uint64_t want_status)
{
    pmi.status = rdmsr(MSR_GLOBAL_STATUS);
    pmi.wrong_status += pmi.status != want_status;
    pmi.wrong_lvt += apic_read(APIC_LVT_PMI) != (pmi.delivery->lvt | APIC_LVT_MASKED);
    wrmsr(MSR_GLOBAL_OVF_CTRL, pmi.status);
    apic_write(APIC_LVT_PMI, pmi.delivery->lvt);
    if (pmi.delivery->vector != EXC_NMI)
        apic_eoi();
}

static void check_place(uint64_t rip, uint64_t want)
{
    if (rip == want)
        return;
    if (!pmi.wrong_place++)
        printf("# PMI %lu, period %lu: at %#lx, want %#lx\n", pmi.pmis, pmi.period, rip, want);
}

static void report_pmis(uint64_t at_least)
{
    report(pmi.pmis >= at_least, "%lu PMIs, at least %lu", pmi.pmis, at_least);
    report_equal(pmi.wrong_place, 0, "PMIs not at the next instruction");
    report_equal(pmi.wrong_count, 0, "wrong counts");
    report_equal(pmi.wrong_status, 0, "wrong status bits");
    report_equal(pmi.wrong_lvt, 0, "LVT entries not masked");
}

/*
 * Ring 3, the counter rearmed in the handler, over many runs of the program: after k instructions
 * of ring 3 the PMI's place is that of the trace at k. An overflow by the INT that leaves ring 3 is
 * seen at once by NMI, on the next entry by vector.
 */
static void pmi_in_ring3(struct trap_frame *frame)
{
    uint64_t in_run;

    pmi.pmis++;
    pmi.executed += pmi.period;
    in_run = pmi.executed % trace.length;
    if (in_run)
        check_place(frame->rip, trace.rips[in_run]);
    else
        check_place(frame->rip,
                    pmi.delivery->vector == EXC_NMI ? (uintptr_t)user_return : trace.rips[0]);
    pmi.wrong_count += pmu_read(pmi.counter) != 0;
    pmu_write(pmi.counter, pmu_before_overflow(pmi.counter, pmi.period));
    check_and_acknowledge(1ul << pmi.counter.status_bit);
}

static void test_ring3(const struct delivery *d, uint64_t period, uint64_t times, bool with_timer)
{
    const struct named_program *p = &programs[period % ARRAY_SIZE(programs)];
    uint64_t size = 20;

    report_prefix_push("ring 3: %s, period %lu%s", d->name, period, with_timer ? ", timer" : "");
    step_user(p->fn, size, &trace);
    start_test(d, period);
    trap_set(d->vector, pmi_in_ring3);
    pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT,
                pmu_before_overflow(pmi.counter, period));
    *ticks() = 0;
    if (with_timer)
        apic_timer_start(VECTOR_TICK, TICK_NS);
    wrmsr(MSR_GLOBAL_CTRL, 1);
    for (uint64_t runs = (times + 1) * period / trace.length + 2; runs && pmi.pmis < times; runs--)
        enter_user(p->fn, size, FLAG_IF, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    apic_timer_stop();
    report_pmis(times);
    pmu_clear();
    report_prefix_pop();
}

/* clang-format off */
asm(".pushsection .text\n"
    "interruptible:\n"
    "    sti\n"
    "    call program_calls\n"
    "interruptible_end:\n"
    "    cli\n"
    "    ret\n"
    ".popsection\n");
/* clang-format on */
uint64_t interruptible(uint64_t size);
extern const uint8_t interruptible_end[];

/* The first index from which an interrupt can be taken: STI, and one instruction in its shadow. */
static uint64_t interruptible_from;

static uint64_t trace_index(uint64_t rip)
{
    uint64_t i = 0;

    while (i < trace.length && trace.rips[i] != rip)
        i++;
    return i;
}

/*
 * Ring 0, one PMI for each run: the trace begins with the WRMSR that starts the counter. A timer
 * interrupt executes instructions of ring 0 too; its handler has a known number of them.
 */
static void pmi_in_ring0(struct trap_frame *frame)
{
    static const uint8_t *const places[TICK_INSNS] = {raw_tick, raw_tick_counted, raw_tick_last};
    uint64_t rip = frame->rip, in_handler = 0, done = *ticks(), want;

    wrmsr(MSR_GLOBAL_CTRL, 0);
    for (unsigned i = 0; i < TICK_INSNS; i++)
        if (rip == (uintptr_t)places[i]) {
            in_handler = i;
            done -= i > 0;
            rip = *(uint64_t *)frame->rsp;
        }
    pmi.pmis++;
    want = pmi.period - done * TICK_INSNS - in_handler;
    if (frame->vector != EXC_NMI && want < interruptible_from)
        want = interruptible_from;
    check_place(rip, trace.rips[want]);
    check_and_acknowledge(1ul << pmi.counter.status_bit);
}

static uint64_t measured(uint64_t size)
{
    pmu_measure(MSR_GLOBAL_CTRL, pmi.period ? 1 : 0, 0, interruptible, size);
    return 0;
}

/* The end of what pmu_measure() counts: its second WRMSR. */
static uint64_t measure_end(void)
{
    const uint8_t *code = pmu_measure_start + 2;

    while (code[0] != 0x0f || code[1] != 0x30)
        code++;
    return (uintptr_t)code;
}

static void test_ring0(const struct delivery *d, uint64_t times, bool with_timer)
{
    uint64_t size = 12, longest, period = 1, interrupted = 0;

    report_prefix_push("ring 0: %s%s", d->name, with_timer ? ", timer" : "");
    memset(&pmi, 0, sizeof(pmi));
    pmu_clear();
    step_kernel(measured, size, (uintptr_t)pmu_measure_start, measure_end(), &trace);
    interruptible_from = trace_index((uintptr_t)interruptible) + 2;
    /* an interrupt is not taken after CLI */
    longest = d->vector == EXC_NMI ? trace.length - 1 : trace_index((uintptr_t)interruptible_end);
    start_test(d, period);
    trap_set(d->vector, pmi_in_ring0);
    if (with_timer)
        apic_timer_start(VECTOR_TICK, TICK_NS);
    for (uint64_t i = 0; i < times; i++, period = (period + 6) % longest + 1) {
        uint64_t before = pmi.pmis;

        pmi.period = period;
        *ticks() = 0;
        pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT,
                    pmu_before_overflow(pmi.counter, period));
        measured(size);
        interrupted += *ticks() > 0;
        pmi.wrong_count += pmi.pmis != before + 1;
    }
    apic_timer_stop();
    report_pmis(times);
    if (with_timer)
        report(interrupted > 0, "%lu runs were interrupted", interrupted);
    pmu_clear();
    report_prefix_pop();
}

/* A handler that leaves all as it is. */
static void note_pmi(struct trap_frame *frame)
{
    pmi.pmis++;
    pmi.rip = frame->rip;
    pmi.ticks = *ticks();
    pmi.status = rdmsr(MSR_GLOBAL_STATUS);
    pmi.wrong_lvt += !(apic_read(APIC_LVT_PMI) & APIC_LVT_MASKED);
    if (frame->vector != EXC_NMI)
        apic_eoi();
}

/* The mask bit of the LVT entry is set on delivery; while it is, there is no further PMI. */
static void test_mask(const struct delivery *d)
{
    report_prefix_push("mask: %s", d->name);
    start_test(d, 0);
    trap_set(d->vector, note_pmi);
    pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT, pmi.counter.mask - 9);
    wrmsr(MSR_GLOBAL_CTRL, 1);
    for (int i = 0; i < 3; i++) {
        enter_user(spin, 100, FLAG_IF, user_stack_top());
        pmu_write(pmi.counter, pmi.counter.mask - 9);
    }
    report_equal(pmi.pmis, 1, "one PMI for three overflows");
    report_equal(rdmsr(MSR_GLOBAL_STATUS), 1, "status");
    wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
    apic_write(APIC_LVT_PMI, d->lvt);
    enter_user(spin, 1, FLAG_IF, user_stack_top());
    report_equal(pmi.pmis, 1, "none is left over");
    enter_user(spin, 100, FLAG_IF, user_stack_top());
    report_equal(pmi.pmis, 2, "unmasked, the next overflow");
    pmu_clear();
    report_prefix_pop();
}

static void test_without_int(const struct delivery *d)
{
    report_prefix_push("INT clear: %s", d->name);
    start_test(d, 0);
    trap_set(d->vector, note_pmi);
    pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_USR, pmi.counter.mask - 9);
    wrmsr(MSR_GLOBAL_CTRL, 1);
    enter_user(spin, 100, FLAG_IF, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report_equal(pmi.pmis, 0, "no PMI");
    report_equal(rdmsr(MSR_GLOBAL_STATUS), 1, "status");
    report_equal(apic_read(APIC_LVT_PMI), d->lvt, "LVT entry as it was");
    pmu_clear();
    report_prefix_pop();
}

/* Several counters with the same instruction: one PMI, all status bits, each at 0. */
static void test_together(const struct delivery *d)
{
    uint64_t n = 50;

    report_prefix_push("several counters: %s", d->name);
    start_test(d, n);
    trap_set(d->vector, note_pmi);
    for (unsigned i = 0; i < pmu.gp; i++)
        pmu_program(pmu_counter(i), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT,
                    pmu_before_overflow(pmu_counter(i), n));
    if (pmu.fixed)
        pmu_program(pmu_counter(pmu.gp), 0, EVTSEL_USR | EVTSEL_INT,
                    pmu_before_overflow(pmu_counter(pmu.gp), n));
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits() | pmu_fixed_bits());
    enter_user(spin, 100, FLAG_IF, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report_equal(pmi.pmis, 1, "PMIs");
    report_equal(pmi.rip, (uintptr_t)spin, "place"); /* rounds of 2: after 50, the DEC again */
    report_equal(pmi.status, pmu_gp_bits() | (pmu.fixed ? 1ul << STATUS_FIXED : 0), "status");
    for (unsigned i = 0; i < pmu.gp; i++)
        report_equal(pmu_read(pmu_counter(i)), 2 * 100 + 1 + USER_EXIT_INSNS - n, "GP %u", i);
    pmu_clear();
    report_prefix_pop();
}

/* Counters with different periods, and events: each its own PMI, at its own place. */
static uint64_t by_turns_wrong;
static const uint64_t by_turns[] = {11, 20, 31};

static void pmi_by_turns(struct trap_frame *frame)
{
    unsigned i = (unsigned)pmi.pmis++;

    if (i < ARRAY_SIZE(by_turns))
        by_turns_wrong +=
            frame->rip != trace.rips[by_turns[i]] || rdmsr(MSR_GLOBAL_STATUS) != 1ul << i;
    check_and_acknowledge(1ul << i);
}

static void test_by_turns(const struct delivery *d)
{
    report_prefix_push("counters by turns: %s", d->name);
    step_user(program_sort, 10, &trace);
    start_test(d, 0);
    trap_set(d->vector, pmi_by_turns);
    by_turns_wrong = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(by_turns); i++)
        pmu_program(pmu_counter(i), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT,
                    pmu_before_overflow(pmu_counter(i), by_turns[i]));
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits());
    enter_user(program_sort, 10, FLAG_IF, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report_equal(pmi.pmis, ARRAY_SIZE(by_turns), "PMIs");
    report_equal(by_turns_wrong, 0, "wrong places or status bits");
    report_equal(pmi.wrong_lvt, 0, "LVT entries not masked");
    pmu_clear();
    report_prefix_pop();
}

/* Branches overflow at the branch; the PMI's place is the branch's target. */
static void test_branch_events(const struct delivery *d)
{
    static const struct {
        const char *name;
        enum pmu_event event;
        uint64_t period;
    } rows[] = {{"branches", EVENT_BRANCHES, 7},
                {"conditional branches", EVENT_COND_BRANCHES, 7},
                {"cycles", EVENT_CYCLES, 14}};

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        report_prefix_push("%s: %s", rows[i].name, d->name);
        start_test(d, rows[i].period);
        trap_set(d->vector, note_pmi);
        pmu_program(pmi.counter, rows[i].event, EVTSEL_USR | EVTSEL_INT,
                    pmu_before_overflow(pmi.counter, rows[i].period));
        pmu_program(pmu_counter(1), EVENT_INSTRUCTIONS, EVTSEL_USR, 0);
        wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON);
        wrmsr(MSR_GLOBAL_CTRL, 3);
        enter_user(spin, 100, FLAG_IF, user_stack_top());
        wrmsr(MSR_GLOBAL_CTRL, 0);
        report_equal(pmi.pmis, 1, "PMIs");
        report_equal(pmi.rip, (uintptr_t)spin, "place");
        report_equal(pmu_read(pmu_counter(1)), 14, "instructions until then");
        pmu_clear();
        report_prefix_pop();
    }
}

/* clang-format off */
asm(".pushsection .text\n"
    "halting:\n"
    "    nop\n"
    "halting_sti:\n"
    "    sti\n"
    "halting_hlt:\n"
    "    hlt\n"
    "halting_cli:\n"
    "    cli\n"
    "    ret\n"
    ".popsection\n");
/* clang-format on */
uint64_t halting(uint64_t arg);
extern const uint8_t halting_sti[], halting_cli[];

/* An overflow at HLT, or before it while interrupts are off, ends the halt; else the timer does. */
static void test_halt(const struct delivery *d, const char *name, uint64_t period,
                      const uint8_t *place, bool wakes)
{
    report_prefix_push("HLT: %s, overflow at %s", d->name, name);
    start_test(d, period);
    trap_set(d->vector, note_pmi);
    *ticks() = 0;
    apic_timer_once(VECTOR_TICK, wakes ? 3000000000u : 10000000);
    pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_OS | EVTSEL_INT,
                pmu_before_overflow(pmi.counter, period));
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, halting, 0);
    apic_timer_stop();
    report_equal(pmi.pmis, 1, "PMIs");
    report_equal(pmi.rip, (uintptr_t)place, "place");
    report_equal(pmi.ticks, 0, "timer interrupts before it");
    report_equal(*ticks(), wakes ? 0 : 1, "timer interrupts in all");
    pmu_clear();
    report_prefix_pop();
}

static void test_halts(void)
{
    enum { WRMSR = 1, CALL, NOP, STI, HLT };

    test_halt(&deliveries[0], "HLT", HLT, halting_cli, true);
    test_halt(&deliveries[1], "HLT", HLT, halting_cli, true);
    test_halt(&deliveries[1], "STI", STI, halting_cli, true);
    test_halt(&deliveries[1], "NOP", NOP, halting_cli, true);
    test_halt(&deliveries[0], "NOP", NOP, halting_sti, false);
}

/* The other delivery modes are taken and harm nothing. */
static void test_other_modes(void)
{
    static const struct {
        const char *name;
        uint32_t lvt;
    } rows[] = {{"SMI", APIC_DELIVERY_SMI}, {"masked", VECTOR_PMI | APIC_LVT_MASKED}};

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        report_prefix_push("delivery mode %s", rows[i].name);
        start_test(&deliveries[1], 0);
        trap_set(VECTOR_PMI, note_pmi);
        apic_write(APIC_LVT_PMI, rows[i].lvt);
        report_equal(apic_read(APIC_LVT_PMI), rows[i].lvt, "LVT entry holds it");
        pmu_program(pmi.counter, EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT, pmi.counter.mask - 9);
        wrmsr(MSR_GLOBAL_CTRL, 1);
        enter_user(spin, 100, FLAG_IF, user_stack_top());
        wrmsr(MSR_GLOBAL_CTRL, 0);
        report_equal(rdmsr(MSR_GLOBAL_STATUS), 1, "status");
        report_equal(apic_read(APIC_LVT_PMI), rows[i].lvt | APIC_LVT_MASKED, "LVT entry masked");
        report_equal(pmu_read(pmi.counter), 2 * 100 + 1 + USER_EXIT_INSNS - 10, "count");
        report_equal(pmi.pmis, 0, "nothing on a vector");
        pmu_clear();
        report_prefix_pop();
    }
}

static void test_on_this_cpu(void)
{
    static const uint64_t periods[] = {1, 2, 3, 7, 100, 1000};

    for (unsigned i = 0; i < ARRAY_SIZE(deliveries); i++) {
        const struct delivery *d = &deliveries[i];

        for (unsigned p = 0; p < ARRAY_SIZE(periods); p++)
            test_ring3(d, periods[p], 10000, false);
        test_ring3(d, 3, 10000, true);
        test_ring3(d, 1000, 10000, true);
        test_ring3(d, 65537, 500, true);
        test_ring0(d, 10000, false);
        test_mask(d);
        test_without_int(d);
        test_together(d);
        test_by_turns(d);
        test_branch_events(d);
    }
    test_ring0(&deliveries[0], 10000, true);
    test_halts();
    test_other_modes();
}

/* Every CPU at once: each its own counter, its own PMIs. */
struct cpu_result {
    uint64_t pmis, wrong;
};

static struct cpu_result on_cpus[MAX_CPUS];

static void pmi_on_each(struct trap_frame *frame)
{
    struct cpu_result *r = &on_cpus[this_cpu()->id];
    struct pmu_counter c = pmu_counter(0);

    r->pmis++;
    r->wrong += frame->rip != trace.rips[(r->pmis * 101) % trace.length] || pmu_read(c) != 0;
    pmu_write(c, pmu_before_overflow(c, 101));
    wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
    apic_write(APIC_LVT_PMI, APIC_DELIVERY_NMI);
}

static void sample_on_each(void *arg)
{
    struct pmu_counter c = pmu_counter(0);
    unsigned id = this_cpu()->id;

    (void)arg;
    on_cpus[id] = (struct cpu_result){0, 0};
    pmu_clear();
    apic_write(APIC_LVT_PMI, APIC_DELIVERY_NMI);
    pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT, pmu_before_overflow(c, 101));
    wrmsr(MSR_GLOBAL_CTRL, 1);
    /* 101 is prime and the length no multiple of it: the end of a run is met at the last run only
     */
    for (int i = 0; i < 100; i++)
        enter_user(program_strings, 8, 0, user_stack_top());
    wrmsr(MSR_GLOBAL_CTRL, 0);
    pmu_clear();
}

static void test_all_cpus(void)
{
    report_prefix_push("all CPUs");
    step_user(program_strings, 8, &trace);
    trap_set(EXC_NMI, pmi_on_each);
    on_all_cpus(sample_on_each, NULL);
    for (unsigned i = 0; i < cpu_count(); i++) {
        report_equal(on_cpus[i].pmis, 100 * trace.length / 101, "CPU %u: PMIs", i);
        report_equal(on_cpus[i].wrong, 0, "CPU %u: at the wrong place", i);
    }
    report_prefix_pop();
}

void guest_main(void)
{
    pmu_detect();
    if (pmu.version < 2 || pmu.gp < 4) {
        report_skip("pmi: needs version 2 with 4 counters");
        return;
    }
    trace.rips = pages_alloc(TRACE_PAGES);
    trace.size = TRACE_PAGES * PAGE_SIZE / sizeof(trace.rips[0]);
    trap_set_entry(VECTOR_TICK, raw_tick);
    test_on_this_cpu();
    if (cpu_count() > 1)
        test_all_cpus();
}
