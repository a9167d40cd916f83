// SPDX-License-Identifier: BSD-3-Clause
/* Privileges go in stages, each with a name; what a stage has taken nothing gives back. */
#ifndef VPMUD_SANDBOX_H
#define VPMUD_SANDBOX_H

#include <stdbool.h>

struct sandbox_error {
    char text[200];
};

/* What of the privileges is left. */
struct sandbox_rights {
    bool perfmon; /* CAP_PERFMON: events on every processor can be opened */
    bool looks;   /* CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH: /proc of every process can be read */
};

/*
 * Stage "identity": become user (NULL: stay) with its groups, and give up every capability but
 * those that *rights asks for, as far as they are there. Needs root, or be that user already.
 * *rights receives what there is.
 */
int sandbox_identity(const char *user, struct sandbox_rights *rights, struct sandbox_error *error);

/*
 * Stage "calls": from now on no privilege is gained, and a system call that no NEEDS() of this
 * program names ends the process. Sockets are UNIX sockets, memory that can be executed is refused.
 * Under AddressSanitizer, which needs calls of its own, the kernel's log names what else is called.
 */
int sandbox_calls(struct sandbox_error *error);

#endif
