/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file as a source: a line for the VM, then one for each counter. It is read again at each look,
 * so that whoever writes it decides what happens next.
 */

#include "file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "vpmu/status.h"

struct word {
    const char *at;
    size_t length;
};

struct parser {
    const char *at, *end; /* the rest of the line */
    uint32_t line;
    bool has_vm;
    struct source_file_content *content;
    struct source_error *error;
};

static int wrong(struct parser *parser, const char *what)
{
    *parser->error = (struct source_error){.what = what, .line = parser->line};
    return -1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; empty at its end. */
static struct word next_word(struct parser *parser)
{
    struct word word;

    while (parser->at < parser->end && is_space(*parser->at))
        parser->at++;
    word.at = parser->at;
    while (parser->at < parser->end && !is_space(*parser->at))
        parser->at++;
    word.length = (size_t)(parser->at - word.at);
    return word;
}

static bool word_is(struct word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.at, text, word.length) == 0;
}

/* Decimal digits, or "-" for what is not known. */
static bool number_of(struct word word, uint64_t *value)
{
    uint64_t sum = 0;

    if (word_is(word, "-")) {
        *value = SOURCE_NOT_KNOWN;
        return true;
    }
    for (size_t i = 0; i < word.length; i++) {
        unsigned digit = (unsigned)(word.at[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    return word.length > 0 && sum != SOURCE_NOT_KNOWN;
}

/* A name out of those that name() has for 0 to count - 1. */
static bool name_of(struct word word, const char *(*name)(uint64_t), uint64_t count,
                    uint64_t *value)
{
    for (*value = 0; *value < count; (*value)++) {
        if (word_is(word, name(*value)))
            return true;
    }
    return false;
}

static const char *event_name(uint64_t event)
{
    return source_event_name((uint32_t)event);
}

static const char *state_name(uint64_t state)
{
    return source_state_name((uint32_t)state);
}

/* What a line may say: a key, and what its value is. */
struct key {
    const char *key;
    const char *(*name)(uint64_t); /* NULL: a number */
    uint64_t limit;                /* values are below it */
    bool may_miss;
    bool may_be_unknown;
};

enum { VM_KEYS = 10, COUNTER_KEYS = 7 };

static const struct key vm_keys[VM_KEYS] = {
    {"processors", NULL, SOURCE_FILE_PROCESSORS + 1, false, false},
    {"shape", NULL, SOURCE_MAX_RECORDS + 1, true, true},
    {"granted", NULL, SOURCE_MAX_RECORDS + 1, true, true},
    {"starved", NULL, SOURCE_MAX_RECORDS + 1, true, true},
    {"filtered", NULL, SOURCE_MAX_RECORDS + 1, true, true},
    {"revocations", NULL, UINT32_MAX, true, true},
    {"host", source_host_name, VPMU_SOURCE_KVM + 1, true, false},
    {"class", source_class_name, VPMU_EVENT_CLASSES, true, false},
    {"gp_width", NULL, 65, true, true},
    {"fixed_width", NULL, 65, true, true},
};

static const struct key counter_keys[COUNTER_KEYS] = {
    {"processor", NULL, SOURCE_FILE_PROCESSORS, false, false},
    {"counter", NULL, 64, false, false},
    {"event", event_name, VPMU_EVENTS, false, false},
    {"state", state_name, VPMU_COUNTER_STATES, false, false},
    {"value", NULL, SOURCE_NOT_KNOWN, false, false},
    {"enabled_ns", NULL, SOURCE_NOT_KNOWN, true, true},
    {"backed_ns", NULL, SOURCE_NOT_KNOWN, true, true},
};

static int parse_value(struct parser *parser, const struct key *key, struct word word,
                       uint64_t *value)
{
    bool good = key->name ? name_of(word, key->name, key->limit, value) : number_of(word, value);

    if (!good)
        return wrong(parser, key->name ? "no such name" : "a number is expected");
    if (*value == SOURCE_NOT_KNOWN)
        return key->may_be_unknown ? 0 : wrong(parser, "this must be known");
    return *value < key->limit ? 0 : wrong(parser, "the number is too large");
}

static int parse_key(struct parser *parser, const struct key *keys, size_t count, struct word word,
                     uint64_t *values, uint32_t *seen)
{
    const char *equals = memchr(word.at, '=', word.length);
    struct word key = {word.at, equals ? (size_t)(equals - word.at) : 0};
    struct word value;

    if (!equals)
        return wrong(parser, "KEY=VALUE is expected");
    value = (struct word){equals + 1, word.length - key.length - 1};
    for (size_t i = 0; i < count; i++) {
        if (!word_is(key, keys[i].key))
            continue;
        if (*seen >> i & 1)
            return wrong(parser, "a key stands twice");
        *seen |= 1u << i;
        return parse_value(parser, &keys[i], value, &values[i]);
    }
    return wrong(parser, "no such key");
}

static int parse_keys(struct parser *parser, const struct key *keys, size_t count, uint64_t *values)
{
    uint32_t seen = 0;

    for (size_t i = 0; i < count; i++)
        values[i] = SOURCE_NOT_KNOWN;
    for (struct word word = next_word(parser); word.length; word = next_word(parser)) {
        if (parse_key(parser, keys, count, word, values, &seen) < 0)
            return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!keys[i].may_miss && !(seen >> i & 1))
            return wrong(parser, "a key is missing");
    }
    return 0;
}

static int parse_vm(struct parser *parser)
{
    uint64_t v[VM_KEYS];
    struct source_file_content *content = parser->content;

    if (parser->has_vm)
        return wrong(parser, "a second line for the VM");
    if (parse_keys(parser, vm_keys, VM_KEYS, v) < 0)
        return -1;
    content->facts = (struct source_facts){
        .processors = (uint32_t)v[0],
        .shape = v[1],
        .granted = v[2],
        .starved = v[3],
        .filtered = v[4],
        .revocations = v[5],
        .host = v[6],
        .event_class = v[7],
        .gp_width = v[8],
        .fixed_width = v[9],
    };
    content->processors = calloc(v[0] + 1, sizeof(*content->processors));
    if (!content->processors)
        return wrong(parser, "out of memory");
    for (uint32_t i = 0; i < v[0]; i++)
        content->processors[i].processor = i;
    parser->has_vm = true;
    return 0;
}

static int parse_counter(struct parser *parser)
{
    uint64_t v[COUNTER_KEYS];
    struct source_processor *processor;

    if (parse_keys(parser, counter_keys, COUNTER_KEYS, v) < 0)
        return -1;
    if (!parser->has_vm || v[0] >= parser->content->facts.processors)
        return wrong(parser, "no such processor");
    processor = &parser->content->processors[v[0]];
    if (processor->count == SOURCE_MAX_RECORDS)
        return wrong(parser, "too many counters");
    if (processor->count && v[1] <= processor->records[processor->count - 1].counter)
        return wrong(parser, "counters are not in the order of their indices");
    processor->records[processor->count++] = (struct source_record){
        .counter = (uint32_t)v[1],
        .event = (uint32_t)v[2],
        .state = (uint32_t)v[3],
        .value = v[4],
        .enabled_ns = v[5],
        .backed_ns = v[6],
    };
    return 0;
}

static int parse_line(struct parser *parser)
{
    struct word word = next_word(parser);

    if (!word.length || word.at[0] == '#')
        return 0;
    if (word_is(word, "vm"))
        return parse_vm(parser);
    if (word_is(word, "counter"))
        return parse_counter(parser);
    return wrong(parser, "a line begins with vm, counter or #");
}

/* What the VM's line does not say follows from the counters. */
static void count_states(struct source_file_content *content)
{
    struct source_facts *facts = &content->facts;
    struct source_facts counted = *facts;
    struct source_tally tally = {0};

    for (uint32_t i = 0; i < facts->processors; i++)
        source_tally(&tally, &content->processors[i]);
    source_tally_end(&tally, &counted);
    if (facts->starved == SOURCE_NOT_KNOWN)
        facts->starved = counted.starved;
    if (facts->filtered == SOURCE_NOT_KNOWN)
        facts->filtered = counted.filtered;
}

static int parse_lines(struct parser *parser, const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));

        parser->at = text;
        parser->end = newline ? newline : end;
        parser->line++;
        text = newline ? newline + 1 : end;
        if (parse_line(parser) < 0)
            return -1;
    }
    return parser->has_vm ? 0 : wrong(parser, "no line for the VM");
}

int source_file_parse(const char *text, size_t size, struct source_file_content *content,
                      struct source_error *error)
{
    struct parser parser = {.content = content, .error = error};

    *content = (struct source_file_content){.facts = source_no_facts()};
    if (parse_lines(&parser, text, size) < 0) {
        free(content->processors);
        content->processors = NULL;
        return -1;
    }
    count_states(content);
    return 0;
}

/* ---- The source ---- */

struct source_file {
    struct source source;
    struct source_file_content content;
    char path[];
};

static int read_file(struct source *source, FILE *file, char *text, size_t *size)
{
    *size = fread(text, 1, SOURCE_FILE_BYTES, file);
    if (ferror(file))
        return source_fail(source, "the file cannot be read", 0);
    return *size < SOURCE_FILE_BYTES ? 0 : source_fail(source, "the file is too large", 0);
}

static int load(struct source_file *self)
{
    struct source_file_content content;
    struct source *source = &self->source;
    char *text = malloc(SOURCE_FILE_BYTES);
    FILE *file = text ? fopen(self->path, "rb") : NULL;
    size_t size;
    int result = -1;

    if (!file)
        source_fail(source, text ? "the file cannot be opened" : "out of memory", 0);
    else if (read_file(source, file, text, &size) == 0)
        result = source_file_parse(text, size, &content, &source->error);
    if (file)
        fclose(file);
    free(text);
    if (result == 0) {
        free(self->content.processors);
        self->content = content;
    }
    return result;
}

static int look(struct source *source, struct source_facts *facts)
{
    struct source_file *self = (struct source_file *)source;

    if (load(self) < 0)
        return -1;
    *facts = self->content.facts;
    return 0;
}

static int read_processor(struct source *source, uint32_t processor, struct source_processor *out)
{
    const struct source_file *self = (struct source_file *)source;

    if (processor >= self->content.facts.processors)
        return source_fail(source, "no such processor", (uint32_t)SOURCE_NT_INVALID_PARAMETER);
    *out = self->content.processors[processor];
    return 0;
}

static void close_file(struct source *source)
{
    struct source_file *self = (struct source_file *)source;

    free(self->content.processors);
    free(self);
}

static const struct source_ops ops = {
    .name = "file",
    .look = look,
    .read = read_processor,
    .close = close_file,
};

struct source *source_open_file(const char *path, struct source_error *error)
{
    struct source_file *self = calloc(1, sizeof(*self) + strlen(path) + 1);

    if (!self) {
        *error = (struct source_error){.what = "out of memory"};
        return NULL;
    }
    self->source.ops = &ops;
    memcpy(self->path, path, strlen(path) + 1);
    if (load(self) < 0) {
        *error = self->source.error;
        close_file(&self->source);
        return NULL;
    }
    return &self->source;
}
