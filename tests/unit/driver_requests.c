/* SPDX-License-Identifier: BSD-3-Clause */
/* What all requests share: lengths, versions, owners, and an output without leftovers. */

#include <criterion/criterion.h>
#include <string.h>

#include "driver_fake.h"

struct vpmu_nothing {
    char none[1];
};
#define LENGTH(type) (strcmp(#type, "vpmu_nothing") ? (uint32_t)sizeof(struct type) : 0)

static const struct row {
    const char *name;
    uint32_t code, in_length, out_length, access;
} rows[] = {
#define VPMU_IOCTL(name, function, access, in, out)                                                \
    {#name, VPMU_IOCTL_##name, LENGTH(in), LENGTH(out), VPMU_ACCESS_##access},
#include "ioctls.def"
#undef VPMU_IOCTL
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]), MAX_LENGTH = 4096 };

static const char me, you;

static void set_up(void)
{
    fake_intel(2, 4, 3);
    fake_status_reset();
    fake_status_attach();
}

TestSuite(driver_requests, .init = set_up);

static void acquire(const void *client)
{
    struct vpmu_acquire_request request = {.header = HEADER(request)};
    struct vpmu_grant grant;

    cr_assert_eq(fake_request(client, VPMU_IOCTL_ACQUIRE, &request, sizeof(request), &grant,
                              sizeof(grant), NULL),
                 STATUS_SUCCESS);
}

/* A well-formed header in front of zeroes. */
static void *input(const struct row *row, uint32_t size, uint32_t version)
{
    static uint64_t buffer[MAX_LENGTH / 8];
    struct vpmu_header header = {size, version};

    memset(buffer, 0, sizeof(buffer));
    if (row->in_length)
        memcpy(buffer, &header, sizeof(header));
    return buffer;
}

Test(driver_requests, codes_are_buffered_and_distinct)
{
    for (int i = 0; i < ROWS; i++) {
        cr_expect_eq(rows[i].code & 3, 0, "%s is not METHOD_BUFFERED", rows[i].name);
        cr_expect_eq(rows[i].code >> 14 & 3, rows[i].access, "%s", rows[i].name);
        cr_expect_eq(rows[i].code >> 16, 0x22, "%s", rows[i].name);
        for (int j = 0; j < i; j++)
            cr_expect_neq(rows[i].code, rows[j].code);
    }
}

Test(driver_requests, unknown_codes_are_refused)
{
    uint32_t tried = 0;

    for (uint32_t code = 0x220000; code < 0x230000; code++) {
        bool known = false;
        for (int i = 0; i < ROWS; i++)
            known |= rows[i].code == code;
        if (known)
            continue;
        tried++;
        cr_assert_eq(fake_request(&me, code, input(&rows[0], 0, 0), 64, NULL, 64, NULL),
                     STATUS_INVALID_DEVICE_REQUEST);
    }
    cr_assert_eq(tried, 0x10000 - ROWS);
}

Test(driver_requests, input_has_exactly_its_length)
{
    for (int i = 0; i < ROWS; i++) {
        for (uint32_t length = 0; length < 128; length++) {
            if (length == rows[i].in_length)
                continue;
            void *in = input(&rows[i], rows[i].in_length, VPMU_IOCTL_VERSION);
            uint32_t written = 1;
            cr_expect_eq(fake_request(&me, rows[i].code, in, length, NULL, MAX_LENGTH, &written),
                         STATUS_INVALID_PARAMETER, "%s, %u bytes", rows[i].name, length);
            cr_expect_eq(written, 0);
        }
    }
    cr_expect_eq(fake_live(), 0);
}

Test(driver_requests, output_has_at_least_its_length)
{
    for (int i = 0; i < ROWS; i++) {
        void *in = input(&rows[i], rows[i].in_length, VPMU_IOCTL_VERSION);
        for (uint32_t length = 0; length < rows[i].out_length; length++)
            cr_expect_eq(fake_request(&me, rows[i].code, in, rows[i].in_length, NULL, length, NULL),
                         STATUS_BUFFER_TOO_SMALL, "%s, %u bytes", rows[i].name, length);
    }
    cr_expect_eq(fake_live(), 0);
}

Test(driver_requests, size_and_version_are_checked)
{
    for (int i = 0; i < ROWS; i++) {
        uint32_t length = rows[i].in_length;
        if (!length)
            continue;
        cr_expect_eq(fake_request(&me, rows[i].code, input(&rows[i], length + 1, 1), length, NULL,
                                  MAX_LENGTH, NULL),
                     STATUS_INVALID_PARAMETER, "%s", rows[i].name);
        cr_expect_eq(fake_request(&me, rows[i].code, input(&rows[i], length, 2), length, NULL,
                                  MAX_LENGTH, NULL),
                     STATUS_REVISION_MISMATCH, "%s", rows[i].name);
    }
}

Test(driver_requests, a_missing_buffer_is_refused)
{
    for (int i = 0; i < ROWS; i++) {
        uint32_t written;
        if (rows[i].in_length || rows[i].out_length)
            cr_expect_eq(vpmu_ioctl(&driver, &me, rows[i].code, NULL, rows[i].in_length,
                                    rows[i].out_length, &written),
                         STATUS_INVALID_PARAMETER, "%s", rows[i].name);
    }
}

Test(driver_requests, only_the_owner_may_change_anything)
{
    acquire(&you);
    for (int i = 0; i < ROWS; i++) {
        void *in = input(&rows[i], rows[i].in_length, VPMU_IOCTL_VERSION);
        NTSTATUS status =
            fake_request(&me, rows[i].code, in, rows[i].in_length, NULL, MAX_LENGTH, NULL);
        if (rows[i].access == VPMU_ACCESS_WRITE)
            cr_expect_eq(status, STATUS_DEVICE_BUSY, "%s", rows[i].name);
        else
            cr_expect_eq(status, STATUS_SUCCESS, "%s", rows[i].name);
    }
    cr_expect_eq(driver.owner, &you);
}

Test(driver_requests, nothing_but_acquire_and_resize_without_an_owner)
{
    for (int i = 0; i < ROWS; i++) {
        void *in = input(&rows[i], rows[i].in_length, VPMU_IOCTL_VERSION);
        if (rows[i].access == VPMU_ACCESS_WRITE && rows[i].code != VPMU_IOCTL_ACQUIRE &&
            rows[i].code != VPMU_IOCTL_RESIZE)
            cr_expect_eq(
                fake_request(&me, rows[i].code, in, rows[i].in_length, NULL, MAX_LENGTH, NULL),
                STATUS_INVALID_DEVICE_STATE, "%s", rows[i].name);
    }
}

/* The buffer comes filled with 0xa5: a byte that no handler has written would show. */
Test(driver_requests, output_is_whole_and_begins_with_its_header)
{
    unsigned char out[MAX_LENGTH];
    int seen = 0;

    acquire(&me);
    for (int i = 0; i < ROWS; i++) {
        struct vpmu_header header;
        uint32_t written;
        void *in = input(&rows[i], rows[i].in_length, VPMU_IOCTL_VERSION);

        if (rows[i].access != VPMU_ACCESS_READ)
            continue;
        cr_assert_eq(
            fake_request(&me, rows[i].code, in, rows[i].in_length, out, MAX_LENGTH, &written),
            STATUS_SUCCESS);
        cr_expect_eq(written, rows[i].out_length, "%s", rows[i].name);
        memcpy(&header, out, sizeof(header));
        cr_expect_eq(header.size, rows[i].out_length);
        cr_expect_eq(header.version, VPMU_IOCTL_VERSION);
        cr_expect_null(memmem(out, written, "\xa5\xa5\xa5\xa5", 4), "%s leaks", rows[i].name);
        seen++;
    }
    cr_assert_eq(seen, 7);
}

Test(driver_requests, info_names_the_owner)
{
    struct vpmu_info info;

    fake_request(&me, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info), NULL);
    cr_expect_eq(info.owner, VPMU_OWNER_NONE);
    acquire(&you);
    fake_request(&me, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info), NULL);
    cr_expect_eq(info.owner, VPMU_OWNER_ANOTHER);
    fake_request(&you, VPMU_IOCTL_INFO, NULL, 0, &info, sizeof(info), NULL);
    cr_expect_eq(info.owner, VPMU_OWNER_YOU);
    cr_expect_eq(info.held, 0x70000000full);
    cr_expect_eq(info.gp_counters, 4);
    cr_expect_eq(info.fixed_counters, 3);
    cr_expect_eq(info.processors, FAKE_PROCESSORS);
}

Test(driver_requests, events_are_the_table)
{
    static const struct {
        const char *name;
        uint32_t config, fixed;
    } expected[VPMU_EVENTS] = {
        [VPMU_EVENT_CYCLES] = {"cycles", 0x3c, 33},
        [VPMU_EVENT_INSTRUCTIONS] = {"instructions", 0xc0, 32},
        [VPMU_EVENT_REF_CYCLES] = {"ref-cycles", 0x13c, 34},
        [VPMU_EVENT_LLC_REFERENCES] = {"llc-references", 0x4f2e, VPMU_NONE},
        [VPMU_EVENT_LLC_MISSES] = {"llc-misses", 0x412e, VPMU_NONE},
        [VPMU_EVENT_BRANCHES] = {"branches", 0xc4, VPMU_NONE},
        [VPMU_EVENT_BRANCH_MISSES] = {"branch-misses", 0xc5, VPMU_NONE},
        [VPMU_EVENT_SLOTS] = {"slots", 0x1a4, VPMU_NONE}, /* there are three fixed counters */
    };

    fake_intel(2, 4, 3);
    fake.unavailable = 1 << 3;
    vpmu_init(&driver, fake.per_processor, FAKE_PROCESSORS);
    for (uint32_t id = 0; id <= VPMU_EVENTS; id++) {
        struct vpmu_event_request request = {.header = HEADER(request), .event = id};
        struct vpmu_event event;
        NTSTATUS status = fake_request(&me, VPMU_IOCTL_EVENT, &request, sizeof(request), &event,
                                       sizeof(event), NULL);
        if (id == VPMU_EVENTS) {
            cr_expect_eq(status, STATUS_INVALID_PARAMETER);
            break;
        }
        cr_assert_eq(status, STATUS_SUCCESS);
        cr_expect_str_eq(event.name, expected[id].name);
        cr_expect_eq(event.config, expected[id].config);
        cr_expect_eq(event.fixed, expected[id].fixed);
        cr_expect_eq(event.available, id != VPMU_EVENT_LLC_REFERENCES);
    }
}
