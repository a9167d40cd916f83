/* SPDX-License-Identifier: BSD-3-Clause */
/* A file as a source: what it may say, and what is refused, with its line. */

#include "guest-drivers/source/file.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vpmu/status.h"

static struct source_file_content content;
static struct source_error error;

static int parse(const char *text)
{
    size_t size = strlen(text);
    char *exact = malloc(size ? size : 1); /* so that the sanitizer sees a read past the end */
    int result;

    memcpy(exact, text, size);
    result = source_file_parse(exact, size, &content, &error);
    free(exact);
    return result;
}

static const char whole[] = "# two processors\n"
                            "vm processors=2 shape=7 granted=5 revocations=1 host=kvm "
                            "class=standard gp_width=48\n"
                            "\n"
                            "counter processor=0 counter=0 event=branches state=starved value=0 "
                            "enabled_ns=1000 backed_ns=250\n"
                            "counter processor=0 counter=32 event=instructions state=backed "
                            "value=18446744073709551614 enabled_ns=- backed_ns=-\r\n"
                            "counter processor=1 counter=0 event=branches state=filtered value=0";

Test(source_file, carries_every_value)
{
    const struct source_record *record;

    cr_assert_eq(parse(whole), 0);
    cr_assert_eq(content.facts.processors, 2);
    cr_assert_eq(content.facts.shape, 7);
    cr_assert_eq(content.facts.granted, 5);
    cr_assert_eq(content.facts.revocations, 1);
    cr_assert_eq(content.facts.host, VPMU_SOURCE_KVM);
    cr_assert_eq(content.facts.event_class, VPMU_EVENTS_STANDARD);
    cr_assert_eq(content.facts.gp_width, 48);
    cr_assert_eq(content.facts.fixed_width, SOURCE_NOT_KNOWN);
    cr_assert_eq(content.facts.starved, 1, "counted from the counters");
    cr_assert_eq(content.facts.filtered, 1, "counted from the counters");

    cr_assert_eq(content.processors[0].count, 2);
    record = source_find(&content.processors[0], VPMU_EVENT_INSTRUCTIONS);
    cr_assert_eq(record->counter, 32);
    cr_assert_eq(record->value, UINT64_MAX - 1);
    cr_assert_eq(record->enabled_ns, SOURCE_NOT_KNOWN);
    cr_assert(source_has_value(record));
    record = source_find(&content.processors[0], VPMU_EVENT_BRANCHES);
    cr_assert_not(source_has_value(record));
    cr_assert_eq(source_backed_per_mille(record), 250);
    cr_assert_null(source_find(&content.processors[1], VPMU_EVENT_INSTRUCTIONS));
    free(content.processors);
}

#define VM "vm processors=1\n"
#define COUNTER "counter processor=0 counter=1 event=cycles state=backed value="

static const struct {
    const char *text;
    uint32_t line;
    const char *what;
} bad[] = {
    {"", 0, "no line for the VM"},
    {"# nothing\n", 1, "no line for the VM"},
    {"vm\n", 1, "a key is missing"},
    {"vm processors=1025\n", 1, "the number is too large"},
    {"vm processors=-\n", 1, "this must be known"},
    {"vm processors=\n", 1, "a number is expected"},
    {"vm processors=1x\n", 1, "a number is expected"},
    {"vm processors=18446744073709551616\n", 1, "a number is expected"},
    {"vm processors=18446744073709551615\n", 1, "a number is expected"},
    {"vm processors=1 processors=1\n", 1, "a key stands twice"},
    {"vm processors=1 host=vmware\n", 1, "no such name"},
    {"vm processors=1 shape\n", 1, "KEY=VALUE is expected"},
    {"vm processors=1 sharp=1\n", 1, "no such key"},
    {VM VM, 2, "a second line for the VM"},
    {"virtual\n", 1, "a line begins with vm, counter or #"},
    {COUNTER "1\n" VM, 1, "no such processor"},
    {VM "\ncounter processor=1 counter=1 event=cycles state=backed value=1\n", 3,
     "no such processor"},
    {VM COUNTER "1\n" COUNTER "1\n", 3, "counters are not in the order of their indices"},
    {VM "counter processor=0 counter=64 event=cycles state=backed value=1\n", 2,
     "the number is too large"},
    {VM COUNTER "-\n", 2, "this must be known"},
    {VM "counter processor=0 counter=1 event=cycles state=good value=1\n", 2, "no such name"},
    {VM "counter processor=0 counter=1 event=raw state=backed value=1\n", 2, "no such name"},
    {VM "counter processor=0 counter=1 event=cycles value=1\n", 2, "a key is missing"},
};

Test(source_file, refuses_with_the_line)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(parse(bad[i].text), -1, "%s", bad[i].text);
        cr_assert_str_eq(error.what, bad[i].what, "%s", bad[i].text);
        cr_assert_eq(error.line, bad[i].line, "%s: line %u", bad[i].text, error.line);
        cr_assert_null(content.processors);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");

    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(source_file, is_read_again_at_each_look)
{
    char path[] = "source-XXXXXX", from[64];
    struct source_facts facts;
    static struct source_processor processor;
    struct source *source;
    char text[100];
    uint32_t placed;

    close(mkstemp(path));
    write_file(path, whole);
    snprintf(from, sizeof(from), "file:%s", path);
    source = source_open(from, &error);
    cr_assert_not_null(source, "%s", source_error_text(&error, text, sizeof(text)));
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.processors, 2);
    cr_assert_eq(source_read(source, 1, &processor), 0);
    cr_assert_eq(source_read(source, 2, &processor), -1);
    cr_assert_eq(source_take(source, SOURCE_ALL_EVENTS, VPMU_COUNT_USER, &placed), 1);

    write_file(path, VM COUNTER "77\n");
    cr_assert_eq(source_look(source, &facts), 0);
    cr_assert_eq(facts.processors, 1);
    cr_assert_eq(source_read(source, 0, &processor), 0);
    cr_assert_eq(processor.records[0].value, 77);

    write_file(path, VM "rubbish\n");
    cr_assert_eq(source_look(source, &facts), -1);
    cr_assert_str_eq(source_error_text(&source->error, text, sizeof(text)),
                     "line 2: a line begins with vm, counter or #");
    cr_assert_eq(source_read(source, 0, &processor), 0, "what was good before still stands");
    source_close(source);
    unlink(path);
}

Test(source_file, says_why_it_cannot_be_opened)
{
    char text[100];

    cr_assert_null(source_open("file:/nowhere/at/all", &error));
    cr_assert_str_eq(source_error_text(&error, text, sizeof(text)), "the file cannot be opened");
    cr_assert_null(source_open("nonsense", &error));
    cr_assert_str_eq(error.what, "a source is \"driver\" or \"file:PATH\"");
    cr_assert_null(source_open(NULL, &error));
    cr_assert_not_null(strstr(error.what, "no vpmu.sys"));
}

Test(source_file, per_mille_never_overflows)
{
    static const struct {
        uint64_t enabled, backed, per_mille;
    } rows[] = {
        {0, 0, SOURCE_NOT_KNOWN},
        {SOURCE_NOT_KNOWN, 1, SOURCE_NOT_KNOWN},
        {1, SOURCE_NOT_KNOWN, SOURCE_NOT_KNOWN},
        {1000, 999, 999},
        {1000, 1001, 1000},
        {3, 1, 333},
        {UINT64_MAX - 1, UINT64_MAX / 2, 500},
        {UINT64_MAX - 1, UINT64_MAX - 1, 1000},
        {UINT64_MAX - 1, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct source_record record = {.enabled_ns = rows[i].enabled, .backed_ns = rows[i].backed};
        uint64_t got = source_backed_per_mille(&record);
        cr_assert(got == rows[i].per_mille || (rows[i].per_mille == 500 && got == 499), "row %zu",
                  i);
    }
}
