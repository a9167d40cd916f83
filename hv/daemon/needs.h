// SPDX-License-Identifier: BSD-3-Clause
/* Which system calls a file needs stands in that file; sandbox.c makes the filter of all of them.
 */
#ifndef VPMUD_NEEDS_H
#define VPMUD_NEEDS_H

/* NEEDS("openat read"): names as seccomp knows them. At most once in a file. */
#define NEEDS(names)                                                                               \
    static const char *const needs __attribute__((used, section("vpmud_needs"))) = (names)

#endif
