/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys on a status device that is made of memory: what no honest one does, and each way of
 * waiting for it. */
#include "check.h"
#include "libc.h"
#include "memory.h"
#include "pnp.h"
#include "processor.h"
#include "scenarios.h"
#include "status_test.h"
#include "vpmu/status.h"
#include "vpmu_user.h"

static struct vpmu_status_registers *registers;
static uint8_t *pages;

static struct vpmu_status_page *page_of(unsigned vcpu)
{
    return (struct vpmu_status_page *)(pages + vcpu * VPMU_STATUS_PAGE_SIZE);
}

static void make_sound(void)
{
    memset(registers, 0, sizeof(*registers));
    registers->magic = VPMU_STATUS_MAGIC;
    registers->version = VPMU_STATUS_VERSION;
    registers->vcpus = processor_total();
    registers->source = VPMU_SOURCE_TCG;
    registers->shape_gp = registers->granted_gp = 2;
    registers->changes = 7;
    for (unsigned i = 0; i < processor_total(); i++)
        *page_of(i) = (struct vpmu_status_page){
            .vcpu = i,
            .apic_id = i,
            .count = 2,
            .updated_ns = 1000 + i,
            .counters = {{0, VPMU_COUNTER_BACKED, 0x4100c0, 10, 10},
                         {1, VPMU_COUNTER_REVOKED, 0x4100c4, 20, 5}},
        };
}

static PDEVICE_OBJECT make(uint64_t registers_length, uint64_t pages_length, unsigned messages)
{
    return pnp_made_up((struct pnp_memory){(uint64_t)registers, registers_length},
                       (struct pnp_memory){(uint64_t)pages, pages_length}, messages);
}

static uint64_t all_pages(void)
{
    return processor_total() * VPMU_STATUS_PAGE_SIZE;
}

/* ---- Devices that the driver must not start on ---- */

static void host_is(HANDLE vpmu, uint32_t flags, NTSTATUS why)
{
    struct vpmu_host host;

    vpmu_status_is(vpmu_host(vpmu, &host), STATUS_SUCCESS, "host");
    check_equal(host.flags, flags, "vpmu: host: flags");
    check_equal((ULONG)host.device_status, (ULONG)why, "vpmu: host: the device's status");
}

static void refuse(HANDLE vpmu, struct driver *driver, PDEVICE_OBJECT device, NTSTATUS want,
                   const char *what)
{
    vpmu_status_is(pnp_add(driver, device), STATUS_SUCCESS, "AddDevice");
    vpmu_status_is(pnp_start(device), want, what);
    host_is(vpmu, 0, want);
    pnp_remove(device);
    make_sound();
}

static void refusals(HANDLE vpmu, struct driver *driver)
{
    registers->magic = 0;
    refuse(vpmu, driver, make(4096, all_pages(), 1), STATUS_DEVICE_PROTOCOL_ERROR, "no magic");
    registers->version = 9;
    refuse(vpmu, driver, make(4096, all_pages(), 1), STATUS_REVISION_MISMATCH, "another version");
    registers->vcpus = UINT32_MAX;
    refuse(vpmu, driver, make(4096, all_pages(), 1), STATUS_DEVICE_CONFIGURATION_ERROR,
           "more pages than memory");
    refuse(vpmu, driver, make(4096, all_pages() - 1, 1), STATUS_DEVICE_CONFIGURATION_ERROR,
           "a page too few");
    refuse(vpmu, driver, make(16, all_pages(), 1), STATUS_DEVICE_CONFIGURATION_ERROR,
           "registers that are too small");
    refuse(vpmu, driver, make(4096, 0, 1), STATUS_DEVICE_CONFIGURATION_ERROR, "no pages");
}

/* ---- Pages that cannot be ---- */

static void states_are(HANDLE vpmu, NTSTATUS want, const char *what)
{
    static struct vpmu_states now;

    vpmu_status_is(vpmu_states(vpmu, 0, &now), want, what);
    make_sound();
}

static void lies(HANDLE vpmu)
{
    page_of(0)->count = VPMU_STATUS_COUNTERS + 1;
    states_are(vpmu, STATUS_DEVICE_DATA_ERROR, "states: too many");
    page_of(0)->counters[1].state = VPMU_COUNTER_STATES;
    states_are(vpmu, STATUS_DEVICE_DATA_ERROR, "states: no such state");
    page_of(0)->counters[1].index = 0;
    states_are(vpmu, STATUS_DEVICE_DATA_ERROR, "states: a counter twice");
    page_of(0)->sequence = 1;
    states_are(vpmu, STATUS_IO_TIMEOUT, "states: a page that is for ever being written");
    page_of(0)->apic_id = 99;
    states_are(vpmu, STATUS_NOT_FOUND, "states: no page for the processor");
    states_are(vpmu, STATUS_SUCCESS, "states");
}

static void truth(HANDLE vpmu)
{
    static struct vpmu_states now;

    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_states(vpmu, p, &now), STATUS_SUCCESS, "states");
        check_equal(now.updated_ns, 1000 + p, "vpmu: processor %u: its own page", p);
        check_equal(now.states[1].state, VPMU_COUNTER_REVOKED, "vpmu: processor %u: state", p);
        check_equal(now.states[1].backed_ns, 5, "vpmu: processor %u: backed time", p);
    }
}

/* ---- Waiting ---- */

static void change_and_tell(PDEVICE_OBJECT device)
{
    registers->changes++;
    check(pnp_interrupt(device), "the driver has connected to the message");
}

static void dies_waiting(void *argument)
{
    static struct vpmu_host host;

    (void)argument;
    vpmu_wait(vpmu_open(), registers->changes, &host);
}

static void waits(HANDLE vpmu, PDEVICE_OBJECT device)
{
    struct vpmu_host first, second;
    HANDLE other = vpmu_open();
    struct user_request *request, *late;

    status_ends(vpmu_wait(vpmu, registers->changes - 1, &first), STATUS_SUCCESS,
                "wait for a change that has been");
    request = vpmu_wait(vpmu, registers->changes, &first);
    late = vpmu_wait(other, registers->changes + 1, &second);
    status_ends(late, STATUS_SUCCESS, "wait with a number that never was");
    check(pnp_interrupt(device), "a message without a change");
    check(!user_ioctl_wait(request, 20), "vpmu: that ends no wait");
    change_and_tell(device);
    status_ends(request, STATUS_SUCCESS, "wait for a change");
    check_equal(first.changes, registers->changes, "vpmu: the changes that it tells of");

    request = vpmu_wait(vpmu, registers->changes, &first);
    user_ioctl_cancel(request);
    status_ends(request, STATUS_CANCELLED, "a wait that is cancelled");
    request = vpmu_wait(vpmu, registers->changes, &first);
    late = vpmu_wait(other, registers->changes, &second);
    user_close(other);
    status_ends(late, STATUS_CANCELLED, "a wait whose handle is closed");
    check(!user_ioctl_done(request), "vpmu: the other handle waits on");
    run_as_process(dies_waiting, NULL);
    change_and_tell(device);
    status_ends(request, STATUS_SUCCESS, "wait for the next change");
}

/* Memory answers at once; the device of the machine takes its time. */
static void resizes(HANDLE vpmu)
{
    struct vpmu_host host;

    registers->request_status = VPMU_STATUS_PENDING;
    status_ends(vpmu_resize(vpmu, 1, 0, &host), STATUS_DEVICE_BUSY,
                "resize while another is unanswered");
    registers->request_status = 0;
    status_ends(vpmu_resize(vpmu, 1, 0, &host), STATUS_SUCCESS, "resize that is answered at once");
    check_equal(registers->request_gp, 1, "what the mailbox has");
    check_equal(registers->request, VPMU_REQUEST_RESIZE, "what it was asked");
    registers->request_status = (uint32_t)STATUS_INSUFFICIENT_RESOURCES;
    status_ends(vpmu_resize(vpmu, 2, 0, &host), STATUS_INSUFFICIENT_RESOURCES,
                "resize that the host refuses");
    registers->request_status = 0;
}

/* ---- Plug and Play ---- */

static void stops_and_goes(HANDLE vpmu, struct driver *driver, PDEVICE_OBJECT device)
{
    PDEVICE_OBJECT second = make(4096, all_pages(), 1);
    struct user_request *request;
    struct vpmu_host host;

    vpmu_status_is(pnp_add(driver, second), STATUS_DEVICE_ALREADY_ATTACHED,
                   "AddDevice of a second device");
    pnp_remove(second);
    vpmu_status_is(pnp_request(device, IRP_MJ_POWER, 0), STATUS_SUCCESS, "power");
    vpmu_status_is(pnp_request(device, IRP_MJ_PNP, 0x09), STATUS_NOT_SUPPORTED,
                   "a PnP request of no concern is passed on as it is");
    vpmu_status_is(pnp_request(device, IRP_MJ_CREATE, 0), STATUS_INVALID_DEVICE_REQUEST,
                   "the status device itself cannot be opened");

    request = vpmu_wait(vpmu, registers->changes, &host);
    vpmu_status_is(pnp_request(device, IRP_MJ_PNP, IRP_MN_QUERY_STOP_DEVICE), STATUS_SUCCESS,
                   "query stop");
    vpmu_status_is(pnp_request(device, IRP_MJ_PNP, IRP_MN_STOP_DEVICE), STATUS_SUCCESS, "stop");
    status_ends(request, STATUS_DEVICE_NOT_READY, "a wait when the device stops");
    check_equal(registers->interrupt, 0, "its message is off");
    check(!pnp_interrupt(device), "and not connected");
    host_is(vpmu, 0, STATUS_DEVICE_NOT_READY);
    vpmu_status_is(pnp_start(device), STATUS_SUCCESS, "start again");
    check_equal(registers->interrupt, 1, "its message is on");
    host_is(vpmu, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT, STATUS_SUCCESS);

    request = vpmu_wait(vpmu, registers->changes, &host);
    pnp_surprise(device);
    status_ends(request, STATUS_DEVICE_REMOVED, "a wait when the device is pulled out");
    host_is(vpmu, 0, STATUS_DEVICE_REMOVED);
}

static void without_messages(HANDLE vpmu, struct driver *driver)
{
    PDEVICE_OBJECT device = make(4096, all_pages(), 0);
    struct vpmu_host host;

    vpmu_status_is(pnp_add(driver, device), STATUS_SUCCESS, "AddDevice");
    vpmu_status_is(pnp_start(device), STATUS_SUCCESS, "start without a message");
    host_is(vpmu, VPMU_HOST_DEVICE, STATUS_SUCCESS);
    truth(vpmu);
    status_ends(vpmu_wait(vpmu, registers->changes, &host), STATUS_NOT_SUPPORTED,
                "wait without a message");
    pnp_remove(device);
    host_is(vpmu, 0, STATUS_NO_SUCH_DEVICE);
}

static void made_up_program(void *argument)
{
    struct driver *driver = argument;
    HANDLE vpmu = vpmu_open();
    PDEVICE_OBJECT device;

    host_is(vpmu, 0, STATUS_NO_SUCH_DEVICE);
    refusals(vpmu, driver);
    device = make(4096, all_pages(), 1);
    vpmu_status_is(pnp_add(driver, device), STATUS_SUCCESS, "AddDevice");
    vpmu_status_is(pnp_start(device), STATUS_SUCCESS, "start");
    host_is(vpmu, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT, STATUS_SUCCESS);
    truth(vpmu);
    lies(vpmu);
    waits(vpmu, device);
    resizes(vpmu);
    stops_and_goes(vpmu, driver, device);
    without_messages(vpmu, driver);
}

void status_made_up(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    registers = pages_alloc(1);
    pages = pages_alloc(processor_total());
    make_sound();
    run_as_process(made_up_program, driver);
    driver_unload(driver);
}
