// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl leases, and revoke: a question to vpmud each. */
#include "hv/cli/cli.h"
#include "hv/cli/columns.h"
#include "hv/cli/control.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define UNAVAILABLE 69 /* EX_UNAVAILABLE of sysexits.h */
#define NAME_COLUMNS 29

/* The answer; NULL: it has been said why not, and *status is vpmuctl's. */
static struct json_object *ask(const char *path, const char *op, const char *lease, int *status)
{
    struct control_error error;
    struct json_object *answer = control_question(path, op, lease, &error);

    *status = answer ? 0 : error.unreachable ? UNAVAILABLE : 1;
    if (!answer)
        fprintf(stderr, "vpmuctl %s: %s\n", op, error.text);
    return answer;
}

static const char *text_of(struct json_object *object, const char *key)
{
    struct json_object *value = json_object_object_get(object, key);

    return value ? json_object_get_string(value) : "-";
}

/* A holder chooses its name: no control character of it reaches the terminal. */
static void print_name(const char *name)
{
    for (int left = cli_bytes_of(name, NAME_COLUMNS); left; left--, name++)
        putchar((unsigned char)*name < ' ' || *name == 0x7F ? '?' : *name);
    putchar('\n');
}

static void print_lease(struct json_object *lease)
{
    struct json_object *granted = json_object_object_get(lease, "granted");
    const int gp = json_object_get_int(json_object_object_get(granted, "gp"));
    const int fixed = json_object_get_int(json_object_object_get(granted, "fixed"));

    printf("%6s %-9.9s %-8.8s %2d %#5x %-14.14s ", text_of(lease, "id"), text_of(lease, "state"),
           text_of(lease, "kind"), gp, (unsigned)fixed, text_of(lease, "processors"));
    print_name(text_of(lease, "name"));
}

/* Takes --control SOCKET from the words; false: a word is missing, or there are others. */
static bool take_words(int argc, char **argv, int words, const char **path)
{
    const bool named = argc > 2 && !strcmp(argv[1], "--control");
    const int first = named ? 3 : 1;

    *path = named ? argv[2] : NULL;
    return argc == first + words && (!words || argv[first][0] != '-');
}

int cli_leases(int argc, char **argv)
{
    struct json_object *answer, *leases;
    const char *path;
    int status;

    if (!take_words(argc, argv, 0, &path)) {
        fputs("usage: vpmuctl leases [--control SOCKET]\n", stderr);
        return CLI_USAGE;
    }
    answer = ask(path, "leases", NULL, &status);
    if (!answer)
        return status;
    printf("%6s %-9s %-8s %2s %5s %-14s %s\n", "LEASE", "STATE", "KIND", "GP", "FIXED",
           "PROCESSORS", "NAME");
    leases = json_object_object_get(answer, "leases");
    for (size_t i = 0; leases && i < json_object_array_length(leases); i++)
        print_lease(json_object_array_get_idx(leases, i));
    json_object_put(answer);
    return 0;
}

int cli_revoke(int argc, char **argv)
{
    const char *path;
    int status;

    if (!take_words(argc, argv, 1, &path)) {
        fputs("usage: vpmuctl revoke [--control SOCKET] LEASE\n", stderr);
        return CLI_USAGE;
    }
    json_object_put(ask(path, "revoke", argv[argc - 1], &status));
    return status;
}
