/* SPDX-License-Identifier: BSD-3-Clause */
#include "programs.h"
#include "libc.h"

#define NOINLINE __attribute__((noinline, noclone))

const struct named_program programs[3] = {
    {"calls", program_calls},
    {"strings", program_strings},
    {"memory and sort", program_sort},
};

static NOINLINE uint64_t fibonacci(uint64_t n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

static NOINLINE uint64_t add(uint64_t a)
{
    return a + 3;
}

static NOINLINE uint64_t mix(uint64_t a)
{
    return a * 6364136223846793005u + 1;
}

static NOINLINE uint64_t fold(uint64_t a)
{
    return a & 1 ? a >> 7 : a << 1;
}

uint64_t program_calls(uint64_t size)
{
    uint64_t (*const table[])(uint64_t) = {add, mix, fold, fibonacci};
    uint64_t value = size;

    for (uint64_t i = 0; i < size; i++)
        value = table[(value ^ i) % 3](value) + table[3](i % 8);
    return value;
}

uint64_t program_strings(uint64_t size)
{
    char text[256], copy[256];
    uint64_t value = 0;

    for (uint64_t i = 0; i < size; i++) {
        const char *end = text;
        uint64_t rest;

        memset(text, 'a' + (int)(i % 26), sizeof(text));
        snprintf(text + i % 64, 100, "%lu, %-8x and %s", i * i, (unsigned)i, "more");
        memcpy(copy, text, sizeof(copy));
        value += (uint64_t)memcmp(copy, text, sizeof(copy)) + strlen(text);
        rest = sizeof(text);
        asm volatile("repne scasb" : "+D"(end), "+c"(rest) : "a"(0) : "memory", "cc");
        value += (uint64_t)(end - text);
        end = copy;
        rest = sizeof(copy);
        asm volatile("repe cmpsb" : "+D"(end), "+c"(rest) : "S"(text) : "memory", "cc");
        value += rest;
    }
    return value;
}

static NOINLINE void sort(uint32_t *v, int n)
{
    int low = 0, high = n - 1;
    uint32_t pivot;

    if (n < 2)
        return;
    pivot = v[n / 2];
    while (low <= high) {
        while (v[low] < pivot)
            low++;
        while (v[high] > pivot)
            high--;
        if (low <= high) {
            uint32_t other = v[low];
            v[low++] = v[high];
            v[high--] = other;
        }
    }
    sort(v, high + 1);
    sort(v + low, n - low);
}

static NOINLINE uint32_t checksum(const uint32_t *v, int n)
{
    uint32_t crc = ~0u;

    for (int i = 0; i < n; i++) {
        crc ^= v[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return crc;
}

uint64_t program_sort(uint64_t size)
{
    uint32_t values[512], next[512], seed = 12345, sum = 0;
    int n = (int)(size < 512 ? size : 512);

    for (int i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = seed >> 8;
        next[i] = (uint32_t)((i * 7 + 1) % n);
    }
    sort(values, n);
    for (uint32_t i = 0, steps = 0; steps < size; steps++, i = next[i])
        sum += values[i];
    return checksum(values, n) + sum;
}
