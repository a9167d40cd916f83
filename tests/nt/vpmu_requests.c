/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of vpmu.sys: every code, every length, bad pointers, and random ones. */
#include "check.h"
#include "hal.h"
#include "io.h"
#include "libc.h"
#include "multiboot.h"
#include "pnp.h"
#include "scenarios.h"
#include "status_test.h"
#include "vpmu_user.h"

/* ---- Scenario: every code, every length, bad pointers ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

struct request_kind {
    ULONG code, in_size, out_size;
};

struct vpmu_nothing {
    char none[1];
};
#define LENGTH(type)                                                                               \
    (__builtin_types_compatible_p(struct type, struct vpmu_nothing) ? 0 : sizeof(struct type))

static const struct request_kind kinds[] = {
#define VPMU_IOCTL(name, function, access, in, out) {VPMU_IOCTL_##name, LENGTH(in), LENGTH(out)},
#include "ioctls.def"
#undef VPMU_IOCTL
};

enum { BUFFER = 4096 };
static uint32_t in_buffer[BUFFER / 4], out_buffer[BUFFER / 4];

/* Small numbers hit valid fields. */
static void fill_request(const struct request_kind *kind, bool with_header)
{
    for (unsigned i = 0; i < BUFFER / 4; i++)
        in_buffer[i] = random_below(4) ? random_below(8) : random_below(UINT32_MAX);
    if (with_header) {
        in_buffer[0] = kind->in_size;
        in_buffer[1] = VPMU_IOCTL_VERSION;
    }
    if (kind->code == VPMU_IOCTL_PROGRAM)
        in_buffer[9] = 0; /* a period has 31 bits */
    if (kind->code == VPMU_IOCTL_VERIFY)
        in_buffer[3] %= 1000;
}

static ULONG some_size(ULONG right)
{
    switch (random_below(4)) {
    case 0:
        return random_below(BUFFER + 1);
    case 1:
        return right + random_below(3) - (right ? 1 : 0);
    default:
        return right;
    }
}

static ULONG some_code(ULONG right)
{
    switch (random_below(8)) {
    case 0:
        return right ^ 1u << random_below(32);
    case 1:
        return VPMU_CODE(random_below(64), random_below(4));
    default:
        return right;
    }
}

/* What waits for the status device is given up at once. */
static NTSTATUS ask(HANDLE vpmu, ULONG code, ULONG in_size, ULONG out_size, ULONG *returned)
{
    struct user_request *request =
        user_ioctl_begin(vpmu, code, in_buffer, in_size, out_buffer, out_size);

    user_ioctl_cancel(request);
    return user_ioctl_end(request, returned);
}

static unsigned one_random_request(HANDLE vpmu)
{
    const struct request_kind *kind = &kinds[random_below(ARRAY_SIZE(kinds))];
    ULONG returned, out_size = some_size(kind->out_size);
    NTSTATUS status;

    fill_request(kind, random_below(8) != 0);
    status = ask(vpmu, some_code(kind->code), some_size(kind->in_size), out_size, &returned);
    if (returned > out_size || (!NT_SUCCESS(status) && returned))
        violation("vpmu: %u bytes of answer, status %08x", returned, (ULONG)status);
    return NT_SUCCESS(status);
}

/* Each code with each length of input and of output around the right ones. */
static unsigned all_lengths(HANDLE vpmu)
{
    unsigned wrong = 0;

    for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
        for (ULONG size = 0; size < 64; size++) {
            ULONG returned;

            fill_request(&kinds[k], true);
            if (size != kinds[k].in_size)
                wrong += NT_SUCCESS(ask(vpmu, kinds[k].code, size, BUFFER, &returned));
            if (size < kinds[k].out_size)
                wrong += NT_SUCCESS(ask(vpmu, kinds[k].code, kinds[k].in_size, size, &returned));
        }
    }
    return wrong;
}

static void bad_pointers(HANDLE vpmu)
{
    void *const bad[] = {NULL, (void *)16, (void *)0xfffff80000000000ull, (void *)~0xfull};

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        vpmu_status_is(vpmu_request(vpmu, VPMU_IOCTL_EVENT, bad[i], 16, out_buffer, BUFFER),
                       STATUS_ACCESS_VIOLATION, "input from a bad pointer");
        vpmu_status_is(
            vpmu_request(vpmu, VPMU_IOCTL_INFO, NULL, 0, bad[i], sizeof(struct vpmu_info)),
            STATUS_ACCESS_VIOLATION, "output to a bad pointer");
    }
}

static void requests_program(void *argument)
{
    const unsigned count = (unsigned)boot_option_number("requests", 20000);
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;
    unsigned succeeded = 0;

    (void)argument;
    random_state = boot_option_number("seed", 20260101) | 1;
    note("seed=%lu requests=%u", random_state, count);
    check_equal(all_lengths(vpmu), 0, "vpmu: requests of a wrong length that succeeded");
    bad_pointers(vpmu);
    vpmu_acquire(vpmu, 0, 0, &grant);
    check_equal(all_lengths(vpmu), 0, "vpmu: the same by the owner");
    for (unsigned i = 0; i < count; i++) {
        succeeded += one_random_request(vpmu);
        if (i % 64 == 0)
            vpmu_acquire(vpmu, 0, 0, &grant);
    }
    check(succeeded > count / 50, "vpmu: %u random requests, %u succeeded", count, succeeded);
}

/* After all that, the counters are there and count. */
static void still_works(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant;

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all afterwards");
    check_equal(grant.granted, vpmu_all_counters(), "vpmu: granted counters afterwards");
    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_verify(vpmu, p, 0, &v), STATUS_SUCCESS, "verify afterwards");
        check_equal(v.not_backed, 0, "vpmu: processor %u: counters that are not backed", p);
    }
}

void vpmu_requests(void)
{
    struct driver *driver = scenario_load("vpmu.sys");
    PDEVICE_OBJECT device;

    if (!driver)
        return;
    device = status_bind(driver); /* where the machine has one */
    run_as_process(requests_program, NULL);
    check_equal(hal_leases(), 0, "vpmu: nothing is held after the death of the process");
    if (device)
        pnp_remove(device);
    run_as_process(still_works, NULL);
    driver_unload(driver);
}
