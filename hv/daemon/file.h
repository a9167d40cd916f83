// SPDX-License-Identifier: BSD-3-Clause
#ifndef VPMUD_FILE_H
#define VPMUD_FILE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Makes text the contents of path: whoever reads it finds the old text or the new one, whole, also
 * after a loss of power. Writes path.new beside it first. 0, or -1 and errno; the old file stays.
 */
int file_replace(const char *path, const char *text, size_t size, mode_t mode);

#endif
