/* SPDX-License-Identifier: BSD-3-Clause */
/* The arbiter against the naive model, over histories decoded from the input. */
#include "tests/unit/arbiter_history.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.data = data, .size = size};
    char difference[256];

    if (!size || history_run(&source, UINT32_MAX, difference, sizeof(difference)))
        return 0;
    fprintf(stderr, "arbiter: %s\n", difference);
    abort();
}
