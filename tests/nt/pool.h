/* SPDX-License-Identifier: BSD-3-Clause */
/* Pool memory: tagged, owned by an image, with red zones. */
#ifndef NT_POOL_H
#define NT_POOL_H

#include <stdbool.h>

#include "ntmore.h"

struct image;

#define POOL_OWN_TAG 0x746e6f56u /* the kernel's own blocks */

/** Allocates bytes of pool; NULL when there is none. Not zeroed. */
void *pool_allocate(size_t bytes, uint32_t tag, const struct image *owner);

/** Frees a block; a wrong tag (0: any), a second free or an overrun is a violation. */
void pool_free(void *block, uint32_t tag);

/** Blocks that an image still holds, each printed. They belong to nobody from now on. */
unsigned pool_leaks(const struct image *owner);

/**
 * Lets the allocation of drivers after the next count ones fail, once.
 * UINT32_MAX: none.
 */
void pool_fail_after(uint32_t count);

/** Whether that happened; ends it. */
bool pool_failed(void);

#endif
