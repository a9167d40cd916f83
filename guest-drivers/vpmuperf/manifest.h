/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VPMUPERF_MANIFEST_H
#define VPMUPERF_MANIFEST_H

#include <stdio.h>

/**
 * Writes the instrumentation manifest that lodctr reads, made from counters.def. program: the file
 * that has the strings, without its folder.
 */
void manifest_write(FILE *to, const char *program);

#endif
