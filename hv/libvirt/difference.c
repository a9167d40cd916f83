// SPDX-License-Identifier: BSD-3-Clause
#include "hv/libvirt/difference.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* A file of the document, laid out anew, so that only what has changed differs; -1: no memory. The
 * file is left to the process's end where only one of two could be made. */
static int laid_out(const char *text)
{
    xmlDoc *doc =
        xmlReadMemory(text, (int)strlen(text), NULL, NULL, XML_PARSE_NOBLANKS | XML_PARSE_NONET);
    const int file = memfd_create("domain", 0);
    xmlChar *out = NULL;
    int size = 0;

    xmlDocDumpFormatMemory(doc, &out, &size, 1);
    const bool whole = file >= 0 && out && write(file, out, (size_t)size) == size;

    xmlFree(out);
    xmlFreeDoc(doc);
    return whole ? file : -1;
}

static void name_of(int file, char name[32])
{
    snprintf(name, 32, "/proc/self/fd/%d", file);
}

int difference_print(const char *before, const char *after)
{
    const int files[2] = {laid_out(before), laid_out(after)};
    char names[2][32];
    char *words[] = {"diff",  "-u",     "--label", "before", "--label",
                     "after", names[0], names[1],  NULL};
    int status = -1;
    pid_t pid;

    if (files[0] < 0 || files[1] < 0)
        return -1;
    name_of(files[0], names[0]);
    name_of(files[1], names[1]);
    fflush(stdout);
    if (!posix_spawnp(&pid, "diff", NULL, NULL, words, environ))
        waitpid(pid, &status, 0);
    close(files[0]);
    close(files[1]);
    return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? 0 : -1;
}
