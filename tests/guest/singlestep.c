/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters against single-stepping: traps are counted, and the instructions between them looked
 * at. Instructions, branches and conditional branches must be equal to the last digit, while the
 * trap is on and when it is off.
 */
#include "cpu.h"
#include "libc.h"
#include "pmu.h"
#include "programs.h"
#include "report.h"
#include "step.h"
#include "x86.h"

#define SIZE 200ul

static void start_counting(void)
{
    pmu_clear();
    pmu_program(pmu_counter(0), EVENT_INSTRUCTIONS, EVTSEL_USR, 0);
    pmu_program(pmu_counter(1), EVENT_BRANCHES, EVTSEL_USR, 0);
    pmu_program(pmu_counter(2), EVENT_COND_BRANCHES, EVTSEL_USR, 0);
    wrmsr(MSR_GLOBAL_CTRL, pmu_gp_bits());
}

static void compare(const struct step_counts *want, const char *how)
{
    wrmsr(MSR_GLOBAL_CTRL, 0);
    report_equal(pmu_read(pmu_counter(0)), want->insns + USER_EXIT_INSNS, "%s: instructions", how);
    report_equal(pmu_read(pmu_counter(1)), want->branches + USER_EXIT_INSNS, "%s: branches", how);
    report_equal(pmu_read(pmu_counter(2)), want->cond, "%s: conditional branches", how);
}

static void test_program(const struct named_program *p)
{
    struct step_counts want;
    uint64_t result = p->fn(SIZE);

    report_prefix_push("%s", p->name);
    start_counting();
    want = step_user(p->fn, SIZE, NULL);
    compare(&want, "stepping");
    report(want.insns > 1000 && want.cond > 10 && want.branches > want.cond,
           "traps: %lu, %lu branches, %lu conditional", want.insns, want.branches, want.cond);
    start_counting();
    report_equal(run_user(p->fn, SIZE), result, "result");
    compare(&want, "at full speed");
    pmu_clear();
    report_prefix_pop();
}

void guest_main(void)
{
    pmu_detect();
    if (pmu.version < 2 || pmu.gp < 3) {
        report_skip("singlestep: needs version 2 and 3 counters");
        return;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(programs); i++)
        test_program(&programs[i]);
}
