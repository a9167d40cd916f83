/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The request surface of vpmu.sys: any code, any length, any content, from three clients that come
 * and go, while counters count and overflow. A buffer has exactly the length that was claimed, so
 * that the sanitizer sees each byte beyond it. The status device is there or not, and may say
 * anything.
 *
 * Input: a byte for the machine, then records of an action and its operands.
 */

#include <stdlib.h>
#include <string.h>

#include "../unit/driver_fake.h"
#include "check.h"

static const uint32_t codes[] = {
#define VPMU_IOCTL(name, function, access, in, out) VPMU_IOCTL_##name,
#include "ioctls.def"
#undef VPMU_IOCTL
};
enum { CODES = sizeof(codes) / sizeof(codes[0]), CLIENTS = 3 };
static const char client[CLIENTS];

struct input {
    const uint8_t *data;
    size_t left;
};

static uint32_t take(struct input *input, uint32_t bytes)
{
    uint32_t value = 0;

    while (bytes-- && input->left) {
        value = value << 8 | *input->data++;
        input->left--;
    }
    return value;
}

static void set_up(uint8_t kind)
{
    switch (kind & 7) {
    case 0:
        fake_amd();
        break;
    case 1:
        fake_intel(0, 0, 0);
        break;
    case 2:
        fake_intel(1, 2, 0);
        break;
    default:
        fake_intel(2, 4, 3);
    }
    if (kind & 8)
        fake.taken = 0x200000005;
    if (kind & 16)
        fake.build = 17763;
    if (kind & 32)
        fake.overflow_status = STATUS_NOT_SUPPORTED;
    if (kind & 64)
        fake.set_status = STATUS_NOT_IMPLEMENTED;
    if (kind & 128)
        fake.starved = 2;
    fake_status_reset();
}

/* The device comes, goes, or says something else. Pages are the last thing in memory. */
static void device(struct input *input, uint32_t action)
{
    unsigned char *bytes = (unsigned char *)&fake_status;

    if (action & 1)
        bytes[take(input, 2) % sizeof(fake_status)] = (unsigned char)take(input, 1);
    else if (driver.status.registers)
        status_detach(&driver.status, STATUS_DEVICE_REMOVED);
    else
        fake_status_attach();
}

/* What holds between any two requests. */
static void check_books(void)
{
    CHECK(fake_live() == (driver.owner ? 1 : 0));
    CHECK(!fake.bad_frees);
    CHECK(!fake.interrupts_off);
    CHECK(!(driver.programmed & ~driver.held));
    CHECK(!(driver.running & ~driver.programmed));
    CHECK(!(driver.profiled & ~driver.held));
    if (!driver.owner)
        CHECK(!driver.held && fake_is_quiet() && !fake.standing_count);
}

/* A request whose header is right more often than not. */
static void request(struct input *input, const void *who)
{
    uint32_t shape = take(input, 1);
    uint32_t code = shape & 1 ? take(input, 4) : codes[take(input, 1) % CODES];
    uint32_t in_length = shape & 2 ? take(input, 2) & 0xfff : take(input, 1);
    uint32_t out_length = shape & 4 ? take(input, 2) & 0xfff : 2048;
    uint32_t length = in_length > out_length ? in_length : out_length;
    uint32_t written = 1;
    struct vpmu_header header = {in_length, VPMU_IOCTL_VERSION};
    unsigned char *buffer = length ? malloc(length) : NULL;
    NTSTATUS status;

    for (uint32_t i = 0; i < length; i++)
        buffer[i] = i < in_length ? (unsigned char)take(input, 1) : 0xa5;
    if (!(shape & 8) && in_length >= sizeof(header))
        memcpy(buffer, &header, sizeof(header));
    if (shape & 16) {
        free(buffer);
        buffer = NULL;
    }
    /* A verification of a million rounds costs the fake nothing, so nothing is left out. */
    status = vpmu_ioctl(&driver, who, code, buffer, in_length, out_length, &written);
    if (status == STATUS_PENDING) { /* as the DPC does, and then a cancellation */
        status = vpmu_answer(&driver, code, buffer, &written);
        status_forget(&driver.status, code);
    }
    CHECK(written <= out_length);
    CHECK((NT_SUCCESS(status) && status != STATUS_PENDING) || !written);
    if (written) {
        memcpy(&header, buffer, sizeof(header));
        CHECK(header.size == written && header.version == VPMU_IOCTL_VERSION);
    }
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};

    set_up((uint8_t)take(&input, 1));
    while (input.left) {
        uint32_t action = take(&input, 1);
        const void *who = &client[action >> 4 & 3 ? (action >> 4 & 3) - 1 : 0];

        switch (action & 0xf) {
        case 0:
            vpmu_client_gone(&driver, who);
            break;
        case 1:
            fake_count(action >> 4 & 3, take(&input, 4));
            break;
        case 2:
            device(&input, action >> 4);
            break;
        default:
            request(&input, who);
        }
        check_books();
    }
    for (int i = 0; i < CLIENTS; i++)
        vpmu_client_gone(&driver, &client[i]);
    check_books();
    CHECK(!driver.owner);
    return 0;
}
