/* SPDX-License-Identifier: BSD-3-Clause */
/* What the numbers in blocks mean, in words; names and GUIDs as text. */
#ifndef PERFLIB_WORDS_H
#define PERFLIB_WORDS_H

#include "block.h"

/** What instances a set has: "multi-instance", ...; "unknown kind" for what is not known. */
const char *perf_kind_words(uint32_t kind);

/** Whether a query of such a set must name an instance. */
bool perf_kind_has_instances(uint32_t kind);

/** A counter's type: "rate per second", ...; "unknown type". And its name in winperf.h, or "?". */
const char *perf_type_words(uint32_t type);
const char *perf_type_name(uint32_t type);

/** The level of detail: "novice", ... */
const char *perf_detail_words(uint32_t detail);

/** An answer's type: "one counter of one instance", ... */
const char *perf_answer_words(uint32_t type);

/** A Win32 error that perflib answers with; "error" for others. */
const char *perf_error_words(uint32_t error);

/**
 * UTF-16 as UTF-8, cut to size - 1 bytes at a character, with its zero. What is no character and
 * what would move a terminal's cursor becomes U+FFFD. Returns to.
 */
char *perf_text(struct block_text text, char *to, size_t size);

/**
 * UTF-8 as little-endian UTF-16 without a zero, of at most room units. Returns how many units, or
 * -1 where text is no UTF-8 or does not fit.
 */
long perf_utf16(const char *text, uint8_t *units, size_t room);

/** "{6F3B...}" of 38 characters and a zero. Returns to. */
char *perf_guid_text(const struct block_guid *guid, char to[39]);

/** Reads it back, in any case. Returns whether it is one. */
bool perf_guid_parse(const char *text, struct block_guid *guid);

#endif
