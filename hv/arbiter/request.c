/* SPDX-License-Identifier: BSD-3-Clause */
/* Is a request well-formed, and do its processors have what it asks for? Changes no holding. */
#include "arbiter_internal.h"

static vpmu_status invalid(struct vpmu_explanation *why, enum vpmu_cause cause)
{
    return arb_explain(why, VPMU_STATUS_INVALID_PARAMETER, cause);
}

static vpmu_status unsupported(struct vpmu_explanation *why, enum vpmu_resource_type type)
{
    why->type = type;
    return arb_explain(why, VPMU_STATUS_NOT_SUPPORTED, VPMU_CAUSE_UNSUPPORTED);
}

/* ---- The affinity ---- */

static vpmu_status judge_entry(struct vpmu_arbiter *arbiter, const struct vpmu_affinity *entry,
                               struct vpmu_explanation *why)
{
    if (entry->reserved[0] | entry->reserved[1] | entry->reserved[2])
        return invalid(why, VPMU_CAUSE_RESERVED);
    if (entry->group >= arbiter->group_count)
        return invalid(why, VPMU_CAUSE_NO_SUCH_GROUP);

    struct group *group = &arbiter->groups[entry->group];
    if (group->stamp == arbiter->stamp)
        return invalid(why, VPMU_CAUSE_REPEATED_GROUP);
    group->stamp = arbiter->stamp;
    if (!entry->mask)
        return invalid(why, VPMU_CAUSE_EMPTY_MASK);
    if (entry->mask & ~group->online) {
        why->processor = entry->group * GROUP_SIZE + lowest(entry->mask & ~group->online);
        return invalid(why, VPMU_CAUSE_NO_SUCH_PROCESSOR);
    }
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status judge_affinity(struct vpmu_arbiter *arbiter, const struct vpmu_request *request,
                                  struct vpmu_explanation *why)
{
    if (!request->affinity != !request->affinity_count)
        return invalid(why, VPMU_CAUSE_AFFINITY_COUNT);

    arbiter->stamp++;
    for (uint32_t i = 0; i < request->affinity_count; i++) {
        why->position = i;
        vpmu_status status = judge_entry(arbiter, &request->affinity[i], why);
        if (status != VPMU_STATUS_SUCCESS)
            return status;
    }
    why->position = VPMU_NOT_SET;
    return VPMU_STATUS_SUCCESS;
}

/* ---- The list: a reader for each type of resource ---- */

typedef vpmu_status reader(const struct vpmu_resource *resource, struct demand *demand,
                           struct vpmu_explanation *why);

static vpmu_status add_range(uint32_t begin, uint32_t end, struct demand *demand,
                             struct vpmu_explanation *why)
{
    uint32_t above = begin > VPMU_INDEX_MAX ? begin : end;

    if (above > VPMU_INDEX_MAX) {
        why->index = above;
        return invalid(why, VPMU_CAUSE_BAD_INDEX);
    }
    if (end < begin) {
        why->index = begin;
        return invalid(why, VPMU_CAUSE_BAD_RANGE);
    }
    uint64_t range = (~UINT64_C(0) >> (VPMU_INDEX_MAX - (end - begin))) << begin;
    if (range & ~VPMU_COUNTERS) {
        why->index = lowest(range & ~VPMU_COUNTERS);
        return invalid(why, VPMU_CAUSE_NO_SUCH_COUNTER);
    }
    demand->resources |= range;
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status read_single(const struct vpmu_resource *resource, struct demand *demand,
                               struct vpmu_explanation *why)
{
    return add_range(resource->u.counter, resource->u.counter, demand, why);
}

static vpmu_status read_range(const struct vpmu_resource *resource, struct demand *demand,
                              struct vpmu_explanation *why)
{
    return add_range(resource->u.range.begin, resource->u.range.end, demand, why);
}

static vpmu_status read_extended(const struct vpmu_resource *resource, struct demand *demand,
                                 struct vpmu_explanation *why)
{
    (void)resource;
    (void)demand;
    return unsupported(why, VPMU_RESOURCE_EXTENDED);
}

static vpmu_status read_overflow(const struct vpmu_resource *resource, struct demand *demand,
                                 struct vpmu_explanation *why)
{
    if (demand->overflow_handler)
        return invalid(why, VPMU_CAUSE_REPEATED_RESOURCE);
    if (!resource->u.overflow_handler)
        return invalid(why, VPMU_CAUSE_NO_HANDLER);
    demand->overflow_handler = resource->u.overflow_handler;
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status read_event_buffer(const struct vpmu_resource *resource, struct demand *demand,
                                     struct vpmu_explanation *why)
{
    if (demand->event_buffer.handler)
        return invalid(why, VPMU_CAUSE_REPEATED_RESOURCE);
    if (!resource->u.event_buffer.handler)
        return invalid(why, VPMU_CAUSE_NO_HANDLER);
    if (!resource->u.event_buffer.threshold)
        return invalid(why, VPMU_CAUSE_ZERO_THRESHOLD);
    demand->event_buffer = resource->u.event_buffer;
    demand->resources |= BIT(VPMU_EVENT_BUFFER);
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status read_tag(const struct vpmu_resource *resource, struct demand *demand,
                            struct vpmu_explanation *why)
{
    if (demand->has_tag)
        return invalid(why, VPMU_CAUSE_REPEATED_RESOURCE);
    demand->has_tag = true;
    demand->tag = resource->u.tag;
    return VPMU_STATUS_SUCCESS;
}

static reader *const readers[] = {
    [VPMU_RESOURCE_SINGLE] = read_single,
    [VPMU_RESOURCE_RANGE] = read_range,
    [VPMU_RESOURCE_EXTENDED] = read_extended,
    [VPMU_RESOURCE_OVERFLOW] = read_overflow,
    [VPMU_RESOURCE_EVENT_BUFFER] = read_event_buffer,
    [VPMU_RESOURCE_TAG] = read_tag,
};
_Static_assert(sizeof(readers) / sizeof(readers[0]) == VPMU_RESOURCE_TYPES, "a reader per type");

static vpmu_status judge_resource(const struct vpmu_resource *resource, struct demand *demand,
                                  struct vpmu_explanation *why)
{
    why->type = resource->type;
    if (resource->type >= VPMU_RESOURCE_TYPES)
        return invalid(why, VPMU_CAUSE_UNKNOWN_TYPE);
    if (resource->flags)
        return invalid(why, VPMU_CAUSE_RESERVED);
    return readers[resource->type](resource, demand, why);
}

static vpmu_status judge_list(const struct vpmu_request *request, struct demand *demand,
                              struct vpmu_explanation *why)
{
    if (!request->resources != !request->resource_count)
        return invalid(why, VPMU_CAUSE_EMPTY_LIST);

    for (uint32_t i = 0; i < request->resource_count; i++) {
        why->position = i;
        vpmu_status status = judge_resource(&request->resources[i], demand, why);
        if (status != VPMU_STATUS_SUCCESS)
            return status;
    }
    why->position = VPMU_NOT_SET;
    why->type = VPMU_NOT_SET;
    return VPMU_STATUS_SUCCESS;
}

/* ---- What the processors have ---- */

static vpmu_status judge_processor(const struct processor *processor, const struct demand *demand,
                                   struct vpmu_explanation *why)
{
    uint64_t missing = demand->resources & ~processor->exists;

    if (missing & VPMU_COUNTERS) {
        why->index = lowest(missing);
        return invalid(why, VPMU_CAUSE_NO_SUCH_COUNTER);
    }
    if (missing)
        return unsupported(why, VPMU_RESOURCE_EVENT_BUFFER);
    /* Version 1 has no IA32_PERF_GLOBAL_STATUS that would tell whose counter overflowed. */
    if (demand->overflow_handler && processor->version < 2)
        return unsupported(why, VPMU_RESOURCE_OVERFLOW);
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status judge_processors(const struct vpmu_arbiter *arbiter,
                                    const struct vpmu_request *request, const struct demand *demand,
                                    struct vpmu_explanation *why)
{
    for (struct walk walk = arb_walk_request(arbiter, request); arb_walk_next(&walk);) {
        why->processor = walk.processor;
        vpmu_status status = judge_processor(&arbiter->processors[walk.processor], demand, why);
        if (status != VPMU_STATUS_SUCCESS)
            return status;
    }
    why->processor = VPMU_NOT_SET;
    return VPMU_STATUS_SUCCESS;
}

/* The first processor of a request without a list that has no counter, or NIL. */
static uint32_t bare_processor(const struct vpmu_arbiter *arbiter,
                               const struct vpmu_request *request)
{
    if (!request->affinity)
        return arbiter->bare;
    for (struct walk walk = arb_walk_request(arbiter, request); arb_walk_next(&walk);)
        if (!(arbiter->processors[walk.processor].exists & VPMU_COUNTERS))
            return walk.processor;
    return NIL;
}

vpmu_status arb_request_backing(const struct vpmu_arbiter *arbiter,
                                const struct vpmu_request *request, vpmu_status status,
                                struct vpmu_explanation *why)
{
    uint32_t bare = request->resources ? NIL : bare_processor(arbiter, request);

    if (bare == NIL)
        return VPMU_STATUS_SUCCESS;
    why->processor = bare;
    return arb_explain(why, status, VPMU_CAUSE_NOTHING_BEHIND);
}

vpmu_status arb_request_judge(struct vpmu_arbiter *arbiter, const struct vpmu_request *request,
                              struct demand *demand, struct vpmu_explanation *why)
{
    vpmu_status status;
    bool plain = !request->affinity && !request->affinity_count && !request->resources &&
                 !request->resource_count;

    *demand = (struct demand){.all_processors = !request->affinity};
    demand->whole = !request->affinity && !request->resources;

    if (has_mode(arbiter, VPMU_MODE_BEFORE_1903) && !plain)
        return invalid(why, VPMU_CAUSE_BEFORE_1903);
    status = judge_affinity(arbiter, request, why);
    if (status != VPMU_STATUS_SUCCESS)
        return status;
    status = judge_list(request, demand, why);
    if (status != VPMU_STATUS_SUCCESS)
        return status;
    if (request->resources)
        return judge_processors(arbiter, request, demand, why);
    demand->resources = VPMU_COUNTERS | (demand->whole ? BIT(VPMU_EVENT_BUFFER) : 0);
    if (has_mode(arbiter, VPMU_MODE_STRICT))
        return arb_request_backing(arbiter, request, VPMU_STATUS_NOT_SUPPORTED, why);
    return VPMU_STATUS_SUCCESS;
}
