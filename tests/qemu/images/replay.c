/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts while a timer interrupts at times of the host's making, and says everything it counted. A
 * replay of its run must say the same.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "pmu.h"
#include "report.h"
#include "trap.h"
#include "x86.h"

#define VECTOR_PMI 0x50
#define VECTOR_TICK 0x51
#define PERIOD 10007
#define TICK_NS 300000
#define ROUNDS 200000ul
#define HALTS 20

static uint64_t ticks, pmis, places;

static void on_tick(struct trap_frame *frame)
{
    ticks++;
    places = places * 31 + frame->rip;
    apic_eoi();
}

static void on_pmi(struct trap_frame *frame)
{
    pmis++;
    places = places * 31 + frame->rip;
    pmu_write(pmu_counter(0), pmu_before_overflow(pmu_counter(0), PERIOD));
    wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    apic_eoi();
}

static void program(void)
{
    pmu_clear();
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_USR | EVTSEL_INT,
                pmu_before_overflow(pmu_counter(0), PERIOD));
    pmu_program(pmu_counter(1), EVENT_INSTRUCTIONS, EVTSEL_OS, 0);
    pmu_program(pmu_counter(2), EVENT_BRANCHES, EVTSEL_OS | EVTSEL_USR, 0);
    pmu_program(pmu_counter(3), EVENT_COND_BRANCHES, EVTSEL_OS | EVTSEL_USR, 0);
    for (unsigned i = 0; i < pmu.fixed; i++)
        pmu_program(pmu_counter(pmu.gp + i), EVENT_CYCLES, EVTSEL_OS | EVTSEL_USR, 0);
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
}

void guest_main(void)
{
    pmu_detect();
    trap_set(VECTOR_TICK, on_tick);
    trap_set(VECTOR_PMI, on_pmi);
    program();
    apic_timer_start(VECTOR_TICK, TICK_NS);
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits() | pmu_fixed_bits());
    sti();
    for (unsigned i = 0; i < HALTS; i++) {
        run_user(spin, ROUNDS / HALTS);
        sti_hlt();
    }
    cli();
    wrmsr(MSR_GLOBAL_CTRL, 0);
    apic_timer_stop();
    for (unsigned i = 0; i < pmu_counters(); i++)
        printf("counter %u: %lu\n", i, pmu_read(pmu_counter(i)));
    printf("%lu ticks, %lu PMIs, places %lx, TSC %lu\n", ticks, pmis, places, rdtsc());
    report(ticks >= HALTS, "ticks");
    report_equal(pmis, (2 * ROUNDS + HALTS * 2) / PERIOD, "PMIs");
}
