// SPDX-License-Identifier: BSD-3-Clause
/* The control socket: lines of JSON, for vpmuctl. docs/control.md has the schema. */
#ifndef VPMUD_CONTROL_H
#define VPMUD_CONTROL_H

#include "daemon.h"

void control_accept(struct daemon *daemon, int fd);

#endif
