// SPDX-License-Identifier: BSD-3-Clause
#ifndef VPMUD_RELOAD_H
#define VPMUD_RELOAD_H

#include "daemon.h"

/*
 * Reads the configuration again, and looks at the host anew. False: it is not valid, or needs a
 * restart; the old one stays, and why says what is wrong. The log and the service manager are told
 * in any case.
 */
bool reload_config(struct daemon *daemon, char *why, size_t size);

#endif
