/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider: looks at the source, publishes, until it is told to stop. */
#ifndef VPMUPERF_PROVIDER_H
#define VPMUPERF_PROVIDER_H

#include <windows.h>

struct provider_options {
    const char *source; /* as source_open takes it; NULL: the driver */
    DWORD period_ms;    /* between two looks */
    DWORD length_ms;    /* stop after so long; INFINITE: never */
    HANDLE stop;        /* an event: stop now */
    void (*say)(const char *text);
    void (*ready)(void); /* everything is published; may be NULL */
};

/**
 * Runs until it is to stop. Returns 0; 1 where there is nothing to publish, or perflib refuses: it
 * has been said. To be called once in a process.
 */
int provider_run(const struct provider_options *options);

#endif
