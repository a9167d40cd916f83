/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A history: a host, then operations on it, all decoded from bytes; each is given to admission and
 * to the naive model, and all that they can be asked is compared.
 */
#ifndef ADMISSION_HISTORY_H
#define ADMISSION_HISTORY_H

#include "source.h"

/*
 * Runs at most operations of them, or until the data ends; then releases all and looks for leaks.
 * Returns false at the first difference, with its place and kind in difference.
 */
bool admission_history_run(struct source *source, uint32_t operations, char *difference,
                           size_t size);

#endif
