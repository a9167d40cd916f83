/* SPDX-License-Identifier: BSD-3-Clause */
/* What the compiler calls for structures, so that the driver imports no C library. */

#include <stddef.h>

void *memset(void *to, int value, size_t length)
{
    void *at = to;

    __asm__ volatile("rep stosb" : "+D"(at), "+c"(length) : "a"(value) : "memory");
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    void *at = to;

    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(length) : : "memory");
    return to;
}
