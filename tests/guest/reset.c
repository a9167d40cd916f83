/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RESET brings the PMU to its power-on state, INIT leaves it as it is (SDM Vol. 3, table of
 * processor states following power-up, reset or INIT). The image is loaded anew by a reset; a page
 * beyond it remembers that there was one.
 */
#include "apic.h"
#include "cpu.h"
#include "libc.h"
#include "pmu.h"
#include "report.h"
#include "x86.h"

#define MARK_ADDRESS 0x3000000ul
#define MARK 0x76706d7572657365ul
#define RESET_PORT 0xcf9
#define RESET_COMMAND 0x06
#define FIRST 0x1234
#define GP_SELECT (EVENT_INSTRUCTIONS | EVTSEL_USR | EVTSEL_EN)
#define ROUNDS 1000ul

static volatile uint64_t *const mark = (uint64_t *)MARK_ADDRESS;

/* Everything that can be written, to something that is neither 0 nor its reset value. */
static void write_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < pmu_counters(); i++)
        pmu_program(pmu_counter(i), EVENT_INSTRUCTIONS, EVTSEL_USR, FIRST + i);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_PERFMON);
    wrmsr(MSR_GLOBAL_CTRL, pmu_fixed_bits() | 1);
}

/* An overflow in ring 0, so that there is a status bit too. */
static void overflow(void *arg)
{
    struct pmu_counter c = pmu_counter(0);

    (void)arg;
    pmu_clear();
    pmu_program(c, EVENT_INSTRUCTIONS, EVTSEL_OS, c.mask);
    pmu_measure(MSR_GLOBAL_CTRL, 1, 0, spin, 10);
}

static void check_reset(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < pmu_counters(); i++)
        report_equal(pmu_read(pmu_counter(i)), 0, "CPU %u: counter %u", this_cpu()->id, i);
    for (unsigned i = 0; i < pmu.gp; i++)
        report_equal(rdmsr(MSR_PERFEVTSEL(i)), 0, "CPU %u: PERFEVTSEL %u", this_cpu()->id, i);
    report_equal(rdmsr(MSR_FIXED_CTR_CTRL), 0, "CPU %u: FIXED_CTR_CTRL", this_cpu()->id);
    report_equal(rdmsr(MSR_GLOBAL_CTRL), pmu_gp_bits(), "CPU %u: GLOBAL_CTRL", this_cpu()->id);
    report_equal(rdmsr(MSR_GLOBAL_STATUS), 0, "CPU %u: GLOBAL_STATUS", this_cpu()->id);
    report_equal(rdmsr(MSR_DEBUGCTL), 0, "CPU %u: DEBUGCTL", this_cpu()->id);
    report_equal(apic_read(APIC_LVT_PMI), APIC_LVT_MASKED, "CPU %u: LVT entry", this_cpu()->id);
    spin(ROUNDS);
    for (unsigned i = 0; i < pmu_counters(); i++)
        report_equal(pmu_read(pmu_counter(i)), 0, "CPU %u: counter %u stands", this_cpu()->id, i);
}

/* After INIT, and a start-up with no instruction in ring 3. */
static void check_kept(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < pmu_counters(); i++)
        report_equal(pmu_read(pmu_counter(i)), FIRST + i, "CPU %u: counter %u", this_cpu()->id, i);
    for (unsigned i = 0; i < pmu.gp; i++)
        report_equal(rdmsr(MSR_PERFEVTSEL(i)), GP_SELECT, "CPU %u: PERFEVTSEL %u", this_cpu()->id,
                     i);
    report_equal(rdmsr(MSR_GLOBAL_CTRL), pmu_fixed_bits() | 1, "CPU %u: GLOBAL_CTRL",
                 this_cpu()->id);
    report_equal(rdmsr(MSR_DEBUGCTL), DEBUGCTL_FREEZE_PERFMON, "CPU %u: DEBUGCTL", this_cpu()->id);
    report_equal(apic_read(APIC_LVT_PMI), APIC_LVT_MASKED, "CPU %u: LVT entry", this_cpu()->id);
    run_user(spin, ROUNDS);
    report_equal(pmu_read(pmu_counter(0)), FIRST + SPIN_INSNS(ROUNDS) + USER_EXIT_INSNS,
                 "CPU %u: counts on", this_cpu()->id);
}

static void check_status_kept(void *arg)
{
    (void)arg;
    report_equal(rdmsr(MSR_GLOBAL_STATUS), 1, "CPU %u: GLOBAL_STATUS", this_cpu()->id);
}

static void test_init(void)
{
    report_prefix_push("INIT");
    for (unsigned i = 1; i < cpu_count(); i++) {
        on_cpu(i, write_all, NULL);
        cpu_restart(i);
        on_cpu(i, check_kept, NULL);
        on_cpu(i, overflow, NULL);
        cpu_restart(i);
        on_cpu(i, check_status_kept, NULL);
    }
    report_prefix_pop();
}

static void reset_system(void)
{
    *mark = MARK;
    outb(RESET_PORT, RESET_COMMAND);
    for (;;)
        pause();
}

void guest_main(void)
{
    bool after = *mark == MARK;

    *mark = 0;
    pmu_detect();
    if (pmu.version < 2) {
        report_skip("reset: needs version 2");
        return;
    }
    if (!after) {
        for (unsigned i = 0; i < cpu_count(); i++) {
            on_cpu(i, overflow, NULL);
            on_cpu(i, write_all, NULL);
        }
        reset_system();
    }
    report_prefix_push("RESET");
    for (unsigned i = 0; i < cpu_count(); i++)
        on_cpu(i, check_reset, NULL);
    report_prefix_pop();
    test_init();
}
