// SPDX-License-Identifier: BSD-3-Clause
/* vpmuctl domain: a program of its own, since it needs libvirt and vpmuctl does not. */
#include "hv/cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "vpmuctl-domain"

/* Beside vpmuctl, else wherever PATH says. */
static void execute(char **argv)
{
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - sizeof(PROGRAM) - 1);

    if (size > 0) {
        path[size] = '\0';
        memcpy(strrchr(path, '/') + 1, PROGRAM, sizeof(PROGRAM));
        execv(path, argv);
    }
    execvp(PROGRAM, argv);
}

int cli_domain(int argc, char **argv)
{
    (void)argc;
    argv[0] = PROGRAM;
    execute(argv);
    perror("vpmuctl domain: " PROGRAM " (is libvirt there?)");
    return CLI_UNAVAILABLE;
}
