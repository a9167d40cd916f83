/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks made by hand from Microsoft's documentation, byte by byte, against the reader; each way in
 * which a block may lie, with the offset where it is noticed; and the writer against the same
 * bytes.
 */

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/perflib/words.h"

#define U16(v) (uint8_t)(v), (uint8_t)((v) >> 8)
#define U32(v) U16((uint32_t)(v)), U16((uint32_t)(v) >> 16)
#define U64(v) U32((uint64_t)(v)), U32((uint64_t)(v) >> 32)
#define CH(c) (c), 0
#define GUID                                                                                       \
    0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef

/* Two counters: a rate, and an average with its base. */
static const uint8_t set_block[] = {GUID, U32(0), U32(100), U32(2), U32(2),
                                    /* counter 1 */
                                    U32(1), U32(0x10410500), U64(8), U32(100), U32(-3),
                                    U32(0xffffffff), U32(0xffffffff), U32(0xffffffff),
                                    U32(0xffffffff), U32(1), U32(0),
                                    /* counter 7 */
                                    U32(7), U32(0x40020500), U64(0), U32(200), U32(0), U32(1),
                                    U32(2), U32(3), U32(4), U32(0), U32(0)};

static const uint8_t string_block[] = {U32(38), U32(3),  U32(1),  U32(32), U32(7), U32(0xffffffff),
                                       U32(9),  U32(36), CH('I'), CH(0),   CH(0)};

/* Two identifiers: one of a single-instance set, one that names instances. */
static const uint8_t identifiers[] = {GUID,   U32(0), U32(40),   U32(1),  U32(0xffffffff), U32(1),
                                      U32(0), GUID,   U32(4200), U32(48), U32(0xffffffff), U32(3),
                                      U32(0), U32(0), CH('*'),   CH(0),   CH(0),           CH(0)};

#define TIMES                                                                                      \
    U64(1000), U64(2000), U64(10000000), U16(2026), U16(12), U16(2), U16(1), U16(5), U16(6),       \
        U16(7), U16(8)
#define VALUE8(v) U32(8), U32(16), U64(v)
#define VALUE4(v) U32(4), U32(16), U32(v), U32(0)
#define INSTANCE(id, c) U32(16), U32(id), CH(c), CH(0), CH(0), CH(0)

/* One answer of each type. */
static const uint8_t data_block[] = {
    U32(292), U32(5), TIMES,
    /* at 48: nothing could be had */
    U32(1168), U32(0), U32(16), U32(0),
    /* at 64: one value */
    U32(0), U32(1), U32(32), U32(0), VALUE8(0x1122334455667788),
    /* at 96: two counters of one instance */
    U32(0), U32(2), U32(64), U32(0), U32(16), U32(2), U32(1), U32(7), VALUE8(5), VALUE4(6),
    /* at 160: one counter of two instances */
    U32(0), U32(4), U32(88), U32(0), U32(72), U32(2), INSTANCE(0, 'a'), VALUE4(10),
    INSTANCE(1, 'b'), VALUE4(11),
    /* at 248: counters of no instances; a list of one id is not a multiple of 8 */
    U32(0), U32(6), U32(36), U32(0), U32(12), U32(1), U32(7), U32(8), U32(0),
    /* at 284: there is more in the buffer than in the block */
    U32(0), U32(0)};

/* In a buffer of its own, so that the sanitizer sees a read past the end. */
static void *exact(const void *bytes, size_t size)
{
    void *copy = malloc(size ? size : 1);

    memcpy(copy, bytes, size);
    return copy;
}

/* ---- Registration ---- */

Test(perflib_set, reads_every_field)
{
    struct block_error error;
    struct block_set set;
    struct block_counter c;
    char guid[39];

    cr_assert_eq(block_read_set(set_block, sizeof(set_block), &set, &error), 0);
    cr_assert_str_eq(perf_guid_text(&set.guid, guid), "{76543210-BA98-FEDC-0123-456789ABCDEF}");
    cr_assert_eq(set.detail, 100);
    cr_assert_eq(set.count, 2);
    cr_assert_eq(set.kind, BLOCK_MULTI_INSTANCES);
    c = block_set_counter(&set, 0);
    cr_assert(c.id == 1 && c.type == 0x10410500 && c.attributes == 8 && c.detail == 100);
    cr_assert(c.scale == -3 && c.base_id == BLOCK_NO_ID && c.aggregate == 1);
    cr_assert(block_find_counter(&set, 7, &c));
    cr_assert(c.type == 0x40020500 && c.base_id == 1 && c.time_id == 2 && c.frequency_id == 3);
    cr_assert_eq(c.multi_id, 4);
    cr_assert_not(block_find_counter(&set, 2, &c));
}

Test(perflib_set, every_truncation_is_an_error_in_bounds)
{
    for (size_t size = 0; size < sizeof(set_block); size++) {
        void *copy = exact(set_block, size);
        struct block_error error = {0};
        struct block_set set;

        cr_assert_eq(block_read_set(copy, size, &set, &error), -1, "size %zu", size);
        cr_assert(error.what && error.offset <= sizeof(set_block));
        free(copy);
    }
}

Test(perflib_set, a_lying_count_is_an_error)
{
    uint8_t block[sizeof(set_block)];
    struct block_error error;
    struct block_set set;

    memcpy(block, set_block, sizeof(block));
    block[24] = 1;
    cr_assert_eq(block_read_set(block, sizeof(block), &set, &error), -1);
    cr_assert_eq(error.offset, 80, "where the block should end");
    memset(block + 24, 0xff, 4);
    cr_assert_eq(block_read_set(block, sizeof(block), &set, &error), -1);
    cr_assert_eq(error.offset, 24);
}

Test(perflib_set, the_writer_makes_the_same_bytes)
{
    uint8_t block[sizeof(set_block)];
    struct block_writer writer = {.data = block, .room = sizeof(block)};
    struct block_error error;
    struct block_set set;
    struct block_counter counters[2];

    block_read_set(set_block, sizeof(set_block), &set, &error);
    counters[0] = block_set_counter(&set, 0);
    counters[1] = block_set_counter(&set, 1);
    block_write_set(&writer, &set.guid, set.kind, set.detail, counters, 2);
    cr_assert(block_written(&writer));
    cr_assert_eq(writer.size, sizeof(block));
    cr_assert_arr_eq(block, set_block, sizeof(block));

    writer = (struct block_writer){.data = block, .room = sizeof(block) - 1};
    block_write_set(&writer, &set.guid, set.kind, set.detail, counters, 2);
    cr_assert_not(block_written(&writer));
    cr_assert_eq(writer.size, sizeof(block), "the size that is needed");
}

/* ---- Strings ---- */

Test(perflib_strings, a_name_an_absent_one_and_an_empty_one)
{
    struct block_error error;
    struct block_strings strings;
    uint32_t id;
    char text[8];

    cr_assert_eq(block_read_strings(string_block, sizeof(string_block), &strings, &error), 0);
    cr_assert_eq(strings.count, 3);
    cr_assert_str_eq(perf_text(block_string(&strings, 0, &id), text, sizeof(text)), "I");
    cr_assert_eq(id, 1);
    cr_assert_null(block_string(&strings, 1, &id).units);
    cr_assert_eq(id, 7);
    cr_assert_null(block_string_of(&strings, 7).units);
    cr_assert_not_null(block_string_of(&strings, 9).units);
    cr_assert_eq(block_string_of(&strings, 9).length, 0);
}

Test(perflib_strings, each_lie_has_its_offset)
{
    static const struct {
        size_t at;
        uint32_t value;
        size_t offset;
    } lies[] = {
        {0, 39, 0},           /* larger than the buffer */
        {0, 7, 0},            /* smaller than itself */
        {0, 37, 36},          /* the last text does not end */
        {4, 4, 4},            /* more strings than room */
        {4, 0xffffffff, 4},   /* would overflow 32 bits */
        {12, 31, 12},         /* a string in the table */
        {12, 0xfffffffe, 12}, /* a string far away */
        {28, 37, 37},         /* half a character */
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        uint8_t *copy = exact(string_block, sizeof(string_block));
        struct block_error error;
        struct block_strings strings;

        memcpy(copy + lies[i].at, &lies[i].value, 4);
        cr_assert_eq(block_read_strings(copy, sizeof(string_block), &strings, &error), -1,
                     "lie %zu", i);
        cr_assert_eq(error.offset, lies[i].offset, "lie %zu: %zu", i, error.offset);
        free(copy);
    }
}

/* ---- Identifiers ---- */

Test(perflib_identifiers, are_read_and_written)
{
    struct block_reader reader = {.data = identifiers, .size = sizeof(identifiers)};
    struct block_identifier one, two, none;
    uint8_t bytes[sizeof(identifiers)];
    struct block_writer writer = {.data = bytes, .room = sizeof(bytes)};

    cr_assert_eq(block_next_identifier(&reader, &one), 1);
    cr_assert(one.counter == 1 && one.instance == BLOCK_ANY && one.index == 1 && !one.status);
    cr_assert_null(one.name.units);
    cr_assert_eq(block_next_identifier(&reader, &two), 1);
    cr_assert(two.counter == BLOCK_ANY && two.instance == 3 && two.status == 4200);
    cr_assert_eq(two.name.length, 1);
    cr_assert_eq(block_next_identifier(&reader, &none), 0);

    block_write_identifier(&writer, &one);
    block_write_identifier(&writer, &two);
    cr_assert_eq(writer.size, sizeof(bytes));
    cr_assert_arr_eq(bytes, identifiers, sizeof(bytes));
}

Test(perflib_identifiers, a_wrong_size_is_an_error)
{
    static const struct {
        uint32_t size, what_at;
    } rows[] = {{39, 60}, {0, 60}, {44, 60}, {56, 60}, {0xfffffff8, 60}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t bytes[sizeof(identifiers)];
        struct block_reader reader = {.data = bytes, .size = sizeof(bytes)};
        struct block_identifier identifier;

        memcpy(bytes, identifiers, sizeof(bytes));
        memcpy(bytes + 60, &rows[i].size, 4);
        cr_assert_eq(block_next_identifier(&reader, &identifier), 1);
        cr_assert_eq(block_next_identifier(&reader, &identifier), -1, "size %u", rows[i].size);
        cr_assert_eq(reader.error.offset, rows[i].what_at);
        cr_assert_eq(reader.at, 40, "it stays where it was");
    }
}

/* ---- Data ---- */

/* What was visited, as a line of text. */
static char seen[1000];

static void say(const char *format, ...)
{
    size_t used = strlen(seen);
    va_list args;

    va_start(args, format);
    vsnprintf(seen + used, sizeof(seen) - used, format, args);
    va_end(args);
}

static void on_times(void *context, const struct block_times *times)
{
    (void)context;
    say("%lld/%lld/%lld %u-%u-%u ", (long long)times->stamp, (long long)times->time_100ns,
        (long long)times->frequency, times->system[0], times->system[1], times->system[3]);
}

static void on_query(void *context, uint32_t index, uint32_t type, uint32_t status)
{
    (void)context;
    say("[%u %u %u]", index, type, status);
}

static void on_counter(void *context, uint32_t id)
{
    (void)context;
    say("#%u", id);
}

static void on_instance(void *context, const struct block_instance *instance)
{
    char name[20];

    (void)context;
    say("(%s %u)", perf_text(instance->name, name, sizeof(name)), instance->id);
}

static void on_value(void *context, uint32_t column, const uint8_t *value, uint32_t size)
{
    uint64_t number;

    (void)context;
    cr_assert(block_number(value, size, &number));
    say("%u=%llx:%u ", column, (unsigned long long)number, size);
}

static const struct block_visitor visitor = {on_times, on_query, on_counter, on_instance, on_value};

enum { DATA_SIZE = 284 };

/* The block as it is meant: its first field is its size. */
static uint8_t *good_data(void)
{
    uint8_t *copy = exact(data_block, sizeof(data_block));
    uint32_t size = DATA_SIZE;

    memcpy(copy, &size, 4);
    return copy;
}

Test(perflib_data, every_type_of_answer)
{
    struct block_error error;
    uint8_t *copy = good_data();

    cr_assert_eq(block_read_data(copy, sizeof(data_block), &visitor, NULL, &error), 0, "%s at %zu",
                 error.what, error.offset);
    cr_assert_str_eq(seen, "1000/2000/10000000 2026-12-1 "
                           "[0 0 1168]"
                           "[1 1 0]0=1122334455667788:8 "
                           "[2 2 0]#1#70=5:8 1=6:4 "
                           "[3 4 0](a 0)0=a:4 (b 1)0=b:4 "
                           "[4 6 0]#7");
    free(copy);
}

Test(perflib_data, every_truncation_is_an_error_and_visits_nothing)
{
    for (size_t size = 0; size < DATA_SIZE; size++) {
        uint8_t *whole = good_data(), *copy = exact(whole, size);
        uint32_t claimed = (uint32_t)size;
        struct block_error error = {0};

        if (size >= 4)
            memcpy(copy, &claimed, 4); /* a block that believes in its size */
        seen[0] = 0;
        cr_assert_eq(block_read_data(copy, size, &visitor, NULL, &error), -1, "size %zu", size);
        cr_assert(error.what && error.offset <= size);
        cr_assert_str_empty(seen);
        free(copy);
        free(whole);
    }
}

Test(perflib_data, each_lie_has_its_offset)
{
    static const struct {
        size_t at;
        uint32_t value;
        size_t offset;
    } lies[] = {
        {0, 47, 0},     {0, 293, 0},    {0, 292, 284},  {4, 6, 284},
        {4, 4, 248},    {52, 3, 52},    {56, 15, 56},   {56, 0xfffffff0, 56},
        {80, 9, 80},    {84, 12, 84},   {84, 24, 84},   {84, 0, 84},
        {112, 7, 112},  {112, 56, 112}, {116, 3, 116},  {116, 0xffffffff, 116},
        {176, 80, 176}, {176, 68, 176}, {180, 1, 216},  {180, 3, 248},
        {184, 8, 192},  {184, 80, 184}, {264, 44, 264},
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        uint8_t *copy = good_data();
        struct block_error error = {0};

        memcpy(copy + lies[i].at, &lies[i].value, 4);
        cr_assert_eq(block_read_data(copy, sizeof(data_block), NULL, NULL, &error), -1, "lie %zu",
                     i);
        cr_assert_eq(error.offset, lies[i].offset, "lie %zu (%u at %zu): %s at %zu", i,
                     lies[i].value, lies[i].at, error.what, error.offset);
        free(copy);
    }
}

static const struct block_instance a = {0, {(const uint8_t *)"a", 1}},
                                   b = {1, {(const uint8_t *)"b", 1}};

static void write_data(struct block_writer *writer)
{
    static const struct block_times times = {1000, 2000, 10000000, {2026, 12, 2, 1, 5, 6, 7, 8}};
    static const uint32_t ids[] = {1, 7};
    const uint64_t big = 0x1122334455667788, five = 5;
    const uint32_t six = 6, ten = 10, eleven = 11;

    block_write_data_begin(writer, &times);
    block_write_query_begin(writer, BLOCK_ERROR, 1168, NULL, 0);
    block_write_query_end(writer);
    block_write_query_begin(writer, BLOCK_SINGLE_COUNTER, 0, NULL, 0);
    block_write_value(writer, &big, 8);
    block_write_query_end(writer);
    block_write_query_begin(writer, BLOCK_MULTIPLE_COUNTERS, 0, ids, 2);
    block_write_value(writer, &five, 8);
    block_write_value(writer, &six, 4);
    block_write_query_end(writer);
    block_write_query_begin(writer, BLOCK_MULTIPLE_INSTANCES, 0, NULL, 0);
    block_write_data_instance(writer, &a);
    block_write_value(writer, &ten, 4);
    block_write_data_instance(writer, &b);
    block_write_value(writer, &eleven, 4);
    block_write_query_end(writer);
    block_write_query_begin(writer, BLOCK_COUNTERSET, 0, ids + 1, 1);
    block_write_query_end(writer);
    block_write_data_end(writer);
}

Test(perflib_data, the_writer_makes_the_same_bytes)
{
    uint8_t bytes[DATA_SIZE], *good = good_data();
    struct block_writer writer = {.data = bytes, .room = sizeof(bytes)}, counting = {0};

    write_data(&writer);
    cr_assert(block_written(&writer));
    cr_assert_eq(writer.size, DATA_SIZE);
    cr_assert_arr_eq(bytes, good, DATA_SIZE);
    write_data(&counting);
    cr_assert_eq(counting.size, DATA_SIZE);
    cr_assert_not(block_written(&counting));
    free(good);
}

Test(perflib_instances, enumerate)
{
    static const uint8_t bytes[] = {INSTANCE(0, 'a'), INSTANCE(9, 'b'), U32(16), U32(1), U64(-1)};
    struct block_reader reader = {.data = bytes, .size = sizeof(bytes)};
    struct block_instance instance;

    cr_assert_eq(block_next_instance(&reader, &instance), 1);
    cr_assert_eq(block_next_instance(&reader, &instance), 1);
    cr_assert_eq(instance.id, 9);
    cr_assert_eq(block_next_instance(&reader, &instance), -1);
    cr_assert_str_eq(reader.error.what, "a text does not end");
    cr_assert_eq(reader.error.offset, 40);
}
