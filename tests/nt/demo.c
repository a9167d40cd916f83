/* SPDX-License-Identifier: BSD-3-Clause */
/* What vpmu.sys was granted and what it proved: a line for each check, for tests/demo/nt.py. */
#include "check.h"
#include "io.h"
#include "libc.h"
#include "scenarios.h"
#include "vpmu_user.h"

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [VPMU_COUNTER_ABSENT] = "absent",     [VPMU_COUNTER_GRANTED] = "granted",
        [VPMU_COUNTER_BACKED] = "backed",     [VPMU_COUNTER_STARVED] = "starved",
        [VPMU_COUNTER_FILTERED] = "filtered", [VPMU_COUNTER_UNSUPPORTED] = "unsupported",
        [VPMU_COUNTER_REVOKED] = "revoked",
    };

    _Static_assert(ARRAY_SIZE(names) == VPMU_COUNTER_STATES, "a name per state");
    return state < VPMU_COUNTER_STATES ? names[state] : "?";
}

static void event_name(HANDLE vpmu, uint32_t event, char name[32])
{
    struct vpmu_event_request in = {HEADER(vpmu_event_request), event, 0};
    struct vpmu_event out;

    if (NT_SUCCESS(vpmu_request(vpmu, VPMU_IOCTL_EVENT, &in, sizeof(in), &out, sizeof(out))))
        memcpy(name, out.name, 32);
    else
        snprintf(name, 32, "?");
}

/* The answer of HalAllocateHardwareCounters for this counter alone, or for all of them. */
static NTSTATUS allocate_status(const struct vpmu_grant *grant, uint32_t counter)
{
    return grant->probed >> counter & 1 ? grant->probe_status[counter] : grant->allocate_status;
}

/* The answer of KeSetHardwareCounterConfiguration for this counter alone; no counters: empty it. */
static NTSTATUS configure_status(HANDLE vpmu, uint64_t counters)
{
    struct vpmu_profile_request in = {HEADER(vpmu_profile_request), counters, 0, 0};
    struct vpmu_profile out;

    return vpmu_request(vpmu, VPMU_IOCTL_PROFILE, &in, sizeof(in), &out, sizeof(out));
}

static void print_check(HANDLE vpmu, unsigned processor, const struct vpmu_check *c,
                        NTSTATUS allocated)
{
    NTSTATUS configured = configure_status(vpmu, 1ull << c->counter);
    char event[32];

    event_name(vpmu, c->event, event);
    note("DEMO processor=%u counter=%u allocate=%08x configure=%08x event=%s exact=%u "
         "expected=%lu counted=%lu state=%s",
         processor, c->counter, (ULONG)allocated, (ULONG)configured, event,
         c->flags & VPMU_CHECK_EXACT, c->expected, c->counted, state_name(c->state));
}

static void demo_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant = {0};

    (void)argument;
    vpmu_status_is(vpmu_acquire(vpmu, 0, 0, &grant), STATUS_SUCCESS, "acquire all");
    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_verify(vpmu, p, 0, &v), STATUS_SUCCESS, "verify");
        for (unsigned i = 0; i < v.count; i++)
            print_check(vpmu, p, &v.checks[i], allocate_status(&grant, v.checks[i].counter));
    }
    vpmu_status_is(configure_status(vpmu, 0), STATUS_SUCCESS, "empty the configuration");
}

void vpmu_demo(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    run_as_process(demo_program, NULL);
    driver_unload(driver);
}
