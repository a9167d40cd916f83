// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MOST 16
#define OPTION_BASE 256 /* getopt's value of the first row: none is a letter */

static int wrong(const char *command, const char *what, const char *word, int *status)
{
    fprintf(stderr, "vpmuctl %s: %s%s; vpmuctl %s --help says what there is\n", command, what, word,
            command);
    *status = CLI_USAGE;
    return -1;
}

/* The rows, and help, as getopt wants them; the number of rows. */
static size_t translate(const struct cli_option *options, struct option *known, char *letters)
{
    size_t count = 0;

    for (; options[count].name; count++) {
        known[count] = (struct option){options[count].name,
                                       options[count].text ? required_argument : no_argument, NULL,
                                       OPTION_BASE + (int)count};
        if (options[count].letter) {
            *letters++ = options[count].letter;
            if (options[count].text)
                *letters++ = ':';
        }
    }
    known[count] = (struct option){"help", no_argument, NULL, 'h'};
    known[count + 1] = (struct option){0};
    *letters = 'h';
    return count;
}

static const struct cli_option *row_of(const struct cli_option *options, size_t count, int found)
{
    for (size_t i = 0; i < count; i++)
        if (found == OPTION_BASE + (int)i || (options[i].letter && found == options[i].letter))
            return &options[i];
    return NULL;
}

int cli_options(int argc, char **argv, const struct cli_option *options, int words,
                const char *help, int *status)
{
    struct option known[OPTIONS_MOST + 2];
    char letters[2 * OPTIONS_MOST + 4] = "+:";
    const size_t count = translate(options, known, letters + 2);
    const char *order = letters + (words != CLI_COMMAND); /* '+': options end at the first word */
    int found;

    opterr = 0;
    optind = 1;
    while ((found = getopt_long(argc, argv, order, known, NULL)) != -1) {
        const struct cli_option *option = row_of(options, count, found);

        if (found == 'h') {
            fputs(help, stdout);
            *status = 0;
            return -1;
        }
        if (!option)
            return wrong(argv[0], found == ':' ? "something is missing after " : "what is ",
                         argv[optind - 1], status);
        if (option->flag)
            *option->flag = true;
        else
            *option->text = optarg;
    }
    if (words == CLI_COMMAND ? optind == argc : argc - optind < words)
        return wrong(argv[0], words == CLI_COMMAND ? "a command is missing" : "a word is missing",
                     "", status);
    if (words != CLI_COMMAND && argc - optind > words)
        return wrong(argv[0], "what is ", argv[optind + words], status);
    return optind;
}

bool cli_number(const char *command, const char *option, const char *text, double least,
                double most, double *number)
{
    char *end;

    *number = strtod(text, &end);
    if (end != text && !*end && *number >= least && *number <= most)
        return true;
    fprintf(stderr, "vpmuctl %s: --%s %s: not a number from %g to %g\n", command, option, text,
            least, most);
    return false;
}
