/* SPDX-License-Identifier: BSD-3-Clause */
/* Admission against the naive model, over histories decoded from the input. */
#include "tests/unit/admission_history.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.data = data, .size = size};
    char difference[256];

    if (!size || admission_history_run(&source, UINT32_MAX, difference, sizeof(difference)))
        return 0;
    fprintf(stderr, "admission: %s\n", difference);
    abort();
}
