/* SPDX-License-Identifier: BSD-3-Clause */
/* A table for people: what vpmu.sys was granted, and what it proved. */
#include "check.h"
#include "io.h"
#include "libc.h"
#include "scenarios.h"
#include "vpmu_user.h"

/* ---- Demonstration: a table for people ---- */

static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [VPMU_COUNTER_ABSENT] = "ABSENT",     [VPMU_COUNTER_GRANTED] = "granted",
        [VPMU_COUNTER_BACKED] = "backed",     [VPMU_COUNTER_STARVED] = "STARVED",
        [VPMU_COUNTER_FILTERED] = "FILTERED", [VPMU_COUNTER_UNSUPPORTED] = "UNSUPPORTED",
        [VPMU_COUNTER_REVOKED] = "REVOKED",
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

static void print_check(HANDLE vpmu, unsigned processor, const struct vpmu_check *c,
                        NTSTATUS allocated)
{
    char counter[16], event[32];

    snprintf(counter, sizeof(counter), "%s %u", c->counter < VPMU_FIRST_FIXED ? "GP" : "fixed",
             c->counter % VPMU_FIRST_FIXED);
    event_name(vpmu, c->event, event);
    note("TABLE | %9u | %-7s | %-11s%08x | %-12s | %s %7lu | %8lu | %s", processor, counter,
         NT_SUCCESS(allocated) ? "success" : "refused", (ULONG)allocated, event,
         c->flags & VPMU_CHECK_EXACT ? "        " : "at least", c->expected, c->counted,
         state_name(c->state));
}

static unsigned count_of(uint64_t set)
{
    unsigned count = 0;

    for (; set; set &= set - 1)
        count++;
    return count;
}

static void demo_program(void *argument)
{
    static struct vpmu_verification v;
    HANDLE vpmu = vpmu_open();
    struct vpmu_grant grant = {0};
    NTSTATUS status;

    (void)argument;
    status = vpmu_acquire(vpmu, 0, 0, &grant);
    note("TABLE vpmu.sys asks for all counters: HalAllocateHardwareCounters answers %08x (%s)",
         (ULONG)grant.allocate_status, NT_SUCCESS(grant.allocate_status) ? "success" : "refused");
    vpmu_status_is(status, STATUS_SUCCESS, "acquire all");
    note("TABLE | processor | counter | HalAllocate...      | event        | expected         |  "
         "counted | verdict");
    for (unsigned p = 0; p < processor_total(); p++) {
        vpmu_status_is(vpmu_verify(vpmu, p, 0, &v), STATUS_SUCCESS, "verify");
        for (unsigned i = 0; i < v.count; i++)
            print_check(vpmu, p, &v.checks[i], allocate_status(&grant, v.checks[i].counter));
    }
    if (v.not_backed)
        note("TABLE vpmu.sys: the grant is worth nothing: %u of %u counters are not backed",
             count_of(v.not_backed), count_of(grant.granted));
    else
        note("TABLE vpmu.sys: all %u counters are backed", count_of(grant.granted));
}

void vpmu_demo(void)
{
    struct driver *driver = scenario_load("vpmu.sys");

    if (!driver)
        return;
    run_as_process(demo_program, NULL);
    driver_unload(driver);
}
