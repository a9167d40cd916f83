// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl explain: all that is known of one lease, and who else has counters where it has. */
#include "hv/cli/cli.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hv/cli/answer.h"
#include "hv/cli/columns.h"
#include "hv/cli/counter.h"
#include "hv/cli/lease.h"
#include "hv/cli/terminal.h"

#define INDENT 12      /* behind the titles */
#define RANGES_MOST 40 /* of processors */

static const char help[] =
    "usage: vpmuctl explain [--json] [--control SOCKET] VM\n"
    "\n"
    "What is the matter with a VM's counters, and who else has counters of the\n"
    "same processors. VM is a lease's number, or its holder's name or uuid.\n"
    "\n"
    "  -j, --json        vpmud's answer (docs/control.md)\n"
    "  --control SOCKET  vpmud's (" CONTROL_SOCKET ")\n";

struct page {
    GString *text;
    struct terminal terminal;
};

__attribute__((format(printf, 3, 4))) static void put_line(struct page *page, const char *title,
                                                           const char *format, ...)
{
    GString *shown = g_string_new(NULL);
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    cli_put_printable(shown, text);
    g_string_append_printf(page->text, "%-*s", INDENT, title);
    cli_put_wrapped(page->text, shown->str, INDENT, page->terminal.columns);
    g_string_free(shown, TRUE);
    g_free(text);
}

static void put_verdict(struct page *page, struct json_object *lease)
{
    const struct lease_meaning *meaning = &lease_meanings[lease_word(lease)];

    table_put_marked(page->text, meaning->mark, meaning->word, page->terminal.colours);
    g_string_append_printf(page->text, "%*s", INDENT - (int)strlen(meaning->word), "");
    GString *shown = g_string_new(NULL);

    cli_put_printable(shown, answer_text(lease, "name"));
    g_string_append_printf(shown, " %s", meaning->meaning);
    cli_put_wrapped(page->text, shown->str, INDENT, page->terminal.columns);
    g_string_free(shown, TRUE);
    if (*answer_text(lease, "why"))
        put_line(page, "", "%s", answer_text(lease, "why"));
}

static void put_since(struct page *page, int64_t since_ms)
{
    const time_t since = since_ms / 1000;
    char at[32] = "?", duration[DURATION_TEXT];
    struct tm local;

    if (localtime_r(&since, &local))
        strftime(at, sizeof(at), "%F %T", &local);
    put_line(page, "since", "%s (%s ago)", at, duration_text(wall_ms() - since_ms, duration));
}

static void put_holder(struct page *page, struct json_object *lease)
{
    const uint64_t pid = answer_number(lease, "pid");

    put_line(page, "lease", "%" PRIu64 ", %s %s", answer_number(lease, "id"),
             answer_text(lease, "state"), answer_text(lease, "kind"));
    if (*answer_text(lease, "uuid"))
        put_line(page, "uuid", "%s", answer_text(lease, "uuid"));
    if (pid)
        put_line(page, "process", "%" PRIu64 " of user %" PRIu64, pid, answer_number(lease, "uid"));
    put_since(page, (int64_t)answer_number(lease, "since_ms"));
}

static void put_amounts(struct page *page, struct json_object *lease)
{
    static const struct {
        const char *title, *key;
    } rows[] = {{"wants", "need"}, {"at least", "least"}, {"has", "granted"}, {"beside", "beside"}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const struct vpmu_amount amount = answer_amount(lease, rows[i].key);

        if (amount.gp || amount.fixed || strcmp(rows[i].key, "beside") != 0)
            put_line(page, rows[i].title, "%u general-purpose, fixed 0x%x%s", amount.gp,
                     amount.fixed, i == 3 ? ", which the host counts on its vCPUs" : "");
    }
}

/* A list has no spaces to wrap it at, and can have thousands of ranges. */
static void put_processors(struct page *page, struct json_object *lease)
{
    char **ranges = g_strsplit(answer_text(lease, "processors"), ",", RANGES_MOST + 1);
    const bool more = g_strv_length(ranges) > RANGES_MOST;

    if (more) {
        g_free(ranges[RANGES_MOST]);
        ranges[RANGES_MOST] = g_strdup("... (--json has them all)");
    }
    char *list = g_strjoinv(", ", ranges);

    put_line(page, "processors", "%s%s", list, answer_flag(lease, "every") ? " (every one)" : "");
    g_free(list);
    g_strfreev(ranges);
}

static void put_flags(struct page *page, struct json_object *lease)
{
    if (answer_flag(lease, "yields"))
        put_line(page, "yields", "to CPU-wide leases, with notice");
    if (answer_flag(lease, "excludes_guests"))
        put_line(page, "excludes", "guests: it does not count while they run");
}

static const struct table_column counter_columns[] = {
    {"COUNTER", TABLE_LEFT, TABLE_WHOLE},  {"SELECTOR", TABLE_RIGHT, TABLE_CUT},
    {"ENABLED", TABLE_RIGHT, TABLE_WHOLE}, {"BACKED", TABLE_RIGHT, TABLE_WHOLE},
    {"STATE", TABLE_LEFT, TABLE_WHOLE},
};

static void put_counters(struct page *page, struct json_object *lease)
{
    struct table *table = table_new(counter_columns, G_N_ELEMENTS(counter_columns));
    struct json_object *report = answer_object(lease, "report");
    size_t count;
    struct json_object *counters = answer_rows(report, "counters", &count);
    char text[DURATION_TEXT];

    for (size_t i = 0; i < count; i++) {
        struct json_object *counter = answer_row(counters, i);

        counter_add_name(table, counter);
        table_add(table, TABLE_PLAIN, "0x%" PRIx64, answer_number(counter, "selector"));
        table_add(table, TABLE_PLAIN, "%s",
                  duration_text((int64_t)(answer_number(counter, "enabled_ns") / 1000000), text));
        counter_add_share(table, answer_number(counter, "backed_ns"),
                          answer_number(counter, "enabled_ns"));
        counter_add_state(table, counter);
    }
    if (count)
        g_string_append_printf(page->text,
                               "\nCounters of %" PRIu64 " vCPUs together, since the VM's start:\n",
                               answer_number(report, "vcpus"));
    else if (lease_is_vm(lease))
        g_string_append(page->text, "\nThe VM has not reported what its counters do.\n");
    table_write(table, page->text, page->terminal.columns, count, page->terminal.colours);
    table_free(table);
}

static void put_neighbours(struct page *page, struct json_object *answer)
{
    struct table *table = holders_new();
    size_t count;
    struct json_object *neighbours = answer_rows(answer, "neighbours", &count);

    for (size_t i = 0; i < count; i++)
        holders_add(table, answer_row(neighbours, i));
    g_string_append(page->text, count ? "\nCPU-wide on the same processors:\n"
                                      : "\nNobody has CPU-wide counters of these processors.\n");
    table_write(table, page->text, page->terminal.columns, count, page->terminal.colours);
    table_free(table);
}

static int print_page(struct json_object *answer)
{
    struct page page = {g_string_new(NULL), terminal_look()};
    struct json_object *lease = answer_object(answer, "lease");

    put_verdict(&page, lease);
    g_string_append_c(page.text, '\n');
    put_holder(&page, lease);
    put_amounts(&page, lease);
    put_processors(&page, lease);
    put_flags(&page, lease);
    put_counters(&page, lease);
    put_neighbours(&page, answer);
    json_object_put(answer);
    return terminal_end(page.text, 0);
}

int cli_explain(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false;
    const struct cli_option options[] = {
        {"json", 'j', &json, NULL}, {"control", 0, NULL, &path}, {NULL, 0, NULL, NULL}};
    struct json_object *answer;
    int status;
    const int word = cli_options(argc, argv, options, 1, help, &status);

    if (word < 0)
        return status;
    answer = cli_ask(argv[0], path, "explain", "vm", argv[word], &status);
    if (!answer)
        return status;
    return json ? cli_print_json(answer) : print_page(answer);
}
