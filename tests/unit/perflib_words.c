/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "guest-drivers/perflib/words.h"

Test(perflib_words, every_kind_of_set)
{
    static const struct {
        uint32_t kind;
        const char *words;
        bool instances;
    } rows[] = {
        {0, "single instance", false},
        {2, "multiple instances", true},
        {4, "single instance, aggregate of several providers", false},
        {6, "multiple instances, aggregate of several providers", true},
        {12, "single instance, aggregate with history", false},
        {22, "multiple instances, aggregate by instance", true},
        {1, "unknown kind", false},
        {0xffffffff, "unknown kind", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_str_eq(perf_kind_words(rows[i].kind), rows[i].words);
        cr_assert_eq(perf_kind_has_instances(rows[i].kind), rows[i].instances);
    }
}

Test(perflib_words, types_details_answers_errors)
{
    cr_assert_str_eq(perf_type_words(0x10410500), "rate per second");
    cr_assert_str_eq(perf_type_name(0x10410500), "PERF_COUNTER_BULK_COUNT");
    cr_assert_str_eq(perf_type_words(0x40020500), "average per operation");
    cr_assert_str_eq(perf_type_words(0x12345678), "unknown type");
    cr_assert_str_eq(perf_type_name(0x12345678), "?");
    cr_assert_str_eq(perf_detail_words(200), "advanced");
    cr_assert_str_eq(perf_answer_words(6), "counters of instances");
    cr_assert_str_eq(perf_error_words(4200), "no such counter set");
    cr_assert_str_eq(perf_error_words(77), "error");
}

static const struct {
    const char *utf8, *utf16;
    size_t units;
} texts[] = {
    {"", "", 0},
    {"vPMU", "v\0P\0M\0U\0", 4},
    {"\xc3\xa9\xe2\x82\xac", "\xe9\0\xac\x20", 2},
    {"\xf0\x9f\x98\x80", "\x3d\xd8\x00\xde", 2},
};

Test(perflib_words, utf16_and_back)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint8_t units[20];
        char text[20];

        cr_assert_eq(perf_utf16(texts[i].utf8, units, 10), (long)texts[i].units);
        cr_assert_arr_eq(units, texts[i].utf16, 2 * texts[i].units);
        perf_text((struct block_text){units, texts[i].units}, text, sizeof(text));
        cr_assert_str_eq(text, texts[i].utf8);
    }
}

Test(perflib_words, what_is_no_text)
{
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82"};
    static const uint8_t half[] = "\x3d\xd8"
                                  "a\0"
                                  "\x1b\0"
                                  "\x00\xde";
    uint8_t units[8];
    char text[20];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(perf_utf16(bad[i], units, 4), -1, "text %zu", i);
    cr_assert_eq(perf_utf16("abcde", units, 4), -1, "no room");
    cr_assert_str_eq(perf_text((struct block_text){half, 4}, text, sizeof(text)),
                     "\xef\xbf\xbd"
                     "a"
                     "\xef\xbf\xbd\xef\xbf\xbd");
    cr_assert_str_eq(perf_text((struct block_text){half, 4}, text, 5),
                     "\xef\xbf\xbd"
                     "a",
                     "cut at a character");
}

Test(perflib_words, guids)
{
    static const char text[] = "{76543210-BA98-FEDC-0123-456789ABCDEF}";
    struct block_guid guid;
    char back[39];

    cr_assert(perf_guid_parse(text, &guid));
    cr_assert_eq(guid.byte[0], 0x10, "the first number is little-endian");
    cr_assert_eq(guid.byte[15], 0xef);
    cr_assert_str_eq(perf_guid_text(&guid, back), text);
    cr_assert(perf_guid_parse("{76543210-ba98-fedc-0123-456789abcdef}", &guid));
    cr_assert_not(perf_guid_parse("76543210-BA98-FEDC-0123-456789ABCDEF", &guid));
    cr_assert_not(perf_guid_parse("{76543210-BA98-FEDC-0123-456789ABCDEG}", &guid));
    cr_assert_not(perf_guid_parse("{76543210xBA98-FEDC-0123-456789ABCDEF}", &guid));
}
