/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The blocks that perflib V2 hands to consumers: registrations, strings, identifiers, instances,
 * data. Read and written field by field, so that it needs no Windows header, no alignment and no
 * byte order. Layouts: Microsoft's documentation of perflib.h; docs/perflib.md has them in a table.
 *
 * A reader never reads past the size that it is given, checks every length and count, and says
 * where it stopped. Nothing is allocated: what a reader gives out points into the block.
 */
#ifndef PERFLIB_BLOCK_H
#define PERFLIB_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BLOCK_SET_SIZE = 32,        /* PERF_COUNTERSET_REG_INFO */
    BLOCK_COUNTER_SIZE = 48,    /* PERF_COUNTER_REG_INFO */
    BLOCK_IDENTIFIER_SIZE = 40, /* PERF_COUNTER_IDENTIFIER */
    BLOCK_DATA_SIZE = 48,       /* PERF_DATA_HEADER */
    BLOCK_QUERY_SIZE = 16,      /* PERF_COUNTER_HEADER */
    BLOCK_SMALL_SIZE = 8,       /* all the others */
    BLOCK_NAME_MAX = 1024,      /* UTF-16 units of an instance's name, with its zero */
};

#define BLOCK_ANY 0xffffffffu   /* PERF_WILDCARD_COUNTER; of an instance's id: any */
#define BLOCK_NO_ID 0xffffffffu /* PERF_REG_...Id: none */

/* What is wrong with a block, and at which of its bytes. */
struct block_error {
    const char *what;
    size_t offset;
};

struct block_guid {
    uint8_t byte[16]; /* as in memory */
};

/* A UTF-16 string in a block, without its zero. NULL: there is none. */
struct block_text {
    const uint8_t *units; /* little-endian, of no alignment */
    size_t length;        /* units */
};

/* ---- Registration: PerfQueryCounterSetRegistrationInfo ---- */

enum block_set_kind { /* PERF_COUNTERSET_... */
                      BLOCK_SINGLE_INSTANCE = 0,
                      BLOCK_MULTI_INSTANCES = 2,
                      BLOCK_SINGLE_AGGREGATE = 4,
                      BLOCK_MULTI_AGGREGATE = 6,
                      BLOCK_SINGLE_AGGREGATE_HISTORY = 12,
                      BLOCK_INSTANCE_AGGREGATE = 22,
};

struct block_set {
    struct block_guid guid;
    uint32_t detail; /* 100 novice, 200 advanced, ... */
    uint32_t count;  /* counters */
    uint32_t kind;   /* enum block_set_kind, or what is not known yet */
    const uint8_t *counters;
};

struct block_counter {
    uint32_t id;
    uint32_t type; /* PERF_COUNTER_... of winperf.h */
    uint64_t attributes;
    uint32_t detail;
    int32_t scale; /* of a chart: ten to the power of it */
    uint32_t base_id, time_id, frequency_id, multi_id;
    uint32_t aggregate; /* enum PERF_COUNTER_AGGREGATE_FUNC */
};

/** Reads a set's block, which must have exactly its size. Returns 0, or -1 with *error. */
int block_read_set(const void *data, size_t size, struct block_set *set, struct block_error *error);

/** Counter i, below set->count. */
struct block_counter block_set_counter(const struct block_set *set, uint32_t i);

/** Counter with that id. Returns whether there is one. */
bool block_find_counter(const struct block_set *set, uint32_t id, struct block_counter *counter);

struct block_strings {
    uint32_t count;
    const uint8_t *block;
    size_t size;
};

/** Reads the names or the help of a set's counters (PERF_STRING_BUFFER_HEADER). As above. */
int block_read_strings(const void *data, size_t size, struct block_strings *strings,
                       struct block_error *error);

/** String i, below strings->count, and the counter that it is of. */
struct block_text block_string(const struct block_strings *strings, uint32_t i, uint32_t *id);

/** The string of a counter; none if it has none. */
struct block_text block_string_of(const struct block_strings *strings, uint32_t id);

/** Reads one string with its zero, as the set's name comes. Returns 0, or -1 with *error. */
int block_read_text(const void *data, size_t size, struct block_text *text,
                    struct block_error *error);

/* ---- Sequences: where a block follows a block ---- */

struct block_reader {
    const uint8_t *data;
    size_t size;
    size_t at; /* the next block */
    struct block_error error;
};

struct block_identifier { /* PERF_COUNTER_IDENTIFIER: what a query asks for */
    struct block_guid guid;
    uint32_t status;  /* Win32 error of adding it */
    uint32_t counter; /* id, or BLOCK_ANY */
    uint32_t instance;
    uint32_t index;         /* of its answer in the data */
    struct block_text name; /* of the instances; none: any, or single-instance */
};

struct block_instance { /* PERF_INSTANCE_HEADER */
    uint32_t id;
    struct block_text name;
};

/** The next one. Returns 1, 0 at the end, or -1 with reader->error. */
int block_next_identifier(struct block_reader *reader, struct block_identifier *identifier);
int block_next_instance(struct block_reader *reader, struct block_instance *instance);

/* ---- Data: PerfQueryCounterData ---- */

enum block_answer { /* PERF_COUNTER_HEADER.dwType */
                    BLOCK_ERROR = 0,
                    BLOCK_SINGLE_COUNTER = 1,
                    BLOCK_MULTIPLE_COUNTERS = 2,
                    BLOCK_MULTIPLE_INSTANCES = 4,
                    BLOCK_COUNTERSET = 6,
};

struct block_times {
    int64_t stamp; /* of QueryPerformanceCounter */
    int64_t time_100ns;
    int64_t frequency;  /* of stamp, in Hz */
    uint16_t system[8]; /* SYSTEMTIME, UTC */
};

/* Called in the order of the block. Any may be NULL. */
struct block_visitor {
    void (*times)(void *context, const struct block_times *times);
    /* status: a Win32 error, where type is BLOCK_ERROR; ids are of the values of each instance */
    void (*query)(void *context, uint32_t index, uint32_t type, uint32_t status);
    void (*counter)(void *context, uint32_t id); /* a column; none: the one that was asked for */
    void (*instance)(void *context, const struct block_instance *instance);
    /* column: which of the ids; size: 4 or 8 for all types but texts */
    void (*value)(void *context, uint32_t column, const uint8_t *value, uint32_t size);
};

/**
 * Checks a whole data block, and only then visits what is in it (visitor may be NULL). Returns 0,
 * or -1 with *error.
 */
int block_read_data(const void *data, size_t size, const struct block_visitor *visitor,
                    void *context, struct block_error *error);

/** A value of 4 or 8 bytes as a number. Returns whether it has that size. */
bool block_number(const uint8_t *value, uint32_t size, uint64_t *number);

/* ---- Writing ---- */

/* Counts on where the room ends: size is then what the block needs. */
struct block_writer {
    uint8_t *data; /* NULL: only count */
    size_t room;
    size_t size;
    size_t query, table; /* begin of the open query and of its table of instances */
    uint32_t queries, instances;
};

/** Whether all that was written has found room. */
bool block_written(const struct block_writer *writer);

void block_write_set(struct block_writer *writer, const struct block_guid *guid, uint32_t kind,
                     uint32_t detail, const struct block_counter *counters, uint32_t count);

/** A string of UTF-16 units in memory, and its zero. */
void block_write_text(struct block_writer *writer, struct block_text text);

/** texts[i] belongs to counter ids[i]; without units: the counter has none. */
void block_write_strings(struct block_writer *writer, const uint32_t *ids,
                         const struct block_text *texts, uint32_t count);
void block_write_identifier(struct block_writer *writer, const struct block_identifier *identifier);
void block_write_instance(struct block_writer *writer, const struct block_instance *instance);

/* A data block: begin, then queries, each with the columns, instances and values of its type. */
void block_write_data_begin(struct block_writer *writer, const struct block_times *times);
void block_write_query_begin(struct block_writer *writer, uint32_t type, uint32_t status,
                             const uint32_t *ids, uint32_t count);
void block_write_data_instance(struct block_writer *writer, const struct block_instance *instance);
void block_write_value(struct block_writer *writer, const void *value, uint32_t size);
void block_write_query_end(struct block_writer *writer);
void block_write_data_end(struct block_writer *writer);

#endif
