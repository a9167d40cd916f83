/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A double of perflib's consumer routines: a machine with a counter set of every kind, whose
 * answers are blocks; the last set has no counters. As a DLL it stands in for Windows under Wine;
 * in unit tests it is linked.
 *
 * The environment variable PERFLIB_DOUBLE makes it lie: "truncated" cuts each block in half,
 * "error" has the provider fail, "empty" has no instances.
 */

#include <stdlib.h>
#include <string.h>

#include "guest-drivers/perflib/words.h"

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

enum { SETS = 7, COUNTERS = 3, NOT_ENOUGH_MEMORY = 8, NOT_FOUND = 1168, NO_SET = 4200 };

static const struct {
    uint32_t kind;
    const char *english, *local;
} sets[SETS] = {
    {BLOCK_SINGLE_INSTANCE, "Double Single", "Doppel Einzeln"},
    {BLOCK_MULTI_INSTANCES, "Double Multi", "Doppel Mehrfach"},
    {BLOCK_SINGLE_AGGREGATE, "Double Single Aggregate", "Doppel Einzeln Summe"},
    {BLOCK_MULTI_AGGREGATE, "Double Multi Aggregate", "Doppel Mehrfach Summe"},
    {BLOCK_SINGLE_AGGREGATE_HISTORY, "Double History", "Doppel Verlauf"},
    {BLOCK_INSTANCE_AGGREGATE, "Double Instance Aggregate", "Doppel Instanz Summe"},
    {40, "Double, of \"tomorrow\"", "Doppel von morgen"},
};

static const struct {
    uint32_t id, type;
    const char *english, *local;
} counters[COUNTERS] = {
    {1, 0x10410500, "Instructions", "Befehle"},
    {2, 0x00010100, "State", "Zustand"},
    {3, 0x40020500, "IPC", "IPC"},
};

static struct block_guid guid_of(uint32_t set)
{
    struct block_guid guid = {{0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe}};

    guid.byte[15] = (uint8_t)(set + 1);
    return guid;
}

static uint32_t set_of(const struct block_guid *guid)
{
    for (uint32_t i = 0; i < SETS; i++) {
        struct block_guid its = guid_of(i);
        if (memcmp(&its, guid, sizeof(its)) == 0)
            return i;
    }
    return SETS;
}

static int lies(const char *how)
{
    const char *wanted = getenv("PERFLIB_DOUBLE");

    return wanted && strcmp(wanted, how) == 0;
}

/* A sized answer, as the documentation has it. */
static uint32_t answer(struct block_writer *writer, uint32_t *size)
{
    if (lies("truncated"))
        writer->size /= 2;
    *size = (uint32_t)writer->size;
    return writer->size <= writer->room ? 0 : NOT_ENOUGH_MEMORY;
}

static struct block_text text_of(const char *utf8, uint8_t units[256])
{
    return (struct block_text){units, (size_t)perf_utf16(utf8, units, 128)};
}

static void write_text(struct block_writer *writer, const char *utf8)
{
    uint8_t units[256];

    block_write_text(writer, text_of(utf8, units));
}

static void write_names(struct block_writer *writer, int english)
{
    uint8_t units[COUNTERS][256];
    struct block_text texts[COUNTERS];
    uint32_t ids[COUNTERS];

    for (uint32_t i = 0; i < COUNTERS; i++) {
        ids[i] = counters[i].id;
        texts[i] = text_of(english ? counters[i].english : counters[i].local, units[i]);
    }
    block_write_strings(writer, ids, texts, COUNTERS);
}

static void write_set(struct block_writer *writer, uint32_t set)
{
    struct block_counter rows[COUNTERS] = {0};
    struct block_guid guid = guid_of(set);

    for (uint32_t i = 0; i < COUNTERS; i++)
        rows[i] = (struct block_counter){.id = counters[i].id,
                                         .type = counters[i].type,
                                         .detail = 100,
                                         .base_id = BLOCK_NO_ID,
                                         .time_id = BLOCK_NO_ID,
                                         .frequency_id = BLOCK_NO_ID,
                                         .multi_id = BLOCK_NO_ID};
    block_write_set(writer, &guid, sets[set].kind, 200, rows, set + 1 < SETS ? COUNTERS : 0);
}

EXPORT uint32_t PerfEnumerateCounterSet(const uint16_t *machine, struct block_guid *ids,
                                        uint32_t room, uint32_t *count);
EXPORT uint32_t PerfEnumerateCounterSetInstances(const uint16_t *machine,
                                                 const struct block_guid *set, void *instances,
                                                 uint32_t room, uint32_t *size);
EXPORT uint32_t PerfQueryCounterSetRegistrationInfo(const uint16_t *machine,
                                                    const struct block_guid *guid, uint32_t request,
                                                    uint32_t language, void *info, uint32_t room,
                                                    uint32_t *size);
EXPORT uint32_t PerfOpenQueryHandle(const uint16_t *machine, void **query);
EXPORT uint32_t PerfCloseQueryHandle(void *query);
EXPORT uint32_t PerfAddCounters(void *query, void *identifiers, uint32_t size);
EXPORT uint32_t PerfQueryCounterData(void *query, void *data, uint32_t room, uint32_t *size);

uint32_t PerfEnumerateCounterSet(const uint16_t *machine, struct block_guid *ids, uint32_t room,
                                 uint32_t *count)
{
    (void)machine;
    *count = SETS;
    if (room < SETS)
        return NOT_ENOUGH_MEMORY;
    for (uint32_t i = 0; i < SETS; i++)
        ids[i] = guid_of(i);
    return 0;
}

uint32_t PerfQueryCounterSetRegistrationInfo(const uint16_t *machine, const struct block_guid *guid,
                                             uint32_t request, uint32_t language, void *info,
                                             uint32_t room, uint32_t *size)
{
    struct block_writer writer = {.data = info, .room = room};
    uint32_t set = set_of(guid);

    (void)machine;
    (void)language;
    if (set == SETS)
        return NO_SET;
    switch (request) {
    case 1:
        write_set(&writer, set);
        break;
    case 3:
        write_text(&writer, sets[set].local);
        break;
    case 5:
        write_names(&writer, 0);
        break;
    case 7:
        write_text(&writer, "perflib double");
        break;
    case 9:
        write_text(&writer, sets[set].english);
        break;
    case 10:
        write_names(&writer, 1);
        break;
    default:
        return NOT_FOUND;
    }
    return answer(&writer, size);
}

/* ---- One query at a time ---- */

static struct {
    int open;
    struct block_identifier asked;
    uint8_t name[256];
    uint32_t set;
    uint64_t looks;
} query;

uint32_t PerfOpenQueryHandle(const uint16_t *machine, void **handle)
{
    (void)machine;
    if (query.open)
        return 170;
    memset(&query, 0, sizeof(query));
    query.open = 1;
    query.set = SETS;
    *handle = &query;
    return 0;
}

uint32_t PerfCloseQueryHandle(void *handle)
{
    if (handle != &query || !query.open)
        return 6;
    query.open = 0;
    return 0;
}

/* A set with instances wants a name, one without has none. */
static uint32_t status_of(const struct block_identifier *identifier)
{
    uint32_t set = set_of(&identifier->guid);

    if (set == SETS)
        return NO_SET;
    if (perf_kind_has_instances(sets[set].kind) != (identifier->name.units != NULL))
        return 87;
    if (identifier->counter != BLOCK_ANY && identifier->counter - 1 >= COUNTERS)
        return NOT_FOUND;
    return 0;
}

uint32_t PerfAddCounters(void *handle, void *identifiers, uint32_t size)
{
    struct block_reader reader = {.data = identifiers, .size = size};
    uint32_t status;

    if (handle != &query || block_next_identifier(&reader, &query.asked) <= 0)
        return 87;
    status = status_of(&query.asked);
    memcpy((uint8_t *)identifiers + 16, &status, 4);
    if (status)
        return 0;
    query.set = set_of(&query.asked.guid);
    if (query.asked.name.units) {
        memcpy(query.name, query.asked.name.units, 2 * query.asked.name.length);
        query.asked.name.units = query.name;
    }
    return 0;
}

/* Instance i counts 1000 i + 100 of each look; a state is 2. */
static void write_values(struct block_writer *writer, uint64_t instance)
{
    const uint64_t values[COUNTERS] = {(1000 * instance + 100) * query.looks, 2, instance};

    for (uint32_t i = 0; i < COUNTERS; i++) {
        if (query.asked.counter == BLOCK_ANY || query.asked.counter == counters[i].id)
            block_write_value(writer, &values[i], 8);
    }
}

static void write_instances(struct block_writer *writer)
{
    static const char *const names[] = {"0", "1", "_Total"};
    char wanted[128];

    perf_text(query.asked.name, wanted, sizeof(wanted));
    for (uint32_t i = 0; i < 3 && !lies("empty"); i++) {
        uint8_t units[256];
        struct block_instance instance = {i, text_of(names[i], units)};
        if (strcmp(wanted, "*") && strcmp(wanted, names[i]))
            continue;
        block_write_data_instance(writer, &instance);
        write_values(writer, i);
    }
}

static void write_answer(struct block_writer *writer)
{
    static const uint32_t ids[] = {1, 2, 3};
    int many = perf_kind_has_instances(sets[query.set].kind);
    int all = query.asked.counter == BLOCK_ANY;
    uint32_t type = many ? (all ? BLOCK_COUNTERSET : BLOCK_MULTIPLE_INSTANCES)
                         : (all ? BLOCK_MULTIPLE_COUNTERS : BLOCK_SINGLE_COUNTER);

    if (lies("error")) {
        block_write_query_begin(writer, BLOCK_ERROR, NOT_FOUND, NULL, 0);
    } else {
        block_write_query_begin(writer, type, 0, ids, COUNTERS);
        if (many)
            write_instances(writer);
        else
            write_values(writer, 0);
    }
    block_write_query_end(writer);
}

uint32_t PerfQueryCounterData(void *handle, void *data, uint32_t room, uint32_t *size)
{
    struct block_writer writer = {.data = data, .room = room};
    struct block_times times = {.stamp = (int64_t)(query.looks + 1) * 2000, .frequency = 1000};
    uint32_t status;

    if (handle != &query || query.set == SETS)
        return 87;
    query.looks++;
    block_write_data_begin(&writer, &times);
    write_answer(&writer);
    block_write_data_end(&writer);
    status = answer(&writer, size);
    if (status)
        query.looks--; /* asked again with more room */
    return status;
}

uint32_t PerfEnumerateCounterSetInstances(const uint16_t *machine, const struct block_guid *set,
                                          void *instances, uint32_t room, uint32_t *size)
{
    uint8_t units[256];
    struct block_writer writer = {.data = instances, .room = room};
    struct block_instance instance = {0, text_of("0", units)};

    (void)machine;
    if (set_of(set) == SETS)
        return NO_SET;
    block_write_instance(&writer, &instance);
    return answer(&writer, size);
}
