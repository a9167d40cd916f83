/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiling configuration: which counters the thread profiling of the system reads. */
#include "arbiter_internal.h"

#define GP_BANK UINT64_C(0x00000000FFFFFFFF)
#define FIXED_BANK (VPMU_COUNTERS & ~GP_BANK)

static vpmu_status invalid(struct vpmu_explanation *why, enum vpmu_cause cause)
{
    return arb_explain(why, VPMU_STATUS_INVALID_PARAMETER, cause);
}

static vpmu_status in_use(struct vpmu_explanation *why, enum vpmu_cause cause)
{
    return arb_explain(why, VPMU_STATUS_WMI_ALREADY_ENABLED, cause);
}

static uint64_t effective_index(const struct vpmu_arbiter *arbiter,
                                const struct vpmu_hardware_counter *counter)
{
    return has_mode(arbiter, VPMU_MODE_SET_LOOSE) ? (uint32_t)counter->index : counter->index;
}

/* The set of the one resource that a selector reads (SDM Vol. 2, RDPMC); empty if it reads none. */
static uint64_t resource_of(uint64_t selector)
{
    uint64_t index = selector & VPMU_RDPMC_FIXED
                         ? (selector & ~VPMU_RDPMC_FIXED) + VPMU_FIXED_COUNTER
                         : selector;
    uint64_t bank = selector & VPMU_RDPMC_FIXED ? FIXED_BANK : GP_BANK;

    return index <= VPMU_INDEX_MAX ? BIT(index) & bank : 0;
}

/* ---- Is it a set at all ---- */

static uint32_t first_without(const struct vpmu_arbiter *arbiter, uint64_t resource)
{
    for (struct walk walk = arb_walk_all(arbiter); arb_walk_next(&walk);)
        if (!(arbiter->processors[walk.processor].exists & resource))
            return walk.processor;
    return VPMU_NOT_SET;
}

static vpmu_status judge_counter(const struct vpmu_arbiter *arbiter,
                                 const struct vpmu_hardware_counter *counter,
                                 struct vpmu_explanation *why)
{
    bool strict = !has_mode(arbiter, VPMU_MODE_SET_LOOSE);
    uint64_t resource = resource_of(effective_index(arbiter, counter));

    if (strict && counter->type)
        return invalid(why, VPMU_CAUSE_COUNTER_TYPE);
    if (strict && counter->reserved)
        return invalid(why, VPMU_CAUSE_RESERVED);
    if (!resource)
        return invalid(why, VPMU_CAUSE_NO_SUCH_COUNTER);
    if (!(arbiter->common & resource)) {
        why->index = lowest(resource);
        why->processor = first_without(arbiter, resource);
        return invalid(why, VPMU_CAUSE_NO_SUCH_COUNTER);
    }
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status judge_set(const struct vpmu_arbiter *arbiter,
                             const struct vpmu_hardware_counter *counters, uint32_t count,
                             struct vpmu_explanation *why)
{
    if (count > VPMU_PROFILING_MAX)
        return invalid(why, VPMU_CAUSE_TOO_MANY_COUNTERS);
    if (!counters)
        return invalid(why, VPMU_CAUSE_NULL_POINTER);

    for (uint32_t i = 0; i < count; i++) {
        why->position = i;
        vpmu_status status = judge_counter(arbiter, &counters[i], why);
        if (status != VPMU_STATUS_SUCCESS)
            return status;
    }
    why->position = VPMU_NOT_SET;
    return VPMU_STATUS_SUCCESS;
}

/* ---- Is one of its counters used ---- */

static uint64_t set_resources(const struct vpmu_arbiter *arbiter,
                              const struct vpmu_hardware_counter *counters, uint32_t count)
{
    uint64_t resources = 0;

    for (uint32_t i = 0; i < count; i++)
        resources |= resource_of(effective_index(arbiter, &counters[i]));
    return resources;
}

static vpmu_status look_threads(const struct vpmu_arbiter *arbiter, uint64_t wanted,
                                struct vpmu_explanation *why)
{
    const struct profiling *standing = &arbiter->profiling;
    uint64_t both = wanted & set_resources(arbiter, standing->counters, standing->count);

    if (!standing->threads || !both)
        return VPMU_STATUS_SUCCESS;
    why->index = lowest(both);
    why->holder = arbiter->holders[standing->holder].who;
    return in_use(why, VPMU_CAUSE_SET_USED);
}

static bool is_other(const struct vpmu_arbiter *arbiter, uint32_t slot, uint64_t holder_id)
{
    return arbiter->holders[arbiter->leases[slot].holder].who.id != holder_id;
}

static vpmu_status look_leases(const struct vpmu_arbiter *arbiter, uint64_t wanted,
                               uint64_t holder_id, struct vpmu_explanation *why)
{
    if (arbiter->whole != NIL && is_other(arbiter, arbiter->whole, holder_id))
        return arb_explain_lease(arbiter, why, VPMU_STATUS_WMI_ALREADY_ENABLED,
                                 VPMU_CAUSE_WHOLE_HELD, arbiter->whole);

    for (struct walk walk = arb_walk_all(arbiter); arb_walk_next(&walk);) {
        const struct processor *processor = &arbiter->processors[walk.processor];

        for (uint64_t held = processor->taken & wanted; held; held &= held - 1) {
            uint32_t owner = processor->owner[lowest(held)];
            if (!is_other(arbiter, owner, holder_id))
                continue;
            why->processor = walk.processor;
            why->index = lowest(held);
            return arb_explain_lease(arbiter, why, VPMU_STATUS_WMI_ALREADY_ENABLED, VPMU_CAUSE_HELD,
                                     owner);
        }
    }
    return VPMU_STATUS_SUCCESS;
}

static vpmu_status look_used(const struct vpmu_arbiter *arbiter, uint64_t wanted,
                             uint64_t holder_id, struct vpmu_explanation *why)
{
    const struct profiling *standing = &arbiter->profiling;

    if (has_mode(arbiter, VPMU_MODE_SET_ONCE)) {
        if (!standing->count)
            return VPMU_STATUS_SUCCESS;
        why->holder = arbiter->holders[standing->holder].who;
        return in_use(why, VPMU_CAUSE_SET_STANDS);
    }
    vpmu_status status = look_threads(arbiter, wanted, why);
    return status != VPMU_STATUS_SUCCESS ? status : look_leases(arbiter, wanted, holder_id, why);
}

/* ---- Commit ---- */

void arb_profiling_clear(struct vpmu_arbiter *arbiter)
{
    struct profiling *standing = &arbiter->profiling;

    if (standing->holder != NIL)
        arb_holder_put(arbiter, standing->holder);
    standing->holder = NIL;
    standing->count = 0;
}

/* The new holder is referenced before the old one is let go: they may be the same. */
static void profiling_replace(struct vpmu_arbiter *arbiter, const struct vpmu_holder *who,
                              const struct vpmu_hardware_counter *counters, uint32_t count)
{
    struct profiling *standing = &arbiter->profiling;
    uint32_t holder = arb_holder_get(arbiter, who);

    arb_profiling_clear(arbiter);
    standing->holder = holder;
    standing->count = count;
    for (uint32_t i = 0; i < count; i++)
        standing->counters[i] = (struct vpmu_hardware_counter){
            .index = effective_index(arbiter, &counters[i]),
        };
}

/* ---- The routines ---- */

vpmu_status vpmu_arbiter_set_profiling(struct vpmu_arbiter *arbiter,
                                       const struct vpmu_holder *holder,
                                       const struct vpmu_hardware_counter *counters, uint32_t count,
                                       struct vpmu_explanation *explanation)
{
    struct vpmu_explanation scratch;
    struct vpmu_explanation *why = arb_explain_begin(explanation, &scratch);

    if (has_mode(arbiter, VPMU_MODE_NO_PROFILING))
        return arb_explain(why, VPMU_STATUS_NOT_IMPLEMENTED, VPMU_CAUSE_NOT_IMPLEMENTED);
    if (!holder)
        return invalid(why, VPMU_CAUSE_NULL_POINTER);
    if (!count) {
        arb_profiling_clear(arbiter);
        return VPMU_STATUS_SUCCESS;
    }

    vpmu_status status = judge_set(arbiter, counters, count, why);
    if (status == VPMU_STATUS_SUCCESS)
        status = look_used(arbiter, set_resources(arbiter, counters, count), holder->id, why);
    if (status == VPMU_STATUS_SUCCESS && !arb_holder_has_room(arbiter, holder->id))
        status = arb_explain_no_room(arbiter, why);
    if (status == VPMU_STATUS_SUCCESS)
        profiling_replace(arbiter, holder, counters, count);
    return status;
}

vpmu_status vpmu_arbiter_query_profiling(const struct vpmu_arbiter *arbiter,
                                         struct vpmu_hardware_counter *counters, uint32_t maximum,
                                         uint32_t *count, struct vpmu_explanation *explanation)
{
    struct vpmu_explanation scratch;
    struct vpmu_explanation *why = arb_explain_begin(explanation, &scratch);
    const struct profiling *standing = &arbiter->profiling;

    if (has_mode(arbiter, VPMU_MODE_NO_PROFILING)) {
        if (count && has_mode(arbiter, VPMU_MODE_COUNT_ALWAYS))
            *count = 0;
        return arb_explain(why, VPMU_STATUS_NOT_IMPLEMENTED, VPMU_CAUSE_NOT_IMPLEMENTED);
    }
    if (!count)
        return invalid(why, VPMU_CAUSE_NULL_POINTER);
    *count = standing->count;
    if (maximum < standing->count)
        return arb_explain(why, VPMU_STATUS_BUFFER_TOO_SMALL, VPMU_CAUSE_BUFFER_TOO_SMALL);
    if (standing->count && !counters)
        return invalid(why, VPMU_CAUSE_NULL_POINTER);
    for (uint32_t i = 0; i < standing->count; i++)
        counters[i] = standing->counters[i];
    return VPMU_STATUS_SUCCESS;
}

void vpmu_arbiter_thread_profiling(struct vpmu_arbiter *arbiter, bool on)
{
    struct profiling *profiling = &arbiter->profiling;

    if (on)
        profiling->threads++;
    else if (profiling->threads)
        profiling->threads--;
}
