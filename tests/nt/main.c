/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot of the NT test guest. Command line: scenario=NAME, and what the HAL and
 * the run-time library read: observed, noprofiling, eventbuffer, build=N, leases=N.
 */
#include "check.h"
#include "hal.h"
#include "libc.h"
#include "multiboot.h"
#include "process.h"
#include "processor.h"
#include "report.h"
#include "scenarios.h"
#include "seh.h"
#include "thread.h"

void guest_main(void);

static volatile unsigned started = 1;

static void run_scenario(void *argument)
{
    unsigned ran = 0;

    (void)argument;
    for (unsigned i = 0; i < scenario_count; i++) {
        char option[64];

        snprintf(option, sizeof(option), "scenario=%s", scenarios[i].name);
        if (!boot_option(option))
            continue;
        scenarios[i].run();
        ran++;
    }
    check(ran == 1, "the command line names a scenario");
    check_equal(hal_leases(), 0, "no allocation of counters is left");
    cli();
    guest_exit(report_summary());
}

static void start_processor(void *argument)
{
    unsigned number = this_cpu()->id;

    (void)argument;
    processor_init(number, thread_idle(number));
    hal_start_processor();
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    processor_idle();
}

void guest_main(void)
{
    time_init();
    thread_init();
    dpc_init();
    seh_init();
    hal_init();
    processor_init(0, thread_idle(0));
    hal_start_processor();
    for (unsigned i = 1; i < cpu_count(); i++)
        on_cpu_start(i, start_processor, NULL);
    while (started < cpu_count()) /* no dispatch interrupt for a processor without a number */
        pause();
    thread_create(&system_process, run_scenario, NULL, processor_mask());
    processor_idle();
}
