/* SPDX-License-Identifier: BSD-3-Clause */
#include "consumer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* winerror.h: ERROR_NOT_ENOUGH_MEMORY, ERROR_INVALID_DATA */
enum { ERROR_MEMORY = 8, ERROR_DATA = 13, MAX_BLOCK = 64 << 20, NAME = 256 };

struct block {
    uint8_t *data; /* NULL: there is none */
    uint32_t size;
};

/* Room for size bytes, empty. */
static bool resize(struct block *block, uint32_t size)
{
    free(block->data);
    block->data = size <= MAX_BLOCK ? malloc(size ? size : 1) : NULL;
    block->size = size;
    return block->data;
}

/* What a sized call has answered: the block has its size, or there is none. */
static uint32_t settle(struct block *block, uint32_t size, uint32_t error)
{
    if (!error && size > block->size)
        error = ERROR_DATA;
    if (error) {
        free(block->data);
        block->data = NULL;
    }
    block->size = size;
    return error;
}

/* A command that is under way. */
struct consumer {
    const struct perf_routines *routines;
    const struct arguments *arguments;
    FILE *err;
};

static int fail(const struct consumer *consumer, const char *what, uint32_t error)
{
    fprintf(consumer->err, "vpmustat: %s: %s (%" PRIu32 ")\n", what, perf_error_words(error),
            error);
    return 1;
}

static int fail_block(const struct consumer *consumer, const char *what,
                      const struct block_error *error)
{
    fprintf(consumer->err, "vpmustat: %s: byte %zu: %s\n", what, error->offset, error->what);
    return 1;
}

/* ---- What the system must have ---- */

struct need {
    const char *name;
    bool there;
};

/* Says by name all that is missing. */
static int check_needs(const struct consumer *consumer, const struct need *needs, size_t count)
{
    int missing = 0;

    for (size_t i = 0; i < count; i++) {
        if (!needs[i].there)
            fprintf(consumer->err, "vpmustat: this system has no %s\n", needs[i].name);
        missing |= !needs[i].there;
    }
    if (missing)
        fprintf(consumer->err, "vpmustat: Windows 10 1607 or Server 2016 is the first to have "
                               "perflib's consumer routines\n");
    return missing;
}

#define NEED(consumer, name) {#name, (consumer)->routines->name != NULL}

/* ---- Registration ---- */

/* A registration block; data NULL: there is none. What has grown meanwhile is asked for again. */
static uint32_t registration(const struct consumer *consumer, const struct block_guid *set,
                             enum perf_request request, struct block *block)
{
    uint32_t size = 0, error;

    *block = (struct block){0};
    do {
        if (!resize(block, size))
            return ERROR_MEMORY;
        error = consumer->routines->PerfQueryCounterSetRegistrationInfo(
            NULL, set, request, 0, block->data, block->size, &size);
    } while (error == ERROR_MEMORY && size > block->size);
    return settle(block, size, error);
}

/* A name as UTF-8; empty where there is none. */
static void name_of(const struct consumer *consumer, const struct block_guid *set,
                    enum perf_request request, char name[NAME])
{
    struct block block;
    struct block_text text;
    struct block_error error;

    name[0] = 0;
    if (registration(consumer, set, request, &block))
        return;
    if (block_read_text(block.data, block.size, &text, &error) == 0)
        perf_text(text, name, NAME);
    free(block.data);
}

/* All that is known of one set. */
struct set {
    struct block_guid guid;
    struct block block, names, english_names;
    struct block_set header;
    struct block_strings strings, english_strings; /* count 0: none */
    char name[NAME], english[NAME], provider[NAME];
};

static int read_names(const struct consumer *consumer, const struct block_guid *guid,
                      enum perf_request request, struct block *block, struct block_strings *strings)
{
    struct block_error error;

    *strings = (struct block_strings){0};
    if (registration(consumer, guid, request, block))
        return 0; /* a set may have no names in this language */
    if (block_read_strings(block->data, block->size, strings, &error) < 0) {
        *strings = (struct block_strings){0};
        return fail_block(consumer, "the names of a set's counters", &error);
    }
    return 0;
}

static void free_set(struct set *set)
{
    free(set->block.data);
    free(set->names.data);
    free(set->english_names.data);
}

static int read_set(const struct consumer *consumer, const struct block_guid *guid, struct set *set)
{
    struct block_error error;
    uint32_t status;

    *set = (struct set){.guid = *guid};
    status = registration(consumer, guid, PERF_REQUEST_SET, &set->block);
    if (status)
        return fail(consumer, "PerfQueryCounterSetRegistrationInfo", status);
    if (block_read_set(set->block.data, set->block.size, &set->header, &error) < 0) {
        free_set(set);
        return fail_block(consumer, "the registration of a set", &error);
    }
    name_of(consumer, guid, PERF_REQUEST_SET_NAME, set->name);
    name_of(consumer, guid, PERF_REQUEST_SET_ENGLISH, set->english);
    name_of(consumer, guid, PERF_REQUEST_PROVIDER, set->provider);
    if (read_names(consumer, guid, PERF_REQUEST_COUNTER_NAMES, &set->names, &set->strings) ||
        read_names(consumer, guid, PERF_REQUEST_COUNTER_ENGLISH, &set->english_names,
                   &set->english_strings)) {
        free_set(set);
        return 1;
    }
    return 0;
}

static void counter_name(const struct block_strings *strings, uint32_t id, char name[NAME])
{
    perf_text(block_string_of(strings, id), name, NAME);
}

/* Every set of the machine; *count of them. NULL where that fails. */
static struct block_guid *all_sets(const struct consumer *consumer, uint32_t *count)
{
    uint32_t room, error;
    struct block_guid *guids = NULL;

    *count = 0;
    do {
        room = *count;
        free(guids);
        guids = calloc((size_t)room + 1, sizeof(*guids));
        error = guids ? consumer->routines->PerfEnumerateCounterSet(NULL, guids, room, count)
                      : ERROR_MEMORY;
    } while (guids && error == ERROR_MEMORY && *count > room);
    if (!error && *count <= room)
        return guids;
    free(guids);
    fail(consumer, "PerfEnumerateCounterSet", error ? error : ERROR_DATA);
    return NULL;
}

/* ---- sets ---- */

static void report_or_none(struct report *report, const char *words)
{
    if (*words)
        report_words(report, words);
    else
        report_none(report);
}

static void report_set_facts(struct report *report, const struct set *set)
{
    char guid[39];

    report_or_none(report, set->english);
    report_or_none(report, strcmp(set->name, set->english) ? set->name : "");
    report_words(report, perf_guid_text(&set->guid, guid));
    report_words(report, perf_kind_words(set->header.kind));
    report_words(report, perf_detail_words(set->header.detail));
    report_or_none(report, set->provider);
}

static void report_set(struct report *report, const struct set *set)
{
    /* A set without counters is a row without one. */
    if (!set->header.count) {
        report_set_facts(report, set);
        while (report->used % report->width && !report->failed)
            report_none(report);
    }
    for (uint32_t i = 0; i < set->header.count; i++) {
        struct block_counter counter = block_set_counter(&set->header, i);
        char name[NAME], english[NAME];

        counter_name(&set->strings, counter.id, name);
        counter_name(&set->english_strings, counter.id, english);
        report_set_facts(report, set);
        report_number(report, counter.id);
        report_words(report, perf_type_words(counter.type));
        report_or_none(report, *english ? english : name);
        if (report->width > 9)
            report_or_none(report, name);
    }
}

static const struct report_column set_columns[] = {
    {"counter set", REPORT_GROUP},  {"local name", REPORT_GROUP}, {"guid", REPORT_GROUP},
    {"instances", REPORT_GROUP},    {"detail", REPORT_GROUP},     {"provider", REPORT_GROUP},
    {"id", REPORT_NUMBER},          {"type", REPORT_WORDS},       {"counter", REPORT_WORDS},
    {"local counter", REPORT_WORDS}};

int consumer_sets(const struct perf_routines *routines, const struct arguments *arguments,
                  FILE *out, FILE *err)
{
    const struct consumer consumer = {routines, arguments, err};
    const struct need needs[] = {NEED(&consumer, PerfEnumerateCounterSet),
                                 NEED(&consumer, PerfQueryCounterSetRegistrationInfo)};
    struct block_guid *guids;
    struct report report;
    uint32_t count = 0;
    int status = 0;

    if (check_needs(&consumer, needs, sizeof(needs) / sizeof(needs[0])))
        return 1;
    guids = all_sets(&consumer, &count);
    if (!guids)
        return 1;
    /* A line of text has no room for the local name of each counter. */
    report_begin(&report, out, arguments->format, set_columns,
                 arguments->format == REPORT_TEXT ? 9 : 10);
    for (uint32_t i = 0; i < count; i++) {
        struct set set;
        if (read_set(&consumer, &guids[i], &set)) {
            status = 1; /* said; the others are still worth seeing */
            continue;
        }
        report_set(&report, &set);
        free_set(&set);
    }
    free(guids);
    return report_end(&report) < 0 ? 1 : status;
}

/* ---- query ---- */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* By GUID, English name or local name. */
static bool is_called(const struct consumer *consumer, const struct block_guid *guid,
                      const char *name)
{
    char its[NAME];

    name_of(consumer, guid, PERF_REQUEST_SET_ENGLISH, its);
    if (same_name(its, name))
        return true;
    name_of(consumer, guid, PERF_REQUEST_SET_NAME, its);
    return same_name(its, name);
}

static int find_set(const struct consumer *consumer, const char *name, struct block_guid *guid)
{
    struct block_guid *guids;
    uint32_t count = 0;

    if (perf_guid_parse(name, guid))
        return 0;
    guids = all_sets(consumer, &count);
    if (!guids)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_called(consumer, &guids[i], name))
            continue;
        *guid = guids[i];
        free(guids);
        return 0;
    }
    free(guids);
    fprintf(consumer->err, "vpmustat: no counter set is called \"%s\"; see vpmustat sets\n", name);
    return 1;
}

static int find_counter(const struct consumer *consumer, const struct set *set, const char *name,
                        uint32_t *id)
{
    *id = BLOCK_ANY;
    if (!*name || strcmp(name, "*") == 0)
        return 0;
    for (uint32_t i = 0; i < set->header.count; i++) {
        char english[NAME], local[NAME];

        *id = block_set_counter(&set->header, i).id;
        counter_name(&set->english_strings, *id, english);
        counter_name(&set->strings, *id, local);
        if (same_name(english, name) || same_name(local, name))
            return 0;
    }
    fprintf(consumer->err, "vpmustat: \"%s\" has no counter called \"%s\"\n",
            *set->english ? set->english : set->name, name);
    return 1;
}

/* The identifier of a query, and what PerfAddCounters has written into it. */
static int add_counters(const struct consumer *consumer, void *query, const struct set *set,
                        const struct query_path *path, uint32_t counter)
{
    static uint8_t units[2 * BLOCK_NAME_MAX];
    static uint8_t bytes[BLOCK_IDENTIFIER_SIZE + 2 * BLOCK_NAME_MAX + 8];
    struct block_writer writer = {.data = bytes, .room = sizeof(bytes)};
    struct block_reader reader = {.data = bytes};
    struct block_identifier identifier = {
        .guid = set->guid, .counter = counter, .instance = BLOCK_ANY};
    bool many = perf_kind_has_instances(set->header.kind);
    const char *name = *path->instance ? path->instance : "*";
    long length = perf_utf16(name, units, BLOCK_NAME_MAX - 1);
    uint32_t error;

    if (*path->instance && !many) {
        fprintf(consumer->err, "vpmustat: \"%s\" has no instances\n", path->set);
        return 1;
    }
    if (length < 0) {
        fprintf(consumer->err, "vpmustat: the instance's name is too long or no UTF-8\n");
        return 1;
    }
    if (many)
        identifier.name = (struct block_text){units, (size_t)length};
    block_write_identifier(&writer, &identifier);
    error = consumer->routines->PerfAddCounters(query, bytes, (uint32_t)writer.size);
    if (error)
        return fail(consumer, "PerfAddCounters", error);
    reader.size = writer.size;
    if (block_next_identifier(&reader, &identifier) <= 0)
        return fail_block(consumer, "PerfAddCounters", &reader.error);
    return identifier.status ? fail(consumer, "PerfAddCounters: the counter", identifier.status)
                             : 0;
}

static int collect(const struct consumer *consumer, void *query, struct block *block)
{
    uint32_t size = 0, error;

    *block = (struct block){0};
    do {
        if (!resize(block, size))
            return fail(consumer, "PerfQueryCounterData", ERROR_MEMORY);
        error = consumer->routines->PerfQueryCounterData(query, block->data, block->size, &size);
    } while (error == ERROR_MEMORY && size > block->size);
    error = settle(block, size, error);
    return error ? fail(consumer, "PerfQueryCounterData", error) : 0;
}

struct value {
    uint32_t counter; /* id */
    uint32_t size;
    const uint8_t *bytes;
    struct block_instance instance; /* name.units NULL: none */
};

/* One look, in the order of the block. */
struct look {
    uint32_t asked; /* the counter that was asked for */
    struct block_times times;
    uint32_t ids[1024];
    uint32_t columns;
    struct block_instance instance;
    struct value values[8192];
    size_t count;
    uint32_t error; /* an answer was an error */
};

static void on_times(void *context, const struct block_times *times)
{
    ((struct look *)context)->times = *times;
}

static void on_query(void *context, uint32_t index, uint32_t type, uint32_t status)
{
    struct look *look = context;

    (void)index;
    look->columns = 0;
    look->instance = (struct block_instance){0};
    if (type == BLOCK_ERROR || status)
        look->error = status ? status : ERROR_DATA;
}

static void on_counter(void *context, uint32_t id)
{
    struct look *look = context;

    if (look->columns < sizeof(look->ids) / sizeof(look->ids[0]))
        look->ids[look->columns++] = id;
}

static void on_instance(void *context, const struct block_instance *instance)
{
    ((struct look *)context)->instance = *instance;
}

static void on_value(void *context, uint32_t column, const uint8_t *value, uint32_t size)
{
    struct look *look = context;

    if (look->count == sizeof(look->values) / sizeof(look->values[0]))
        return;
    look->values[look->count++] = (struct value){
        .counter = column < look->columns ? look->ids[column] : look->asked,
        .size = size,
        .bytes = value,
        .instance = look->instance,
    };
}

static const struct block_visitor visitor = {on_times, on_query, on_counter, on_instance, on_value};

static int take_look(const struct consumer *consumer, void *query, uint32_t asked,
                     struct block *block, struct look *look)
{
    struct block_error error;

    *look = (struct look){.asked = asked};
    if (collect(consumer, query, block))
        return 1;
    if (block_read_data(block->data, block->size, &visitor, look, &error) < 0)
        return fail_block(consumer, "the data", &error);
    return look->error ? fail(consumer, "the provider", look->error) : 0;
}

static bool same_text(struct block_text a, struct block_text b)
{
    return a.length == b.length && (!a.length || memcmp(a.units, b.units, 2 * a.length) == 0);
}

static const struct value *find_value(const struct look *look, const struct value *like)
{
    for (size_t i = 0; i < look->count; i++) {
        const struct value *value = &look->values[i];
        if (value->counter == like->counter && value->instance.id == like->instance.id &&
            same_text(value->instance.name, like->instance.name))
            return value;
    }
    return NULL;
}

/* PERF_COUNTER_COUNTER and PERF_COUNTER_BULK_COUNT: (N1 - N0) / ((T1 - T0) / F), in thousandths. */
static bool rate_of(const struct look *looks, const struct value *now, uint32_t type,
                    uint64_t *rate)
{
    const struct value *before = find_value(&looks[0], now);
    uint64_t n0, n1;
    double seconds;

    if ((type != 0x10410400 && type != 0x10410500) || !before ||
        !block_number(before->bytes, before->size, &n0) ||
        !block_number(now->bytes, now->size, &n1) || looks[1].times.frequency <= 0 || n1 < n0)
        return false;
    seconds =
        (double)(looks[1].times.stamp - looks[0].times.stamp) / (double)looks[1].times.frequency;
    if (seconds <= 0 || (double)(n1 - n0) / seconds > 1e15)
        return false;
    *rate = (uint64_t)((double)(n1 - n0) / seconds * 1000 + 0.5);
    return true;
}

static void report_value(struct report *report, const struct set *set, const struct look *looks,
                         const struct value *value, bool rates)
{
    struct block_counter counter;
    uint64_t number, rate;
    char name[NAME];
    uint32_t type =
        block_find_counter(&set->header, value->counter, &counter) ? counter.type : UINT32_MAX;

    perf_text(value->instance.name, name, sizeof(name));
    report_or_none(report, name);
    counter_name(*set->english ? &set->english_strings : &set->strings, value->counter, name);
    if (!*name)
        snprintf(name, sizeof(name), "%" PRIu32, value->counter);
    report_words(report, name);
    if (block_number(value->bytes, value->size, &number))
        report_number(report, number);
    else
        report_none(report);
    if (rates && rate_of(looks, value, type, &rate))
        report_decimal(report, rate, 3);
    else if (rates)
        report_none(report);
    report_words(report, perf_type_words(type));
}

static int report_looks(const struct consumer *consumer, const struct set *set,
                        const struct look *looks, bool rates, FILE *out)
{
    static const struct report_column with[] = {{"instance", REPORT_WORDS},
                                                {"counter", REPORT_WORDS},
                                                {"value", REPORT_NUMBER},
                                                {"per second", REPORT_NUMBER},
                                                {"type", REPORT_WORDS}};
    static const struct report_column without[] = {{"instance", REPORT_WORDS},
                                                   {"counter", REPORT_WORDS},
                                                   {"value", REPORT_NUMBER},
                                                   {"type", REPORT_WORDS}};
    const struct look *last = &looks[rates];
    struct report report;

    if (!last->count) {
        fprintf(consumer->err, "vpmustat: no instance has data\n");
        return 1;
    }
    report_begin(&report, out, consumer->arguments->format, rates ? with : without, rates ? 5 : 4);
    for (size_t i = 0; i < last->count; i++)
        report_value(&report, set, looks, &last->values[i], rates);
    return report_end(&report) < 0;
}

static int run_query(const struct consumer *consumer, void *query, const struct set *set,
                     uint32_t counter, void (*sleep_ms)(uint32_t), FILE *out)
{
    bool rates = consumer->arguments->seconds > 0;
    struct look *looks = calloc(2, sizeof(*looks));
    struct block blocks[2] = {0};
    int status = 1;

    if (!looks)
        return fail(consumer, "query", ERROR_MEMORY);
    if (take_look(consumer, query, counter, &blocks[0], &looks[0]) == 0) {
        status = 0;
        if (rates) {
            sleep_ms(consumer->arguments->seconds * 1000);
            status = take_look(consumer, query, counter, &blocks[1], &looks[1]);
        }
    }
    if (!status)
        status = report_looks(consumer, set, looks, rates, out);
    free(blocks[0].data);
    free(blocks[1].data);
    free(looks);
    return status;
}

static int query_set(const struct consumer *consumer, const struct set *set,
                     const struct query_path *path, void (*sleep_ms)(uint32_t), FILE *out)
{
    uint32_t counter, error;
    void *query = NULL;
    int status;

    if (find_counter(consumer, set, path->counter, &counter))
        return 1;
    error = consumer->routines->PerfOpenQueryHandle(NULL, &query);
    if (error)
        return fail(consumer, "PerfOpenQueryHandle", error);
    status = add_counters(consumer, query, set, path, counter);
    if (!status)
        status = run_query(consumer, query, set, counter, sleep_ms, out);
    consumer->routines->PerfCloseQueryHandle(query);
    return status;
}

int consumer_query(const struct perf_routines *routines, const struct arguments *arguments,
                   void (*sleep_ms)(uint32_t), FILE *out, FILE *err)
{
    const struct consumer consumer = {routines, arguments, err};
    const struct need needs[] = {
        NEED(&consumer, PerfEnumerateCounterSet),
        NEED(&consumer, PerfQueryCounterSetRegistrationInfo),
        NEED(&consumer, PerfOpenQueryHandle),
        NEED(&consumer, PerfAddCounters),
        NEED(&consumer, PerfQueryCounterData),
        NEED(&consumer, PerfCloseQueryHandle),
    };
    struct query_path path;
    struct block_guid guid;
    struct set set;
    int status;

    if (check_needs(&consumer, needs, sizeof(needs) / sizeof(needs[0])))
        return 1;
    if (query_path_parse(arguments->query, &path) < 0) {
        fprintf(err, "vpmustat: %s: SET[(INSTANCE)][\\COUNTER] is expected\n", arguments->query);
        return 1;
    }
    if (find_set(&consumer, path.set, &guid) || read_set(&consumer, &guid, &set))
        return 1;
    status = query_set(&consumer, &set, &path, sleep_ms, out);
    free_set(&set);
    return status;
}
