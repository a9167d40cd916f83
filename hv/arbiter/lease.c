/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases: what is in the way of one, making one, freeing one. */
#include "arbiter_internal.h"

/* ---- Handles: the slot below, its generation above. Generations begin at 1, so none is 0; slots
 * stay below 2^31, so none is all ones. ---- */

vpmu_lease arb_lease_handle(const struct vpmu_arbiter *arbiter, uint32_t slot)
{
    if (slot == NIL)
        return VPMU_LEASE_NONE;
    return (uint64_t)arbiter->leases[slot].generation << 32 | slot;
}

uint32_t arb_lease_find(const struct vpmu_arbiter *arbiter, vpmu_lease lease)
{
    uint32_t slot = (uint32_t)lease;

    if (slot >= arbiter->lease_pool.fresh || !arbiter->leases[slot].live)
        return NIL;
    return arb_lease_handle(arbiter, slot) == lease ? slot : NIL;
}

/* ---- Chains ---- */

static void chain_append(struct vpmu_arbiter *arbiter, enum chain chain, struct list *list,
                         uint32_t slot)
{
    arbiter->leases[slot].links[chain] = (struct link){.previous = list->last, .next = NIL};
    if (list->last == NIL)
        list->first = slot;
    else
        arbiter->leases[list->last].links[chain].next = slot;
    list->last = slot;
}

static void chain_remove(struct vpmu_arbiter *arbiter, enum chain chain, struct list *list,
                         uint32_t slot)
{
    struct link link = arbiter->leases[slot].links[chain];

    if (link.previous == NIL)
        list->first = link.next;
    else
        arbiter->leases[link.previous].links[chain].next = link.next;
    if (link.next == NIL)
        list->last = link.previous;
    else
        arbiter->leases[link.next].links[chain].previous = link.previous;
}

/* ---- Look ---- */

static vpmu_status refuse_held(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why,
                               enum vpmu_cause cause, uint32_t slot)
{
    const struct holder *holder = &arbiter->holders[arbiter->leases[slot].holder];
    bool busy = has_mode(arbiter, VPMU_MODE_DEVICE_BUSY) && holder->who.id == VPMU_HOLDER_KERNEL;

    return arb_explain_lease(arbiter, why,
                             busy ? VPMU_STATUS_DEVICE_BUSY : VPMU_STATUS_INSUFFICIENT_RESOURCES,
                             cause, slot);
}

static vpmu_status look_whole(const struct vpmu_arbiter *arbiter, struct vpmu_explanation *why)
{
    if (arbiter->ages.first == NIL)
        return VPMU_STATUS_SUCCESS;
    return refuse_held(arbiter, why, VPMU_CAUSE_PARTS_HELD, arbiter->ages.first);
}

static vpmu_status look_parts(const struct vpmu_arbiter *arbiter,
                              const struct vpmu_request *request, const struct demand *demand,
                              struct vpmu_explanation *why)
{
    for (struct walk walk = arb_walk_request(arbiter, request); arb_walk_next(&walk);) {
        const struct processor *processor = &arbiter->processors[walk.processor];
        uint64_t held = processor->taken & demand->resources;

        if (held) {
            why->processor = walk.processor;
            why->index = lowest(held);
            return refuse_held(arbiter, why, VPMU_CAUSE_HELD, processor->owner[lowest(held)]);
        }
    }
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status look_held(const struct vpmu_arbiter *arbiter, const struct vpmu_request *request,
                             const struct demand *demand, struct vpmu_explanation *why)
{
    if (arbiter->whole != NIL && !demand->whole && has_mode(arbiter, VPMU_MODE_UNSUCCESSFUL))
        return arb_explain_lease(arbiter, why, VPMU_STATUS_UNSUCCESSFUL, VPMU_CAUSE_WHOLE_HELD,
                                 arbiter->whole);
    if (arbiter->whole != NIL)
        return refuse_held(arbiter, why, VPMU_CAUSE_WHOLE_HELD, arbiter->whole);
    return demand->whole ? look_whole(arbiter, why) : look_parts(arbiter, request, demand, why);
}

static vpmu_status look_room(const struct vpmu_arbiter *arbiter, const struct vpmu_holder *holder,
                             const struct vpmu_request *request, struct vpmu_explanation *why)
{
    if (arb_pool_left(&arbiter->lease_pool) && arb_holder_has_room(arbiter, holder->id) &&
        arb_pool_left(&arbiter->span_pool) >= request->affinity_count)
        return VPMU_STATUS_SUCCESS;
    return arb_explain_no_room(arbiter, why);
}

/* ---- Commit ---- */

static uint32_t take_spans(struct vpmu_arbiter *arbiter, const struct vpmu_request *request)
{
    uint32_t first = NIL;

    for (uint32_t i = request->affinity_count; i-- > 0;) {
        uint32_t slot = arb_pool_take(&arbiter->span_pool);
        arbiter->spans[slot] = (struct span){
            .mask = request->affinity[i].mask,
            .group = request->affinity[i].group,
            .next = first,
        };
        first = slot;
    }
    return first;
}

static void put_spans(struct vpmu_arbiter *arbiter, uint32_t span)
{
    while (span != NIL) {
        uint32_t next = arbiter->spans[span].next;
        arb_pool_put(&arbiter->span_pool, span);
        span = next;
    }
}

static void mark_processors(struct vpmu_arbiter *arbiter, uint32_t slot)
{
    for (struct walk walk = arb_walk_lease(arbiter, slot); arb_walk_next(&walk);) {
        struct processor *processor = &arbiter->processors[walk.processor];
        uint64_t got = arbiter->leases[slot].demand.resources & processor->exists;

        processor->taken |= got;
        for (; got; got &= got - 1)
            processor->owner[lowest(got)] = slot;
    }
}

/* All that a lease asks for on its processors is its own, so no owner needs to be looked at. */
static void unmark_processors(struct vpmu_arbiter *arbiter, uint32_t slot)
{
    for (struct walk walk = arb_walk_lease(arbiter, slot); arb_walk_next(&walk);)
        arbiter->processors[walk.processor].taken &= ~arbiter->leases[slot].demand.resources;
}

static uint32_t lease_commit(struct vpmu_arbiter *arbiter, const struct vpmu_holder *holder,
                             const struct vpmu_request *request, const struct demand *demand)
{
    bool fresh = arbiter->lease_pool.free == NIL;
    uint32_t slot = arb_pool_take(&arbiter->lease_pool);
    struct lease *lease = &arbiter->leases[slot];

    *lease = (struct lease){
        .demand = *demand,
        .generation = fresh ? 1 : lease->generation,
        .live = true,
        .holder = arb_holder_get(arbiter, holder),
        .spans = take_spans(arbiter, request),
    };
    chain_append(arbiter, CHAIN_AGE, &arbiter->ages, slot);
    chain_append(arbiter, CHAIN_HOLDER, &arbiter->holders[lease->holder].leases, slot);
    if (demand->whole)
        arbiter->whole = slot;
    else
        mark_processors(arbiter, slot);
    return slot;
}

static void lease_release(struct vpmu_arbiter *arbiter, uint32_t slot)
{
    struct lease *lease = &arbiter->leases[slot];

    if (lease->demand.whole)
        arbiter->whole = NIL;
    else
        unmark_processors(arbiter, slot);
    put_spans(arbiter, lease->spans);
    chain_remove(arbiter, CHAIN_AGE, &arbiter->ages, slot);
    chain_remove(arbiter, CHAIN_HOLDER, &arbiter->holders[lease->holder].leases, slot);
    arb_holder_put(arbiter, lease->holder);
    lease->live = false;
    lease->generation += lease->generation == UINT32_MAX ? 2 : 1; /* 0 is no generation */
    arb_pool_put(&arbiter->lease_pool, slot);
}

/* ---- The routines ---- */

static vpmu_status judge_and_look(struct vpmu_arbiter *arbiter, const struct vpmu_holder *holder,
                                  const struct vpmu_request *request, struct demand *demand,
                                  struct vpmu_explanation *why)
{
    vpmu_status status = arb_request_judge(arbiter, request, demand, why);

    if (status == VPMU_STATUS_SUCCESS)
        status = look_held(arbiter, request, demand, why);
    if (status == VPMU_STATUS_SUCCESS)
        status = look_room(arbiter, holder, request, why);
    return status;
}

vpmu_status vpmu_arbiter_allocate(struct vpmu_arbiter *arbiter, const struct vpmu_holder *holder,
                                  const struct vpmu_request *request, vpmu_lease *lease,
                                  struct vpmu_explanation *explanation)
{
    struct vpmu_explanation scratch;
    struct vpmu_explanation *why = arb_explain_begin(explanation, &scratch);
    struct demand demand;

    if (lease)
        *lease = VPMU_LEASE_NONE;
    if (!lease || !holder || !request)
        return arb_explain(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_NULL_POINTER);

    vpmu_status status = judge_and_look(arbiter, holder, request, &demand, why);
    if (status != VPMU_STATUS_SUCCESS) {
        if (request->resources && has_mode(arbiter, VPMU_MODE_HANDLE_ONES))
            *lease = VPMU_LEASE_ONES;
        return status;
    }
    *lease = arb_lease_handle(arbiter, lease_commit(arbiter, holder, request, &demand));
    return arb_request_backing(arbiter, request, VPMU_STATUS_SUCCESS, why);
}

vpmu_status vpmu_arbiter_free(struct vpmu_arbiter *arbiter, vpmu_lease lease,
                              struct vpmu_explanation *explanation)
{
    struct vpmu_explanation scratch;
    struct vpmu_explanation *why = arb_explain_begin(explanation, &scratch);
    uint32_t slot = arb_lease_find(arbiter, lease);

    if (slot == NIL) {
        why->lease = lease;
        return arb_explain(why, VPMU_STATUS_INVALID_PARAMETER, VPMU_CAUSE_BAD_HANDLE);
    }
    lease_release(arbiter, slot);
    return VPMU_STATUS_SUCCESS;
}

uint32_t vpmu_arbiter_free_holder(struct vpmu_arbiter *arbiter, uint64_t holder_id)
{
    uint32_t freed = 0;
    uint32_t holder = arb_holder_find(arbiter, holder_id);

    if (holder == NIL)
        return 0;
    if (arbiter->profiling.holder == holder)
        arb_profiling_clear(arbiter);
    while ((holder = arb_holder_find(arbiter, holder_id)) != NIL) {
        lease_release(arbiter, arbiter->holders[holder].leases.first);
        freed++;
    }
    return freed;
}
