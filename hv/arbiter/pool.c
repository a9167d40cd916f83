/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of fixed arrays: set-up is O(1), memory that was never used is never touched. */
#include "arbiter_internal.h"

static uint32_t *link_of(const struct pool *pool, uint32_t slot)
{
    return (void *)(pool->links + slot * pool->stride);
}

void arb_pool_init(struct pool *pool, uint32_t *first_link, size_t stride, uint32_t limit)
{
    pool->links = (unsigned char *)first_link;
    pool->stride = stride;
    pool->free = NIL;
    pool->fresh = 0;
    pool->used = 0;
    pool->limit = limit;
}

uint32_t arb_pool_take(struct pool *pool)
{
    uint32_t slot = pool->free;

    pool->used++;
    if (slot == NIL)
        return pool->fresh++;
    pool->free = *link_of(pool, slot);
    return slot;
}

void arb_pool_put(struct pool *pool, uint32_t slot)
{
    pool->used--;
    *link_of(pool, slot) = pool->free;
    pool->free = slot;
}
