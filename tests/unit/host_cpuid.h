// SPDX-License-Identifier: BSD-3-Clause
/* A processor that answers CPUID from a table: a leaf that no row has is 0. */
#ifndef TEST_HOST_CPUID_H
#define TEST_HOST_CPUID_H

#include "hv/host/host_internal.h"

#include <string.h>

struct cpuid_row {
    uint32_t leaf, subleaf;
    struct host_cpuid registers;
};

struct cpuid_table {
    const char *vendor; /* 12 letters */
    const struct cpuid_row *rows;
    size_t count;
};

/* The highest leaf of the range that a leaf is in, for leaf 0 and 0x80000000. */
static inline uint32_t cpuid_highest(const struct cpuid_table *table, uint32_t range)
{
    uint32_t highest = range;

    for (size_t i = 0; i < table->count; i++)
        if ((table->rows[i].leaf & 0x80000000u) == range && table->rows[i].leaf > highest)
            highest = table->rows[i].leaf;
    return highest;
}

static inline struct host_cpuid cpuid_of_table(void *context, uint32_t leaf, uint32_t subleaf)
{
    const struct cpuid_table *table = context;
    struct host_cpuid out = {0};

    if (leaf == 0 || leaf == 0x80000000u) {
        out.eax = cpuid_highest(table, leaf);
        memcpy(&out.ebx, table->vendor, 4);
        memcpy(&out.edx, table->vendor + 4, 4);
        memcpy(&out.ecx, table->vendor + 8, 4);
        return out;
    }
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].leaf == leaf && table->rows[i].subleaf == subleaf)
            return table->rows[i].registers;
    return out;
}

#endif
