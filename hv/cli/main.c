// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl: the command table. */
#include "hv/cli/cli.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"doctor", cli_doctor, "what on this host can make guests' counters wrong"},
    {"domain", cli_domain, "the counters of libvirt's domains"},
    {"explain", cli_explain, "what is the matter with a VM's counters"},
    {"fleet", cli_fleet, "what a VM can have here, for schedulers of fleets"},
    {"leases", cli_leases, "who holds counters"},
    {"revoke", cli_revoke, "take a lease from its holder"},
    {"run", cli_run, "run a host profiler under a lease"},
    {"status", cli_status, "what the machine has, who has it, and what is wrong"},
    {"top", cli_top, "what VMs' counters do, live"},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *to)
{
    fputs("usage: vpmuctl COMMAND [ARGUMENT...]\n\n", to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].what);
    fputs("\nvpmuctl COMMAND --help says more of each; see also vpmuctl(8).\n", to);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; argc > 1 && i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1)
        fprintf(stderr, "vpmuctl: there is no command %s\n", argv[1]);
    usage(stderr);
    return CLI_USAGE;
}
