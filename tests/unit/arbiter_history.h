/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A history: a machine, then operations on it, all decoded from bytes; each is given to the arbiter
 * and to the naive model, and all they can be asked is compared. The bytes come from a generator
 * (unit test) or from a fuzzer.
 */
#ifndef ARBITER_HISTORY_H
#define ARBITER_HISTORY_H

#include "source.h"

/*
 * Runs at most operations of them, or until the data ends; then frees all and looks for leaks.
 * Returns false at the first difference, with its place and kind in difference.
 */
bool history_run(struct source *source, uint32_t operations, char *difference, size_t size);

#endif
