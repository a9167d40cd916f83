/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vpmu.sys as a source. Freestanding: the NT test guest runs it too.
 *
 * A reading's state is that of the counter, as VERIFY has found it, and VERIFY tries two events.
 * The event that is programmed may be another one, and denied. So a GP counter's 0 is no proof: it
 * is GRANTED until it has counted something.
 *
 * Where the VM has a status device, the host's word comes before that of VERIFY: the host sees the
 * event, and what happens later. It looks now and then only, so that GRANTED of its may mean that
 * it has not seen the counter run yet, and what it says of another event is old.
 */

#include "device.h"
#include "internal.h"

enum { VERIFY_ITERATIONS = 10000 };

static struct source_driver *driver_of(struct source *source)
{
    return (struct source_driver *)source; /* its first member */
}

static uint32_t proved_state(const struct vpmu_value *value)
{
    bool fixed = value->counter >= VPMU_FIRST_FIXED;

    if (value->state == VPMU_COUNTER_BACKED && !fixed && !value->value && !value->overflows)
        return VPMU_COUNTER_GRANTED;
    return value->state;
}

static struct source_record record_of(const struct vpmu_value *value)
{
    return (struct source_record){
        .counter = value->counter,
        .event = value->event,
        .state = proved_state(value),
        .config = value->config,
        .value = value->value,
        .enabled_ns = SOURCE_NOT_KNOWN,
        .backed_ns = SOURCE_NOT_KNOWN,
    };
}

/* May the host's word be about what the counter counts now? Of a fixed counter it always is. */
static bool same_event(const struct source_record *record, const struct vpmu_state *state)
{
    return record->counter >= VPMU_FIRST_FIXED ||
           (uint16_t)record->config == (uint16_t)state->selector;
}

static void hear_host(struct source_record *record, const struct vpmu_state *state)
{
    if (state->state != VPMU_COUNTER_GRANTED && same_event(record, state))
        record->state = state->state;
    record->enabled_ns = state->enabled_ns;
    record->backed_ns = state->backed_ns;
}

/* Without the device, or with a driver that does not know the request, nothing is heard. */
static void hear_states(const struct source_device *device, struct source_processor *out)
{
    struct vpmu_states states;

    if (device_states(device, out->processor, &states) || !(states.flags & VPMU_STATES_DEVICE))
        return;
    for (uint32_t i = 0; i < out->count; i++) {
        for (uint32_t j = 0; j < states.count && j < VPMU_MAX_STATES; j++) {
            if (states.states[j].counter == out->records[i].counter)
                hear_host(&out->records[i], &states.states[j]);
        }
    }
}

static int read_processor(struct source *source, uint32_t processor, struct source_processor *out)
{
    struct vpmu_reading reading;
    uint32_t status = device_read(&driver_of(source)->device, processor, &reading);

    if (status == (uint32_t)SOURCE_NT_INVALID_DEVICE_STATE)
        return 0; /* nobody holds any counter */
    if (status)
        return source_fail(source, "cannot read the counters of a processor", status);
    if (reading.count > VPMU_MAX_COUNTERS)
        return source_fail(source, "the driver answers with too many counters", 0);
    for (uint32_t i = 0; i < reading.count; i++)
        out->records[i] = record_of(&reading.values[i]);
    out->count = reading.count;
    hear_states(&driver_of(source)->device, out);
    return 0;
}

static int tally_processors(struct source *source, struct source_facts *facts)
{
    struct source_tally tally = {0};

    for (uint32_t i = 0; i < facts->processors; i++) {
        struct source_processor processor = {.processor = i};
        if (read_processor(source, i, &processor) < 0)
            return -1;
        source_tally(&tally, &processor);
    }
    source_tally_end(&tally, facts);
    return 0;
}

static void hear_facts(const struct source_device *device, struct source_facts *facts)
{
    struct vpmu_host host;

    if (device_host(device, &host) || !(host.flags & VPMU_HOST_DEVICE))
        return;
    facts->granted = host.granted_gp + source_members(host.granted_fixed);
    facts->revocations = host.revocations;
    facts->host = host.source;
    facts->event_class = host.event_class;
}

static int look(struct source *source, struct source_facts *facts)
{
    struct vpmu_info info;
    uint32_t status = device_info(&driver_of(source)->device, &info);

    if (status)
        return source_fail(source, "cannot ask the driver", status);
    if (info.header.version != VPMU_IOCTL_VERSION)
        return source_fail(source, "cannot ask the driver", (uint32_t)SOURCE_NT_REVISION_MISMATCH);
    *facts = source_no_facts();
    facts->processors = info.processors;
    facts->shape = (uint64_t)info.gp_counters + info.fixed_counters;
    facts->gp_width = info.gp_width;
    facts->fixed_width = info.fixed_width;
    hear_facts(&driver_of(source)->device, facts);
    return info.held ? tally_processors(source, facts) : 0;
}

/* Which counters may still be programmed. */
struct places {
    uint64_t free;
    uint64_t backed; /* of all held: those that count on every processor */
};

static uint64_t lowest(uint64_t set)
{
    return set & -set;
}

/* The event's own fixed counter, or a GP counter; one that counts before one that does not. */
static uint64_t place_of(const struct places *places, const struct vpmu_event *event)
{
    uint64_t gp = places->free & ((1ull << VPMU_FIRST_FIXED) - 1);
    uint64_t fixed = event->fixed < 64 ? places->free & 1ull << event->fixed : 0;
    const uint64_t choices[] = {fixed & places->backed, gp & places->backed, fixed, gp};

    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        if (choices[i])
            return lowest(choices[i]);
    }
    return 0;
}

static int place(struct source *source, struct places *places, uint32_t event, uint32_t flags,
                 uint64_t *started)
{
    const struct source_device *device = &driver_of(source)->device;
    struct vpmu_event row;
    uint32_t status = device_event(device, event, &row);
    uint64_t bit;

    if (status)
        return source_fail(source, "cannot ask the driver for an event", status);
    bit = row.available || row.fixed != VPMU_NONE ? place_of(places, &row) : 0;
    if (!bit)
        return 0;
    status = device_program(device, (uint32_t)__builtin_ctzll(bit), event, flags);
    if (status == (uint32_t)SOURCE_NT_NOT_SUPPORTED)
        return 0;
    if (status)
        return source_fail(source, "cannot program a counter", status);
    places->free &= ~bit;
    *started |= bit;
    return 1;
}

static int verify_all(struct source *source, uint64_t *backed)
{
    const struct source_device *device = &driver_of(source)->device;
    struct vpmu_verification verification;
    struct vpmu_info info;
    uint32_t status = device_info(device, &info);

    for (uint32_t i = 0; !status && i < info.processors; i++) {
        status = device_verify(device, i, VERIFY_ITERATIONS, 0, &verification);
        *backed &= ~verification.not_backed;
    }
    return status ? source_fail(source, "cannot verify the counters", status) : 0;
}

static int place_all(struct source *source, struct places *places, uint32_t events, uint32_t flags,
                     uint32_t *placed)
{
    uint64_t started = 0;
    uint32_t status;

    for (uint32_t left = events; left; left &= left - 1) {
        uint32_t event = (uint32_t)__builtin_ctz(left);
        int done = place(source, places, event, flags, &started);
        if (done < 0)
            return -1;
        *placed |= (uint32_t)done << event;
    }
    if (!started)
        return source_fail(source, "no counter can count any of these events", 0);
    status = device_start(&driver_of(source)->device, started);
    return status ? source_fail(source, "cannot start the counters", status) : 0;
}

static int take(struct source *source, uint32_t events, uint32_t flags, uint32_t *placed)
{
    struct source_driver *driver = driver_of(source);
    struct vpmu_grant grant;
    struct places places;
    uint32_t status = device_acquire(&driver->device, 0, &grant);

    if (status == (uint32_t)SOURCE_NT_DEVICE_BUSY)
        return 1;
    if (status)
        return source_fail(source, "cannot take the counters", status);
    driver->owner = true;
    places = (struct places){grant.granted, grant.granted};
    if (verify_all(source, &places.backed) == 0 &&
        place_all(source, &places, events & SOURCE_ALL_EVENTS, flags, placed) == 0)
        return 0;
    device_release(&driver->device);
    driver->owner = false;
    *placed = 0;
    return -1;
}

static void close_driver(struct source *source)
{
    struct source_driver *driver = driver_of(source);

    if (driver->owner)
        device_release(&driver->device);
    driver->owner = false;
    if (driver->device.close)
        driver->device.close(driver->device.context);
    if (driver->release)
        driver->release(driver);
}

static const struct source_ops ops = {
    .name = "driver",
    .look = look,
    .read = read_processor,
    .take = take,
    .close = close_driver,
};

struct source *source_driver_init(struct source_driver *driver, struct source_device device)
{
    *driver = (struct source_driver){.source = {.ops = &ops}, .device = device};
    return &driver->source;
}
