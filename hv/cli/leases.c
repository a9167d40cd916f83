// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl leases, and revoke. */
#include "hv/cli/cli.h"

#include <json-c/json.h>

#include "hv/cli/answer.h"
#include "hv/cli/lease.h"
#include "hv/cli/terminal.h"

static const char leases_help[] =
    "usage: vpmuctl leases [--json] [--control SOCKET]\n"
    "\n"
    "Who has counters: a row for each lease. GP is a number, FIXED a set.\n"
    "\n"
    "  --json            vpmud's answer (docs/control.md)\n"
    "  --control SOCKET  vpmud's (" CONTROL_SOCKET ")\n";

static const char revoke_help[] =
    "usage: vpmuctl revoke [--control SOCKET] LEASE\n"
    "\n"
    "Takes the counters of a lease away; LEASE is its number, or its holder's\n"
    "name or uuid. The holder is told. It has them again when it asks again.\n"
    "\n"
    "  --control SOCKET  vpmud's (" CONTROL_SOCKET ")\n";

static const struct table_column columns[] = {
    {"LEASE", TABLE_RIGHT, TABLE_WHOLE}, {"STATE", TABLE_LEFT, TABLE_WHOLE},
    {"KIND", TABLE_LEFT, TABLE_WHOLE},   {"GP", TABLE_RIGHT, TABLE_WHOLE},
    {"FIXED", TABLE_RIGHT, TABLE_WHOLE}, {"PROCESSORS", TABLE_LEFT, TABLE_CUT_FIRST},
    {"NAME", TABLE_LEFT, TABLE_CUT},
};

static void add_lease(struct table *table, struct json_object *lease)
{
    const struct vpmu_amount granted = answer_amount(lease, "granted");
    const char *kind = answer_text(lease, "kind");

    table_add(table, TABLE_PLAIN, "%llu", (unsigned long long)answer_number(lease, "id"));
    lease_add_word(table, lease);
    table_add(table, TABLE_PLAIN, "%.8s", *kind ? kind : "-");
    table_add(table, TABLE_PLAIN, "%u", granted.gp);
    table_add(table, TABLE_PLAIN, "0x%x", granted.fixed);
    table_add(table, TABLE_PLAIN, "%s", answer_text(lease, "processors"));
    table_add(table, TABLE_PLAIN, "%s", answer_text(lease, "name"));
}

static int print_leases(struct json_object *answer)
{
    const struct terminal terminal = terminal_look();
    struct table *table = table_new(columns, G_N_ELEMENTS(columns));
    GString *text = g_string_new(NULL);
    size_t count;
    struct json_object *leases = answer_rows(answer, "leases", &count);

    for (size_t i = 0; i < count; i++)
        add_lease(table, answer_row(leases, i));
    table_write(table, text, terminal.columns, count, terminal.colours);
    if (!count)
        g_string_append(text, "Nobody has counters.\n");
    table_free(table);
    json_object_put(answer);
    return terminal_end(text, 0);
}

int cli_leases(int argc, char **argv)
{
    const char *path = NULL;
    bool json = false;
    const struct cli_option options[] = {
        {"json", 'j', &json, NULL}, {"control", 0, NULL, &path}, {NULL, 0, NULL, NULL}};
    struct json_object *answer;
    int status;

    if (cli_options(argc, argv, options, 0, leases_help, &status) < 0)
        return status;
    answer = cli_ask(argv[0], path, "leases", NULL, NULL, &status);
    if (!answer)
        return status;
    return json ? cli_print_json(answer) : print_leases(answer);
}

int cli_revoke(int argc, char **argv)
{
    const char *path = NULL;
    const struct cli_option options[] = {{"control", 0, NULL, &path}, {NULL, 0, NULL, NULL}};
    int status;
    const int word = cli_options(argc, argv, options, 1, revoke_help, &status);

    if (word < 0)
        return status;
    json_object_put(cli_ask(argv[0], path, "revoke", "lease", argv[word], &status));
    return status;
}
