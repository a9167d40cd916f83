/* SPDX-License-Identifier: BSD-3-Clause */
/* A command's output and its complaints, as text. */
#ifndef TESTS_UNIT_VPMUSTAT_TEST_H
#define TESTS_UNIT_VPMUSTAT_TEST_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest-drivers/vpmustat/arguments.h"

struct output {
    char *out, *err;
    size_t out_size, err_size;
    FILE *out_file, *err_file;
};

static inline void output_open(struct output *output)
{
    output->out_file = open_memstream(&output->out, &output->out_size);
    output->err_file = open_memstream(&output->err, &output->err_size);
}

static inline void output_close(struct output *output)
{
    fclose(output->out_file);
    fclose(output->err_file);
}

static inline void output_free(struct output *output)
{
    free(output->out);
    free(output->err);
}

static inline bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Arguments of one line, at blanks; each may be used until the next call. */
static inline int parse_line(const char *line, struct arguments *arguments)
{
    static char copy[500];
    static char *argv[32];
    int argc = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    memset(argv, 0, sizeof(argv));
    argv[0] = copy;
    for (char *word = strtok(copy, " "); word && argc < 31; word = strtok(NULL, " "))
        argv[argc++] = word;
    return arguments_parse(argc, argv, arguments);
}

#endif
