/* SPDX-License-Identifier: BSD-3-Clause */
/* Holders by id: they live while they have a lease or the profiling set. */
#include "arbiter_internal.h"

/* Multiplicative hashing: 2^64 divided by the golden ratio spreads consecutive ids (Knuth, 6.4). */
static uint32_t *bucket_of(const struct vpmu_arbiter *arbiter, uint64_t id)
{
    return &arbiter->buckets[(id * UINT64_C(0x9E3779B97F4A7C15)) >> arbiter->bucket_shift];
}

uint32_t arb_holder_find(const struct vpmu_arbiter *arbiter, uint64_t id)
{
    uint32_t slot = *bucket_of(arbiter, id);

    while (slot != NIL && arbiter->holders[slot].who.id != id)
        slot = arbiter->holders[slot].next;
    return slot;
}

bool arb_holder_has_room(const struct vpmu_arbiter *arbiter, uint64_t id)
{
    return arb_pool_left(&arbiter->holder_pool) || arb_holder_find(arbiter, id) != NIL;
}

static uint32_t holder_add(struct vpmu_arbiter *arbiter, const struct vpmu_holder *who)
{
    uint32_t slot = arb_pool_take(&arbiter->holder_pool);
    uint32_t *bucket = bucket_of(arbiter, who->id);
    struct holder *holder = &arbiter->holders[slot];

    *holder = (struct holder){.who = *who, .leases = {NIL, NIL}, .next = *bucket};
    holder->who.name[VPMU_HOLDER_NAME - 1] = '\0';
    *bucket = slot;
    return slot;
}

uint32_t arb_holder_get(struct vpmu_arbiter *arbiter, const struct vpmu_holder *who)
{
    uint32_t slot = arb_holder_find(arbiter, who->id);

    if (slot == NIL)
        slot = holder_add(arbiter, who);
    arbiter->holders[slot].references++;
    return slot;
}

void arb_holder_put(struct vpmu_arbiter *arbiter, uint32_t slot)
{
    struct holder *holder = &arbiter->holders[slot];
    uint32_t *at = bucket_of(arbiter, holder->who.id);

    if (--holder->references)
        return;
    while (*at != slot)
        at = &arbiter->holders[*at].next;
    *at = holder->next;
    arb_pool_put(&arbiter->holder_pool, slot);
}
