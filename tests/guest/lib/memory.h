/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages, and the page tables that all CPUs share. */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define PAGE_SIZE 4096ul

#define MAP_PRESENT (1ul << 0)
#define MAP_WRITE (1ul << 1)
#define MAP_USER (1ul << 2)
#define MAP_NO_EXEC (1ul << 63)
#define MAP_ALL (MAP_PRESENT | MAP_WRITE | MAP_USER)

/* Everything below is the identity map, all rights, ring 3 too; map_page() may be used above. */
#define MAP_FREE_BASE 0x100000000ul

/* Zeroed pages next to one another, never NULL: the run ends when memory does. */
void *pages_alloc(size_t n);

/* Gives one page back. */
void page_free(void *page);

/*
 * Maps one 4 KiB page; flags 0 takes it away. The calling CPU's TLB is told, other CPUs' are not.
 * Addresses are canonical and at or above MAP_FREE_BASE.
 */
void map_page(uint64_t virtual, uint64_t physical, uint64_t flags);

/* Same rights for n pages. */
void map_pages(uint64_t virtual, uint64_t physical, size_t n, uint64_t flags);

/* The entry that maps an address above MAP_FREE_BASE, NULL where there is no table for it. */
uint64_t *map_entry(uint64_t virtual);

/* For start.c: free memory is from here to there. */
void memory_init(uint64_t from, uint64_t to);

#endif
