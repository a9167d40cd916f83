/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing, as Windows would: for a double of the consumer routines, and for tests. */

#include "block.h"

#include "bytes.h"

static void put_at(struct block_writer *writer, size_t at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        if (writer->data && at + i < writer->room)
            writer->data[at + i] = (uint8_t)(value >> 8 * i);
    }
}

static void put(struct block_writer *writer, uint64_t value, unsigned size)
{
    put_at(writer, writer->size, value, size);
    writer->size += size;
}

static void put_bytes(struct block_writer *writer, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        put(writer, bytes[i], 1);
}

static void pad(struct block_writer *writer, size_t start)
{
    while ((writer->size - start) % 8)
        put(writer, 0, 1);
}

/* The size of what began at start, into its field. */
static void put_size(struct block_writer *writer, size_t start, size_t field)
{
    put_at(writer, start + field, writer->size - start, 4);
}

bool block_written(const struct block_writer *writer)
{
    return writer->data && writer->size <= writer->room;
}

static void put_counter(struct block_writer *writer, const struct block_counter *counter)
{
    put(writer, counter->id, 4);
    put(writer, counter->type, 4);
    put(writer, counter->attributes, 8);
    put(writer, counter->detail, 4);
    put(writer, (uint32_t)counter->scale, 4);
    put(writer, counter->base_id, 4);
    put(writer, counter->time_id, 4);
    put(writer, counter->frequency_id, 4);
    put(writer, counter->multi_id, 4);
    put(writer, counter->aggregate, 4);
    put(writer, 0, 4);
}

void block_write_set(struct block_writer *writer, const struct block_guid *guid, uint32_t kind,
                     uint32_t detail, const struct block_counter *counters, uint32_t count)
{
    put_bytes(writer, guid->byte, sizeof(guid->byte));
    put(writer, 0, 4);
    put(writer, detail, 4);
    put(writer, count, 4);
    put(writer, kind, 4);
    for (uint32_t i = 0; i < count; i++)
        put_counter(writer, &counters[i]);
}

void block_write_text(struct block_writer *writer, struct block_text text)
{
    put_bytes(writer, text.units, text.length * 2);
    put(writer, 0, 2);
}

void block_write_strings(struct block_writer *writer, const uint32_t *ids,
                         const struct block_text *texts, uint32_t count)
{
    size_t start = writer->size;

    put(writer, 0, 4);
    put(writer, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        put(writer, ids[i], 4);
        put(writer, 0xffffffffu, 4);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!texts[i].units)
            continue;
        put_at(writer, start + 12 + 8 * (size_t)i, writer->size - start, 4);
        block_write_text(writer, texts[i]);
    }
    put_size(writer, start, 0);
}

void block_write_identifier(struct block_writer *writer, const struct block_identifier *identifier)
{
    size_t start = writer->size;

    put_bytes(writer, identifier->guid.byte, sizeof(identifier->guid.byte));
    put(writer, identifier->status, 4);
    put(writer, 0, 4);
    put(writer, identifier->counter, 4);
    put(writer, identifier->instance, 4);
    put(writer, identifier->index, 4);
    put(writer, 0, 4);
    if (identifier->name.units)
        block_write_text(writer, identifier->name);
    pad(writer, start);
    put_size(writer, start, 20);
}

void block_write_instance(struct block_writer *writer, const struct block_instance *instance)
{
    size_t start = writer->size;

    put(writer, 0, 4);
    put(writer, instance->id, 4);
    block_write_text(writer, instance->name);
    pad(writer, start);
    put_size(writer, start, 0);
}

void block_write_data_begin(struct block_writer *writer, const struct block_times *times)
{
    put(writer, 0, 4);
    put(writer, 0, 4);
    put(writer, (uint64_t)times->stamp, 8);
    put(writer, (uint64_t)times->time_100ns, 8);
    put(writer, (uint64_t)times->frequency, 8);
    for (size_t i = 0; i < 8; i++)
        put(writer, times->system[i], 2);
}

void block_write_query_begin(struct block_writer *writer, uint32_t type, uint32_t status,
                             const uint32_t *ids, uint32_t count)
{
    writer->query = writer->size;
    writer->table = 0;
    writer->queries++;
    put(writer, status, 4);
    put(writer, type, 4);
    put(writer, 0, 8);
    if (type == BLOCK_MULTIPLE_COUNTERS || type == BLOCK_COUNTERSET) {
        put(writer, BLOCK_SMALL_SIZE + 4 * (uint64_t)count, 4);
        put(writer, count, 4);
        for (uint32_t i = 0; i < count; i++)
            put(writer, ids[i], 4);
    }
    if (type == BLOCK_MULTIPLE_INSTANCES || type == BLOCK_COUNTERSET) {
        writer->table = writer->size;
        writer->instances = 0;
        put(writer, 0, 8);
    }
}

void block_write_data_instance(struct block_writer *writer, const struct block_instance *instance)
{
    writer->instances++;
    block_write_instance(writer, instance);
}

void block_write_value(struct block_writer *writer, const void *value, uint32_t size)
{
    size_t start = writer->size;

    put(writer, size, 4);
    put(writer, 0, 4);
    put_bytes(writer, value, size);
    pad(writer, start);
    put_size(writer, start, 4);
}

void block_write_query_end(struct block_writer *writer)
{
    if (writer->table) {
        put_size(writer, writer->table, 0);
        put_at(writer, writer->table + 4, writer->instances, 4);
    }
    put_size(writer, writer->query, 8);
}

void block_write_data_end(struct block_writer *writer)
{
    put_at(writer, 0, writer->size, 4);
    put_at(writer, 4, writer->queries, 4);
}
