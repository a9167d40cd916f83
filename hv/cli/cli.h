// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl's commands, and what they share. */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "hv/cli/control.h"

/* Exit statuses: these of sysexits.h, and of env(1) where `run` cannot start its command. */
enum cli_status {
    CLI_REFUSED = 1, /* vpmud says no, or knows no such lease */
    CLI_USAGE = 64,  /* wrong arguments */
    CLI_NO_INPUT = 66,
    CLI_UNAVAILABLE = 69, /* no vpmud, or none that answers */
    CLI_TRY_LATER = 75,   /* `run`: others have the counters */
    CLI_DENIED = 77,      /* this user may not ask for that */
    CLI_CANNOT_EXECUTE = 126,
    CLI_NO_COMMAND = 127,
};

/* Each gets its own words, argv[0] its name, and returns vpmuctl's exit status. */
int cli_doctor(int argc, char **argv);
int cli_domain(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_fleet(int argc, char **argv);
int cli_leases(int argc, char **argv);
int cli_revoke(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_top(int argc, char **argv);

/* ---- Options --------------------------------------------------------------------------------- */

/* Exactly one of flag and text. */
struct cli_option {
    const char *name; /* without its dashes; NULL ends the table */
    char letter;      /* or 0 */
    bool *flag;       /* becomes true */
    const char **text;
};

#define CLI_COMMAND (-1) /* for words: at least one, and what follows the first are its own */

/*
 * Takes options and then exactly so many words. The index of the first word in argv; or -1: it is
 * over, and *status is vpmuctl's: 0 if help was asked for, which is printed; CLI_USAGE, and what is
 * wrong is said.
 */
int cli_options(int argc, char **argv, const struct cli_option *options, int words,
                const char *help, int *status);

/* A decimal number from least to most; false, and it is said what is wrong with the option. */
bool cli_number(const char *command, const char *option, const char *text, double least,
                double most, double *number);

/* ---- Asking vpmud ---------------------------------------------------------------------------- */

/*
 * Asks {"op": op}, with {key: value} unless key is NULL. The answer, which the caller puts; NULL:
 * it has been said why there is none, and *status is vpmuctl's.
 */
struct json_object *cli_ask(const char *command, const char *path, const char *op, const char *key,
                            const char *value, int *status);

/* Says on standard error what went wrong and what can be done; vpmuctl's status. */
int cli_fail(const char *command, const struct control_error *error);

/* Prints an object on standard output, frees it, and returns 0. */
int cli_print_json(struct json_object *object);

#endif
