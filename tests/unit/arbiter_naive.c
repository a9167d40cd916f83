/* SPDX-License-Identifier: BSD-3-Clause */
#include "arbiter_naive.h"

#include <string.h>

static void answer(struct vpmu_explanation *why, vpmu_status status, enum vpmu_cause cause)
{
    why->status = status;
    why->cause = cause;
}

static struct vpmu_explanation no_answer(void)
{
    struct vpmu_explanation why;

    memset(&why, 0, sizeof(why));
    why.position = why.type = why.processor = why.index = VPMU_NOT_SET;
    return why;
}

void naive_init(struct naive *naive, const struct vpmu_arbiter_config *config)
{
    memset(naive, 0, sizeof(*naive));
    naive->mode = config->mode;
    naive->groups = (config->processor_count + 63) / 64;
    naive->lease_limit = config->leases;
    naive->holder_limit = config->holders ? config->holders : config->leases + 1;
    naive->span_limit = config->spans ? config->spans : config->leases;
    for (uint32_t p = 0; p < config->processor_count; p++) {
        const struct vpmu_processor *given = &config->processors[p];
        if (!given->online)
            continue;
        struct naive_processor *processor = &naive->processors[naive->processor_count++];
        processor->number = p;
        processor->version = given->version;
        for (uint32_t i = 0; i < 48; i++)
            processor->has[i] = given->counters >> i & 1;
        processor->has[VPMU_EVENT_BUFFER] = given->event_buffer;
    }
}

/* ---- Looking around ---- */

const struct naive_lease *naive_find(const struct naive *naive, vpmu_lease handle)
{
    for (int i = 0; handle && i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle == handle)
            return &naive->leases[i];
    return NULL;
}

const struct naive_lease *naive_after(const struct naive *naive, const uint64_t *id,
                                      const struct naive_lease *lease)
{
    const struct naive_lease *found = NULL;

    for (int i = 0; i < NAIVE_LEASES; i++) {
        const struct naive_lease *other = &naive->leases[i];
        if (!other->handle || (id && other->holder.id != *id))
            continue;
        if ((!lease || other->age > lease->age) && (!found || other->age < found->age))
            found = other;
    }
    return found;
}

static const struct naive_lease *whole_lease(const struct naive *naive)
{
    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle && naive->leases[i].whole)
            return &naive->leases[i];
    return NULL;
}

const struct naive_lease *naive_owner(const struct naive *naive, uint32_t processor, uint32_t index)
{
    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle && naive->leases[i].owns[processor][index])
            return &naive->leases[i];
    return NULL;
}

uint32_t naive_leases(const struct naive *naive)
{
    uint32_t count = 0;

    for (int i = 0; i < NAIVE_LEASES; i++)
        count += naive->leases[i].handle != 0;
    return count;
}

static uint32_t spans_used(const struct naive *naive)
{
    uint32_t count = 0;

    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle)
            count += naive->leases[i].spans;
    return count;
}

/* What is known of a holder, NULL if it has nothing. */
static const struct vpmu_holder *known_holder(const struct naive *naive, uint64_t id)
{
    const struct naive_lease *lease = naive_after(naive, &id, NULL);

    if (lease)
        return &lease->holder;
    return naive->set_count && naive->set_holder.id == id ? &naive->set_holder : NULL;
}

uint32_t naive_holders(const struct naive *naive)
{
    uint32_t count = 0;

    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle &&
            naive_after(naive, &naive->leases[i].holder.id, NULL) == &naive->leases[i])
            count++;
    if (naive->set_count && !naive_after(naive, &naive->set_holder.id, NULL))
        count++;
    return count;
}

static struct vpmu_holder named(const struct naive *naive, const struct vpmu_holder *holder)
{
    const struct vpmu_holder *known = known_holder(naive, holder->id);
    struct vpmu_holder copy = known ? *known : *holder;

    copy.name[VPMU_HOLDER_NAME - 1] = '\0';
    return copy;
}

/* ---- Allocate ---- */

static bool is_online(const struct naive *naive, uint32_t number)
{
    for (uint32_t p = 0; p < naive->processor_count; p++)
        if (naive->processors[p].number == number)
            return true;
    return false;
}

static bool bad_affinity(const struct naive *naive, const struct vpmu_request *request,
                         struct vpmu_explanation *why)
{
    if ((request->affinity != NULL) != (request->affinity_count != 0)) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_AFFINITY_COUNT);
        return true;
    }
    for (uint32_t i = 0; i < request->affinity_count; i++) {
        const struct vpmu_affinity *entry = &request->affinity[i];
        enum vpmu_cause cause = VPMU_CAUSE_NONE;
        bool repeated = false;

        for (uint32_t j = 0; j < i; j++)
            repeated |= request->affinity[j].group == entry->group;
        if (entry->reserved[0] || entry->reserved[1] || entry->reserved[2])
            cause = VPMU_CAUSE_RESERVED;
        else if (entry->group >= naive->groups)
            cause = VPMU_CAUSE_NO_SUCH_GROUP;
        else if (repeated)
            cause = VPMU_CAUSE_REPEATED_GROUP;
        else if (entry->mask == 0)
            cause = VPMU_CAUSE_EMPTY_MASK;
        else
            for (uint32_t n = 0; n < 64 && !cause; n++)
                if (entry->mask >> n & 1 && !is_online(naive, entry->group * 64u + n)) {
                    cause = VPMU_CAUSE_NO_SUCH_PROCESSOR;
                    why->processor = entry->group * 64u + n;
                }
        if (cause) {
            why->position = i;
            answer(why, VPMU_STATUS_INVALID_PARAMETER, cause);
            return true;
        }
    }
    return false;
}

static bool bad_counters(uint32_t begin, uint32_t end, bool *wanted, struct vpmu_explanation *why)
{
    if (begin > 63 || end > 63) {
        why->index = begin > 63 ? begin : end;
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_BAD_INDEX);
        return true;
    }
    if (end < begin) {
        why->index = begin;
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_BAD_RANGE);
        return true;
    }
    for (uint32_t i = begin; i <= end; i++) {
        if (i >= 48) {
            why->index = i;
            answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_NO_SUCH_COUNTER);
            return true;
        }
        wanted[i] = true;
    }
    return false;
}

static bool bad_handler(bool again, uint64_t handler, struct vpmu_explanation *why)
{
    if (again)
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_REPEATED_RESOURCE);
    else if (!handler)
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_NO_HANDLER);
    return again || !handler;
}

static bool bad_resource(const struct vpmu_resource *resource, struct naive_lease *lease,
                         bool *wanted, struct vpmu_explanation *why)
{
    if (resource->type > 5) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_UNKNOWN_TYPE);
        return true;
    }
    if (resource->flags) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_RESERVED);
        return true;
    }
    switch (resource->type) {
    case VPMU_RESOURCE_SINGLE:
        return bad_counters(resource->u.counter, resource->u.counter, wanted, why);
    case VPMU_RESOURCE_RANGE:
        return bad_counters(resource->u.range.begin, resource->u.range.end, wanted, why);
    case VPMU_RESOURCE_EXTENDED:
        answer(why, VPMU_STATUS_NOT_SUPPORTED, VPMU_CAUSE_UNSUPPORTED);
        return true;
    case VPMU_RESOURCE_OVERFLOW:
        if (bad_handler(lease->overflow_handler, resource->u.overflow_handler, why))
            return true;
        lease->overflow_handler = resource->u.overflow_handler;
        return false;
    case VPMU_RESOURCE_EVENT_BUFFER:
        if (bad_handler(wanted[VPMU_EVENT_BUFFER], resource->u.event_buffer.handler, why))
            return true;
        if (resource->u.event_buffer.threshold == 0) {
            answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_ZERO_THRESHOLD);
            return true;
        }
        lease->event_buffer = resource->u.event_buffer;
        wanted[VPMU_EVENT_BUFFER] = true;
        return false;
    default:
        if (lease->has_tag)
            answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_REPEATED_RESOURCE);
        else
            lease->tag = resource->u.tag;
        bool again = lease->has_tag;
        lease->has_tag = true;
        return again;
    }
}

static bool bad_list(const struct vpmu_request *request, struct naive_lease *lease, bool *wanted,
                     struct vpmu_explanation *why)
{
    if ((request->resources != NULL) != (request->resource_count != 0)) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_EMPTY_LIST);
        return true;
    }
    for (uint32_t i = 0; i < request->resource_count; i++)
        if (bad_resource(&request->resources[i], lease, wanted, why)) {
            why->position = i;
            why->type = request->resources[i].type;
            return true;
        }
    return false;
}

static bool lacks(const struct naive_processor *processor, const struct naive_lease *lease,
                  const bool *wanted, struct vpmu_explanation *why)
{
    for (uint32_t i = 0; i < 48; i++)
        if (wanted[i] && !processor->has[i]) {
            why->index = i;
            answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_NO_SUCH_COUNTER);
            return true;
        }
    if (wanted[VPMU_EVENT_BUFFER] && !processor->has[VPMU_EVENT_BUFFER]) {
        why->type = VPMU_RESOURCE_EVENT_BUFFER;
        answer(why, VPMU_STATUS_NOT_SUPPORTED, VPMU_CAUSE_UNSUPPORTED);
        return true;
    }
    if (lease->overflow_handler && processor->version < 2) {
        why->type = VPMU_RESOURCE_OVERFLOW;
        answer(why, VPMU_STATUS_NOT_SUPPORTED, VPMU_CAUSE_UNSUPPORTED);
        return true;
    }
    return false;
}

static bool has_a_counter(const struct naive_processor *processor)
{
    for (uint32_t i = 0; i < 48; i++)
        if (processor->has[i])
            return true;
    return false;
}

/* The places in naive->processors in the order in which the request names them; how many. */
static uint32_t named_processors(const struct naive *naive, const struct vpmu_request *request,
                                 uint32_t places[NAIVE_PROCESSORS])
{
    uint32_t count = 0;

    for (uint32_t p = 0; !request->affinity && p < naive->processor_count; p++)
        places[count++] = p;
    for (uint32_t i = 0; i < request->affinity_count; i++)
        for (uint32_t p = 0; p < naive->processor_count; p++)
            if (naive->processors[p].number / 64 == request->affinity[i].group &&
                request->affinity[i].mask >> (naive->processors[p].number % 64) & 1)
                places[count++] = p;
    return count;
}

static void held_by(const struct naive *naive, const struct naive_lease *lease,
                    enum vpmu_cause cause, bool part, struct vpmu_explanation *why)
{
    vpmu_status status = VPMU_STATUS_INSUFFICIENT_RESOURCES;

    if (naive->mode & VPMU_MODE_DEVICE_BUSY && lease->holder.id == VPMU_HOLDER_KERNEL)
        status = VPMU_STATUS_DEVICE_BUSY;
    if (naive->mode & VPMU_MODE_UNSUCCESSFUL && lease->whole && part)
        status = VPMU_STATUS_UNSUCCESSFUL;
    why->lease = lease->handle;
    why->holder = lease->holder;
    answer(why, status, cause);
}

static void no_room(const struct naive *naive, struct vpmu_explanation *why)
{
    answer(why,
           naive->mode & VPMU_MODE_NO_MEMORY ? VPMU_STATUS_NO_MEMORY
                                             : VPMU_STATUS_INSUFFICIENT_RESOURCES,
           VPMU_CAUSE_NO_ROOM);
}

struct naive_lease *naive_allocate(struct naive *naive, const struct vpmu_holder *holder,
                                   const struct vpmu_request *request, struct vpmu_explanation *why)
{
    struct naive_lease new = {.age = ++naive->age, .spans = request->affinity_count};
    bool wanted[NAIVE_INDICES] = {false};
    uint32_t places[NAIVE_PROCESSORS], count;
    const struct naive_lease *other;
    uint32_t bare = VPMU_NOT_SET;

    *why = no_answer();
    if (naive->mode & VPMU_MODE_BEFORE_1903 && (request->affinity || request->affinity_count ||
                                                request->resources || request->resource_count)) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_BEFORE_1903);
        return NULL;
    }
    if (bad_affinity(naive, request, why) || bad_list(request, &new, wanted, why))
        return NULL;

    new.everywhere = request->affinity == NULL;
    new.whole = request->affinity == NULL && request->resources == NULL;
    count = named_processors(naive, request, places);
    for (uint32_t i = 0; i < count; i++) {
        why->processor = naive->processors[places[i]].number;
        if (lacks(&naive->processors[places[i]], &new, wanted, why))
            return NULL;
        if (!request->resources && !has_a_counter(&naive->processors[places[i]]) &&
            bare == VPMU_NOT_SET)
            bare = why->processor;
    }
    why->processor = VPMU_NOT_SET;
    if (naive->mode & VPMU_MODE_STRICT && bare != VPMU_NOT_SET) {
        why->processor = bare;
        answer(why, VPMU_STATUS_NOT_SUPPORTED, VPMU_CAUSE_NOTHING_BEHIND);
        return NULL;
    }

    if ((other = whole_lease(naive))) {
        held_by(naive, other, VPMU_CAUSE_WHOLE_HELD, !new.whole, why);
        return NULL;
    }
    if (new.whole && (other = naive_after(naive, NULL, NULL))) {
        held_by(naive, other, VPMU_CAUSE_PARTS_HELD, false, why);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = places[i];
        new.on[p] = true;
        for (uint32_t r = 0; r < NAIVE_INDICES; r++) {
            bool wants = wanted[r];
            if (!request->resources)
                wants = naive->processors[p].has[r] && (new.whole || r != VPMU_EVENT_BUFFER);
            if (!wants)
                continue;
            new.owns[p][r] = true;
            if ((other = naive_owner(naive, p, r))) {
                why->processor = naive->processors[p].number;
                why->index = r;
                held_by(naive, other, VPMU_CAUSE_HELD, true, why);
                return NULL;
            }
        }
    }

    if (naive_leases(naive) >= naive->lease_limit ||
        spans_used(naive) + request->affinity_count > naive->span_limit ||
        (!known_holder(naive, holder->id) && naive_holders(naive) >= naive->holder_limit)) {
        no_room(naive, why);
        return NULL;
    }
    if (bare != VPMU_NOT_SET) {
        why->processor = bare;
        answer(why, VPMU_STATUS_SUCCESS, VPMU_CAUSE_NOTHING_BEHIND);
    }
    new.holder = named(naive, holder);
    for (int i = 0; i < NAIVE_LEASES; i++)
        if (!naive->leases[i].handle) {
            naive->leases[i] = new;
            return &naive->leases[i];
        }
    return NULL;
}

/* ---- Free ---- */

void naive_free(struct naive *naive, vpmu_lease handle, struct vpmu_explanation *why)
{
    const struct naive_lease *lease = naive_find(naive, handle);

    *why = no_answer();
    if (!lease) {
        why->lease = handle;
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_BAD_HANDLE);
        return;
    }
    naive->leases[lease - naive->leases].handle = 0;
}

uint32_t naive_free_holder(struct naive *naive, uint64_t id)
{
    uint32_t freed = 0;

    for (int i = 0; i < NAIVE_LEASES; i++)
        if (naive->leases[i].handle && naive->leases[i].holder.id == id) {
            naive->leases[i].handle = 0;
            freed++;
        }
    if (naive->set_count && naive->set_holder.id == id)
        naive->set_count = 0;
    return freed;
}

/* ---- Profiling ---- */

/* The resource that a selector reads, or VPMU_NOT_SET. */
static uint32_t selected(uint64_t selector)
{
    if (selector < 32)
        return (uint32_t)selector;
    if (selector >= 0x40000000 && selector < 0x40000010)
        return 32 + (uint32_t)(selector - 0x40000000);
    return VPMU_NOT_SET;
}

static uint64_t index_of(const struct naive *naive, const struct vpmu_hardware_counter *counter)
{
    return naive->mode & VPMU_MODE_SET_LOOSE ? counter->index & 0xFFFFFFFF : counter->index;
}

static bool bad_counter(const struct naive *naive, const struct vpmu_hardware_counter *counter,
                        struct vpmu_explanation *why)
{
    enum vpmu_cause cause = VPMU_CAUSE_NONE;
    uint32_t resource = selected(index_of(naive, counter));

    if (!(naive->mode & VPMU_MODE_SET_LOOSE) && counter->type)
        cause = VPMU_CAUSE_COUNTER_TYPE;
    else if (!(naive->mode & VPMU_MODE_SET_LOOSE) && counter->reserved)
        cause = VPMU_CAUSE_RESERVED;
    else if (resource == VPMU_NOT_SET)
        cause = VPMU_CAUSE_NO_SUCH_COUNTER;
    else
        for (uint32_t p = 0; p < naive->processor_count && !cause; p++)
            if (!naive->processors[p].has[resource]) {
                why->processor = naive->processors[p].number;
                why->index = resource;
                cause = VPMU_CAUSE_NO_SUCH_COUNTER;
            }
    if (cause)
        answer(why, VPMU_STATUS_INVALID_PARAMETER, cause);
    return cause;
}

static bool contains(const struct naive *naive, const struct vpmu_hardware_counter *counters,
                     uint32_t count, uint32_t resource)
{
    for (uint32_t i = 0; i < count; i++)
        if (selected(index_of(naive, &counters[i])) == resource)
            return true;
    return false;
}

static bool used(const struct naive *naive, const struct vpmu_holder *holder,
                 const struct vpmu_hardware_counter *counters, uint32_t count,
                 struct vpmu_explanation *why)
{
    const struct naive_lease *other = whole_lease(naive);

    for (uint32_t r = 0; r < 48 && naive->threads; r++)
        if (contains(naive, naive->set, naive->set_count, r) &&
            contains(naive, counters, count, r)) {
            why->index = r;
            why->holder = naive->set_holder;
            answer(why, VPMU_STATUS_WMI_ALREADY_ENABLED, VPMU_CAUSE_SET_USED);
            return true;
        }
    if (other && other->holder.id != holder->id) {
        why->lease = other->handle;
        why->holder = other->holder;
        answer(why, VPMU_STATUS_WMI_ALREADY_ENABLED, VPMU_CAUSE_WHOLE_HELD);
        return true;
    }
    for (uint32_t p = 0; p < naive->processor_count; p++)
        for (uint32_t r = 0; r < 48; r++) {
            if (!contains(naive, counters, count, r))
                continue;
            other = naive_owner(naive, p, r);
            if (!other || other->holder.id == holder->id)
                continue;
            why->processor = naive->processors[p].number;
            why->index = r;
            why->lease = other->handle;
            why->holder = other->holder;
            answer(why, VPMU_STATUS_WMI_ALREADY_ENABLED, VPMU_CAUSE_HELD);
            return true;
        }
    return false;
}

void naive_set(struct naive *naive, const struct vpmu_holder *holder,
               const struct vpmu_hardware_counter *counters, uint32_t count,
               struct vpmu_explanation *why)
{
    *why = no_answer();
    if (naive->mode & VPMU_MODE_NO_PROFILING) {
        answer(why, VPMU_STATUS_NOT_IMPLEMENTED, VPMU_CAUSE_NOT_IMPLEMENTED);
        return;
    }
    if (count == 0) {
        naive->set_count = 0;
        return;
    }
    if (count > 16) {
        answer(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_TOO_MANY_COUNTERS);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if (bad_counter(naive, &counters[i], why)) {
            why->position = i;
            return;
        }
    if (naive->mode & VPMU_MODE_SET_ONCE) {
        if (naive->set_count) {
            why->holder = naive->set_holder;
            answer(why, VPMU_STATUS_WMI_ALREADY_ENABLED, VPMU_CAUSE_SET_STANDS);
            return;
        }
    } else if (used(naive, holder, counters, count, why)) {
        return;
    }
    if (!known_holder(naive, holder->id) && naive_holders(naive) >= naive->holder_limit) {
        no_room(naive, why);
        return;
    }
    naive->set_holder = named(naive, holder);
    naive->set_count = count;
    for (uint32_t i = 0; i < count; i++)
        naive->set[i] = (struct vpmu_hardware_counter){.index = index_of(naive, &counters[i])};
}
