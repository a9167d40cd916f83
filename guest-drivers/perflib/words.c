/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <stdio.h>
#include <string.h>

#include "bytes.h"

struct word {
    uint32_t value;
    const char *text;
};

static const char *look_up(const struct word *words, size_t count, uint32_t value,
                           const char *otherwise)
{
    for (size_t i = 0; i < count; i++) {
        if (words[i].value == value)
            return words[i].text;
    }
    return otherwise;
}
#define LOOK_UP(words, value, otherwise)                                                           \
    look_up(words, sizeof(words) / sizeof((words)[0]), value, otherwise)

static const struct word kinds[] = {
    {BLOCK_SINGLE_INSTANCE, "single instance"},
    {BLOCK_MULTI_INSTANCES, "multiple instances"},
    {BLOCK_SINGLE_AGGREGATE, "single instance, aggregate of several providers"},
    {BLOCK_MULTI_AGGREGATE, "multiple instances, aggregate of several providers"},
    {BLOCK_SINGLE_AGGREGATE_HISTORY, "single instance, aggregate with history"},
    {BLOCK_INSTANCE_AGGREGATE, "multiple instances, aggregate by instance"},
};

static const struct word details[] = {
    {100, "novice"}, {200, "advanced"}, {300, "expert"}, {400, "wizard"}};

static const struct word answers[] = {
    {BLOCK_ERROR, "error"},
    {BLOCK_SINGLE_COUNTER, "one counter of one instance"},
    {BLOCK_MULTIPLE_COUNTERS, "counters of one instance"},
    {BLOCK_MULTIPLE_INSTANCES, "one counter of instances"},
    {BLOCK_COUNTERSET, "counters of instances"},
};

static const struct word type_names[] = {
#define PERF_TYPE(name, value, words) {value, "PERF_" #name},
#include "types.def"
#undef PERF_TYPE
};

static const struct word type_words[] = {
#define PERF_TYPE(name, value, words) {value, words},
#include "types.def"
#undef PERF_TYPE
};

/* winerror.h */
static const struct word errors[] = {
    {0, "success"},
    {2, "not found"},
    {5, "access denied: join Performance Monitor Users, or run as administrator"},
    {8, "the buffer is too small"},
    {13, "the data is invalid"},
    {87, "a parameter is wrong"},
    {120, "this system does not have the routine"},
    {1168, "not found"},
    {4200, "no such counter set"},
    {4201, "no such instance"},
};

const char *perf_kind_words(uint32_t kind)
{
    return LOOK_UP(kinds, kind, "unknown kind");
}

/* Bit 1 tells them apart in all that are known: 2, 6, 22 against 0, 4, 12. */
bool perf_kind_has_instances(uint32_t kind)
{
    return kind & 2;
}

const char *perf_type_words(uint32_t type)
{
    return LOOK_UP(type_words, type, "unknown type");
}

const char *perf_type_name(uint32_t type)
{
    return LOOK_UP(type_names, type, "?");
}

const char *perf_detail_words(uint32_t detail)
{
    return LOOK_UP(details, detail, "unknown");
}

const char *perf_answer_words(uint32_t type)
{
    return LOOK_UP(answers, type, "unknown");
}

const char *perf_error_words(uint32_t error)
{
    return LOOK_UP(errors, error, "error");
}

/* ---- UTF-16 and UTF-8 ---- */

#define REPLACEMENT 0xfffdu

static uint32_t next_character(struct block_text *text)
{
    uint32_t unit = bytes_u16(text->units), low;

    text->units += 2;
    text->length--;
    if (unit >= 0xd800 && unit < 0xdc00 && text->length) {
        low = bytes_u16(text->units);
        if (low >= 0xdc00 && low < 0xe000) {
            text->units += 2;
            text->length--;
            return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    if ((unit >= 0xd800 && unit < 0xe000) || unit < 0x20 || (unit >= 0x7f && unit < 0xa0))
        return REPLACEMENT;
    return unit;
}

static size_t encode(uint32_t character, char bytes[4])
{
    static const uint8_t lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t size = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

    for (size_t i = size; --i; character >>= 6)
        bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)(lead[size] | character);
    return size;
}

char *perf_text(struct block_text text, char *to, size_t size)
{
    size_t used = 0;

    while (text.length) {
        char bytes[4];
        size_t more = encode(next_character(&text), bytes);
        if (used + more >= size)
            break;
        memcpy(to + used, bytes, more);
        used += more;
    }
    to[used] = 0;
    return to;
}

/* The next character; *text moves on. -1: no UTF-8. */
static int32_t decode(const char **text)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*(*text)++;
    unsigned more = first < 0x80             ? 0
                    : (first & 0xe0) == 0xc0 ? 1
                    : (first & 0xf0) == 0xe0 ? 2
                    : (first & 0xf8) == 0xf0 ? 3
                                             : 4;
    uint32_t character;

    if (more == 4)
        return -1;
    character = more ? first & (0x3fu >> more) : first;
    for (unsigned i = 0; i < more; i++) {
        if (((unsigned char)**text & 0xc0) != 0x80)
            return -1;
        character = character << 6 | ((unsigned char)*(*text)++ & 0x3f);
    }
    if (character < least[more] || character > 0x10ffff ||
        (character >= 0xd800 && character < 0xe000))
        return -1;
    return (int32_t)character;
}

static size_t put_units(uint32_t character, uint8_t bytes[4])
{
    uint32_t high = 0xd800 + ((character - 0x10000) >> 10), low = 0xdc00 + (character & 0x3ff);
    bool pair = character >= 0x10000;
    uint32_t units = pair ? high | low << 16 : character;

    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(units >> 8 * i);
    return pair ? 2 : 1;
}

long perf_utf16(const char *text, uint8_t *units, size_t room)
{
    size_t used = 0;

    while (*text) {
        int32_t character = decode(&text);
        uint8_t bytes[4];
        size_t more;

        if (character < 0)
            return -1;
        more = put_units((uint32_t)character, bytes);
        if (used + more > room)
            return -1;
        memcpy(units + 2 * used, bytes, 2 * more);
        used += more;
    }
    return (long)used;
}

/* ---- GUIDs: three numbers, then eight bytes ---- */

/* In which order the text has the bytes; -1: a hyphen. */
static const int8_t guid_order[] = {3,  2, 1, 0,  -1, 5,  4,  -1, 7,  6,
                                    -1, 8, 9, -1, 10, 11, 12, 13, 14, 15};

char *perf_guid_text(const struct block_guid *guid, char to[39])
{
    char *at = to;

    *at++ = '{';
    for (size_t i = 0; i < sizeof(guid_order); i++) {
        if (guid_order[i] < 0)
            *at++ = '-';
        else
            at += snprintf(at, 3, "%02X", guid->byte[guid_order[i]]);
    }
    *at++ = '}';
    *at = 0;
    return to;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(digits, c) : NULL;

    return found ? (int)((found - digits) % 16) : -1;
}

bool perf_guid_parse(const char *text, struct block_guid *guid)
{
    if (strlen(text) != 38 || text[0] != '{' || text[37] != '}')
        return false;
    text++;
    for (size_t i = 0; i < sizeof(guid_order); i++) {
        int high, low;

        if (guid_order[i] < 0) {
            if (*text++ != '-')
                return false;
            continue;
        }
        high = hex_digit(*text++);
        low = hex_digit(*text++);
        if (high < 0 || low < 0)
            return false;
        guid->byte[guid_order[i]] = (uint8_t)(high << 4 | low);
    }
    return true;
}
