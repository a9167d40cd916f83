/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys bound to the status device of the machine (docs/device.md). */
#include "status_test.h"

#include "check.h"
#include "hal.h"
#include "pnp.h"
#include "processor.h"
#include "scenarios.h"
#include "thread.h"
#include "user_work.h"
#include "vpmu/status.h"
#include "vpmu_user.h"

enum {
    ROUNDS = 5000,
    PATIENCE_MS = 20000,     /* for an answer that must come */
    MOST_WORK = 200000,      /* rounds of work in which a change must be told */
    EVENT_NO_SUCH = 0x00fe,  /* no event select of Intel's that the emulator knows */
    EVENT_BRANCHES = 0x00c4, /* denied by the row of `run` */
    ENABLED = 1 << 22,
};

PDEVICE_OBJECT status_bind(struct driver *driver)
{
    PDEVICE_OBJECT device = pnp_find(VPMU_STATUS_PCI_VENDOR, VPMU_STATUS_PCI_DEVICE);

    if (!device)
        return NULL;
    vpmu_status_is(pnp_add(driver, device), STATUS_SUCCESS, "AddDevice");
    vpmu_status_is(pnp_start(device), STATUS_SUCCESS, "IRP_MN_START_DEVICE");
    return device;
}

NTSTATUS status_end(struct user_request *request, bool *done)
{
    ULONG returned;

    *done = user_ioctl_wait(request, PATIENCE_MS);
    if (!*done)
        user_ioctl_cancel(request);
    return user_ioctl_end(request, &returned);
}

bool status_ends(struct user_request *request, NTSTATUS want, const char *what)
{
    bool done;
    NTSTATUS status = status_end(request, &done);

    check(done, "vpmu: %s: it ends", what);
    vpmu_status_is(status, want, what);
    return done;
}

static struct vpmu_host host_of(HANDLE vpmu)
{
    struct vpmu_host host = {0};

    vpmu_status_is(vpmu_host(vpmu, &host), STATUS_SUCCESS, "host");
    return host;
}

static struct vpmu_state state_of(HANDLE vpmu, unsigned processor, uint32_t counter)
{
    static struct vpmu_states now;

    vpmu_status_is(vpmu_states(vpmu, processor, &now), STATUS_SUCCESS, "states");
    for (unsigned i = 0; i < now.count; i++)
        if (now.states[i].counter == counter)
            return now.states[i];
    check(false, "vpmu: processor %u: counter %u has a state", processor, counter);
    return (struct vpmu_state){0};
}

static void check_host(HANDLE vpmu)
{
    struct vpmu_host host = host_of(vpmu);
    bool known = hal_pmu.version != 0; /* this HAL knows Intel's PMU alone */

    check_equal(host.flags, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT, "vpmu: host: flags");
    check_equal(host.vcpus, processor_total(), "vpmu: host: vCPUs");
    check(host.source != VPMU_SOURCE_NONE, "vpmu: host: there is a source");
    check(host.shape_gp > 0, "vpmu: host: there are counters");
    if (known) {
        check_equal(host.shape_gp, hal_pmu.gp, "vpmu: host: GP counters");
        check_equal(host.shape_fixed, (1u << hal_pmu.fixed) - 1, "vpmu: host: fixed counters");
    }
    check_equal(host.granted_gp, host.shape_gp, "vpmu: host: all GP counters are granted");
    check_equal(host.granted_fixed, host.shape_fixed, "vpmu: host: all fixed ones, too");
}

static unsigned bits(uint32_t set)
{
    unsigned count = 0;

    for (; set; set &= set - 1)
        count++;
    return count;
}

static void check_shape(HANDLE vpmu)
{
    struct vpmu_host host = host_of(vpmu);
    static struct vpmu_states now;

    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_states(vpmu, p, &now), STATUS_SUCCESS, "states");
        check_equal(now.flags, VPMU_STATES_DEVICE, "vpmu: processor %u: the device's word", p);
        check_equal(now.count, host.shape_gp + bits(host.shape_fixed), "vpmu: processor %u: states",
                    p);
    }
}

/* Works on a processor until the request has ended. */
static void work_until(struct user_request *request, unsigned processor)
{
    thread_set_affinity(1ull << processor);
    for (unsigned i = 0; i < MOST_WORK && !user_ioctl_done(request); i++)
        thread_run_user(user_work, ROUNDS);
    thread_set_affinity(processor_mask());
}

/* Works until a counter is in a state, as changes are told. */
static void work_to_state(HANDLE vpmu, unsigned processor, uint32_t counter, uint32_t state)
{
    struct vpmu_host host = host_of(vpmu);

    for (unsigned i = 0; i < 16 && state_of(vpmu, processor, counter).state != state; i++) {
        struct user_request *request = vpmu_wait(vpmu, host.changes, &host);

        work_until(request, processor);
        status_ends(request, STATUS_SUCCESS, "wait for a change");
    }
    check_equal(state_of(vpmu, processor, counter).state, state,
                "vpmu: processor %u, counter %u: state", processor, counter);
}

/* Times are of the last look, so it takes two of them; they are no change that is told. */
static void work_to_times(HANDLE vpmu, unsigned processor, struct vpmu_state *first,
                          struct vpmu_state *second)
{
    static struct vpmu_states now;

    thread_set_affinity(1ull << processor);
    for (unsigned i = 0; i < MOST_WORK; i++) {
        thread_run_user(user_work, ROUNDS);
        if (!NT_SUCCESS(vpmu_states(vpmu, processor, &now)))
            break;
        if (now.states[0].enabled_ns && now.states[1].enabled_ns)
            break;
    }
    thread_set_affinity(processor_mask());
    *first = now.states[0];
    *second = now.states[1];
}

static NTSTATUS program_raw(HANDLE vpmu, uint32_t counter, uint64_t config)
{
    struct vpmu_program_request in = {
        .header = HEADER(vpmu_program_request),
        .counter = counter,
        .event = VPMU_EVENT_RAW,
        .flags = VPMU_COUNT_USER,
        .config = config,
    };

    return vpmu_request(vpmu, VPMU_IOCTL_PROGRAM, &in, sizeof(in), NULL, 0);
}

static uint64_t value_of(HANDLE vpmu, unsigned processor, uint32_t counter)
{
    static struct vpmu_reading reading;

    vpmu_status_is(vpmu_read(vpmu, processor, &reading), STATUS_SUCCESS, "read");
    for (unsigned i = 0; i < reading.count; i++)
        if (reading.values[i].counter == counter)
            return reading.values[i].value;
    return UINT64_MAX;
}

static void start_or_stop(HANDLE vpmu, ULONG code, uint64_t counters)
{
    vpmu_status_is(vpmu_start_or_stop(vpmu, code, counters), STATUS_SUCCESS,
                   code == VPMU_IOCTL_START ? "start" : "stop");
}

/* Counter 0 counts instructions; counter 1 is set to what cannot be counted. */
static void check_counts(HANDLE vpmu, unsigned processor, uint64_t config, uint32_t state)
{
    struct vpmu_state first, second;

    vpmu_status_is(vpmu_program(vpmu, 0, VPMU_EVENT_INSTRUCTIONS, VPMU_COUNT_USER, 0),
                   STATUS_SUCCESS, "program instructions");
    vpmu_status_is(program_raw(vpmu, 1, config), STATUS_SUCCESS, "program a raw event");
    thread_set_affinity(1ull << processor);
    start_or_stop(vpmu, VPMU_IOCTL_START, 3);
    thread_run_user(user_work, ROUNDS);
    start_or_stop(vpmu, VPMU_IOCTL_STOP, 3);
    check_equal(value_of(vpmu, processor, 0), USER_INSTRUCTIONS(ROUNDS),
                "vpmu: processor %u: the exact count", processor);
    start_or_stop(vpmu, VPMU_IOCTL_START, 3);
    work_to_state(vpmu, processor, 0, VPMU_COUNTER_BACKED);
    work_to_state(vpmu, processor, 1, state);
    work_to_times(vpmu, processor, &first, &second);
    check((first.selector & 0xffff) == 0x00c0 && first.selector & ENABLED,
          "vpmu: processor %u: the selector is as written: %lx", processor, first.selector);
    check_equal(second.selector & 0xffff, config, "vpmu: processor %u: the other selector",
                processor);
    check(first.enabled_ns > 0, "vpmu: processor %u: it has been enabled for a while", processor);
    check_equal(first.backed_ns, first.enabled_ns, "vpmu: processor %u: and counted all that time",
                processor);
    check(second.enabled_ns > 0, "vpmu: processor %u: the other has been enabled, too", processor);
    check_equal(second.backed_ns, 0, "vpmu: processor %u: and has not counted", processor);
    check_equal(value_of(vpmu, processor, 1), 0, "vpmu: processor %u: it reads 0", processor);
    start_or_stop(vpmu, VPMU_IOCTL_STOP, 3);
}

static void acquire_all(HANDLE vpmu)
{
    struct vpmu_grant grant;

    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
}

/* Gives all but one back and takes them again; asks for what there is not. */
static void check_resize(HANDLE vpmu)
{
    const struct vpmu_host whole = host_of(vpmu);
    struct vpmu_host host;

    status_ends(vpmu_resize(vpmu, 1, 0, &host), STATUS_SUCCESS, "resize to one counter");
    check_equal(host.granted_gp, 1, "vpmu: after that: GP counters");
    check_equal(host.granted_fixed, 0, "vpmu: after that: fixed counters");
    check_equal(host_of(vpmu).granted_gp, 1, "vpmu: the host says so, too");
    work_to_state(vpmu, 0, 1, VPMU_COUNTER_ABSENT);
    check_equal(state_of(vpmu, 0, 0).state, VPMU_COUNTER_GRANTED, "vpmu: the first is kept");
    status_ends(vpmu_resize(vpmu, whole.shape_gp + 1, 0, &host), STATUS_INVALID_PARAMETER,
                "resize beyond the shape");
    check_equal(host_of(vpmu).granted_gp, 1, "vpmu: that changes nothing");
    status_ends(vpmu_resize(vpmu, whole.shape_gp, whole.shape_fixed, &host), STATUS_SUCCESS,
                "resize to all");
    check_equal(host.granted_gp, whole.shape_gp, "vpmu: all GP counters are back");
    check_equal(host.granted_fixed, whole.shape_fixed, "vpmu: all fixed counters are back");
    work_to_state(vpmu, 0, 1, VPMU_COUNTER_GRANTED);
}

static void device_program(void *argument)
{
    HANDLE vpmu = vpmu_open();

    (void)argument;
    check_host(vpmu);
    check_shape(vpmu);
    acquire_all(vpmu);
    for (unsigned p = 0; p < processor_total(); p++)
        check_counts(vpmu, p, EVENT_NO_SUCH, VPMU_COUNTER_UNSUPPORTED);
    check_resize(vpmu);
}

/* The driver goes on without the device. */
static void without_device(void *argument)
{
    static struct vpmu_verification v;
    static struct vpmu_states now;
    HANDLE vpmu = vpmu_open();
    struct vpmu_host host = host_of(vpmu);

    check_equal(host.flags, 0, "vpmu: without the device: flags");
    check_equal((ULONG)host.device_status, (ULONG) * (NTSTATUS *)argument,
                "vpmu: without the device: why");
    check_equal(host.shape_gp, VPMU_NONE, "vpmu: without the device: no shape is invented");
    acquire_all(vpmu);
    vpmu_status_is(vpmu_verify(vpmu, 0, 0, &v), STATUS_SUCCESS, "verify");
    check_equal(v.not_backed, 0, "vpmu: without the device: all counters count");
    vpmu_status_is(vpmu_states(vpmu, 0, &now), STATUS_SUCCESS, "states");
    check_equal(now.flags, 0, "vpmu: without the device: the states are VERIFY's");
    check(now.count > 0, "vpmu: without the device: there are states");
    for (unsigned i = 0; i < now.count; i++) {
        check_equal(now.states[i].state, VPMU_COUNTER_BACKED, "vpmu: counter %u: state",
                    now.states[i].counter);
        check_equal(now.states[i].enabled_ns, VPMU_NOT_KNOWN, "vpmu: counter %u: enabled time",
                    now.states[i].counter);
        check_equal(now.states[i].backed_ns, VPMU_NOT_KNOWN, "vpmu: counter %u: backed time",
                    now.states[i].counter);
    }
}

static void check_without(NTSTATUS why)
{
    run_as_process(without_device, &why);
}

void status_on_device(void (*program)(void *), void (*then)(PDEVICE_OBJECT))
{
    struct driver *driver = scenario_load("vpmu.sys");
    PDEVICE_OBJECT device;

    if (!driver)
        return;
    device = status_bind(driver);
    check(device != NULL, "vpmu: the machine has a status device");
    if (device) {
        run_as_process(program, device);
        then(device);
    }
    driver_unload(driver);
}

void status_remove(PDEVICE_OBJECT device)
{
    check(pnp_interrupts() > 0, "vpmu: it has sent messages");
    pnp_remove(device);
}

static void remove_and_go_without(PDEVICE_OBJECT device)
{
    status_remove(device);
    check_without(STATUS_NO_SUCH_DEVICE);
}

void status_device(void)
{
    status_on_device(device_program, remove_and_go_without);
}

static void denied_program(void *argument)
{
    HANDLE vpmu = vpmu_open();

    (void)argument;
    acquire_all(vpmu);
    for (unsigned p = 0; p < processor_total(); p++)
        check_counts(vpmu, p, EVENT_BRANCHES, VPMU_COUNTER_FILTERED);
}

void status_denied(void)
{
    status_on_device(denied_program, pnp_remove);
}

/*
 * While a request waits, and before the driver is told. QEMU's device cannot be unplugged, so it is
 * made to decode no memory, which looks the same from here.
 */
static void surprise_program(void *argument)
{
    PDEVICE_OBJECT device = argument;
    HANDLE vpmu = vpmu_open();
    struct vpmu_host host = host_of(vpmu), after;
    static struct vpmu_states now;
    struct user_request *waits;

    check_equal(host.flags, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT, "vpmu: host: flags");
    waits = vpmu_wait(vpmu, host.changes, &after);
    pnp_pull_out(device);
    host = host_of(vpmu);
    check_equal((ULONG)host.device_status, (ULONG)STATUS_DEVICE_NOT_CONNECTED,
                "vpmu: before Plug and Play tells, the driver notices");
    vpmu_status_is(vpmu_states(vpmu, 0, &now), STATUS_DEVICE_NOT_CONNECTED, "states");
    pnp_surprise(device);
    status_ends(waits, STATUS_DEVICE_REMOVED, "the wait");
    host = host_of(vpmu);
    check_equal((ULONG)host.device_status, (ULONG)STATUS_DEVICE_REMOVED, "vpmu: why");
}

static void go_without_removed(PDEVICE_OBJECT device)
{
    (void)device;
    check_without(STATUS_DEVICE_REMOVED);
}

void status_surprise(void)
{
    status_on_device(surprise_program, go_without_removed);
}

void status_none(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    check(!status_bind(driver), "the machine has no status device");
    check_without(STATUS_NO_SUCH_DEVICE);
    driver_unload(driver);
}
