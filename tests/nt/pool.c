/* SPDX-License-Identifier: BSD-3-Clause */
#include "pool.h"

#include "check.h"
#include "image.h"
#include "libc.h"
#include "memory.h"
#include "processor.h"

#define POOL_MAGIC 0x4c4f4f50u
#define FREED_MAGIC 0x44454546u
#define RED_ZONE 16
#define RED_BYTE 0xfd
#define FRESH_BYTE 0xcd
#define FREED_BYTE 0xdd
#define SMALLEST 7 /* blocks are powers of two, 128 bytes and up */
#define CLASSES 20

struct block {
    uint32_t magic, tag;
    size_t bytes;
    const struct image *owner;
    struct block *next, *previous; /* live blocks, or the free blocks of a class */
    unsigned class;
    uint32_t reserved[5];
};
_Static_assert(sizeof(struct block) == 64, "pool memory is aligned to 16 bytes");

static struct lock pool_lock;
static struct block *free_blocks[CLASSES];
static struct block live = {.next = &live, .previous = &live};
static uint32_t allocations_left = UINT32_MAX;
static bool failure_done;

static unsigned class_for(size_t bytes)
{
    unsigned class = SMALLEST;

    while (((size_t)1 << class) < bytes)
        class ++;
    return class;
}

/* Splits fresh pages into blocks of one class; a class above a page takes its own pages. */
static struct block *take_block(unsigned class)
{
    struct block *block = free_blocks[class];
    size_t size = (size_t)1 << class;

    if (!block) {
        uint8_t *pages = pages_alloc(size > PAGE_SIZE ? size / PAGE_SIZE : 1);

        for (size_t at = 0; at == 0 || at + size <= PAGE_SIZE; at += size) {
            block = (struct block *)(pages + at);
            block->next = free_blocks[class];
            free_blocks[class] = block;
        }
    }
    free_blocks[class] = block->next;
    return block;
}

static bool fails_now(const struct image *owner)
{
    if (!owner || allocations_left == UINT32_MAX)
        return false;
    if (allocations_left-- > 0)
        return false;
    allocations_left = UINT32_MAX;
    failure_done = true;
    return true;
}

void *pool_allocate(size_t bytes, uint32_t tag, const struct image *owner)
{
    unsigned class;
    struct block *block = NULL;
    uint8_t *body;
    bool enabled;

    if (bytes > (size_t)1 << 18)
        return NULL;
    class = class_for(sizeof(*block) + bytes + RED_ZONE);
    enabled = interrupts_off();
    lock(&pool_lock);
    if (!fails_now(owner)) {
        block = take_block(class);
        *block = (struct block){.magic = POOL_MAGIC,
                                .tag = tag,
                                .bytes = bytes,
                                .owner = owner,
                                .class = class,
                                .next = live.next,
                                .previous = &live};
        live.next->previous = block;
        live.next = block;
    }
    unlock(&pool_lock);
    interrupts_restore(enabled);
    if (!block)
        return NULL;
    body = (uint8_t *)(block + 1);
    memset(body, FRESH_BYTE, bytes);
    memset(body + bytes, RED_BYTE, RED_ZONE);
    return body;
}

static bool red_zone_intact(const struct block *block)
{
    const uint8_t *zone = (const uint8_t *)(block + 1) + block->bytes;

    for (unsigned i = 0; i < RED_ZONE; i++)
        if (zone[i] != RED_BYTE)
            return false;
    return true;
}

static bool may_free(const struct block *block, uint32_t tag)
{
    if (block->magic != POOL_MAGIC) {
        violation("pool: free of %p, which is %s", (const void *)(block + 1),
                  block->magic == FREED_MAGIC ? "free already" : "no block");
        return false;
    }
    if (tag && block->tag != tag)
        violation("pool: block of tag %08x freed with tag %08x", block->tag, tag);
    if (!red_zone_intact(block))
        violation("pool: written behind a block of tag %08x, %lu bytes", block->tag, block->bytes);
    return true;
}

void pool_free(void *body, uint32_t tag)
{
    struct block *block = (struct block *)body - 1;
    bool enabled;

    if (!body || !may_free(block, tag))
        return;
    memset(body, FREED_BYTE, block->bytes);
    enabled = interrupts_off();
    lock(&pool_lock);
    block->magic = FREED_MAGIC;
    block->previous->next = block->next;
    block->next->previous = block->previous;
    block->next = free_blocks[block->class];
    free_blocks[block->class] = block;
    unlock(&pool_lock);
    interrupts_restore(enabled);
}

unsigned pool_leaks(const struct image *owner)
{
    unsigned count = 0;

    for (struct block *b = live.next; b != &live; b = b->next) {
        if (b->owner != owner)
            continue;
        note("leaked: %lu bytes of pool, tag %.4s", b->bytes, (const char *)&b->tag);
        b->owner = NULL;
        count++;
    }
    return count;
}

void pool_fail_after(uint32_t count)
{
    failure_done = false;
    allocations_left = count;
}

bool pool_failed(void)
{
    allocations_left = UINT32_MAX;
    return failure_done;
}

#define CALLER image_at((uint64_t)__builtin_return_address(0))

PVOID NTAPI ExAllocatePoolWithTag(ULONG PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    if (Tag == 0)
        violation("ExAllocatePoolWithTag: tag 0");
    if (PoolType == PagedPool && irql_current() > APC_LEVEL)
        violation("ExAllocatePoolWithTag: paged pool at IRQL %u", irql_current());
    return pool_allocate(NumberOfBytes, Tag, CALLER);
}

/* Unlike its elder it zeroes the memory, unless told not to. */
PVOID NTAPI ExAllocatePool2(ULONG64 Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
    void *block;

    if (!(Flags & (POOL_FLAG_NON_PAGED | POOL_FLAG_PAGED)) || NumberOfBytes == 0 || Tag == 0)
        return NULL;
    if (Flags & POOL_FLAG_PAGED && irql_current() > APC_LEVEL)
        violation("ExAllocatePool2: paged pool at IRQL %u", irql_current());
    block = pool_allocate(NumberOfBytes, Tag, CALLER);
    if (block && !(Flags & POOL_FLAG_UNINITIALIZED))
        memset(block, 0, NumberOfBytes);
    return block;
}

VOID NTAPI ExFreePoolWithTag(PVOID P, ULONG Tag)
{
    if (!P)
        violation("ExFreePoolWithTag: NULL");
    pool_free(P, Tag);
}

VOID NTAPI ExFreePool(PVOID P)
{
    ExFreePoolWithTag(P, 0);
}
