/* SPDX-License-Identifier: BSD-3-Clause */
/* A source's file, as docs/perflib.md describes it. */
#ifndef SOURCE_FILE_H
#define SOURCE_FILE_H

#include "source.h"

#define SOURCE_FILE_PROCESSORS 1024u
#define SOURCE_FILE_BYTES (4u << 20)

struct source_file_content {
    struct source_facts facts;
    struct source_processor *processors; /* facts.processors of them; free() it */
};

/**
 * Reads size bytes of text. Returns 0 with *content filled, or -1 with *error filled, its line
 * among it, and nothing to free.
 */
int source_file_parse(const char *text, size_t size, struct source_file_content *content,
                      struct source_error *error);

#endif
