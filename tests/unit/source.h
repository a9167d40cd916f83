/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that histories are decoded from: those of a fuzzer, or generated. */
#ifndef TESTS_UNIT_SOURCE_H
#define TESTS_UNIT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct source {
    const uint8_t *data; /* NULL: bytes are made from state */
    size_t size;
    uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t generate(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline bool ended(const struct source *source)
{
    return source->data && !source->size;
}

static inline uint8_t byte(struct source *source)
{
    if (!source->data)
        return (uint8_t)generate(&source->state);
    if (!source->size)
        return 0;
    source->size--;
    return *source->data++;
}

static inline uint32_t pick(struct source *source, uint32_t count)
{
    return byte(source) % count;
}

/* Once in 32 times. */
static inline bool seldom(struct source *source)
{
    return byte(source) >= 248;
}

#endif
