// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmuctl status: what the machine has, who has it, and first of all what is wrong. On a large host
 * it stays one page: processors that are used alike are one row, VMs that are well are a number.
 */
#include "hv/cli/cli.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "hv/cli/answer.h"
#include "hv/cli/columns.h"
#include "hv/cli/lease.h"
#include "hv/cli/terminal.h"

#define ROWS_MOST 12 /* of each part, unless --all */
#define INDENT 11    /* of what is said of a VM */

static const char help[] =
    "usage: vpmuctl status [--all] [--json] [--control SOCKET]\n"
    "\n"
    "What this machine's processors have, what CPU-wide holders and VMs have of\n"
    "it, and which VMs do not get what they asked for. `vpmuctl leases` lists\n"
    "everybody.\n"
    "\n"
    "  -a, --all         every row, however many there are\n"
    "  -j, --json        vpmud's answers to status, host and leases, as one object\n"
    "  --control SOCKET  vpmud's (" CONTROL_SOCKET ")\n";

/* vpmud's answers. */
struct answers {
    struct json_object *status, *host, *leases;
};

struct page {
    GString *text;
    struct terminal terminal;
    size_t most; /* rows of each part */
};

/* ---- The head -------------------------------------------------------------------------------- */

static void put_warning(struct page *page, const char *title, const char *text)
{
    GString *shown = g_string_new(NULL);

    table_put_marked(page->text, TABLE_BAD, title, page->terminal.colours);
    g_string_append_c(page->text, ' ');
    cli_put_printable(shown, text);
    cli_put_wrapped(page->text, shown->str, cli_columns_of(title, strlen(title)) + 1,
                    page->terminal.columns);
    g_string_free(shown, TRUE);
}

static uint64_t processors_of(struct json_object *status)
{
    size_t count;
    struct json_object *rows = answer_rows(status, "processors", &count);

    return count ? answer_number(answer_row(rows, count - 1), "last") + 1 : 0;
}

static const char *or_else(const char *text, const char *other)
{
    return *text ? text : other;
}

static void put_head(struct page *page, const struct answers *answers)
{
    const int64_t up = wall_ms() - (int64_t)answer_number(answers->status, "started_ms");
    const char *model = answer_text(answers->host, "model");
    const char *kernel = answer_text(answers->host, "kernel");
    char *line, duration[DURATION_TEXT];

    line = g_strdup_printf("%s, %llu processors%s%s",
                           or_else(model, or_else(answer_text(answers->host, "vendor"), "?")),
                           (unsigned long long)processors_of(answers->status),
                           *kernel ? ", Linux " : "", kernel);
    GString *shown = g_string_new(NULL);

    cli_put_printable(shown, line);
    cli_put_wrapped(page->text, shown->str, 0, page->terminal.columns);
    g_string_free(shown, TRUE);
    g_free(line);
    g_string_append_printf(page->text, "vpmud up %s, %llu connections\n",
                           duration_text(up, duration),
                           (unsigned long long)answer_number(answers->status, "connections"));
}

/* What changes the meaning of all that follows. */
static void put_warnings(struct page *page, const struct answers *answers)
{
    struct json_object *status = answers->status;
    const uint64_t held = answer_number(answer_object(status, "leases"), "held");
    const uint64_t pending = answer_number(status, "pending");
    const char *bars = answer_text(answers->host, "bars_vms");
    char text[160];

    if (answer_flag(status, "described"))
        put_warning(page, "DESCRIBED:",
                    "this is the machine of a file (vpmud --host), not the one that you are on");
    if (*bars)
        put_warning(page, "NO VM GETS COUNTERS:", bars);
    if (answer_flag(status, "grace")) {
        snprintf(text, sizeof(text),
                 "vpmud has been restarted and waits for holders to come back (%llu have not); new "
                 "requests wait, too",
                 (unsigned long long)held);
        put_warning(page, "GRACE:", text);
    }
    if (pending) {
        snprintf(text, sizeof(text),
                 "%llu waiting, for VMs to give way or for holders to come back",
                 (unsigned long long)pending);
        put_warning(page, "PENDING:", text);
    }
    if (answer_flag(status, "mediated"))
        g_string_append(page->text, "Mediated vPMU: VMs have the whole PMU while they run.\n");
    if (*answer_text(answers->host, "not_measured"))
        put_warning(page, "NOT MEASURED:", answer_text(answers->host, "not_measured"));
}

/* "... and 3 more" if there are more rows than are shown. */
static void put_more(struct page *page, size_t rows, const char *what)
{
    if (rows > page->most)
        g_string_append_printf(page->text, "... and %zu more %s: vpmuctl status --all\n",
                               rows - page->most, what);
}

/* ---- Processors ------------------------------------------------------------------------------ */

/* Processors that are used alike, wherever they are. */
struct use {
    struct json_object *row; /* one of them */
    GString *list;
};

static void free_use(void *data)
{
    struct use *use = data;

    g_string_free(use->list, TRUE);
    g_free(use);
}

static bool same_amount(struct json_object *a, struct json_object *b, const char *key)
{
    const struct vpmu_amount left = answer_amount(a, key), right = answer_amount(b, key);

    return left.gp == right.gp && left.fixed == right.fixed;
}

static gboolean same_use(gconstpointer a, gconstpointer b)
{
    struct json_object *left = ((const struct use *)a)->row, *right = ((const struct use *)b)->row;

    return answer_flag(left, "online") == answer_flag(right, "online") &&
           answer_number(left, "vms") == answer_number(right, "vms") &&
           same_amount(left, right, "capacity") && same_amount(left, right, "cpu_wide") &&
           same_amount(left, right, "vcpu");
}

static guint hash_use(gconstpointer data)
{
    struct json_object *row = ((const struct use *)data)->row;
    guint hash = (guint)answer_number(row, "vms");

    for (const char *const *key = (const char *const[]){"capacity", "cpu_wide", "vcpu", NULL}; *key;
         key++) {
        const struct vpmu_amount amount = answer_amount(row, *key);

        hash = hash * 31 + amount.gp * 65536u + amount.fixed;
    }
    return hash;
}

static void put_range(GString *list, struct json_object *row)
{
    const unsigned long long first = answer_number(row, "first"), last = answer_number(row, "last");

    g_string_append_printf(list, "%s%llu", list->len ? "," : "", first);
    if (last > first)
        g_string_append_printf(list, "-%llu", last);
}

/* In the order of their lowest processors. */
static GPtrArray *uses_of(struct json_object *status)
{
    GPtrArray *uses = g_ptr_array_new_with_free_func(free_use);
    GHashTable *found = g_hash_table_new(hash_use, same_use);
    size_t count;
    struct json_object *rows = answer_rows(status, "processors", &count);

    for (size_t i = 0; i < count; i++) {
        const struct use key = {.row = answer_row(rows, i)};
        struct use *use = g_hash_table_lookup(found, &key);

        if (!use) {
            use = g_new(struct use, 1);
            *use = (struct use){key.row, g_string_new(NULL)};
            g_hash_table_add(found, use);
            g_ptr_array_add(uses, use);
        }
        put_range(use->list, key.row);
    }
    g_hash_table_destroy(found);
    return uses;
}

static const struct table_column processor_columns[] = {
    {"PROCESSORS", TABLE_LEFT, TABLE_CUT_FIRST}, {"HAS", TABLE_RIGHT, TABLE_WHOLE},
    {"CPU-WIDE", TABLE_RIGHT, TABLE_WHOLE},      {"A VM USES", TABLE_RIGHT, TABLE_WHOLE},
    {"LEFT", TABLE_RIGHT, TABLE_WHOLE},          {"VMS", TABLE_RIGHT, TABLE_WHOLE},
};

static void add_use(struct table *table, const struct use *use, bool mediated)
{
    const struct vpmu_amount has = answer_amount(use->row, "capacity");
    const struct vpmu_amount wide = answer_amount(use->row, "cpu_wide");
    const struct vpmu_amount vcpu = answer_amount(use->row, "vcpu");
    const bool over = !mediated && (wide.gp + vcpu.gp > has.gp || wide.fixed & vcpu.fixed);
    char text[AMOUNT_TEXT];

    table_add(table, TABLE_PLAIN, "%s", use->list->str);
    if (!answer_flag(use->row, "online")) {
        table_add(table, TABLE_UNKNOWN, "offline");
        for (size_t c = 2; c < G_N_ELEMENTS(processor_columns); c++)
            table_add(table, TABLE_PLAIN, "-");
        return;
    }
    table_add(table, TABLE_PLAIN, "%s", amount_text(has, text));
    table_add(table, TABLE_PLAIN, "%s", amount_text(wide, text));
    table_add(table, TABLE_PLAIN, "%s", amount_text(vcpu, text));
    table_add(table, over ? TABLE_BAD : TABLE_PLAIN, "%s",
              mediated ? "-"
              : over   ? "too few"
                       : amount_text(use_left(use->row), text));
    table_add(table, TABLE_PLAIN, "%llu", (unsigned long long)answer_number(use->row, "vms"));
}

static void put_processors(struct page *page, struct json_object *status)
{
    GPtrArray *uses = uses_of(status);
    struct table *table = table_new(processor_columns, G_N_ELEMENTS(processor_columns));

    for (guint i = 0; i < uses->len; i++)
        add_use(table, g_ptr_array_index(uses, i), answer_flag(status, "mediated"));
    g_string_append(page->text, "\nCounters, general-purpose+fixed:\n");
    table_write(table, page->text, page->terminal.columns, page->most, page->terminal.colours);
    put_more(page, table_rows(table), "kinds of use");
    table_free(table);
    g_ptr_array_free(uses, TRUE);
}

/* ---- Holders --------------------------------------------------------------------------------- */

static void put_holders(struct page *page, struct json_object *answer)
{
    struct table *table = holders_new();
    size_t count;
    struct json_object *leases = answer_rows(answer, "leases", &count);

    for (size_t i = 0; i < count; i++)
        if (!lease_is_vm(answer_row(leases, i)))
            holders_add(table, answer_row(leases, i));
    g_string_append(page->text,
                    table_rows(table) ? "\nCPU-wide holders:\n" : "\nNo CPU-wide holders.\n");
    table_write(table, page->text, page->terminal.columns, page->most, page->terminal.colours);
    put_more(page, table_rows(table), "holders");
    table_free(table);
}

/* ---- VMs ------------------------------------------------------------------------------------- */

static void put_sums(struct page *page, const size_t sums[LEASE_WORDS], size_t vms)
{
    g_string_append_printf(page->text, "\n%zu VM%s", vms, vms == 1 ? "" : "s");
    for (int word = LEASE_GRANTED; vms && word >= 0; word--)
        if (sums[word]) {
            char *part = g_strdup_printf("%zu %s", sums[word], lease_meanings[word].word);

            g_string_append(page->text, ", ");
            table_put_marked(page->text, lease_meanings[word].mark, part, page->terminal.colours);
            g_free(part);
        }
    g_string_append(page->text, vms ? "\n" : ".\n");
}

static void put_trouble(struct page *page, struct json_object *lease, enum lease_word word)
{
    const char *why = or_else(answer_text(lease, "why"), lease_meanings[word].meaning);
    char has[AMOUNT_TEXT], need[AMOUNT_TEXT];
    char *line = g_strdup_printf("%s (lease %llu): %s of %s", answer_text(lease, "name"),
                                 (unsigned long long)answer_number(lease, "id"),
                                 amount_text(answer_amount(lease, "granted"), has),
                                 amount_text(answer_amount(lease, "need"), need));
    GString *shown = g_string_new(NULL);

    g_string_append(page->text, "  ");
    table_put_marked(page->text, lease_meanings[word].mark, lease_meanings[word].word,
                     page->terminal.colours);
    g_string_append_printf(page->text, "%*s", INDENT - 2 - (int)strlen(lease_meanings[word].word),
                           "");
    cli_put_printable(shown, line);
    cli_put_wrapped(page->text, shown->str, INDENT, page->terminal.columns);
    g_string_truncate(shown, 0);
    cli_put_printable(shown, why);
    g_string_append_printf(page->text, "%*s", INDENT, "");
    cli_put_wrapped(page->text, shown->str, INDENT, page->terminal.columns);
    g_string_free(shown, TRUE);
    g_free(line);
}

/* Those that are worse than reserved or granted, the worst first. */
static void put_vms(struct page *page, struct json_object *answer)
{
    size_t sums[LEASE_WORDS] = {0}, vms = 0, shown = 0, wrong = 0, count;
    struct json_object *leases = answer_rows(answer, "leases", &count);

    for (size_t i = 0; i < count; i++)
        if (lease_is_vm(answer_row(leases, i))) {
            vms++;
            sums[lease_word(answer_row(leases, i))]++;
        }
    put_sums(page, sums, vms);
    for (int word = 0; word < LEASE_RESERVED; word++) {
        wrong += sums[word];
        for (size_t i = 0; sums[word] && i < count && shown < page->most; i++)
            if (lease_is_vm(answer_row(leases, i)) &&
                (int)lease_word(answer_row(leases, i)) == word) {
                put_trouble(page, answer_row(leases, i), (enum lease_word)word);
                shown++;
            }
    }
    put_more(page, wrong, "VMs");
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool ask_all(const char *command, const char *path, struct answers *answers, int *status)
{
    return (answers->status = cli_ask(command, path, "status", NULL, NULL, status)) &&
           (answers->host = cli_ask(command, path, "host", NULL, NULL, status)) &&
           (answers->leases = cli_ask(command, path, "leases", NULL, NULL, status));
}

static int print_json(const struct answers *answers)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(object, "status", json_object_get(answers->status));
    json_object_object_add(object, "host", json_object_get(answers->host));
    json_object_object_add(object, "leases", json_object_get(answers->leases));
    return cli_print_json(object);
}

static int print_page(const struct answers *answers, bool all)
{
    struct page page = {g_string_new(NULL), terminal_look(), all ? SIZE_MAX : ROWS_MOST};

    put_head(&page, answers);
    put_warnings(&page, answers);
    put_processors(&page, answers->status);
    put_holders(&page, answers->leases);
    put_vms(&page, answers->leases);
    return terminal_end(page.text, 0);
}

int cli_status(int argc, char **argv)
{
    struct answers answers = {NULL, NULL, NULL};
    const char *path = NULL;
    bool all = false, json = false;
    const struct cli_option options[] = {{"all", 'a', &all, NULL},
                                         {"json", 'j', &json, NULL},
                                         {"control", 0, NULL, &path},
                                         {NULL, 0, NULL, NULL}};
    int status;

    if (cli_options(argc, argv, options, 0, help, &status) < 0)
        return status;
    if (ask_all(argv[0], path, &answers, &status))
        status = json ? print_json(&answers) : print_page(&answers, all);
    json_object_put(answers.status);
    json_object_put(answers.host);
    json_object_put(answers.leases);
    return status;
}
