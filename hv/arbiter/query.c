/* SPDX-License-Identifier: BSD-3-Clause */
/* Delivery of overflows, and questions. None of it changes anything. */
#include "arbiter_internal.h"

static const struct processor *online_processor(const struct vpmu_arbiter *arbiter, uint32_t p)
{
    if (p >= arbiter->processor_count ||
        !(arbiter->groups[p / GROUP_SIZE].online & BIT(p % GROUP_SIZE)))
        return NULL;
    return &arbiter->processors[p];
}

/* What of a processor is taken, by parts or by the whole PMU. */
static uint64_t taken_of(const struct vpmu_arbiter *arbiter, const struct processor *processor)
{
    return arbiter->whole != NIL ? processor->exists : processor->taken;
}

/* The owner of a resource that is taken. */
static uint32_t owner_of(const struct vpmu_arbiter *arbiter, const struct processor *processor,
                         uint32_t index)
{
    return arbiter->whole != NIL ? arbiter->whole : processor->owner[index];
}

bool vpmu_arbiter_overflow(const struct vpmu_arbiter *arbiter, uint32_t p, uint64_t *bits,
                           struct vpmu_delivery *delivery)
{
    const struct processor *processor = online_processor(arbiter, p);
    uint64_t owned = processor ? *bits & taken_of(arbiter, processor) : 0;

    if (!owned)
        return false;
    uint32_t slot = owner_of(arbiter, processor, lowest(owned));
    const struct demand *demand = &arbiter->leases[slot].demand;
    bool event_buffer = lowest(owned) == VPMU_EVENT_BUFFER;

    *delivery = (struct vpmu_delivery){
        .lease = arb_lease_handle(arbiter, slot),
        .bits = owned & demand->resources & (event_buffer ? ~VPMU_COUNTERS : VPMU_COUNTERS),
        .handler = event_buffer ? demand->event_buffer.handler : demand->overflow_handler,
        .event_buffer = event_buffer,
    };
    if (event_buffer)
        delivery->buffer = demand->event_buffer;
    *bits &= ~delivery->bits;
    return true;
}

vpmu_status vpmu_arbiter_lease(const struct vpmu_arbiter *arbiter, vpmu_lease lease,
                               struct vpmu_lease_info *info)
{
    uint32_t slot = arb_lease_find(arbiter, lease);

    if (slot == NIL || !info)
        return VPMU_STATUS_INVALID_PARAMETER;
    const struct demand *demand = &arbiter->leases[slot].demand;
    *info = (struct vpmu_lease_info){
        .lease = lease,
        .holder = arbiter->holders[arbiter->leases[slot].holder].who,
        .resources = demand->resources,
        .overflow_handler = demand->overflow_handler,
        .event_buffer = demand->event_buffer,
        .tag = demand->tag,
        .has_tag = demand->has_tag,
        .whole = demand->whole,
        .all_processors = demand->all_processors,
    };
    return VPMU_STATUS_SUCCESS;
}

uint64_t vpmu_arbiter_lease_mask(const struct vpmu_arbiter *arbiter, vpmu_lease lease,
                                 uint32_t group)
{
    uint32_t slot = arb_lease_find(arbiter, lease);

    if (slot == NIL || group >= arbiter->group_count)
        return 0;
    if (arbiter->leases[slot].demand.all_processors)
        return arbiter->groups[group].online;
    for (uint32_t s = arbiter->leases[slot].spans; s != NIL; s = arbiter->spans[s].next)
        if (arbiter->spans[s].group == group)
            return arbiter->spans[s].mask;
    return 0;
}

vpmu_lease vpmu_arbiter_next(const struct vpmu_arbiter *arbiter, vpmu_lease lease)
{
    uint32_t slot = arb_lease_find(arbiter, lease);

    if (lease == VPMU_LEASE_NONE)
        return arb_lease_handle(arbiter, arbiter->ages.first);
    if (slot == NIL)
        return VPMU_LEASE_NONE;
    return arb_lease_handle(arbiter, arbiter->leases[slot].links[CHAIN_AGE].next);
}

vpmu_lease vpmu_arbiter_next_of(const struct vpmu_arbiter *arbiter, uint64_t holder_id,
                                vpmu_lease lease)
{
    uint32_t holder = arb_holder_find(arbiter, holder_id);
    uint32_t slot = arb_lease_find(arbiter, lease);

    if (holder == NIL)
        return VPMU_LEASE_NONE;
    if (lease == VPMU_LEASE_NONE)
        return arb_lease_handle(arbiter, arbiter->holders[holder].leases.first);
    if (slot == NIL || arbiter->leases[slot].holder != holder)
        return VPMU_LEASE_NONE;
    return arb_lease_handle(arbiter, arbiter->leases[slot].links[CHAIN_HOLDER].next);
}

vpmu_lease vpmu_arbiter_owner(const struct vpmu_arbiter *arbiter, uint32_t p, uint32_t index)
{
    const struct processor *processor = online_processor(arbiter, p);

    if (!processor || index > VPMU_INDEX_MAX || !(taken_of(arbiter, processor) & BIT(index)))
        return VPMU_LEASE_NONE;
    return arb_lease_handle(arbiter, owner_of(arbiter, processor, index));
}

uint64_t vpmu_arbiter_capacity(const struct vpmu_arbiter *arbiter, uint32_t p)
{
    const struct processor *processor = online_processor(arbiter, p);

    return processor ? processor->exists : 0;
}

uint64_t vpmu_arbiter_left(const struct vpmu_arbiter *arbiter, uint32_t p)
{
    const struct processor *processor = online_processor(arbiter, p);

    return processor ? processor->exists & ~taken_of(arbiter, processor) : 0;
}

uint32_t vpmu_arbiter_leases(const struct vpmu_arbiter *arbiter)
{
    return arbiter->lease_pool.used;
}

uint32_t vpmu_arbiter_holders(const struct vpmu_arbiter *arbiter)
{
    return arbiter->holder_pool.used;
}
