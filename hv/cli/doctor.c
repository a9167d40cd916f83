// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl doctor: the checks of hv/host, for people and for scripts. */
#include "hv/cli/cli.h"
#include "hv/cli/columns.h"
#include "hv/cli/control.h"
#include "hv/cli/managed.h"
#include "vpmu/host.h"

#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS 80
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

#define CANNOT_LOOK 66 /* EX_NOINPUT of sysexits.h */

/* ---- The table ---- */

static const char *colour(enum vpmu_verdict verdict, bool colours)
{
    static const char *const codes[VPMU_VERDICTS] = {
        [VPMU_VERDICT_OK] = "\033[32m",
        [VPMU_VERDICT_WARNING] = "\033[33m",
        [VPMU_VERDICT_FAILURE] = "\033[1;31m",
        [VPMU_VERDICT_UNKNOWN] = "\033[36m",
    };

    return colours ? codes[verdict] : "";
}

/* Prints words from column at on, and wraps them to TEXT_COLUMN. */
static void print_wrapped(const char *text)
{
    int at = TEXT_COLUMN;
    bool first = true;

    while (*text) {
        const size_t word = strcspn(text, " ");
        const int columns = cli_columns_of(text, word);

        if (!first && at + 1 + columns > COLUMNS) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = TEXT_COLUMN;
        } else if (!first) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += columns;
        first = false;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_finding(const struct vpmu_check *check, const struct vpmu_finding *finding,
                          bool colours)
{
    printf("  %s%-8s%s %-19s ", colour(finding->verdict, colours),
           vpmu_verdict_name(finding->verdict), colours ? "\033[0m" : "", check->title);
    print_wrapped(finding->is);
    if (finding->mend[0]) {
        printf("%*s", TEXT_COLUMN - 6, "");
        fputs("mend: ", stdout);
        print_wrapped(finding->mend);
    }
}

static void print_head(const struct view *view)
{
    const struct vpmu_host *host = &view->host;
    const char *model = host->model[0] ? host->model : vpmu_host_vendor_name(host->vendor);
    const char *kernel = host->kernel[0] ? host->kernel : "?";
    uint32_t online = 0;

    for (uint32_t p = 0; p < host->processor_count; p++)
        online += host->processors[p].online;
    printf("%s%.*s, %u processor%s, Linux %.*s\n", host->described ? "DESCRIBED: " : "",
           cli_bytes_of(model, 32), model, online, online == 1 ? "" : "s", cli_bytes_of(kernel, 20),
           kernel);
    if (view->daemon[0])
        puts(view->daemon);
    putchar('\n');
}

static void print_elsewhere(void)
{
    puts("\nNot to be seen from a host:");
    for (const struct vpmu_check *check = vpmu_checks; check->id; check++)
        if (!check->look) {
            printf("  %-8s %-19s ", "", check->title);
            print_wrapped(check->elsewhere);
        }
}

static void print_sum(const struct sum *sum)
{
    printf("\n%u ok, %u warning%s, %u failure%s, %u unknown\n", sum->verdicts[VPMU_VERDICT_OK],
           sum->verdicts[VPMU_VERDICT_WARNING], sum->verdicts[VPMU_VERDICT_WARNING] == 1 ? "" : "s",
           sum->verdicts[VPMU_VERDICT_FAILURE], sum->verdicts[VPMU_VERDICT_FAILURE] == 1 ? "" : "s",
           sum->verdicts[VPMU_VERDICT_UNKNOWN]);
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

static void print_json(const struct view *view, struct json_object *findings)
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
    puts(json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                 JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(top);
}

/* ---- Looking ---- */

/* Makes every check, prints it or adds it to findings; the sum. */
static struct sum look_at(const struct view *view, struct json_object *findings, bool colours)
{
    struct sum sum = {{0}};

    for (const struct vpmu_check *check = vpmu_checks; check->id; check++) {
        struct vpmu_finding finding = {.verdict = VPMU_VERDICT_OK};

        if (!check->look)
            continue;
        check->look(&view->host, &view->managed, &finding);
        sum.verdicts[finding.verdict]++;
        if (findings)
            json_object_array_add(findings, finding_object(check, &finding));
        else
            print_finding(check, &finding, colours);
    }
    return sum;
}

static int exit_status(const struct sum *sum)
{
    if (sum->verdicts[VPMU_VERDICT_FAILURE])
        return 2;
    return sum->verdicts[VPMU_VERDICT_WARNING] || sum->verdicts[VPMU_VERDICT_UNKNOWN];
}

static int report(const struct view *view, bool json)
{
    struct json_object *findings = json ? json_object_new_array() : NULL;

    if (!json)
        print_head(view);
    const struct sum sum =
        look_at(view, findings, !json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));

    if (json) {
        print_json(view, findings);
    } else {
        print_elsewhere();
        print_sum(&sum);
    }
    return exit_status(&sum);
}

/* vpmud's leases; without a daemon there are none, and that is said. -1: no memory. */
static int ask_for_leases(const struct options *options, struct view *view)
{
    struct control_error error;
    struct json_object *answer = control_question(options->control, "leases", NULL, &error);

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

/* 0, or -1 if they are wrong; --help ends here. */
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"measure", no_argument, NULL, 'm'},    {"json", no_argument, NULL, 'j'},
        {"host", required_argument, NULL, 'H'}, {"control", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},       {0},
    };
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'm':
            options->measure = true;
            break;
        case 'j':
            options->json = true;
            break;
        case 'H':
            options->host = optarg;
            break;
        case 'c':
            options->control = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            exit(0);
        default:
            return -1;
        }
    }
    return optind == argc ? 0 : -1;
}

int cli_doctor(int argc, char **argv)
{
    struct options options = {0};
    struct vpmu_host_error error = {"no memory"};
    struct view view = {0};

    if (parse(argc, argv, &options)) {
        fputs(help, stderr);
        return CLI_USAGE;
    }
    if (take_view(&options, &view, &error)) {
        fprintf(stderr, "vpmuctl doctor: %s\n", error.text);
        return CANNOT_LOOK;
    }
    const int status = report(&view, options.json);

    free_view(&view);
    return status;
}
