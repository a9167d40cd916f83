/* SPDX-License-Identifier: BSD-3-Clause */
/* Little-endian numbers of no alignment. */
#ifndef PERFLIB_BYTES_H
#define PERFLIB_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t bytes_get(const uint8_t *at, unsigned size)
{
    uint64_t value = 0;

    while (size--)
        value = value << 8 | at[size];
    return value;
}

static inline uint16_t bytes_u16(const uint8_t *at)
{
    return (uint16_t)bytes_get(at, 2);
}

static inline uint32_t bytes_u32(const uint8_t *at)
{
    return (uint32_t)bytes_get(at, 4);
}

static inline uint64_t bytes_u64(const uint8_t *at)
{
    return bytes_get(at, 8);
}

static inline void bytes_copy(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

#endif
