/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random histories against the naive model. SEED in the environment repeats a run; OPERATIONS asks
 * for another number of operations than 1,000,000.
 */
#include "admission_history.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LENGTH 100u /* of a history */

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);

    return given ? strtoull(given, NULL, 0) : otherwise;
}

Test(admission, histories)
{
    uint64_t seed = from_environment("SEED", (uint64_t)time(NULL));
    uint64_t histories = from_environment("OPERATIONS", 1000000) / LENGTH;
    char difference[256];

    cr_assert(histories);
    fprintf(stderr, "admission: %llu histories of %u operations, SEED=%llu\n",
            (unsigned long long)histories, LENGTH, (unsigned long long)seed);
    for (uint64_t i = 0; i < histories; i++) {
        struct source source = {.state = seed ^ i << 32};
        cr_assert(admission_history_run(&source, LENGTH, difference, sizeof(difference)),
                  "SEED=%llu, history %llu, %s", (unsigned long long)seed, (unsigned long long)i,
                  difference);
    }
}
