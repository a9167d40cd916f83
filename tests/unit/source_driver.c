/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmu.sys as a source: the driver itself over a fake machine. */

#include <criterion/criterion.h>
#include <string.h>

#include "driver_fake.h"
#include "guest-drivers/source/device.h"

static const char me, other;
static struct source_driver driver_source;
static struct source_processor processor;
static struct source_facts facts;

/* What a status device says; without the flag the driver answers. */
static struct vpmu_host host;
static struct vpmu_states states;

static uint32_t request(void *context, uint32_t code, const void *in, uint32_t in_size, void *out,
                        uint32_t out_size)
{
    uint32_t written;

    if (code == VPMU_IOCTL_HOST && host.flags)
        memcpy(out, &host, sizeof(host));
    else if (code == VPMU_IOCTL_STATES && states.flags)
        memcpy(out, &states, sizeof(states));
    else
        return (uint32_t)fake_request(context, code, in, in_size, out, out_size, &written);
    return 0;
}

static struct source *open_as(const char *client, struct source_driver *storage)
{
    return source_driver_init(storage, (struct source_device){
                                           .request = request,
                                           .context = (void *)(uintptr_t)client,
                                       });
}

#define EVENT(name) (1u << VPMU_EVENT_##name)
#define BOTH (VPMU_COUNT_USER | VPMU_COUNT_KERNEL)

static const struct source_record *read_event(struct source *source, uint32_t at, uint32_t event)
{
    cr_assert_eq(source_read(source, at, &processor), 0);
    return source_find(&processor, event);
}

Test(source_driver, looks_without_taking)
{
    struct source *source = open_as(&me, &driver_source);

    fake_intel(2, 4, 3);
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.processors, FAKE_PROCESSORS);
    cr_assert_eq(facts.shape, 7);
    cr_assert_eq(facts.gp_width, 48);
    cr_assert_eq(facts.granted, SOURCE_NOT_KNOWN, "the status device alone knows");
    cr_assert_eq(facts.host, SOURCE_NOT_KNOWN);
    cr_assert_eq(facts.starved, SOURCE_NOT_KNOWN, "nobody has verified");
    cr_assert_eq(source_read(source, 0, &processor), 0);
    cr_assert_eq(processor.count, 0);
    cr_assert_eq(fake_live(), 0);
    source_close(source);
}

Test(source_driver, takes_verifies_and_counts)
{
    struct source *source = open_as(&me, &driver_source);
    const uint32_t events = EVENT(INSTRUCTIONS) | EVENT(CYCLES) | EVENT(BRANCHES);
    const struct source_record *record;
    uint32_t placed;

    fake_intel(2, 4, 3);
    cr_assert_eq(source_take(source, events, BOTH, &placed), 0);
    cr_assert_eq(placed, events);
    fake_count(2, 1234);
    record = read_event(source, 2, VPMU_EVENT_BRANCHES);
    cr_assert_eq(record->value, 1234);
    cr_assert(source_has_value(record));
    cr_assert_lt(record->counter, VPMU_FIRST_FIXED);
    record = read_event(source, 2, VPMU_EVENT_INSTRUCTIONS);
    cr_assert_eq(record->value, 1234);
    cr_assert_eq(record->counter, VPMU_FIRST_FIXED, "its own fixed counter");
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.starved, 0);
    source_close(source);
    cr_assert_eq(fake_live(), 0);
    cr_assert(fake_is_quiet());
}

Test(source_driver, a_zero_that_nobody_proved_is_no_value)
{
    struct source *source = open_as(&me, &driver_source);
    const struct source_record *record;
    uint32_t placed;

    fake_intel(2, 4, 3);
    cr_assert_eq(source_take(source, EVENT(LLC_MISSES) | EVENT(CYCLES), BOTH, &placed), 0);
    record = read_event(source, 0, VPMU_EVENT_LLC_MISSES);
    cr_assert_eq(record->value, 0);
    cr_assert_eq(record->state, VPMU_COUNTER_GRANTED);
    cr_assert_not(source_has_value(record));
    fake_count(0, 1);
    cr_assert(source_has_value(read_event(source, 0, VPMU_EVENT_LLC_MISSES)));
    source_close(source);
}

Test(source_driver, a_starved_counter_is_avoided_or_told)
{
    struct source *source = open_as(&me, &driver_source);
    const struct source_record *record;
    uint32_t placed;

    fake_intel(2, 2, 3);
    fake.starved = 1; /* GP counter 0 */
    cr_assert_eq(source_take(source, EVENT(BRANCHES) | EVENT(BRANCH_MISSES), BOTH, &placed), 0);
    fake_count(1, 10);
    record = read_event(source, 1, VPMU_EVENT_BRANCHES);
    cr_assert_eq(record->counter, 1, "the one that counts");
    cr_assert(source_has_value(record));
    record = source_find(&processor, VPMU_EVENT_BRANCH_MISSES);
    cr_assert_eq(record->state, VPMU_COUNTER_STARVED);
    cr_assert_not(source_has_value(record));
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.starved, 1);
    source_close(source);
}

Test(source_driver, events_without_a_counter_are_not_placed)
{
    struct source *source = open_as(&me, &driver_source);
    uint32_t placed;

    fake_intel(2, 1, 0);
    fake.unavailable = 1u << 3; /* llc-references */
    cr_assert_eq(source_take(source, SOURCE_ALL_EVENTS, BOTH, &placed), 0);
    cr_assert_eq(placed, EVENT(CYCLES), "one counter, the first event");
    source_close(source);
}

Test(source_driver, where_another_owns_it_only_looks)
{
    static struct source_driver second;
    struct source *owner = open_as(&me, &driver_source), *looker = open_as(&other, &second);
    uint32_t placed;

    fake_intel(2, 4, 3);
    cr_assert_eq(source_take(owner, EVENT(INSTRUCTIONS), BOTH, &placed), 0);
    fake_count(0, 50);
    cr_assert_eq(source_take(looker, EVENT(CYCLES), BOTH, &placed), 1);
    cr_assert_eq(placed, 0);
    cr_assert_eq(read_event(looker, 0, VPMU_EVENT_INSTRUCTIONS)->value, 50);
    source_close(looker);
    cr_assert_eq(read_event(owner, 0, VPMU_EVENT_INSTRUCTIONS)->value, 50, "not restarted");
    source_close(owner);
}

Test(source_driver, a_refusal_has_its_status_in_words)
{
    struct source *source = open_as(&me, &driver_source);
    char text[200];
    uint32_t placed;

    fake_intel(2, 4, 3);
    fake.taken = UINT64_MAX;
    cr_assert_eq(source_take(source, EVENT(INSTRUCTIONS), BOTH, &placed), -1);
    cr_assert_str_eq(source_error_text(&source->error, text, sizeof(text)),
                     "cannot take the counters: somebody else holds the counters (0xC000009A)");
    fake.taken = 0;
    fake_intel(0, 0, 0);
    cr_assert_eq(source_take(source, EVENT(INSTRUCTIONS), BOTH, &placed), -1);
    cr_assert_eq(source_read(source, FAKE_PROCESSORS, &processor), 0, "nothing is held");
    source_close(source);
    cr_assert_eq(fake_live(), 0);
}

/* ---- With a status device ---- */

static const struct {
    uint32_t counter, state;
    uint64_t selector;
    uint32_t want; /* of counter 0, which counts branches and has counted 5 of them */
} words[] = {
    {0, VPMU_COUNTER_STARVED, 0x4300c4, VPMU_COUNTER_STARVED},
    {0, VPMU_COUNTER_FILTERED, 0x4300c4, VPMU_COUNTER_FILTERED},
    {0, VPMU_COUNTER_REVOKED, 0x4300c4, VPMU_COUNTER_REVOKED},
    {0, VPMU_COUNTER_GRANTED, 0x4300c4, VPMU_COUNTER_BACKED}, /* it has not looked since */
    {0, VPMU_COUNTER_STARVED, 0x4300c5, VPMU_COUNTER_BACKED}, /* of another event */
    {1, VPMU_COUNTER_STARVED, 0x4300c4, VPMU_COUNTER_BACKED}, /* of another counter */
};

Test(source_driver, the_host_comes_before_verify)
{
    struct source *source = open_as(&me, &driver_source);
    const struct source_record *record;
    uint32_t placed;

    fake_intel(2, 4, 3);
    cr_assert_eq(source_take(source, EVENT(BRANCHES), BOTH, &placed), 0);
    fake_count(0, 5);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        states = (struct vpmu_states){.flags = VPMU_STATES_DEVICE, .count = 1};
        states.states[0] = (struct vpmu_state){.counter = words[i].counter,
                                               .state = words[i].state,
                                               .selector = words[i].selector,
                                               .enabled_ns = 100,
                                               .backed_ns = 30};
        record = read_event(source, 0, VPMU_EVENT_BRANCHES);
        cr_assert_eq(record->state, words[i].want, "row %zu: %u", i, record->state);
        cr_assert_eq(source_backed_per_mille(record), words[i].counter ? SOURCE_NOT_KNOWN : 300);
    }
    source_close(source);
}

Test(source_driver, the_host_proves_a_zero)
{
    struct source *source = open_as(&me, &driver_source);
    const struct source_record *record;
    uint32_t placed;

    fake_intel(2, 4, 3);
    states = (struct vpmu_states){.flags = VPMU_STATES_DEVICE, .count = 1};
    states.states[0] = (struct vpmu_state){.state = VPMU_COUNTER_BACKED, .selector = 0x43412e};
    cr_assert_eq(source_take(source, EVENT(LLC_MISSES), BOTH, &placed), 0);
    record = read_event(source, 0, VPMU_EVENT_LLC_MISSES);
    cr_assert_eq(record->value, 0);
    cr_assert(source_has_value(record), "a 0 that is one");
    source_close(source);
}

Test(source_driver, facts_of_the_host)
{
    struct source *source = open_as(&me, &driver_source);

    fake_intel(2, 4, 3);
    host = (struct vpmu_host){.flags = VPMU_HOST_DEVICE,
                              .granted_gp = 3,
                              .granted_fixed = 5,
                              .revocations = 2,
                              .source = 2,
                              .event_class = VPMU_EVENTS_STANDARD};
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.granted, 5);
    cr_assert_eq(facts.revocations, 2);
    cr_assert_str_eq(source_host_name(facts.host), "kvm");
    cr_assert_str_eq(source_class_name(facts.event_class), "standard");
    source_close(source);
}
