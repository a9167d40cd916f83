// SPDX-License-Identifier: BSD-3-Clause
/*
 * vpmuctl top: what VMs' counters do. A VM reports sums from time to time; a share is of what lies
 * between its last two reports, and at first of what lies between its start and the first report
 * seen.
 */
#include "hv/cli/cli.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hv/cli/answer.h"
#include "hv/cli/columns.h"
#include "hv/cli/counter.h"
#include "hv/cli/lease.h"
#include "hv/cli/screen.h"
#include "hv/cli/terminal.h"

#define COUNTERS 64u /* indices: general-purpose ones, then 32 fixed ones */
#define HEAD_LINES 6 /* beside the rows: three lines and a blank one, the titles, the last line */
#define DELAY_S "2"

static const char help[] =
    "usage: vpmuctl top [--once] [-d SECONDS] [--all] [--control SOCKET]\n"
    "\n"
    "What VMs' counters do, the worst first; q ends it. ENABLED is the share of its\n"
    "vCPUs' time for which a guest had a counter enabled, BACKED for how much of\n"
    "that it counted: below 100%, what the guest reads is too little.\n"
    "\n"
    "  -1, --once         one block, over the time since each VM's start\n"
    "  -d, --delay SECONDS  between looks (" DELAY_S "; 0.1 to 3600)\n"
    "  -a, --all          counters that no guest has enabled, too\n"
    "  --control SOCKET   vpmud's (" CONTROL_SOCKET ")\n";

/* ---- What is known of each VM ---------------------------------------------------------------- */

struct span {
    uint64_t enabled_ns, backed_ns;
};

struct seen {
    int64_t at_ms;               /* of the last report, at first of the VM's start */
    int64_t span_ms;             /* from the one before to it */
    struct span last[COUNTERS];  /* sums at at_ms */
    struct span delta[COUNTERS]; /* what came in span_ms */
    bool reported;
    unsigned round;
};

struct top {
    GHashTable *seen; /* of a lease's number: struct seen */
    unsigned round;
    bool all;
    bool described;
};

/* A VM that was restarted, or has migrated, begins again. */
static struct span difference(struct span now, struct span before)
{
    if (now.enabled_ns < before.enabled_ns || now.backed_ns < before.backed_ns)
        return now;
    return (struct span){now.enabled_ns - before.enabled_ns, now.backed_ns - before.backed_ns};
}

static void take_report(struct seen *seen, struct json_object *report)
{
    const int64_t at_ms = (int64_t)answer_number(report, "reported_ms");
    size_t count;
    struct json_object *counters = answer_rows(report, "counters", &count);

    if (!report || (seen->reported && at_ms == seen->at_ms))
        return;
    seen->reported = true;
    seen->span_ms = at_ms - seen->at_ms;
    seen->at_ms = at_ms;
    for (size_t i = 0; i < count; i++) {
        struct json_object *counter = answer_row(counters, i);
        const uint64_t index = answer_number(counter, "index");
        const struct span now = {answer_number(counter, "enabled_ns"),
                                 answer_number(counter, "backed_ns")};

        if (index >= COUNTERS)
            continue;
        seen->delta[index] = difference(now, seen->last[index]);
        seen->last[index] = now;
    }
}

static struct seen *see(struct top *top, struct json_object *lease)
{
    const uint64_t id = answer_number(lease, "id");
    struct seen *seen = g_hash_table_lookup(top->seen, &id);

    if (!seen) {
        uint64_t *key = g_new(uint64_t, 1);

        *key = id;
        seen = g_new0(struct seen, 1);
        seen->at_ms = (int64_t)answer_number(lease, "since_ms");
        g_hash_table_insert(top->seen, key, seen);
    }
    seen->round = top->round;
    take_report(seen, answer_object(lease, "report"));
    return seen;
}

static gboolean is_gone(gpointer key, gpointer value, gpointer user)
{
    const struct top *top = user;

    return ((const struct seen *)value)->round != top->round;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

struct row {
    struct json_object *lease, *counter; /* counter NULL: none is enabled, or there is no report */
    const struct seen *seen;
    unsigned rank; /* 0 is the worst */
    guint order;
};

/* Counters that stand still, then VMs that are worse than they should be, then all others. */
static unsigned rank_of(struct json_object *lease, struct json_object *counter)
{
    if (counter && counter_rank(counter) == 0)
        return 0;
    return 1 + (lease_word(lease) > LEASE_YIELDING);
}

static gint by_rank(gconstpointer a, gconstpointer b)
{
    const struct row *left = *(const struct row *const *)a, *right = *(const struct row *const *)b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return left->order < right->order ? -1 : left->order > right->order;
}

static void add_row(GPtrArray *rows, struct json_object *lease, struct json_object *counter,
                    const struct seen *seen)
{
    struct row *row = g_new(struct row, 1);

    *row = (struct row){lease, counter, seen, rank_of(lease, counter), rows->len};
    g_ptr_array_add(rows, row);
}

/* It says something: a guest has enabled it, or it is not as it should be. */
static bool is_shown(const struct top *top, struct json_object *counter, const struct seen *seen)
{
    const uint64_t index = answer_number(counter, "index");

    return index < COUNTERS && (top->all || seen->delta[index].enabled_ns ||
                                strcmp(answer_text(counter, "state"), "granted") != 0);
}

static void add_vm(struct top *top, GPtrArray *rows, struct json_object *lease)
{
    const struct seen *seen = see(top, lease);
    const guint before = rows->len;
    size_t count;
    struct json_object *counters = answer_rows(answer_object(lease, "report"), "counters", &count);

    for (size_t i = 0; i < count; i++)
        if (is_shown(top, answer_row(counters, i), seen))
            add_row(rows, lease, answer_row(counters, i), seen);
    if (rows->len == before)
        add_row(rows, lease, NULL, seen);
}

static const struct table_column columns[] = {
    {"VM", TABLE_LEFT, TABLE_CUT},         {"LEASE", TABLE_LEFT, TABLE_WHOLE},
    {"COUNTER", TABLE_LEFT, TABLE_WHOLE},  {"SELECTOR", TABLE_RIGHT, TABLE_CUT},
    {"ENABLED", TABLE_RIGHT, TABLE_WHOLE}, {"BACKED", TABLE_RIGHT, TABLE_WHOLE},
    {"STATE", TABLE_LEFT, TABLE_WHOLE},
};

static void add_counter(struct table *table, const struct row *row)
{
    const struct span *delta = &row->seen->delta[answer_number(row->counter, "index") % COUNTERS];
    const uint64_t vcpus = answer_number(answer_object(row->lease, "report"), "vcpus");
    const uint64_t span_ns = row->seen->span_ms > 0 ? (uint64_t)row->seen->span_ms * 1000000 : 0;

    counter_add_name(table, row->counter);
    table_add(table, TABLE_PLAIN, "0x%" PRIx64, answer_number(row->counter, "selector"));
    counter_add_share(table, delta->enabled_ns, span_ns * vcpus);
    counter_add_share(table, delta->backed_ns, delta->enabled_ns);
    counter_add_state(table, row->counter);
}

static void add_nothing(struct table *table, const struct row *row)
{
    for (size_t c = 2; c < G_N_ELEMENTS(columns) - 1; c++)
        table_add(table, TABLE_PLAIN, "-");
    table_add(table, TABLE_PLAIN, "%s",
              answer_object(row->lease, "report") ? "none enabled" : "no report");
}

/* ---- A frame --------------------------------------------------------------------------------- */

static void put_head(GString *text, const struct top *top, const GPtrArray *rows, guint vms)
{
    const time_t now = time(NULL);
    struct tm local;
    char clock[16] = "?";
    unsigned starved = 0;

    for (guint i = 0; i < rows->len; i++)
        starved += ((const struct row *)rows->pdata[i])->rank == 0;
    if (localtime_r(&now, &local))
        strftime(clock, sizeof(clock), "%T", &local);
    g_string_append_printf(text, "%s  %u VM%s, %u counter%s that stand%s still\n", clock, vms,
                           vms == 1 ? "" : "s", starved, starved == 1 ? "" : "s",
                           starved == 1 ? "s" : "");
    if (top->described)
        g_string_append(text, "DESCRIBED: the machine of a file, not the one that you are on\n");
}

static void put_rows(GString *text, const GPtrArray *rows, const struct terminal *terminal,
                     size_t most)
{
    struct table *table = table_new(columns, G_N_ELEMENTS(columns));

    for (size_t i = 0; i < rows->len && i < most; i++) {
        const struct row *row = rows->pdata[i];

        table_add(table, TABLE_PLAIN, "%s", answer_text(row->lease, "name"));
        lease_add_word(table, row->lease);
        if (row->counter)
            add_counter(table, row);
        else
            add_nothing(table, row);
    }
    g_string_append_c(text, '\n');
    table_write(table, text, terminal->columns, most, terminal->colours);
    if (rows->len > most)
        g_string_append_printf(text, "... and %zu more rows\n", rows->len - most);
    table_free(table);
}

static GString *frame_of(struct top *top, struct json_object *answer, bool drawn)
{
    const struct terminal terminal = terminal_look();
    const size_t most = drawn ? (size_t)MAX(terminal.lines - HEAD_LINES, 1) : SIZE_MAX;
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    GString *text = g_string_new(NULL);
    size_t count;
    struct json_object *leases = answer_rows(answer, "leases", &count);
    guint vms = 0;

    top->round++;
    for (size_t i = 0; i < count; i++)
        if (lease_is_vm(answer_row(leases, i))) {
            add_vm(top, rows, answer_row(leases, i));
            vms++;
        }
    g_hash_table_foreach_remove(top->seen, is_gone, top);
    g_ptr_array_sort(rows, by_rank);
    put_head(text, top, rows, vms);
    put_rows(text, rows, &terminal, most);
    g_ptr_array_free(rows, TRUE);
    return text;
}

/* What there is to show: also that vpmud does not answer, which is tried again. */
static GString *look(struct top *top, const char *path, bool drawn)
{
    struct control_error error;
    struct json_object *answer = control_question(path, "top", NULL, NULL, &error);
    GString *text;

    if (!answer) {
        text = g_string_new(NULL);
        cli_put_printable(text, error.text);
        g_string_append(text, "\ntrying again\n");
        return text;
    }
    text = frame_of(top, answer, drawn);
    json_object_put(answer);
    return text;
}

static void watch(struct top *top, const char *path, bool once, int delay_ms)
{
    const bool drawn = !once && terminal_look().redraws;
    struct screen *screen = screen_open(drawn);
    bool goes_on = true;

    while (goes_on) {
        GString *frame = look(top, path, drawn);

        goes_on = screen_show(screen, frame) && !once && screen_wait(screen, delay_ms);
        g_string_free(frame, TRUE);
    }
    screen_close(screen);
}

int cli_top(int argc, char **argv)
{
    const char *path = NULL, *delay = DELAY_S;
    struct top top = {.round = 0};
    bool once = false;
    const struct cli_option options[] = {{"once", '1', &once, NULL},
                                         {"delay", 'd', NULL, &delay},
                                         {"all", 'a', &top.all, NULL},
                                         {"control", 0, NULL, &path},
                                         {NULL, 0, NULL, NULL}};
    struct json_object *answer;
    double seconds;
    int status;

    if (cli_options(argc, argv, options, 0, help, &status) < 0)
        return status;
    if (!cli_number(argv[0], "delay", delay, 0.1, 3600, &seconds))
        return CLI_USAGE;
    answer = cli_ask(argv[0], path, "status", NULL, NULL, &status);
    if (!answer)
        return status;
    top.described = answer_flag(answer, "described");
    json_object_put(answer);
    top.seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    watch(&top, path, once, (int)(seconds * 1000));
    g_hash_table_destroy(top.seen);
    return 0;
}
