// SPDX-License-Identifier: BSD-3-Clause
/* Columns and tables: what a terminal shows, whatever the names are. */
#include "hv/cli/columns.h"
#include "hv/cli/table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define ALL ((size_t)-1)

Test(cli_columns, width)
{
    static const struct {
        const char *text;
        int columns;
    } rows[] = {
        {"", 0}, {"abc", 3}, {"vm é", 4}, {"日本", 4}, {"e\xCC\x81", 1}, {"𝔸", 1},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect_eq(cli_columns_of(rows[i].text, strlen(rows[i].text)), rows[i].columns, "%s",
                     rows[i].text);
        cr_expect_eq(cli_bytes_of(rows[i].text, rows[i].columns), (int)strlen(rows[i].text), "%s",
                     rows[i].text);
    }
    cr_expect_eq(cli_bytes_of("日本", 3), 3);
    cr_expect_eq(cli_bytes_of("日本", 1), 0);
}

Test(cli_columns, hostile)
{
    static const struct {
        const char *text, *shown;
    } rows[] = {
        {"a\033[2Jb\n", "a?[2Jb?"},
        {"\x7F\xC2\x9B", "???"},
        {"\xC0\xAF", "??"},
        {"\xED\xA0\x80", "???"},
        {"\xF0\x9F\x98", "???"},
        {"right\xE2\x80\xAEtfel", "right?tfel"}, /* U+202E turns the line round */
        {"zero\xE2\x80\x8Bwidth", "zero?width"},
        {"é日", "é日"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        GString *shown = g_string_new(NULL);

        cli_put_printable(shown, rows[i].text);
        cr_expect_str_eq(shown->str, rows[i].shown);
        g_string_free(shown, TRUE);
    }
}

Test(cli_columns, wrapping)
{
    GString *text = g_string_new("  ");

    cli_put_wrapped(text, "one two  three verylongword x", 2, 10);
    cr_expect_str_eq(text->str, "  one two\n  three\n  verylong\n  word x\n");
    g_string_free(text, TRUE);
}

static const struct table_column columns[] = {{"LEASE", TABLE_RIGHT, TABLE_WHOLE},
                                              {"NAME", TABLE_LEFT, TABLE_CUT},
                                              {"PROCESSORS", TABLE_LEFT, TABLE_CUT}};

static void expect(const struct table *table, int width, size_t most, bool colours,
                   const char *expected)
{
    GString *text = g_string_new(NULL);

    table_write(table, text, width, most, colours);
    cr_expect_str_eq(text->str, expected, "%s", text->str);
    g_string_free(text, TRUE);
}

static void add_row(struct table *table, const char *id, const char *name, const char *list)
{
    table_add(table, TABLE_PLAIN, "%s", id);
    table_add(table, TABLE_BAD, "%s", name);
    table_add(table, TABLE_PLAIN, "%s", list);
}

Test(cli_table, lines)
{
    struct table *table = table_new(columns, ROWS(columns));

    expect(table, 80, ALL, false, "");
    add_row(table, "7", "vm é", "0-3");
    add_row(table, "123456", "日本語の名前", "0-3,8-11");
    add_row(table, "8", "", "");
    cr_expect_eq(table_rows(table), 3);
    expect(table, 80, ALL, false,
           " LEASE  NAME          PROCESSORS\n"
           "     7  vm é          0-3\n"
           "123456  日本語の名前  0-3,8-11\n"
           "     8\n");
    expect(table, 26, ALL, false,
           " LEASE  NAME    PROCESSORS\n"
           "     7  vm é    0-3\n"
           "123456  日本+   0-3,8-11\n"
           "     8\n");
    expect(table, 80, 1, true,
           "\033[1mLEASE\033[0m  \033[1mNAME\033[0m  \033[1mPROCESSORS\033[0m\n"
           "    7  \033[1;31mvm é\033[0m  0-3\n");
    table_free(table);
}

/* Whoever is cut first gives way as far as its title, before another is cut. */
Test(cli_table, cut_first)
{
    static const struct table_column some[] = {{"NAME", TABLE_LEFT, TABLE_CUT},
                                               {"PROCESSORS", TABLE_LEFT, TABLE_CUT_FIRST}};
    struct table *table = table_new(some, ROWS(some));

    table_add(table, TABLE_PLAIN, "abcdefgh");
    table_add(table, TABLE_PLAIN, "0,2,4,6,8,10,12");
    expect(table, 22, ALL, false, "NAME      PROCESSORS\nabcdefgh  0,2,4,6,8,1+\n");
    expect(table, 19, ALL, false, "NAME     PROCESSORS\nabcdef+  0,2,4,6,8+\n");
    table_free(table);
}

/* Whatever the cells are, no line is too wide, unless what may not be cut is too wide already. */
Test(cli_table, random_widths)
{
    const unsigned seed = 1;

    srand(seed);
    for (int round = 0; round < 200; round++) {
        struct table *table = table_new(columns, ROWS(columns));
        GString *text = g_string_new(NULL);
        const int width = 24 + rand() % 80;

        for (int i = 0; i < 20; i++) {
            char name[64] = "", list[64] = "";

            for (int n = rand() % 20; n--;)
                strcat(name, rand() % 2 ? "é" : "日");
            for (int n = rand() % 30; n--;)
                strcat(list, "7,");
            add_row(table, "12", name, list);
        }
        table_write(table, text, width, ALL, false);
        for (char *line = strtok(text->str, "\n"); line; line = strtok(NULL, "\n"))
            cr_expect_leq(cli_columns_of(line, strlen(line)), width, "seed %u round %d: %s", seed,
                          round, line);
        g_string_free(text, TRUE);
        table_free(table);
    }
}
