/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"
#include "cpu.h"
#include "libc.h"
#include "x86.h"

#define LEVELS 4
#define TABLE_ENTRIES 512
#define ENTRY_ADDRESS 0x000ffffffffff000ul

static struct lock memory_lock;
static uint64_t next, end;
static void *free_list;

void memory_init(uint64_t from, uint64_t to)
{
    next = (from + PAGE_SIZE - 1) & -PAGE_SIZE;
    end = to & -PAGE_SIZE;
}

static void *take_pages(size_t n)
{
    void *page = free_list;

    if (n == 1 && page) {
        free_list = *(void **)page;
        return page;
    }
    if (n > (end - next) / PAGE_SIZE)
        panic("out of memory");
    page = (void *)next;
    next += n * PAGE_SIZE;
    return page;
}

void *pages_alloc(size_t n)
{
    void *pages;

    lock(&memory_lock);
    pages = take_pages(n);
    unlock(&memory_lock);
    return memset(pages, 0, n * PAGE_SIZE);
}

void page_free(void *page)
{
    lock(&memory_lock);
    *(void **)page = free_list;
    free_list = page;
    unlock(&memory_lock);
}

static uint64_t *walk(uint64_t virtual, int create)
{
    uint64_t *table = (uint64_t *)(read_cr3() & ENTRY_ADDRESS);

    for (int level = LEVELS - 1;; level--) {
        uint64_t *entry = &table[virtual >> (12 + 9 * level) & (TABLE_ENTRIES - 1)];

        if (level == 0)
            return entry;
        if (!*entry) {
            if (!create)
                return NULL;
            *entry = (uint64_t)pages_alloc(1) | MAP_ALL;
        }
        table = (uint64_t *)(*entry & ENTRY_ADDRESS);
    }
}

uint64_t *map_entry(uint64_t virtual)
{
    return walk(virtual, 0);
}

void map_page(uint64_t virtual, uint64_t physical, uint64_t flags)
{
    if (virtual < MAP_FREE_BASE)
        panic("map_page(%lx): identity map", virtual);
    *walk(virtual, 1) = flags ? physical | flags : 0;
    invlpg((void *)virtual);
}

void map_pages(uint64_t virtual, uint64_t physical, size_t n, uint64_t flags)
{
    for (size_t i = 0; i < n; i++)
        map_page(virtual + i * PAGE_SIZE, physical + i * PAGE_SIZE, flags);
}
