/* SPDX-License-Identifier: BSD-3-Clause */
#include "workloads.h"
#include "libc.h"

#define NOINLINE __attribute__((noinline, noclone))

static uint32_t next_random(uint32_t *state)
{
    return *state = *state * 1664525 + 1013904223;
}

/* Start-up alone, to be taken off the others. */
static uint64_t work_none(uint64_t rounds)
{
    return rounds;
}

/* The shortest block there is, left to itself. */
static uint64_t work_loop(uint64_t rounds)
{
    asm volatile("1: dec %0\n jnz 1b" : "+r"(rounds) : : "cc");
    return rounds;
}

/*
 * Ten blocks of three instructions. Each leaves to one of two others; which, a sequence of a 64-bit
 * linear feedback shift register decides.
 */
#define MIX_BLOCK(here, bit, other)                                                                \
    #here ": lea " #here "(%[sum], %[state], 2), %[sum]\n bt $" #bit ", %[state]\n jc " #other "f" \
          "\n"
static uint64_t work_mix(uint64_t rounds)
{
    uint64_t state = 0x9e3779b97f4a7c15, sum = 0;

    asm volatile(
        "10: mov %[state], %%rax\n shl $13, %%rax\n xor %%rax, %[state]\n"
        "mov %[state], %%rax\n shr $7, %%rax\n xor %%rax, %[state]\n"
        "mov %[state], %%rax\n shl $17, %%rax\n xor %%rax, %[state]\n" /* clang-format off */
                 MIX_BLOCK(11, 3, 13) MIX_BLOCK(12, 9, 15) MIX_BLOCK(13, 15, 14)
                 MIX_BLOCK(14, 21, 17) MIX_BLOCK(15, 27, 16) MIX_BLOCK(16, 33, 18)
                 MIX_BLOCK(17, 39, 20) MIX_BLOCK(18, 45, 19) MIX_BLOCK(19, 51, 20) /* clang-format on */
        "20: lea 20(%[sum], %[state], 4), %[sum]\n dec %[rounds]\n jnz 10b"
        : [state] "+r"(state), [sum] "+r"(sum), [rounds] "+r"(rounds)
        :
        : "rax", "cc");
    return sum;
}

static NOINLINE uint64_t fibonacci(uint64_t n)
{
    if (n < 2)
        return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
}

static uint64_t work_calls(uint64_t rounds)
{
    uint64_t sum = 0;

    while (rounds--)
        sum += fibonacci(20 + rounds % 2);
    return sum;
}

/* A byte at a time, as a parser or a cipher goes. */
static uint64_t work_bytes(uint64_t rounds)
{
    static uint8_t from[4096], to[4096];
    uint8_t key = 1;

    for (uint64_t round = 0; round < rounds; round++)
        for (unsigned i = 0; i < sizeof(from); i++) {
            key = (uint8_t)(key + to[i]);
            to[i] = from[i] ^ key;
        }
    return key;
}

/* Long blocks over more memory than the caches and QEMU's TLB hold. */
static uint64_t work_memory(uint64_t rounds)
{
    static uint64_t words[1 << 21];
    uint64_t sum = 0;

    for (uint64_t round = 0; round < rounds; round++)
        for (unsigned i = 0; i < ARRAY_SIZE(words); i += 8) {
            for (unsigned j = i; j < i + 8; j++)
                sum += words[j];
            words[i] = sum + i;
        }
    return sum;
}

static uint64_t work_strings(uint64_t rounds)
{
    char text[128], copy[128];
    uint64_t sum = 0;

    while (rounds--) {
        memset(text, 'a' + (int)(rounds % 26), sizeof(text));
        snprintf(text + rounds % 32, 64, "%lu, %-8x and %s", rounds, (unsigned)rounds, "more");
        strcpy(copy, text);
        sum += strlen(copy) + (uint64_t)(strchr(copy, ' ') - copy);
        sum += strcmp(copy, text) == 0;
        sum += strstr(text, "and more") != NULL;
    }
    return sum;
}

/* REP string instructions of a few hundred bytes. */
static uint64_t work_rep(uint64_t rounds)
{
    static uint8_t from[512], to[512];

    while (rounds--) {
        uint64_t n = 64 + rounds % 448;
        void *d = to, *s = from;

        asm volatile("rep stosb" : "+D"(s), "+c"(n) : "a"(rounds) : "memory");
        n = 64 + rounds % 448;
        s = from;
        asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
    }
    return to[0] + to[100];
}

/* A bytecode interpreter: each step ends in a jump through a table. */
static uint64_t work_indirect(uint64_t rounds)
{
    static const uint8_t program[] = {0, 1, 2, 3, 1, 0, 4, 2, 1, 3, 0, 2, 4, 1, 5};
    static const void *const labels[] = {&&add, &&rotate, &&mix, &&swap, &&negate, &&again};
    uint64_t a = 1, b = 2, t;
    const uint8_t *pc = program;

#define NEXT goto *labels[*pc++]
    NEXT;
add:
    a += b;
    NEXT;
rotate:
    b = b << 5 | b >> 59;
    NEXT;
mix:
    a ^= b * 5;
    NEXT;
swap:
    t = a;
    a = b;
    b = t;
    NEXT;
negate:
    a = ~a;
    NEXT;
again:
    if (!--rounds)
        return a + b;
    pc = program;
    NEXT;
#undef NEXT
}

static uint64_t work_crc32(uint64_t rounds)
{
    static uint32_t table[256];
    static uint8_t data[4096];
    uint32_t crc = ~0u;

    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
    }
    while (rounds--) {
        data[rounds % sizeof(data)]++;
        for (unsigned i = 0; i < sizeof(data); i++)
            crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
    }
    return crc;
}

static NOINLINE int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* As in the C library: a comparison is a call through a pointer. */
static NOINLINE void sort(uint32_t *v, int n, int (*cmp)(const void *, const void *))
{
    int low = 0, high = n - 1;
    uint32_t pivot;

    if (n < 2)
        return;
    pivot = v[n / 2];
    while (low <= high) {
        while (cmp(&v[low], &pivot) < 0)
            low++;
        while (cmp(&v[high], &pivot) > 0)
            high--;
        if (low <= high) {
            uint32_t other = v[low];
            v[low++] = v[high];
            v[high--] = other;
        }
    }
    sort(v, high + 1, cmp);
    sort(v + low, n - low, cmp);
}

static uint64_t work_qsort(uint64_t rounds)
{
    static uint32_t values[4096];
    uint32_t seed = 12345;
    uint64_t sum = 0;

    while (rounds--) {
        for (unsigned i = 0; i < ARRAY_SIZE(values); i++)
            values[i] = next_random(&seed) >> 8;
        sort(values, ARRAY_SIZE(values), compare);
        sum += values[rounds % ARRAY_SIZE(values)];
    }
    return sum;
}

const struct named_workload workloads[WORKLOADS] = {
    {"none", work_none, 1},
    {"loop", work_loop, 500000000},
    {"mix", work_mix, 30000000},
    {"calls", work_calls, 8000},
    {"bytes", work_bytes, 150000},
    {"memory", work_memory, 240},
    {"strings", work_strings, 600000},
    {"rep", work_rep, 1200000},
    {"indirect", work_indirect, 15000000},
    {"crc32", work_crc32, 70000},
    {"qsort", work_qsort, 1000},
};
