/* SPDX-License-Identifier: BSD-3-Clause */
#include "vpmustat_test.h"

Test(vpmustat_arguments, a_program_and_its_options)
{
    struct arguments a;

    cr_assert_eq(parse_line("-e cycles,llc-misses -C 3 -o json -A -- prog -e x", &a), 0);
    cr_assert_eq(a.command, COMMAND_COUNT);
    cr_assert_eq(a.events, 1u << VPMU_EVENT_CYCLES | 1u << VPMU_EVENT_LLC_MISSES);
    cr_assert_eq(a.processor, 3);
    cr_assert_eq(a.format, REPORT_JSON);
    cr_assert(a.apart && !a.everywhere);
    cr_assert_eq(a.modes, VPMU_COUNT_USER);
    cr_assert_str_eq(a.program[0], "prog");
    cr_assert_str_eq(a.program[1], "-e");
    cr_assert_null(a.program[3]);
    cr_assert_eq(parse_line("-a -- prog", &a), 0);
    cr_assert_eq(a.modes, VPMU_COUNT_USER | VPMU_COUNT_KERNEL);
    cr_assert_eq(parse_line("-a -k -- prog", &a), 0);
    cr_assert_eq(a.modes, VPMU_COUNT_KERNEL);
    cr_assert_eq(parse_line("query -i 2 Set", &a), 0);
    cr_assert(a.command == COMMAND_QUERY && a.seconds == 2);
    cr_assert_str_eq(a.query, "Set");
}

Test(vpmustat_arguments, what_is_refused)
{
    static const struct {
        const char *line, *error, *culprit;
    } rows[] = {
        {"", "a command, or -- and a program, is missing", ""},
        {"--", "a command, or -- and a program, is missing", ""},
        {"-e cycles", "a command, or -- and a program, is missing", ""},
        {"-e cycles,speed -- p", "no such event", "speed"},
        {"-e cycles, -- p", "no such event", ""},
        {"-o xml -- p", "a format is text, csv or json", "xml"},
        {"-C 64 -- p", "not a number in range", "64"},
        {"-C -1 -- p", "not a number in range", "-1"},
        {"-i 1s list", "not a number in range", "1s"},
        {"-z -- p", "no such option", "-z"},
        {"list -e", "a value is missing behind", "-e"},
        {"run", "no such command; a program follows --", "run"},
        {"list sets", "too much", "sets"},
        {"list -- p", "this command runs no program", "p"},
        {"query", "query needs SET[(INSTANCE)][\\COUNTER]", ""},
        {"query a b", "too much", "b"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct arguments a;
        cr_assert_eq(parse_line(rows[i].line, &a), -1, "%s", rows[i].line);
        cr_assert_str_eq(a.error, rows[i].error, "%s: %s", rows[i].line, a.error);
        cr_assert_str_eq(a.culprit, rows[i].culprit, "%s: %s", rows[i].line, a.culprit);
    }
}

Test(vpmustat_arguments, paths)
{
    static const struct {
        const char *text, *set, *instance, *counter;
    } rows[] = {
        {"Virtual PMU", "Virtual PMU", "", ""},
        {"\\Processor(_Total)\\% Processor Time", "Processor", "_Total", "% Processor Time"},
        {"Processor(*)", "Processor", "*", ""},
        {"Processor\\Interrupts/sec", "Processor", "", "Interrupts/sec"},
        {"Disk(0 C:\\x (y))\\Reads", "Disk", "0 C:\\x (y)", "Reads"},
        {"Net(a(b))", "Net", "a(b)", ""},
    };
    static const char *const bad[] = {"",      "\\",    "(x)",     "Set(",
                                      "Set()", "Set(x", "Set(x)y", "Set\\"};
    struct query_path path;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(query_path_parse(rows[i].text, &path), 0, "%s", rows[i].text);
        cr_assert_str_eq(path.set, rows[i].set);
        cr_assert_str_eq(path.instance, rows[i].instance);
        cr_assert_str_eq(path.counter, rows[i].counter);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_assert_eq(query_path_parse(bad[i], &path), -1, "%s", bad[i]);
}

static const struct report_column columns[] = {
    {"group", REPORT_GROUP}, {"name", REPORT_WORDS}, {"count", REPORT_NUMBER}};

static char *report_in(enum report_format format)
{
    char *text;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    struct report report;

    report_begin(&report, file, format, columns, 3);
    report_words(&report, "g,1");
    report_words(&report, "a \"b\"");
    report_number(&report, 1234567);
    report_words(&report, "g,1");
    report_words(&report, "long\nname");
    report_none(&report);
    report_none(&report);
    report_words(&report, "\xc3\xa9");
    report_decimal(&report, 1005, 3);
    cr_assert_eq(report_end(&report), 0);
    fclose(file);
    return text;
}

Test(vpmustat_report, text_csv_and_json)
{
    char *text = report_in(REPORT_TEXT);

    cr_assert_str_eq(text,
                     "group  g,1\n"
                     "  name           count\n"
                     "  a \"b\"      1,234,567\n"
                     "  long\nname          -\n"
                     "\n"
                     "  name           count\n"
                     "  \xc3\xa9              1.005\n",
                     "%s", text);
    free(text);
    text = report_in(REPORT_CSV);
    cr_assert_str_eq(text,
                     "group,name,count\r\n"
                     "\"g,1\",\"a \"\"b\"\"\",1234567\r\n"
                     "\"g,1\",\"long\nname\",\r\n"
                     ",\xc3\xa9,1.005\r\n",
                     "%s", text);
    free(text);
    text = report_in(REPORT_JSON);
    cr_assert_str_eq(text,
                     "[\n"
                     " {\"group\": \"g,1\", \"name\": \"a \\\"b\\\"\", \"count\": 1234567},\n"
                     " {\"group\": \"g,1\", \"name\": \"long\\u000aname\", \"count\": null},\n"
                     " {\"group\": null, \"name\": \"\xc3\xa9\", \"count\": 1.005}\n]\n",
                     "%s", text);
    free(text);
}
