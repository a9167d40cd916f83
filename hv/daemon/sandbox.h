// SPDX-License-Identifier: BSD-3-Clause
/* Privileges go in stages, each with a name; what a stage has taken nothing gives back. */
#ifndef VPMUD_SANDBOX_H
#define VPMUD_SANDBOX_H

#include <stdbool.h>

struct sandbox_error {
    char text[200];
};

/*
 * Stage "identity": become user (NULL: stay) with its groups, and give up every capability but
 * CAP_PERFMON, if that is there. Needs root, or be that user already. *perfmon receives whether
 * CAP_PERFMON is there.
 */
int sandbox_identity(const char *user, bool *perfmon, struct sandbox_error *error);

/*
 * Stage "calls": from now on no privilege is gained, and a system call that no NEEDS() of this
 * program names ends the process. Sockets are UNIX sockets, memory that can be executed is refused.
 * Under AddressSanitizer, which needs calls of its own, the kernel's log names what else is called.
 */
int sandbox_calls(struct sandbox_error *error);

#endif
