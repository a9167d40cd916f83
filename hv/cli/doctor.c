// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl doctor: the checks of hv/host, for people and for scripts. */
#include "hv/cli/cli.h"
#include "hv/cli/columns.h"
#include "hv/cli/managed.h"
#include "hv/cli/table.h"
#include "hv/cli/terminal.h"
#include "vpmu/host.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define TEXT_COLUMN 31 /* behind the verdict and the title */

struct options {
    const char *host;    /* a file that describes a machine; NULL: this one */
    const char *control; /* vpmud's socket; NULL: the usual one */
    bool json;
    bool measure;
};

/* What is looked at. */
struct view {
    struct vpmu_host host;
    struct vpmu_host_managed managed; /* leases of vpmud's */
    char daemon[340];                 /* what is to be said of vpmud; "": its leases are known */
};

struct sum {
    unsigned verdicts[VPMU_VERDICTS];
};

static const char help[] =
    "usage: vpmuctl doctor [--measure] [--json] [--host FILE] [--control SOCKET]\n"
    "\n"
    "Looks at what on this host can make guests' counters wrong, and says how to\n"
    "mend it.\n"
    "\n"
    "  --measure         measure what is left although somebody may be counting:\n"
    "                    unpinned events of others miss some ten microseconds on\n"
    "                    each processor\n"
    "  --json            one JSON object instead of the table\n"
    "  --host FILE       a machine that a file describes, instead of this one\n"
    "  --control SOCKET  vpmud, to ask for its leases (" CONTROL_SOCKET ")\n"
    "\n"
    "Exit status: 0 all is well; 1 there are warnings, or something could not be\n"
    "seen; 2 there are failures; 64 wrong arguments; 66 the host cannot be read.\n";

/* ---- The table ---- */

static void put_finding(GString *text, const struct terminal *terminal,
                        const struct vpmu_check *check, const struct vpmu_finding *finding)
{
    static const enum table_mark marks[VPMU_VERDICTS] = {
        [VPMU_VERDICT_OK] = TABLE_GOOD,
        [VPMU_VERDICT_WARNING] = TABLE_WARNING,
        [VPMU_VERDICT_FAILURE] = TABLE_BAD,
        [VPMU_VERDICT_UNKNOWN] = TABLE_UNKNOWN,
    };
    char verdict[16];

    snprintf(verdict, sizeof(verdict), "%-8s", vpmu_verdict_name(finding->verdict));
    g_string_append(text, "  ");
    table_put_marked(text, marks[finding->verdict], verdict, terminal->colours);
    g_string_append_printf(text, " %-19s ", check->title);
    cli_put_wrapped(text, finding->is, TEXT_COLUMN, terminal->columns);
    if (finding->mend[0]) {
        g_string_append_printf(text, "%*smend: ", TEXT_COLUMN - 6, "");
        cli_put_wrapped(text, finding->mend, TEXT_COLUMN, terminal->columns);
    }
}

static void put_head(GString *text, const struct view *view)
{
    const struct vpmu_host *host = &view->host;
    const char *model = host->model[0] ? host->model : vpmu_host_vendor_name(host->vendor);
    const char *kernel = host->kernel[0] ? host->kernel : "?";
    uint32_t online = 0;

    for (uint32_t p = 0; p < host->processor_count; p++)
        online += host->processors[p].online;
    g_string_append_printf(text, "%s%.*s, %u processor%s, Linux %.*s\n",
                           host->described ? "DESCRIBED: " : "", cli_bytes_of(model, 32), model,
                           online, online == 1 ? "" : "s", cli_bytes_of(kernel, 20), kernel);
    if (view->daemon[0])
        g_string_append_printf(text, "%s\n", view->daemon);
    g_string_append_c(text, '\n');
}

static void put_elsewhere(GString *text, const struct terminal *terminal)
{
    g_string_append(text, "\nNot to be seen from a host:\n");
    for (const struct vpmu_check *check = vpmu_checks; check->id; check++)
        if (!check->look) {
            g_string_append_printf(text, "  %-8s %-19s ", "", check->title);
            cli_put_wrapped(text, check->elsewhere, TEXT_COLUMN, terminal->columns);
        }
}

static void put_sum(GString *text, const struct sum *sum)
{
    const unsigned warnings = sum->verdicts[VPMU_VERDICT_WARNING];
    const unsigned failures = sum->verdicts[VPMU_VERDICT_FAILURE];

    g_string_append_printf(text, "\n%u ok, %u warning%s, %u failure%s, %u unknown\n",
                           sum->verdicts[VPMU_VERDICT_OK], warnings, warnings == 1 ? "" : "s",
                           failures, failures == 1 ? "" : "s", sum->verdicts[VPMU_VERDICT_UNKNOWN]);
}

/* ---- JSON ---- */

static struct json_object *finding_object(const struct vpmu_check *check,
                                          const struct vpmu_finding *finding)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(object, "check", json_object_new_string(check->id));
    json_object_object_add(object, "verdict",
                           json_object_new_string(vpmu_verdict_name(finding->verdict)));
    json_object_object_add(object, "is", json_object_new_string(finding->is));
    json_object_object_add(object, "mend", json_object_new_string(finding->mend));
    return object;
}

static struct json_object *holder_object(const struct vpmu_host_holder *holder)
{
    static const char *const kinds[] = {
        [VPMU_HOST_WATCHDOG] = "watchdog",
        [VPMU_HOST_PROCESS] = "process",
        [VPMU_HOST_DOMAIN_PERF] = "domain_perf",
        [VPMU_HOST_MEASURED] = "measured",
    };
    static const char *const bases[] = {
        [VPMU_HOST_NOT_KNOWN] = "not known",
        [VPMU_HOST_ESTIMATED] = "estimated",
        [VPMU_HOST_CERTAIN] = "certain",
    };
    struct json_object *object = json_object_new_object();
    char list[1024];

    json_object_object_add(object, "kind", json_object_new_string(kinds[holder->kind]));
    json_object_object_add(object, "basis", json_object_new_string(bases[holder->basis]));
    json_object_object_add(object, "name", json_object_new_string(holder->name));
    json_object_object_add(object, "pid", holder->pid ? json_object_new_int64(holder->pid) : NULL);
    json_object_object_add(object, "events", json_object_new_int64(holder->events));
    json_object_object_add(object, "gp", json_object_new_int(holder->amount.gp));
    json_object_object_add(object, "fixed", json_object_new_int(holder->amount.fixed));
    if (holder->processors) {
        vpmu_host_write_list(holder->processors, holder->words, list, sizeof(list));
        json_object_object_add(object, "processors", json_object_new_string(list));
    }
    return object;
}

static int print_json(const struct view *view, struct json_object *findings)
{
    const struct vpmu_host *host = &view->host;
    struct json_object *top = json_object_new_object(), *holders = json_object_new_array();

    for (uint32_t i = 0; i < host->holder_count; i++)
        json_object_array_add(holders, holder_object(&host->holders[i]));
    json_object_object_add(top, "described", json_object_new_boolean(host->described));
    json_object_object_add(top, "daemon", json_object_new_string(view->daemon));
    json_object_object_add(top, "kernel", json_object_new_string(host->kernel));
    json_object_object_add(top, "model", json_object_new_string(host->model));
    json_object_object_add(top, "processors", json_object_new_int64(host->processor_count));
    json_object_object_add(top, "findings", findings);
    json_object_object_add(top, "holders", holders);
    return cli_print_json(top);
}

/* ---- Looking ---- */

/* Makes every check, and hands it to tell; the sum. */
static struct sum look_at(const struct view *view,
                          void (*tell)(void *user, const struct vpmu_check *check,
                                       const struct vpmu_finding *finding),
                          void *user)
{
    struct sum sum = {{0}};

    for (const struct vpmu_check *check = vpmu_checks; check->id; check++) {
        struct vpmu_finding finding = {.verdict = VPMU_VERDICT_OK};

        if (!check->look)
            continue;
        check->look(&view->host, &view->managed, &finding);
        sum.verdicts[finding.verdict]++;
        tell(user, check, &finding);
    }
    return sum;
}

static int exit_status(const struct sum *sum)
{
    if (sum->verdicts[VPMU_VERDICT_FAILURE])
        return 2;
    return sum->verdicts[VPMU_VERDICT_WARNING] || sum->verdicts[VPMU_VERDICT_UNKNOWN];
}

struct page {
    GString *text;
    struct terminal terminal;
};

static void tell_page(void *user, const struct vpmu_check *check,
                      const struct vpmu_finding *finding)
{
    const struct page *page = user;

    put_finding(page->text, &page->terminal, check, finding);
}

static int report_page(const struct view *view)
{
    struct page page = {g_string_new(NULL), terminal_look()};

    put_head(page.text, view);
    const struct sum sum = look_at(view, tell_page, &page);

    put_elsewhere(page.text, &page.terminal);
    put_sum(page.text, &sum);
    return terminal_end(page.text, exit_status(&sum));
}

static void tell_json(void *user, const struct vpmu_check *check,
                      const struct vpmu_finding *finding)
{
    json_object_array_add(user, finding_object(check, finding));
}

static int report_json(const struct view *view)
{
    struct json_object *findings = json_object_new_array();
    const struct sum sum = look_at(view, tell_json, findings);
    const int failed = print_json(view, findings);

    return failed ? failed : exit_status(&sum);
}

/* vpmud's leases; without a daemon there are none, and that is said. -1: no memory. */
static int ask_for_leases(const struct options *options, struct view *view)
{
    struct control_error error;
    struct json_object *answer = control_question(options->control, "leases", NULL, NULL, &error);

    if (!answer) {
        snprintf(view->daemon, sizeof(view->daemon), "%s",
                 error.absent ? "vpmud is not running: no process has a lease" : error.text);
        return 0;
    }
    const int status = managed_of_answer(answer, &view->host, &view->managed);

    json_object_put(answer);
    return status;
}

static void free_view(struct view *view)
{
    managed_free(&view->managed);
    vpmu_host_free(&view->host);
}

static int look(const struct options *options, struct vpmu_host_source *source, struct view *view,
                struct vpmu_host_error *error)
{
    if (vpmu_host_read(source, &view->host, error))
        return -1;
    if ((options->host || !ask_for_leases(options, view)) &&
        !vpmu_host_measure(source, &view->host, NULL, 0, !options->measure, &view->managed, error))
        return 0;
    free_view(view);
    return -1;
}

static int take_view(const struct options *options, struct view *view,
                     struct vpmu_host_error *error)
{
    struct vpmu_host_source *source =
        options->host ? vpmu_host_described(options->host, error) : vpmu_host_real("");
    const int status = source ? look(options, source, view, error) : -1;

    vpmu_host_source_free(source);
    return status;
}

int cli_doctor(int argc, char **argv)
{
    struct options options = {NULL, NULL, false, false};
    const struct cli_option known[] = {{"measure", 0, &options.measure, NULL},
                                       {"json", 'j', &options.json, NULL},
                                       {"host", 0, NULL, &options.host},
                                       {"control", 0, NULL, &options.control},
                                       {NULL, 0, NULL, NULL}};
    struct vpmu_host_error error = {"no memory"};
    struct view view = {0};
    int status;

    if (cli_options(argc, argv, known, 0, help, &status) < 0)
        return status;
    if (take_view(&options, &view, &error)) {
        fprintf(stderr, "vpmuctl doctor: %s\n", error.text);
        return CLI_NO_INPUT;
    }
    status = options.json ? report_json(&view) : report_page(&view);
    free_view(&view);
    return status;
}
