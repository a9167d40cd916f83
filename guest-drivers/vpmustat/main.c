/* SPDX-License-Identifier: BSD-3-Clause */
/* vpmustat: the counters of this VM, and the counter sets of this machine. */

#include <stdio.h>
#include <stdlib.h>

#include "count.h"
#include "selftest.h"
#include "system.h"

#define VERSION "0.1"

static const char usage[] =
    "usage: vpmustat [OPTIONS] -- PROGRAM [ARGUMENT]...   counts while it runs\n"
    "       vpmustat list                   events, and which are backed here\n"
    "       vpmustat sets                   the counter sets of this machine\n"
    "       vpmustat query 'SET[(INSTANCE)][\\COUNTER]'\n"
    "       vpmustat selftest               which of the silent failures it has\n"
    "\n"
    "  -e EVENT[,EVENT]...  what to count (instructions, cycles, branches,\n"
    "                       branch-misses; see vpmustat list)\n"
    "  -C N           run PROGRAM on processor N (0), and count there\n"
    "  -a             count all processors, whoever runs\n"
    "  -u, -k         user mode, kernel mode (-u; with -a both)\n"
    "  -A             each processor for itself; selftest: each check\n"
    "  -i SECONDS     query: two looks so far apart, and rates\n"
    "  -o FORMAT      text, csv or json\n"
    "  --source FROM  driver, or file:PATH\n"
    "  --perflib DLL  take perflib's consumer routines from it\n"
    "\n"
    "A value that is not backed is no data: \"-\", an empty field, null. Never 0.\n";

static int run_selftest(const struct arguments *arguments)
{
    struct source_device device;
    struct source_error error;
    char text[200];
    int status;

    if (source_device_open(&device, &error) < 0) {
        fprintf(stderr, "vpmustat: %s\n", source_error_text(&error, text, sizeof(text)));
        return 2;
    }
    status = selftest(&device, system_profile_thread, arguments, stdout, stderr);
    device.close(device.context);
    return status;
}

static int run(const struct arguments *arguments)
{
    struct perf_routines routines = {0};

    switch (arguments->command) {
    case COMMAND_COUNT:
        return count_program(arguments, stdout, stderr);
    case COMMAND_LIST:
        return count_list(arguments, stdout, stderr);
    case COMMAND_SETS:
        system_find_routines(arguments->perflib, &routines);
        return consumer_sets(&routines, arguments, stdout, stderr);
    case COMMAND_QUERY:
        system_find_routines(arguments->perflib, &routines);
        return consumer_query(&routines, arguments, system_sleep_ms, stdout, stderr);
    case COMMAND_SELFTEST:
        return run_selftest(arguments);
    case COMMAND_HELP:
        fputs(usage, stdout);
        return 0;
    case COMMAND_VERSION:
        puts("vpmustat " VERSION);
        return 0;
    }
    return 2;
}

static int run_arguments(int argc, char **argv)
{
    struct arguments arguments;

    if (arguments_parse(argc, argv, &arguments) < 0) {
        fprintf(stderr, "vpmustat: %s%s%s\nvpmustat: see vpmustat --help\n", arguments.error,
                *arguments.culprit ? ": " : "", arguments.culprit);
        return 2;
    }
    return run(&arguments);
}

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <wchar.h>
#include <windows.h>

/* Inside, all text is UTF-8. */
static char *to_utf8(const wchar_t *wide)
{
    size_t length = wcslen(wide), room = 3 * length + 1;
    char *text = malloc(room);

    return text ? perf_text((struct block_text){(const uint8_t *)wide, length}, text, room) : NULL;
}

int wmain(int argc, wchar_t **wide)
{
    char **argv = calloc((size_t)argc + 1, sizeof(*argv));

    for (int i = 0; argv && i < argc; i++) {
        argv[i] = to_utf8(wide[i]);
        if (!argv[i])
            return 2;
    }
    SetConsoleOutputCP(CP_UTF8);
    _setmode(_fileno(stdout), _O_BINARY); /* CSV has its own line ends */
    return argv ? run_arguments(argc, argv) : 2;
}
#else
int main(int argc, char **argv)
{
    return run_arguments(argc, argv);
}
#endif
