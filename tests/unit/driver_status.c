/* SPDX-License-Identifier: BSD-3-Clause */
/* The status device through the requests: sound, absent, gone, and lying. */

#include <criterion/criterion.h>
#include <string.h>

#include "driver_fake.h"

static const char me, you;

static void set_up(void)
{
    fake_intel(2, 4, 3);
    fake_status_reset();
}

static void set_up_device(void)
{
    set_up();
    cr_assert_eq(fake_status_attach(), STATUS_SUCCESS);
}

TestSuite(driver_status, .init = set_up_device);
TestSuite(driver_without_status, .init = set_up);

static NTSTATUS host(struct vpmu_host *out)
{
    return fake_request(&me, VPMU_IOCTL_HOST, NULL, 0, out, sizeof(*out), NULL);
}

static NTSTATUS states(uint32_t processor, struct vpmu_states *out)
{
    struct vpmu_processor_request request = {.header = HEADER(request), .processor = processor};

    return fake_request(&me, VPMU_IOCTL_STATES, &request, sizeof(request), out, sizeof(*out), NULL);
}

static NTSTATUS wait_for(uint32_t changes, struct vpmu_host *out)
{
    struct vpmu_wait_request request = {.header = HEADER(request), .changes = changes};

    return fake_request(&me, VPMU_IOCTL_WAIT, &request, sizeof(request), out, sizeof(*out), NULL);
}

static NTSTATUS resize(const void *client, uint32_t gp, struct vpmu_host *out)
{
    struct vpmu_resize_request request = {.header = HEADER(request), .gp = gp};

    return fake_request(client, VPMU_IOCTL_RESIZE, &request, sizeof(request), out, sizeof(*out),
                        NULL);
}

static NTSTATUS acquire(const void *client)
{
    struct vpmu_acquire_request request = {.header = HEADER(request), .counters = 1};
    struct vpmu_grant grant;

    return fake_request(client, VPMU_IOCTL_ACQUIRE, &request, sizeof(request), &grant,
                        sizeof(grant), NULL);
}

Test(driver_without_status, nothing_is_invented)
{
    struct vpmu_host out;
    struct vpmu_states now;

    cr_assert_eq(host(&out), STATUS_SUCCESS);
    cr_expect_eq(out.flags, 0);
    cr_expect_eq(out.device_status, STATUS_NO_SUCH_DEVICE);
    cr_expect_eq(out.shape_gp, VPMU_NONE);
    cr_expect_eq(out.granted_fixed, VPMU_NONE);
    cr_expect_eq(out.changes, VPMU_NONE);
    cr_expect_eq(out.revocations, VPMU_NONE);
    cr_assert_eq(states(1, &now), STATUS_SUCCESS);
    cr_expect_eq(now.flags, 0);
    cr_expect_eq(now.count, 7);
    cr_expect_eq(now.updated_ns, VPMU_NOT_KNOWN);
    for (uint32_t i = 0; i < now.count; i++) {
        cr_expect_eq(now.states[i].counter, i < 4 ? i : 28 + i);
        cr_expect_eq(now.states[i].state, VPMU_COUNTER_GRANTED);
        cr_expect_eq(now.states[i].selector, VPMU_NOT_KNOWN);
        cr_expect_eq(now.states[i].enabled_ns, VPMU_NOT_KNOWN);
        cr_expect_eq(now.states[i].backed_ns, VPMU_NOT_KNOWN);
    }
    cr_expect_eq(states(FAKE_PROCESSORS, &now), STATUS_INVALID_PARAMETER);
    cr_expect_eq(wait_for(0, &out), STATUS_NO_SUCH_DEVICE);
    cr_expect_eq(resize(&me, 1, &out), STATUS_NO_SUCH_DEVICE);
}

Test(driver_without_status, states_are_those_of_verify)
{
    struct vpmu_verify_request request = {
        .header = HEADER(request), .processor = 1, .iterations = 1000};
    struct vpmu_verification verification;
    struct vpmu_states now;

    fake.starved = 1;
    cr_assert_eq(acquire(&me), STATUS_SUCCESS);
    cr_assert_eq(fake_request(&me, VPMU_IOCTL_VERIFY, &request, sizeof(request), &verification,
                              sizeof(verification), NULL),
                 STATUS_SUCCESS);
    cr_assert_eq(states(1, &now), STATUS_SUCCESS);
    cr_expect_eq(now.states[0].state, VPMU_COUNTER_STARVED);
    cr_expect_eq(now.states[1].state, VPMU_COUNTER_GRANTED, "not held");
    cr_assert_eq(states(0, &now), STATUS_SUCCESS);
    cr_expect_eq(now.states[0].state, VPMU_COUNTER_GRANTED, "not verified there");
}

Test(driver_without_status, what_is_no_such_device_is_refused_with_the_reason)
{
    struct vpmu_status_registers *registers = &fake_status.registers;
    struct vpmu_host out;

    registers->magic++;
    cr_expect_eq(fake_status_attach(), STATUS_DEVICE_PROTOCOL_ERROR);
    cr_assert_eq(host(&out), STATUS_SUCCESS);
    cr_expect_eq(out.device_status, STATUS_DEVICE_PROTOCOL_ERROR);
    registers->magic--;
    registers->version = 2;
    cr_expect_eq(fake_status_attach(), STATUS_REVISION_MISMATCH);
    registers->version = 1;
    registers->vcpus = 0;
    cr_expect_eq(fake_status_attach(), STATUS_DEVICE_CONFIGURATION_ERROR);
    registers->vcpus = FAKE_PROCESSORS + 1;
    cr_expect_eq(fake_status_attach(), STATUS_DEVICE_CONFIGURATION_ERROR);
    registers->vcpus = UINT32_MAX;
    cr_expect_eq(fake_status_attach(), STATUS_DEVICE_CONFIGURATION_ERROR);
    registers->vcpus = FAKE_PROCESSORS;
    cr_expect_eq(status_attach(&driver.status, registers, sizeof(*registers) - 1, fake_status.pages,
                               sizeof(fake_status.pages)),
                 STATUS_DEVICE_CONFIGURATION_ERROR);
    cr_expect_eq(fake_status_attach(), STATUS_SUCCESS);
}

Test(driver_status, states_are_those_of_the_processors_page)
{
    struct vpmu_states now;

    for (uint32_t p = 0; p < FAKE_PROCESSORS; p++) {
        cr_assert_eq(states(p, &now), STATUS_SUCCESS);
        cr_expect_eq(now.flags, VPMU_STATES_DEVICE);
        cr_expect_eq(now.processor, p);
        cr_expect_eq(now.count, 2);
        cr_expect_eq(now.updated_ns, 1000);
        cr_expect_eq(now.states[1].state, VPMU_COUNTER_STARVED);
        cr_expect_eq(now.states[1].selector, 0x41003c);
        cr_expect_eq(now.states[1].enabled_ns, 100);
        cr_expect_eq(now.states[1].backed_ns, 10 * p);
    }
    fake_status.pages[2].page.apic_id = 77;
    cr_expect_eq(states(2, &now), STATUS_NOT_FOUND);
}

Test(driver_status, a_lie_is_an_error)
{
    const struct {
        uint32_t count, index0, index1, state;
        uint64_t backed;
    } lies[] = {{49, 0, 1, 2, 0}, {UINT32_MAX, 0, 1, 2, 0}, {2, 1, 1, 2, 0}, {2, 1, 0, 2, 0},
                {2, 0, 64, 2, 0}, {2, 0, UINT32_MAX, 2, 0}, {2, 0, 1, 7, 0}, {2, 0, 1, 2, 101}};
    struct vpmu_states now;
    struct vpmu_host out;

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct vpmu_status_page *page = &fake_status.pages[0].page;

        page->count = lies[i].count;
        page->counters[0].index = lies[i].index0;
        page->counters[1].index = lies[i].index1;
        page->counters[1].state = lies[i].state;
        page->counters[1].backed_ns = lies[i].backed;
        cr_expect_eq(states(0, &now), STATUS_DEVICE_DATA_ERROR, "lie %zu", i);
    }
    fake_status.registers.granted_gp = 3;
    cr_expect_eq(host(&out), STATUS_DEVICE_DATA_ERROR);
}

static void grow_even(void)
{
    if (fake.rests == 3)
        fake_status.pages[0].page.sequence++;
}

Test(driver_status, a_page_that_never_rests_is_given_up)
{
    struct vpmu_states now;

    fake_status.pages[0].page.sequence = 5;
    cr_expect_eq(states(0, &now), STATUS_IO_TIMEOUT);
    cr_expect_gt(fake.rests, 0);
    fake.rests = 0;
    fake.on_rest = grow_even;
    cr_expect_eq(states(0, &now), STATUS_SUCCESS);
    cr_expect_eq(fake.rests, 3);
}

Test(driver_status, a_device_that_is_pulled_out_says_so)
{
    const uint32_t reads[] = {0, UINT32_MAX};
    struct vpmu_states now;
    struct vpmu_host out;

    for (int i = 0; i < 2; i++) {
        fake_status.registers.magic = reads[i];
        cr_assert_eq(host(&out), STATUS_SUCCESS);
        cr_expect_eq(out.flags, 0);
        cr_expect_eq(out.device_status, STATUS_DEVICE_NOT_CONNECTED);
        cr_expect_eq(states(0, &now), STATUS_DEVICE_NOT_CONNECTED);
        cr_expect_eq(wait_for(1, &out), STATUS_DEVICE_NOT_CONNECTED);
        cr_expect_eq(resize(&me, 1, &out), STATUS_DEVICE_NOT_CONNECTED);
    }
    status_detach(&driver.status, STATUS_DEVICE_REMOVED);
    cr_assert_eq(host(&out), STATUS_SUCCESS);
    cr_expect_eq(out.device_status, STATUS_DEVICE_REMOVED);
    cr_expect_eq(wait_for(1, &out), STATUS_DEVICE_REMOVED);
    cr_expect_eq(states(0, &now), STATUS_SUCCESS, "VERIFY's word");
    cr_expect_eq(now.flags, 0);
}

Test(driver_status, waiting_ends_with_a_change)
{
    struct vpmu_host out;
    uint32_t written;

    cr_assert_eq(host(&out), STATUS_SUCCESS);
    cr_expect_eq(out.flags, VPMU_HOST_DEVICE | VPMU_HOST_INTERRUPT);
    cr_expect_eq(wait_for(0, &out), STATUS_SUCCESS, "it has changed already");
    cr_expect_eq(out.changes, 1);
    cr_assert_eq(wait_for(1, &out), STATUS_PENDING);
    cr_expect_eq(vpmu_answer(&driver, VPMU_IOCTL_WAIT, &out, &written), STATUS_PENDING);
    cr_expect_eq(written, 0);
    fake_status.registers.changes = 2;
    cr_expect_eq(vpmu_answer(&driver, VPMU_IOCTL_WAIT, &out, &written), STATUS_SUCCESS);
    cr_expect_eq(written, sizeof(out));
    cr_expect_eq(out.changes, 2);
    cr_expect_eq(out.header.size, sizeof(out));
    status_interrupt(&driver.status, false);
    cr_expect_eq(wait_for(1, &out), STATUS_NOT_SUPPORTED);
    cr_expect_eq(resize(&me, 1, &out), STATUS_NOT_SUPPORTED);
}

Test(driver_status, resizing_is_one_at_a_time_and_ends_with_the_hosts_status)
{
    struct vpmu_status_registers *registers = &fake_status.registers;
    struct vpmu_host out, other;
    uint32_t written;

    registers->request_status = VPMU_STATUS_PENDING;
    cr_expect_eq(resize(&me, 1, &out), STATUS_DEVICE_BUSY, "of another driver, before");
    registers->request_status = 0;
    cr_assert_eq(resize(&me, 1, &out), STATUS_SUCCESS, "answered at once");
    cr_expect_eq(registers->request_gp, 1);
    cr_expect_eq(registers->request, VPMU_REQUEST_RESIZE);

    registers->request_status = VPMU_STATUS_PENDING;
    driver.status.resizing = true;
    out = (struct vpmu_host){0};
    cr_expect_eq(vpmu_answer(&driver, VPMU_IOCTL_RESIZE, &out, &written), STATUS_PENDING);
    registers->request_status = (uint32_t)STATUS_INSUFFICIENT_RESOURCES;
    cr_expect_eq(resize(&you, 2, &other), STATUS_DEVICE_BUSY, "the first has not been told yet");
    cr_expect_eq(vpmu_answer(&driver, VPMU_IOCTL_RESIZE, &out, &written),
                 STATUS_INSUFFICIENT_RESOURCES);
    cr_expect_eq(written, 0);
    cr_expect_eq(resize(&you, 2, &other), STATUS_INSUFFICIENT_RESOURCES);
    registers->request_status = 0x40000000;
    cr_expect_eq(resize(&you, 2, &other), STATUS_DEVICE_DATA_ERROR, "no end of anything");
}

Test(driver_status, resizing_is_the_owners_where_there_is_one)
{
    struct vpmu_host out;

    cr_expect_eq(resize(&you, 1, &out), STATUS_SUCCESS);
    cr_assert_eq(acquire(&me), STATUS_SUCCESS);
    cr_expect_eq(resize(&you, 1, &out), STATUS_DEVICE_BUSY);
    cr_expect_eq(resize(&me, 1, &out), STATUS_SUCCESS);
}
