/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. */
#ifndef VPMUSTAT_ARGUMENTS_H
#define VPMUSTAT_ARGUMENTS_H

#include "guest-drivers/source/source.h"
#include "report.h"

enum command {
    COMMAND_COUNT, /* run a program */
    COMMAND_LIST,
    COMMAND_SETS,
    COMMAND_QUERY,
    COMMAND_SELFTEST,
    COMMAND_HELP,
    COMMAND_VERSION,
};

#define ARGUMENTS_PROCESSOR_MAX 63u /* an affinity mask has one bit for each of a group */

struct arguments {
    enum command command;
    enum report_format format;
    uint32_t events; /* set of 1 << enum vpmu_event_id */
    uint32_t modes;  /* VPMU_COUNT_... */
    bool everywhere; /* -a */
    bool apart;      /* -A: each processor for itself */
    uint32_t processor;
    uint32_t seconds;    /* between two looks of query; 0: one look */
    const char *source;  /* as source_open takes it */
    const char *perflib; /* a DLL with the consumer routines; NULL: the system's */
    const char *query;
    char **program; /* ends in NULL */
    const char *error, *culprit;
};

/** Reads argv[1] to argv[argc - 1]. Returns 0, or -1 with error and culprit. */
int arguments_parse(int argc, char **argv, struct arguments *arguments);

#define QUERY_PART 512u

/* What a path names; instance and counter are empty where it does not. */
struct query_path {
    char set[QUERY_PART], instance[QUERY_PART], counter[QUERY_PART];
};

/** Takes "SET[(INSTANCE)][\COUNTER]" apart, with or without "\" in front. Returns 0 or -1. */
int query_path_parse(const char *text, struct query_path *path);

#endif
