/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenarios.h"

#include "check.h"
#include "drivers/lib/testdriver.h"
#include "hal.h"
#include "io.h"
#include "libc.h"
#include "multiboot.h"
#include "process.h"
#include "profiling_test.h"
#include "status_test.h"

struct driver *scenario_load(const char *module)
{
    NTSTATUS status;
    struct driver *driver = driver_load(module, &status, NULL);

    check_equal((ULONG)status, (ULONG)STATUS_SUCCESS, "%s: DriverEntry", module);
    return driver;
}

/* ---- The test drivers: a user program asks for a section and reports its rows ---- */

struct section_run {
    const char *device;
    uint32_t section;
    NTSTATUS status;
};

static struct test_output rows;

static void report_rows(void)
{
    check_equal(rows.dropped, 0, "rows that found no room");
    for (uint32_t i = 0; i < rows.count; i++)
        check_equal(rows.rows[i].got, rows.rows[i].want, "%s", rows.rows[i].name);
}

static void section_program(void *argument)
{
    struct section_run *run = argument;
    struct test_input input = {
        .section = run->section,
        .observed = boot_option("observed"),
        .gp = hal_pmu.gp,
        .fixed = hal_pmu.fixed,
        .fixed_width = hal_pmu.fixed_width,
        .version = hal_pmu.version,
        .processors = KeQueryActiveProcessorCountEx(0),
        .event_buffer = hal_pmu.event_buffer,
    };
    ULONG returned;
    HANDLE handle;

    run->status = user_open(run->device, &handle);
    if (!NT_SUCCESS(run->status))
        return;
    run->status =
        user_ioctl(handle, TEST_IOCTL_RUN, &input, sizeof(input), &rows, sizeof(rows), &returned);
    user_close(handle);
}

void scenario_section(const char *device, unsigned section)
{
    struct section_run run = {device, section, STATUS_UNSUCCESSFUL};

    rows.count = rows.dropped = 0;
    process_run(process_create(), section_program, &run, true);
    check_equal((ULONG)run.status, (ULONG)STATUS_SUCCESS, "%s: section %u runs", device, section);
    report_rows();
}

static void run_sections(const char *module, const char *device, const uint32_t *sections,
                         unsigned count)
{
    struct driver *driver = scenario_load(module);

    if (!driver)
        return;
    for (unsigned i = 0; i < count; i++)
        scenario_section(device, sections[i]);
    driver_unload(driver);
}

#define RUN_SECTIONS(module, device, ...)                                                          \
    run_sections(module, device, (const uint32_t[]){__VA_ARGS__},                                  \
                 ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})))

static void routines(void)
{
    RUN_SECTIONS("routines.sys", "routines", ROUTINES_PLAIN, ROUTINES_EXCEPTIONS);
}

/* The checks of this kernel, checked: each broken rule is told. */
static void rules(void)
{
    struct driver *driver = scenario_load("routines.sys");

    if (!driver)
        return;
    violations_expect();
    scenario_section("routines", ROUTINES_WRONG_IRQL);
    check_equal(violations_seen(), 11, "routines.sys: broken rules");
    scenario_section("routines", ROUTINES_LEAK);
    violations_expect();
    driver_unload(driver);
    check_equal(violations_seen(), 2, "routines.sys: leaks at unload");

    driver = scenario_load("contract.sys");
    violations_expect();
    scenario_section("contract", CONTRACT_WRONG_IRQL);
    check_equal(violations_seen(), 6, "contract.sys: calls at a wrong IRQL");
    driver_unload(driver);
}

static void contract(void)
{
    struct driver *driver;

    check_equal(hal_pmu.event_buffer, boot_option("eventbuffer"),
                "an event buffer only where the boot option claims it");
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_ALLOCATE, CONTRACT_CONFLICT, CONTRACT_FREE,
                 CONTRACT_PROFILING);
    driver = scenario_load("contract.sys");
    if (hal_pmu.event_buffer)
        scenario_section("contract", CONTRACT_EVENT_BUFFER);
    hal_kernel_profiling(true);
    scenario_section("contract", CONTRACT_KERNEL_HOLDS);
    hal_kernel_profiling(false);
    driver_unload(driver);
}

static void no_pmu(void)
{
    check(hal_pmu.version == 0, "this machine has no PMU for a Windows kernel: %s",
          hal_pmu.why_none ? hal_pmu.why_none : "it has");
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_NO_PMU);
}

static void full(void)
{
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_FULL);
}

static void before_1903(void)
{
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_BEFORE_1903);
}

static void no_profiling(void)
{
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_NO_PROFILING);
}

static void counting(void)
{
    RUN_SECTIONS("contract.sys", "contract", CONTRACT_COUNT, CONTRACT_OVERFLOW);
    check_equal(hal_unclaimed_overflows(), 0, "overflows that nobody answered for");
    check_equal(hal_overflows(), (hal_pmu.fixed ? 3 : 2) * KeQueryActiveProcessorCountEx(0),
                "overflow interrupts");
}

static void busy_section(void)
{
    scenario_section("contract", CONTRACT_PROFILE_BUSY);
}

static void thread_profiling(void)
{
    struct driver *driver = scenario_load("contract.sys");

    if (!driver)
        return;
    profiling_test_statuses();
    scenario_section("contract", CONTRACT_PROFILE_BEGIN);
    profiling_test_threads();
    profiling_test_during(busy_section);
    scenario_section("contract", CONTRACT_PROFILE_END);
    driver_unload(driver);
}

const struct scenario scenarios[] = {
    {"routines", routines},
    {"rules", rules},
    {"contract", contract},
    {"no-pmu", no_pmu},
    {"full", full},
    {"before-1903", before_1903},
    {"no-profiling", no_profiling},
    {"counting", counting},
    {"thread-profiling", thread_profiling},
    {"loader", loader},
    {"vpmu", vpmu_counts},
    {"vpmu-cleared", vpmu_cleared},
    {"vpmu-off", vpmu_off},
    {"vpmu-beside-others", vpmu_beside_others},
    {"vpmu-periods", vpmu_periods},
    {"vpmu-profiling", vpmu_profiling},
    {"vpmu-requests", vpmu_requests},
    {"vpmu-failures", vpmu_failures},
    {"vpmu-source", vpmu_source},
    {"vpmu-source-off", vpmu_source_off},
    {"vpmu-source-device", vpmu_source_device},
    {"status", status_device},
    {"status-denied", status_denied},
    {"status-surprise", status_surprise},
    {"status-made-up", status_made_up},
    {"status-none", status_none},
    {"status-kvm", status_kvm},
    {"status-kvm-denied", status_kvm_denied},
    {"status-kvm-resize", status_kvm_resize},
    {"clients", vpmu_clients},
    {"clients-amd", vpmu_clients_amd},
    {"demo", vpmu_demo},
};
const unsigned scenario_count = ARRAY_SIZE(scenarios);
