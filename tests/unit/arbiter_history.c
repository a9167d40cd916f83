/* SPDX-License-Identifier: BSD-3-Clause */
#include "arbiter_history.h"

#include "arbiter_naive.h"
#include "difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES 32
#define HOLDERS 5
#define NUMBERS 200 /* processor numbers up to three groups */

struct history {
    struct source *source;
    struct vpmu_arbiter *arbiter;
    struct naive naive;
    vpmu_lease handles[HANDLES]; /* the last ones that were given out, live or not */
    uint32_t handed_out;
    struct difference difference;
};

/* ---- Comparison ---- */

static bool same_holder(struct history *history, const struct vpmu_holder *got,
                        const struct vpmu_holder *wanted)
{
    SAME(got->id, wanted->id, "holder");
    if (strcmp(got->name, wanted->name) != 0)
        return differ(&history->difference, "holder's name is %s, not %s", got->name, wanted->name);
    return true;
}

static bool same_explanation(struct history *history, const struct vpmu_explanation *got,
                             const struct vpmu_explanation *wanted)
{
    SAME(got->status, wanted->status, "status");
    SAME(got->cause, wanted->cause, "cause");
    SAME(got->position, wanted->position, "position");
    SAME(got->type, wanted->type, "type");
    SAME(got->processor, wanted->processor, "processor");
    SAME(got->index, wanted->index, "index");
    SAME(got->lease, wanted->lease, "lease in the way");
    return same_holder(history, &got->holder, &wanted->holder);
}

static vpmu_lease handle_of(const struct naive_lease *lease)
{
    return lease ? lease->handle : VPMU_LEASE_NONE;
}

static bool same_processor(struct history *history, uint32_t p)
{
    const struct naive_processor *processor = &history->naive.processors[p];
    uint64_t capacity = 0, left = 0;

    for (uint32_t i = 0; i < NAIVE_INDICES; i++) {
        const struct naive_lease *owner = naive_owner(&history->naive, p, i);
        SAME(vpmu_arbiter_owner(history->arbiter, processor->number, i), handle_of(owner), "owner");
        if (processor->has[i])
            capacity |= UINT64_C(1) << i;
        if (processor->has[i] && !owner)
            left |= UINT64_C(1) << i;
    }
    SAME(vpmu_arbiter_capacity(history->arbiter, processor->number), capacity, "capacity");
    SAME(vpmu_arbiter_left(history->arbiter, processor->number), left, "what is left");
    return true;
}

static bool same_lease(struct history *history, const struct naive_lease *lease)
{
    struct vpmu_lease_info info;
    uint64_t masks[NUMBERS / 64 + 1] = {0};

    SAME(vpmu_arbiter_lease(history->arbiter, lease->handle, &info), VPMU_STATUS_SUCCESS, "info");
    SAME(info.lease, lease->handle, "info's lease");
    SAME(info.whole, lease->whole, "info's whole");
    SAME(info.all_processors, lease->everywhere, "info's all_processors");
    SAME(info.overflow_handler, lease->overflow_handler, "info's overflow handler");
    SAME(info.event_buffer.handler, lease->event_buffer.handler, "info's buffer handler");
    SAME(info.event_buffer.entry_size, lease->event_buffer.entry_size, "info's entry size");
    SAME(info.event_buffer.threshold, lease->event_buffer.threshold, "info's threshold");
    SAME(info.has_tag, lease->has_tag, "info's has_tag");
    SAME(info.tag, lease->tag, "info's tag");
    for (uint32_t p = 0; p < history->naive.processor_count; p++) {
        const struct naive_processor *processor = &history->naive.processors[p];
        if (!lease->on[p])
            continue;
        masks[processor->number / 64] |= UINT64_C(1) << processor->number % 64;
        for (uint32_t i = 0; i < NAIVE_INDICES; i++)
            SAME(processor->has[i] && info.resources >> i & 1, lease->owns[p][i],
                 "info's resource");
    }
    for (uint32_t g = 0; g < sizeof(masks) / sizeof(masks[0]); g++)
        SAME(vpmu_arbiter_lease_mask(history->arbiter, lease->handle, g), masks[g], "mask");
    return same_holder(history, &info.holder, &lease->holder);
}

/* Round the leases by age, of one holder (id) or of all. */
static bool same_round(struct history *history, const uint64_t *id)
{
    const struct naive_lease *wanted = NULL;
    vpmu_lease got = VPMU_LEASE_NONE;

    do {
        wanted = naive_after(&history->naive, id, wanted);
        got = id ? vpmu_arbiter_next_of(history->arbiter, *id, got)
                 : vpmu_arbiter_next(history->arbiter, got);
        SAME(got, handle_of(wanted), "next lease");
    } while (wanted);
    return true;
}

static bool same_set(struct history *history)
{
    struct vpmu_hardware_counter set[VPMU_PROFILING_MAX];
    const struct naive *naive = &history->naive;
    uint32_t maximum = pick(history->source, VPMU_PROFILING_MAX + 1), count = 77;
    vpmu_status status = vpmu_arbiter_query_profiling(history->arbiter, set, maximum, &count, NULL);

    if (naive->mode & VPMU_MODE_NO_PROFILING) {
        SAME(status, VPMU_STATUS_NOT_IMPLEMENTED, "status of query");
        SAME(count, naive->mode & VPMU_MODE_COUNT_ALWAYS ? 0 : 77, "count of query");
        return true;
    }
    SAME(count, naive->set_count, "count of query");
    SAME(status, maximum < count ? VPMU_STATUS_BUFFER_TOO_SMALL : VPMU_STATUS_SUCCESS,
         "status of query");
    for (uint32_t i = 0; status == VPMU_STATUS_SUCCESS && i < count; i++) {
        SAME(set[i].index, naive->set[i].index, "index of the set");
        SAME(set[i].type, 0, "type of the set");
        SAME(set[i].reserved, 0, "reserved of the set");
    }
    return true;
}

static bool same_state(struct history *history)
{
    const struct naive *naive = &history->naive;

    SAME(vpmu_arbiter_leases(history->arbiter), naive_leases(naive), "number of leases");
    SAME(vpmu_arbiter_holders(history->arbiter), naive_holders(naive), "number of holders");
    for (uint32_t p = 0; p < naive->processor_count; p++)
        if (!same_processor(history, p))
            return false;
    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle && !same_lease(history, &naive->leases[i]))
            return false;
    for (uint64_t id = 0; id < HOLDERS; id++)
        if (!same_round(history, &id))
            return false;
    return same_round(history, NULL) && same_set(history);
}

/* ---- The machine ---- */

static uint64_t some_counters(struct source *source)
{
    switch (pick(source, 8)) {
    case 0:
        return 0;
    case 1:
        return vpmu_counter_set(32, 16);
    case 2:
        return vpmu_counter_set(2, 0);
    case 3: /* a fixed counter missing in the middle, as version 5 allows */
        return vpmu_counter_set(4, 4) & ~(UINT64_C(1) << (VPMU_FIXED_COUNTER + 1));
    default:
        return vpmu_counter_set(4, 3);
    }
}

static struct vpmu_processor some_processor(struct source *source)
{
    return (struct vpmu_processor){
        .counters = some_counters(source),
        .version = seldom(source) ? 1 : 4,
        .event_buffer = !seldom(source),
        .online = true,
    };
}

/* Up to NAIVE_PROCESSORS online ones, alike or (seldom) not, close together or over three groups.
 */
static uint32_t some_machine(struct source *source, struct vpmu_processor processors[NUMBERS])
{
    uint32_t online = 1 + pick(source, NAIVE_PROCESSORS), number = 0;
    struct vpmu_processor processor = some_processor(source);
    bool spread = pick(source, 4) == 0, alike = pick(source, 4) != 0;

    for (uint32_t i = 0; i < online; i++) {
        if (spread)
            number += pick(source, 24);
        processors[number++] = alike ? processor : some_processor(source);
    }
    return number;
}

static uint32_t some_mode(struct source *source)
{
    uint32_t mode = pick(source, 2) ? VPMU_MODE_OBSERVED : VPMU_MODE_DOCUMENTED;

    if (pick(source, 4) == 0)
        mode = byte(source) & VPMU_MODE_OBSERVED;
    if (seldom(source))
        mode |= VPMU_MODE_BEFORE_1903;
    if (seldom(source))
        mode |= VPMU_MODE_NO_PROFILING;
    if (seldom(source))
        mode |= VPMU_MODE_STRICT;
    return mode;
}

static bool start(struct history *history)
{
    struct source *source = history->source;
    struct vpmu_processor processors[NUMBERS] = {{0}};
    struct vpmu_arbiter_config config = {
        .processors = processors,
        .processor_count = some_machine(source, processors),
        .leases = 1 + pick(source, NAIVE_LEASES),
        .holders = pick(source, HOLDERS + 1),
        .spans = pick(source, 4) ? 2 * NAIVE_LEASES : pick(source, 8),
        .mode = some_mode(source),
    };
    size_t size = vpmu_arbiter_size(&config);
    void *memory = malloc(size);

    if (memory)
        memset(memory, 0xA5, size); /* the arbiter must not count on zeroes */
    history->arbiter = vpmu_arbiter_init(memory, size, &config);
    naive_init(&history->naive, &config);
    if (!history->arbiter)
        free(memory);
    return history->arbiter || differ(&history->difference, "no arbiter");
}

/* ---- Operations ---- */

static struct vpmu_holder some_holder(struct source *source)
{
    struct vpmu_holder holder = {.id = pick(source, HOLDERS)};

    memset(holder.name, 'a' + (int)pick(source, 3), sizeof(holder.name)); /* and no NUL */
    return holder;
}

static uint32_t some_index(struct source *source)
{
    uint8_t value = byte(source);

    if (value < 160)
        return value % 4;
    return value < 224 ? VPMU_FIXED_COUNTER + value % 3 : value - 170u;
}

static struct vpmu_resource some_resource(struct source *source)
{
    struct vpmu_resource resource = {.flags = seldom(source)};
    uint32_t kind = pick(source, 16);

    switch (kind) {
    case 0:
        resource.type = VPMU_RESOURCE_EVENT_BUFFER;
        resource.u.event_buffer = (struct vpmu_event_buffer){
            .handler = !seldom(source),
            .entry_size = byte(source),
            .threshold = !seldom(source),
        };
        break;
    case 1:
    case 2:
        resource.type = VPMU_RESOURCE_OVERFLOW;
        resource.u.overflow_handler = seldom(source) ? 0 : 1 + byte(source);
        break;
    case 3:
        resource.type = VPMU_RESOURCE_TAG;
        resource.u.tag = byte(source);
        break;
    case 4:
        resource.type = seldom(source) ? byte(source) : VPMU_RESOURCE_SINGLE;
        break;
    case 5:
    case 6:
        resource.type = VPMU_RESOURCE_RANGE;
        resource.u.range.begin = some_index(source);
        resource.u.range.end =
            seldom(source) ? some_index(source) : resource.u.range.begin + pick(source, 3);
        break;
    default:
        resource.u.counter = some_index(source);
    }
    return resource;
}

static struct vpmu_affinity some_affinity(struct history *history)
{
    struct source *source = history->source;
    const struct naive *naive = &history->naive;
    uint32_t number = naive->processors[pick(source, naive->processor_count)].number;
    struct vpmu_affinity affinity = {.group = (uint16_t)(number / 64)};

    for (uint32_t p = 0; p < naive->processor_count; p++) /* of its group, each or it alone */
        if (naive->processors[p].number == number ||
            (naive->processors[p].number / 64 == affinity.group && pick(source, 2)))
            affinity.mask |= UINT64_C(1) << naive->processors[p].number % 64;
    if (seldom(source))
        affinity.mask ^= UINT64_C(1) << byte(source) % 64;
    if (seldom(source))
        affinity.group = byte(source) % 4;
    if (seldom(source))
        affinity.reserved[byte(source) % 3] = 1;
    return affinity;
}

static void remember(struct history *history, vpmu_lease lease)
{
    history->handles[history->handed_out++ % HANDLES] = lease;
}

static bool allocate(struct history *history)
{
    struct source *source = history->source;
    struct vpmu_affinity affinity[3];
    struct vpmu_resource resources[4];
    struct vpmu_request request = {0};
    struct vpmu_holder holder = some_holder(source);
    struct vpmu_explanation got, wanted;
    vpmu_lease lease = 77;

    if (pick(source, 8) != 0) {
        request.resources = resources;
        request.resource_count = seldom(source) ? 0 : 1 + pick(source, 3);
    }
    if (pick(source, 4) != 0) {
        request.affinity = affinity;
        request.affinity_count = seldom(source) ? 0 : 1 + (pick(source, 4) == 0);
    }
    for (uint32_t i = 0; i < request.affinity_count; i++)
        affinity[i] = some_affinity(history);
    for (uint32_t i = 0; i < request.resource_count; i++)
        resources[i] = some_resource(source);
    if (seldom(source))
        request.affinity = NULL; /* the count stays */

    vpmu_arbiter_allocate(history->arbiter, &holder, &request, &lease, &got);
    struct naive_lease *place = naive_allocate(&history->naive, &holder, &request, &wanted);
    if (!same_explanation(history, &got, &wanted))
        return false;
    if (!place) {
        bool ones = request.resources && history->naive.mode & VPMU_MODE_HANDLE_ONES;
        SAME(lease, ones ? VPMU_LEASE_ONES : VPMU_LEASE_NONE, "handle of a refusal");
        return true;
    }
    for (uint32_t i = 0; i < HANDLES; i++)
        if (history->handles[i] == lease)
            return differ(&history->difference, "handle 0x%llx came twice",
                          (unsigned long long)lease);
    place->handle = lease;
    remember(history, lease);
    return true;
}

/* A handle that was given out, live or stale, or a forged one. */
static vpmu_lease some_handle(struct history *history)
{
    struct source *source = history->source;
    vpmu_lease handle = history->handles[pick(source, HANDLES)];

    if (!seldom(source))
        return handle;
    const vpmu_lease forged[] = {
        VPMU_LEASE_NONE,
        VPMU_LEASE_ONES,
        byte(source),
        handle + 1,
        handle + (UINT64_C(1) << 32),
        handle - (UINT64_C(1) << 32),
    };
    return forged[pick(source, sizeof(forged) / sizeof(forged[0]))];
}

static bool release(struct history *history)
{
    struct vpmu_explanation got, wanted;
    vpmu_lease handle = some_handle(history);

    vpmu_arbiter_free(history->arbiter, handle, &got);
    naive_free(&history->naive, handle, &wanted);
    return same_explanation(history, &got, &wanted);
}

static bool release_holder(struct history *history)
{
    uint64_t id = pick(history->source, HOLDERS);

    SAME(vpmu_arbiter_free_holder(history->arbiter, id), naive_free_holder(&history->naive, id),
         "leases freed");
    return true;
}

static struct vpmu_hardware_counter some_counter(struct source *source)
{
    uint8_t value = byte(source);
    struct vpmu_hardware_counter counter = {
        .type = seldom(source),
        .reserved = seldom(source),
        .index = value < 160 ? value % 4 : VPMU_RDPMC_FIXED | value % 3,
    };

    if (seldom(source))
        counter.index ^= UINT64_C(1) << byte(source) % 64;
    return counter;
}

static bool set(struct history *history)
{
    struct vpmu_hardware_counter counters[VPMU_PROFILING_MAX + 1];
    struct vpmu_holder holder = some_holder(history->source);
    struct vpmu_explanation got, wanted;
    uint32_t count = pick(history->source, 4);

    if (seldom(history->source))
        count = pick(history->source, VPMU_PROFILING_MAX + 2);
    for (uint32_t i = 0; i < count; i++)
        counters[i] = some_counter(history->source);
    vpmu_arbiter_set_profiling(history->arbiter, &holder, counters, count, &got);
    naive_set(&history->naive, &holder, counters, count, &wanted);
    return same_explanation(history, &got, &wanted);
}

static bool thread(struct history *history)
{
    struct naive *naive = &history->naive;
    bool on = pick(history->source, 2);

    vpmu_arbiter_thread_profiling(history->arbiter, on);
    if (on)
        naive->threads++;
    else if (naive->threads)
        naive->threads--;
    return true;
}

/* Every delivery must be of the owner of all its bits, and no owner's bit may be left. */
static bool overflow(struct history *history)
{
    const struct naive *naive = &history->naive;
    uint32_t p = pick(history->source, naive->processor_count);
    uint64_t bits = 0, seen = 0, left;
    struct vpmu_delivery delivery;

    for (int i = 0; i < 4; i++)
        bits |= UINT64_C(1) << some_index(history->source) % 64;
    if (pick(history->source, 2))
        bits |= UINT64_C(1) << VPMU_EVENT_BUFFER;
    left = bits;
    while (vpmu_arbiter_overflow(history->arbiter, naive->processors[p].number, &left, &delivery)) {
        const struct naive_lease *lease = naive_find(naive, delivery.lease);

        if (!lease || !delivery.bits || delivery.bits & (seen | ~bits))
            return differ(&history->difference, "delivery of 0x%llx",
                          (unsigned long long)delivery.bits);
        seen |= delivery.bits;
        SAME(left, bits & ~seen, "what is left to deliver");
        SAME(delivery.event_buffer, delivery.bits >> VPMU_EVENT_BUFFER & 1, "event buffer");
        SAME(delivery.handler,
             delivery.event_buffer ? lease->event_buffer.handler : lease->overflow_handler,
             "handler");
        if (delivery.event_buffer)
            SAME(delivery.bits, UINT64_C(1) << VPMU_EVENT_BUFFER, "bits of the event buffer");
        for (uint32_t i = 0; i < NAIVE_INDICES; i++)
            if (bits >> i & 1 && (i == VPMU_EVENT_BUFFER) == delivery.event_buffer)
                SAME(delivery.bits >> i & 1, naive_owner(naive, p, i) == lease, "delivered bit");
    }
    for (uint32_t i = 0; i < NAIVE_INDICES; i++)
        SAME(seen >> i & 1, (bits >> i & 1) && naive_owner(naive, p, i), "bit of an owner");
    return true;
}

static bool operate(struct history *history)
{
    uint32_t kind = pick(history->source, 32);

    if (kind < 15)
        return allocate(history);
    if (kind < 24)
        return release(history);
    if (kind < 26)
        return overflow(history);
    if (kind < 29)
        return set(history);
    if (kind < 30)
        return thread(history);
    if (kind < 31)
        return release_holder(history);
    return same_state(history);
}

static bool finish(struct history *history)
{
    if (!same_state(history))
        return false;
    for (uint64_t id = 0; id < HOLDERS; id++)
        SAME(vpmu_arbiter_free_holder(history->arbiter, id), naive_free_holder(&history->naive, id),
             "leases freed at the end");
    SAME(vpmu_arbiter_leases(history->arbiter), 0, "leases at the end");
    SAME(vpmu_arbiter_holders(history->arbiter), 0, "holders at the end");
    for (uint32_t p = 0; p < history->naive.processor_count; p++) {
        uint32_t number = history->naive.processors[p].number;
        SAME(vpmu_arbiter_left(history->arbiter, number),
             vpmu_arbiter_capacity(history->arbiter, number), "what is left at the end");
    }
    return true;
}

bool history_run(struct source *source, uint32_t operations, char *difference, size_t size)
{
    struct history history = {.source = source, .difference = {.text = difference, .size = size}};
    bool same = start(&history);

    if (!same)
        return false;
    while (same && history.difference.operation < operations && !ended(source)) {
        same = operate(&history);
        history.difference.operation++;
    }
    same = same && finish(&history);
    free(history.arbiter);
    return same;
}
