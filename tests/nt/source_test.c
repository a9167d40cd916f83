/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a value from a counter to who shows it: vpmu.sys, its requests, and the reader of
 * guest-drivers/source that the programs have, here over this kernel's user_ioctl.
 */
#include "check.h"
#include "hal.h"
#include "io.h"
#include "libc.h"
#include "pnp.h"
#include "processor.h"
#include "scenarios.h"
#include "source/device.h"
#include "thread.h"
#include "user_work.h"
#include "vpmu/status.h"
#include "vpmu_user.h"

#define ROUNDS 5000u

static uint32_t request(void *context, uint32_t code, const void *in, uint32_t in_size, void *out,
                        uint32_t out_size)
{
    return (uint32_t)vpmu_request(context, code, in, in_size, out, out_size);
}

static void close_handle(void *context)
{
    vpmu_status_is(user_close(context), STATUS_SUCCESS, "close");
}

static struct source *open_source(struct source_driver *storage)
{
    return source_driver_init(storage, (struct source_device){
                                           .request = request,
                                           .close = close_handle,
                                           .context = vpmu_open(),
                                       });
}

static struct source_processor processor;

/* The event on a processor; a record without an event where there is none. */
static struct source_record read_event(struct source *source, uint32_t at, uint32_t event)
{
    const struct source_record *record = NULL;

    check_equal((unsigned)source_read(source, at, &processor), 0, "source: read processor %u", at);
    record = source_find(&processor, event);
    return record ? *record : (struct source_record){.event = VPMU_NONE};
}

#define EVENT(name) (1u << VPMU_EVENT_##name)

static const struct {
    uint32_t event;
    uint64_t count; /* of user_work */
} known[] = {
    {VPMU_EVENT_INSTRUCTIONS, USER_INSTRUCTIONS(ROUNDS)},
    {VPMU_EVENT_CYCLES, USER_INSTRUCTIONS(ROUNDS)}, /* one for each instruction here */
    {VPMU_EVENT_BRANCHES, USER_BRANCHES(ROUNDS)},
};
#define KNOWN (EVENT(INSTRUCTIONS) | EVENT(CYCLES) | EVENT(BRANCHES))

/* What has been done on one processor shows there, exactly, and on no other. */
static void check_differences(struct source *source, unsigned worked, const uint64_t (*before)[3])
{
    for (unsigned p = 0; p < processor_total(); p++) {
        for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
            struct source_record record = read_event(source, p, known[i].event);
            check_equal(record.value - before[p][i], p == worked ? known[i].count : 0,
                        "source: processor %u, event %u: what processor %u has done", p,
                        known[i].event, worked);
            if (record.value)
                check_equal(record.state, VPMU_COUNTER_BACKED, "source: processor %u, event %u", p,
                            known[i].event);
        }
    }
}

static void work_on(struct source *source, unsigned worked)
{
    static uint64_t before[8][3];

    for (unsigned p = 0; p < processor_total(); p++)
        for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
            before[p][i] = read_event(source, p, known[i].event).value;
    thread_set_affinity(1ull << worked);
    thread_run_user(user_work, ROUNDS);
    thread_set_affinity(processor_mask());
    check_differences(source, worked, before);
}

/* Nobody has proved that a general-purpose counter counts its event until it has counted one. */
static void check_unproved(struct source *source)
{
    struct source_record record = read_event(source, 0, VPMU_EVENT_BRANCHES);

    check_equal(record.value, 0, "source: branches before any work");
    check_equal(record.state, VPMU_COUNTER_GRANTED, "source: their state");
    check_equal(source_has_value(&record), 0, "source: they have no value");
    if (hal_pmu.fixed) {
        record = read_event(source, 0, VPMU_EVENT_INSTRUCTIONS);
        check_equal(record.counter, VPMU_FIRST_FIXED, "source: instructions have a fixed counter");
        check_equal(source_has_value(&record), 1, "source: which was verified with its event");
    }
}

static void check_facts(struct source *source)
{
    struct source_facts facts;

    check_equal((unsigned)source_look(source, &facts), 0, "source: look");
    check_equal(facts.processors, processor_total(), "source: processors");
    check_equal(facts.shape, hal_pmu.gp + hal_pmu.fixed, "source: counters that CPUID lists");
    check_equal(facts.gp_width, hal_pmu.gp_width, "source: width");
    check_equal(facts.starved, 0, "source: starved counters");
    check_equal(facts.filtered, 0, "source: filtered counters");
}

static void check_looker(const struct source_record *owned)
{
    static struct source_driver storage;
    struct source *looker = open_source(&storage);
    struct source_record record;
    uint32_t placed;

    check_equal((unsigned)source_take(looker, KNOWN, VPMU_COUNT_USER, &placed), 1,
                "source: another owns the counters");
    record = read_event(looker, 0, VPMU_EVENT_INSTRUCTIONS);
    check_equal(record.value, owned->value, "source: the other client reads the owner's value");
    check_equal(record.state, owned->state, "source: and its state");
    check_equal(record.config, owned->config, "source: and its event select");
    source_close(looker);
}

static void source_program(void *argument)
{
    static struct source_driver storage;
    struct source *source = open_source(&storage);
    struct source_record record;
    uint32_t placed;

    (void)argument;
    check_equal((unsigned)source_read(source, 0, &processor), 0, "source: read, nobody counts");
    check_equal(processor.count, 0, "source: no records");
    check_equal((unsigned)source_take(source, KNOWN, VPMU_COUNT_USER, &placed), 0, "source: take");
    check_equal(placed, KNOWN, "source: each event has a counter");
    check_equal(hal_leases(), 1, "source: one allocation holds them");
    check_unproved(source);
    for (unsigned p = 0; p < processor_total(); p++)
        work_on(source, p);
    check_facts(source);
    record = read_event(source, 0, VPMU_EVENT_INSTRUCTIONS);
    check_looker(&record);
    check_equal(read_event(source, 0, VPMU_EVENT_INSTRUCTIONS).value, record.value,
                "source: looking has restarted nothing");
    source_close(source);
    check_equal(hal_leases(), 0, "source: all is given back");
}

void vpmu_source(void)
{
    if (!scenario_load("vpmu.sys"))
        return;
    run_as_process(source_program, NULL);
}

/* ---- With a status device ---- */

/* The device looks now and then. Work goes on until it has seen the counters run. */
static bool host_has_looked(struct source *source)
{
    uint64_t deadline = patience_end();

    while (time_now() < deadline) {
        const struct source_record *record;
        if (source_read(source, 0, &processor) < 0)
            return false;
        record = source_find(&processor, VPMU_EVENT_INSTRUCTIONS);
        if (record && record->enabled_ns != SOURCE_NOT_KNOWN && record->enabled_ns)
            return true;
        thread_run_user(user_work, ROUNDS);
    }
    return false;
}

static void check_host_facts(struct source *source)
{
    struct source_facts facts;

    check_equal((unsigned)source_look(source, &facts), 0, "source: look");
    check_equal(facts.granted, hal_pmu.gp + hal_pmu.fixed, "source: granted counters");
    check_equal(facts.host, VPMU_SOURCE_TCG, "source: what counts");
    check_equal(facts.revocations, 0, "source: revocations");
    check_equal(facts.event_class != SOURCE_NOT_KNOWN, 1, "source: the class is known");
}

static void source_device_program(void *argument)
{
    static struct source_driver storage;
    struct source *source = open_source(&storage);
    struct source_record record;
    uint32_t placed;

    (void)argument;
    check_host_facts(source);
    thread_set_affinity(1);
    check_equal((unsigned)source_take(source, KNOWN, VPMU_COUNT_USER, &placed), 0, "source: take");
    check_equal(host_has_looked(source), 1, "source: the host tells for how long it counts");
    for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
        record = read_event(source, 0, known[i].event);
        check_equal(record.state, VPMU_COUNTER_BACKED, "source: event %u: the host's word",
                    known[i].event);
        check_equal(source_backed_per_mille(&record), 1000, "source: event %u: always backed",
                    known[i].event);
        check_equal(record.value % known[i].count, 0, "source: event %u: whole pieces of work",
                    known[i].event);
    }
    source_close(source);
}

void vpmu_source_device(void)
{
    struct driver *driver = scenario_load("vpmu.sys");
    PDEVICE_OBJECT physical = pnp_find(VPMU_STATUS_PCI_VENDOR, VPMU_STATUS_PCI_DEVICE);

    check_equal(physical != NULL, 1, "source: the machine has a status device");
    if (!driver || !physical)
        return;
    vpmu_status_is(pnp_add(driver, physical), STATUS_SUCCESS, "AddDevice");
    vpmu_status_is(pnp_start(physical), STATUS_SUCCESS, "IRP_MN_START_DEVICE");
    run_as_process(source_device_program, NULL);
    pnp_remove(physical);
}

/* ---- Without a PMU ---- */

static void source_off_program(void *argument)
{
    static struct source_driver storage;
    struct source *source = open_source(&storage);
    struct source_facts facts;
    uint32_t placed;

    (void)argument;
    check_equal((unsigned)source_look(source, &facts), 0, "source: look");
    check_equal(facts.shape, 0, "source: CPUID lists no counter");
    check_equal(source_take(source, KNOWN, VPMU_COUNT_USER, &placed) != 0, 1,
                "source: there is nothing to take");
    check_equal(source->error.what != NULL, 1, "source: and it says why");
    check_equal(placed, 0, "source: no event has a counter");
    check_equal(hal_leases(), 0, "source: nothing is held");
    source_close(source);
}

void vpmu_source_off(void)
{
    if (!scenario_load("vpmu.sys"))
        return;
    run_as_process(source_off_program, NULL);
}
