/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as any block. What is accepted is written again, and must read as the same; what was
 * written once more has the same bytes. The first byte chooses the block.
 */

#include <string.h>

#include "check.h"
#include "guest-drivers/perflib/words.h"

#define ROOM 65536u

static uint8_t written[2][ROOM];

/* Uses a text's last byte, so that the sanitizer sees one that is not there. */
static void use(struct block_text text)
{
    char utf8[64];

    CHECK(strlen(perf_text(text, utf8, sizeof(utf8))) < sizeof(utf8));
}

/* ---- Data ---- */

struct copy {
    struct block_writer writer;
    uint32_t ids[ROOM / 4];
    uint32_t columns;
    uint32_t type, status;
    bool open; /* a query whose begin is not written yet: its columns come first */
    bool begun;
};

static void begin(struct copy *copy)
{
    if (!copy->open)
        return;
    block_write_query_begin(&copy->writer, copy->type, copy->status, copy->ids, copy->columns);
    copy->open = false;
    copy->begun = true;
}

static void end(struct copy *copy)
{
    begin(copy);
    if (copy->begun)
        block_write_query_end(&copy->writer);
    copy->begun = false;
}

static void on_times(void *context, const struct block_times *times)
{
    block_write_data_begin(&((struct copy *)context)->writer, times);
}

static void on_query(void *context, uint32_t index, uint32_t type, uint32_t status)
{
    struct copy *copy = context;

    (void)index;
    end(copy);
    copy->open = true;
    copy->type = type;
    copy->status = status;
    copy->columns = 0;
}

static void on_counter(void *context, uint32_t id)
{
    struct copy *copy = context;

    copy->ids[copy->columns++] = id;
}

static void on_instance(void *context, const struct block_instance *instance)
{
    begin(context);
    use(instance->name);
    block_write_data_instance(&((struct copy *)context)->writer, instance);
}

static void on_value(void *context, uint32_t column, const uint8_t *value, uint32_t size)
{
    struct copy *copy = context;

    begin(copy);
    CHECK(column < (copy->columns ? copy->columns : 1));
    block_write_value(&copy->writer, value, size);
}

static const struct block_visitor visitor = {on_times, on_query, on_counter, on_instance, on_value};

static size_t copy_data(const uint8_t *data, size_t size, uint8_t *to, struct block_error *error)
{
    static struct copy copy;

    copy.writer = (struct block_writer){.data = to, .room = ROOM};
    copy.open = copy.begun = false;
    if (block_read_data(data, size, &visitor, &copy, error) < 0)
        return 0;
    end(&copy);
    block_write_data_end(&copy.writer);
    CHECK(block_written(&copy.writer));
    return copy.writer.size;
}

/* ---- The others ---- */

static size_t copy_set(const uint8_t *data, size_t size, uint8_t *to, struct block_error *error)
{
    struct block_writer writer = {.data = to, .room = ROOM};
    struct block_counter counters[64], found;
    struct block_set set;

    if (block_read_set(data, size, &set, error) < 0)
        return 0;
    CHECK(set.count <= 64);
    for (uint32_t i = 0; i < set.count; i++) {
        counters[i] = block_set_counter(&set, i);
        CHECK(block_find_counter(&set, counters[i].id, &found));
        CHECK(*perf_type_words(counters[i].type));
    }
    block_write_set(&writer, &set.guid, set.kind, set.detail, counters, set.count);
    CHECK(writer.size == size && block_written(&writer));
    return writer.size;
}

/* Strings may share bytes, so that they grow when they are written: many of them are read only. */
static size_t copy_strings(const uint8_t *data, size_t size, uint8_t *to, struct block_error *error)
{
    struct block_writer writer = {.data = to, .room = ROOM};
    struct block_strings strings;
    struct block_text texts[256];
    uint32_t ids[256];

    if (block_read_strings(data, size, &strings, error) < 0)
        return 0;
    for (uint32_t i = 0; i < strings.count; i++) {
        uint32_t slot = i % 256;
        texts[slot] = block_string(&strings, i, &ids[slot]);
        use(texts[slot]);
        if (texts[slot].units)
            CHECK(block_string_of(&strings, ids[slot]).units);
    }
    if (strings.count > 16)
        return 0;
    block_write_strings(&writer, ids, texts, strings.count);
    CHECK(block_written(&writer));
    return writer.size;
}

static size_t copy_identifiers(const uint8_t *data, size_t size, uint8_t *to,
                               struct block_error *error)
{
    struct block_writer writer = {.data = to, .room = ROOM};
    struct block_reader reader = {.data = data, .size = size};
    struct block_identifier identifier;
    int more;

    while ((more = block_next_identifier(&reader, &identifier)) > 0) {
        use(identifier.name);
        block_write_identifier(&writer, &identifier);
    }
    *error = reader.error;
    CHECK(block_written(&writer));
    return more < 0 ? 0 : writer.size;
}

static size_t copy_instances(const uint8_t *data, size_t size, uint8_t *to,
                             struct block_error *error)
{
    struct block_writer writer = {.data = to, .room = ROOM};
    struct block_reader reader = {.data = data, .size = size};
    struct block_instance instance;
    int more;

    while ((more = block_next_instance(&reader, &instance)) > 0) {
        use(instance.name);
        block_write_instance(&writer, &instance);
    }
    *error = reader.error;
    CHECK(block_written(&writer));
    return more < 0 ? 0 : writer.size;
}

static void check_words(const uint8_t *data, size_t size)
{
    char text[256];
    uint8_t units[512];
    struct block_guid guid;
    long length;

    if (size >= sizeof(text))
        return;
    memcpy(text, data, size);
    text[size] = 0;
    perf_guid_parse(text, &guid);
    length = perf_utf16(text, units, 256);
    CHECK(length <= 256);
    if (length >= 0)
        use((struct block_text){units, (size_t)length});
}

static size_t (*const copies[])(const uint8_t *, size_t, uint8_t *, struct block_error *) = {
    copy_set, copy_strings, copy_identifiers, copy_instances, copy_data};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct block_error error = {0};
    size_t once, twice, which;

    if (!size)
        return 0;
    which = data[0] % (sizeof(copies) / sizeof(copies[0]) + 1);
    if (which == sizeof(copies) / sizeof(copies[0])) {
        check_words(data + 1, size - 1);
        return 0;
    }
    once = copies[which](data + 1, size - 1, written[0], &error);
    CHECK(error.offset <= size);
    if (!once)
        return 0;
    twice = copies[which](written[0], once, written[1], &error);
    CHECK(twice == once && !memcmp(written[0], written[1], once));
    return 0;
}
