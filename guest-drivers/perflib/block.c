/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading. A window is a stretch of the block that its size fields have promised; each check is
 * made against the window, and each offset in an error counts from the block's first byte.
 */

#include "block.h"

#include "bytes.h"

struct window {
    const uint8_t *data; /* of the block */
    size_t at, end;
    struct block_error *error;
};

static int wrong(const struct window *window, size_t offset, const char *what)
{
    *window->error = (struct block_error){.what = what, .offset = offset};
    return -1;
}

static size_t left(const struct window *window)
{
    return window->end - window->at;
}

/* The next size bytes, at *offset. */
static int take(struct window *window, size_t size, size_t *offset, const char *what)
{
    if (left(window) < size)
        return wrong(window, window->at, what);
    *offset = window->at;
    window->at += size;
    return 0;
}

static uint32_t u32(const struct window *window, size_t offset)
{
    return bytes_u32(window->data + offset);
}

/* ---- Text ---- */

/* A string that ends in a zero before the end; *after: behind that zero. */
static int text_at(const struct window *window, size_t at, size_t end, struct block_text *text,
                   size_t *after)
{
    text->units = window->data + at;
    text->length = 0;
    for (size_t i = at; end - i >= 2; i += 2) {
        if (!window->data[i] && !window->data[i + 1]) {
            *after = i + 2;
            return 0;
        }
        text->length++;
    }
    return wrong(window, at, "a text does not end");
}

int block_read_text(const void *data, size_t size, struct block_text *text,
                    struct block_error *error)
{
    struct window window = {data, 0, size, error};
    size_t after;

    return text_at(&window, 0, size, text, &after);
}

/* ---- Registration ---- */

static struct block_guid guid_at(const uint8_t *at)
{
    struct block_guid guid;

    bytes_copy(guid.byte, at, sizeof(guid.byte));
    return guid;
}

int block_read_set(const void *data, size_t size, struct block_set *set, struct block_error *error)
{
    struct window window = {data, 0, size, error};
    size_t at;

    if (take(&window, BLOCK_SET_SIZE, &at, "the block is shorter than its header") < 0)
        return -1;
    *set = (struct block_set){
        .guid = guid_at(window.data),
        .detail = u32(&window, 20),
        .count = u32(&window, 24),
        .kind = u32(&window, 28),
        .counters = window.data + BLOCK_SET_SIZE,
    };
    if (left(&window) / BLOCK_COUNTER_SIZE < set->count)
        return wrong(&window, 24, "more counters than the block has room for");
    if (left(&window) != (size_t)set->count * BLOCK_COUNTER_SIZE)
        return wrong(&window, BLOCK_SET_SIZE + (size_t)set->count * BLOCK_COUNTER_SIZE,
                     "the block goes on behind its last counter");
    return 0;
}

struct block_counter block_set_counter(const struct block_set *set, uint32_t i)
{
    const uint8_t *at = set->counters + (size_t)i * BLOCK_COUNTER_SIZE;

    return (struct block_counter){
        .id = bytes_u32(at),
        .type = bytes_u32(at + 4),
        .attributes = bytes_u64(at + 8),
        .detail = bytes_u32(at + 16),
        .scale = (int32_t)bytes_u32(at + 20),
        .base_id = bytes_u32(at + 24),
        .time_id = bytes_u32(at + 28),
        .frequency_id = bytes_u32(at + 32),
        .multi_id = bytes_u32(at + 36),
        .aggregate = bytes_u32(at + 40),
    };
}

bool block_find_counter(const struct block_set *set, uint32_t id, struct block_counter *counter)
{
    for (uint32_t i = 0; i < set->count; i++) {
        *counter = block_set_counter(set, i);
        if (counter->id == id)
            return true;
    }
    return false;
}

#define NO_STRING 0xffffffffu

static int check_string(const struct window *window, size_t entry, size_t table_end)
{
    uint32_t offset = u32(window, entry + 4);
    struct block_text text;
    size_t after;

    if (offset == NO_STRING)
        return 0;
    if (offset < table_end || offset > window->end)
        return wrong(window, entry + 4, "a string lies outside of its block");
    return text_at(window, offset, window->end, &text, &after);
}

int block_read_strings(const void *data, size_t size, struct block_strings *strings,
                       struct block_error *error)
{
    struct window window = {data, 0, size, error};
    size_t at, table_end;

    if (take(&window, BLOCK_SMALL_SIZE, &at, "the block is shorter than its header") < 0)
        return -1;
    if (u32(&window, 0) < BLOCK_SMALL_SIZE || u32(&window, 0) > size)
        return wrong(&window, 0, "the block's size is not its own");
    window.end = u32(&window, 0);
    *strings = (struct block_strings){u32(&window, 4), window.data, window.end};
    if (left(&window) / BLOCK_SMALL_SIZE < strings->count)
        return wrong(&window, 4, "more strings than the block has room for");
    table_end = BLOCK_SMALL_SIZE * ((size_t)strings->count + 1);
    for (at = BLOCK_SMALL_SIZE; at < table_end; at += BLOCK_SMALL_SIZE) {
        if (check_string(&window, at, table_end) < 0)
            return -1;
    }
    return 0;
}

struct block_text block_string(const struct block_strings *strings, uint32_t i, uint32_t *id)
{
    size_t entry = BLOCK_SMALL_SIZE * ((size_t)i + 1), after;
    struct block_error ignored;
    struct window window = {strings->block, 0, strings->size, &ignored};
    struct block_text text = {0};

    *id = u32(&window, entry);
    if (u32(&window, entry + 4) != NO_STRING)
        text_at(&window, u32(&window, entry + 4), strings->size, &text, &after);
    return text;
}

struct block_text block_string_of(const struct block_strings *strings, uint32_t id)
{
    for (uint32_t i = 0; i < strings->count; i++) {
        uint32_t its;
        struct block_text text = block_string(strings, i, &its);
        if (its == id && text.units)
            return text;
    }
    return (struct block_text){0};
}

/* ---- Identifiers and instances ---- */

/* A block whose size is at size_field: within the window and a multiple of 8. */
static int take_sized(struct window *window, size_t header, size_t size_field,
                      struct window *inside)
{
    size_t start = window->at, at, size;

    if (take(window, header, &at, "a block is cut off") < 0)
        return -1;
    size = u32(window, start + size_field);
    if (size < header || size % 8)
        return wrong(window, start + size_field, "a block's size is less than it has, or odd");
    if (size > window->end - start)
        return wrong(window, start + size_field, "a block goes beyond the one around it");
    window->at = start + size;
    *inside = (struct window){window->data, start + header, start + size, window->error};
    return 0;
}

int block_next_identifier(struct block_reader *reader, struct block_identifier *identifier)
{
    struct window window = {reader->data, reader->at, reader->size, &reader->error}, inside;
    size_t start = reader->at, after;

    if (!left(&window))
        return 0;
    if (take_sized(&window, BLOCK_IDENTIFIER_SIZE, 20, &inside) < 0)
        return -1;
    *identifier = (struct block_identifier){
        .guid = guid_at(window.data + start),
        .status = u32(&window, start + 16),
        .counter = u32(&window, start + 24),
        .instance = u32(&window, start + 28),
        .index = u32(&window, start + 32),
    };
    if (left(&inside) && text_at(&inside, inside.at, inside.end, &identifier->name, &after) < 0)
        return -1;
    reader->at = window.at;
    return 1;
}

static int read_instance(struct window *window, struct block_instance *instance)
{
    size_t start = window->at, after;
    struct window inside;

    if (take_sized(window, BLOCK_SMALL_SIZE, 0, &inside) < 0)
        return -1;
    instance->id = u32(window, start + 4);
    return text_at(&inside, inside.at, inside.end, &instance->name, &after);
}

int block_next_instance(struct block_reader *reader, struct block_instance *instance)
{
    struct window window = {reader->data, reader->at, reader->size, &reader->error};

    if (!left(&window))
        return 0;
    if (read_instance(&window, instance) < 0)
        return -1;
    reader->at = window.at;
    return 1;
}

/* ---- Data ---- */

struct walk {
    const struct block_visitor *visitor; /* NULL: only check */
    void *context;
};

#define VISIT(walk, what, ...)                                                                     \
    do {                                                                                           \
        if ((walk)->visitor && (walk)->visitor->what)                                              \
            (walk)->visitor->what((walk)->context, __VA_ARGS__);                                   \
    } while (0)

static int walk_value(const struct walk *walk, struct window *window, uint32_t column)
{
    size_t start = window->at;
    struct window inside;

    /* PERF_COUNTER_DATA has the size of the value first, then that of the block. */
    if (take_sized(window, BLOCK_SMALL_SIZE, 4, &inside) < 0)
        return -1;
    if (u32(window, start) > left(&inside))
        return wrong(window, start, "a value is larger than its block");
    VISIT(walk, value, column, window->data + inside.at, u32(window, start));
    return 0;
}

static int walk_values(const struct walk *walk, struct window *window, uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        if (walk_value(walk, window, i) < 0)
            return -1;
    }
    return 0;
}

/* PERF_MULTI_COUNTERS: the ids of the columns. Its size need not be a multiple of 8. */
static int walk_columns(const struct walk *walk, struct window *window, uint32_t *columns)
{
    size_t start = window->at, at, size;

    if (take(window, BLOCK_SMALL_SIZE, &at, "a list of counters is cut off") < 0)
        return -1;
    size = u32(window, start);
    *columns = u32(window, start + 4);
    if (size < BLOCK_SMALL_SIZE || size > window->end - start)
        return wrong(window, start, "a list of counters goes beyond the block around it");
    if ((size - BLOCK_SMALL_SIZE) / 4 < *columns)
        return wrong(window, start + 4, "more counters than their list has room for");
    for (uint32_t i = 0; i < *columns; i++)
        VISIT(walk, counter, u32(window, start + BLOCK_SMALL_SIZE + 4 * (size_t)i));
    window->at = start + size;
    return 0;
}

static int walk_instances(const struct walk *walk, struct window *window, uint32_t columns)
{
    size_t start = window->at;
    struct window inside;
    uint32_t count;

    if (take_sized(window, BLOCK_SMALL_SIZE, 0, &inside) < 0)
        return -1;
    count = u32(window, start + 4);
    for (uint32_t i = 0; i < count; i++) {
        struct block_instance instance;
        if (read_instance(&inside, &instance) < 0)
            return -1;
        VISIT(walk, instance, &instance);
        if (walk_values(walk, &inside, columns) < 0)
            return -1;
    }
    return left(&inside) ? wrong(window, inside.at, "a table goes on behind its last instance") : 0;
}

static int walk_answer(const struct walk *walk, struct window *window, uint32_t type, size_t start)
{
    uint32_t columns = 1;

    switch (type) {
    case BLOCK_ERROR:
        return 0;
    case BLOCK_SINGLE_COUNTER:
        return walk_value(walk, window, 0);
    case BLOCK_MULTIPLE_COUNTERS:
        if (walk_columns(walk, window, &columns) < 0)
            return -1;
        return walk_values(walk, window, columns);
    case BLOCK_MULTIPLE_INSTANCES:
        return walk_instances(walk, window, columns);
    case BLOCK_COUNTERSET:
        if (walk_columns(walk, window, &columns) < 0)
            return -1;
        return walk_instances(walk, window, columns);
    default:
        return wrong(window, start + 4, "no such type of answer");
    }
}

static int walk_query(const struct walk *walk, struct window *window, uint32_t index)
{
    size_t start = window->at, at, size;
    struct window inside;
    uint32_t type;

    if (take(window, BLOCK_QUERY_SIZE, &at, "an answer is cut off") < 0)
        return -1;
    size = u32(window, start + 8);
    if (size < BLOCK_QUERY_SIZE || size > window->end - start)
        return wrong(window, start + 8, "an answer goes beyond the block");
    inside = (struct window){window->data, start + BLOCK_QUERY_SIZE, start + size, window->error};
    window->at = start + size;
    type = u32(window, start + 4);
    VISIT(walk, query, index, type, u32(window, start));
    return walk_answer(walk, &inside, type, start);
}

static struct block_times times_at(const uint8_t *at)
{
    struct block_times times = {
        .stamp = (int64_t)bytes_u64(at + 8),
        .time_100ns = (int64_t)bytes_u64(at + 16),
        .frequency = (int64_t)bytes_u64(at + 24),
    };

    for (size_t i = 0; i < 8; i++)
        times.system[i] = bytes_u16(at + 32 + 2 * i);
    return times;
}

static int walk_data(const struct walk *walk, struct window window)
{
    struct block_times times;
    uint32_t total;
    size_t at;

    if (take(&window, BLOCK_DATA_SIZE, &at, "the block is shorter than its header") < 0)
        return -1;
    total = u32(&window, 0);
    if (total < BLOCK_DATA_SIZE || total > window.end)
        return wrong(&window, 0, "the block's size is not its own");
    window.end = total;
    times = times_at(window.data);
    VISIT(walk, times, &times);
    for (uint32_t i = 0; i < u32(&window, 4); i++) {
        if (walk_query(walk, &window, i) < 0)
            return -1;
    }
    return left(&window) ? wrong(&window, window.at, "the block goes on behind its last answer")
                         : 0;
}

int block_read_data(const void *data, size_t size, const struct block_visitor *visitor,
                    void *context, struct block_error *error)
{
    struct window window = {data, 0, size, error};

    if (walk_data(&(struct walk){0}, window) < 0)
        return -1;
    return visitor ? walk_data(&(struct walk){visitor, context}, window) : 0;
}

bool block_number(const uint8_t *value, uint32_t size, uint64_t *number)
{
    if (size == 4)
        *number = bytes_u32(value);
    else if (size == 8)
        *number = bytes_u64(value);
    return size == 4 || size == 8;
}
