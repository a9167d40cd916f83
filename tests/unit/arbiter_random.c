/* SPDX-License-Identifier: BSD-3-Clause */
/* Random histories against the naive model. SEED in the environment repeats a run. */
#include "arbiter_history.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t seed(void)
{
    const char *given = getenv("SEED");

    return given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
}

static void run(uint32_t histories, uint32_t operations)
{
    uint64_t first = seed();
    char difference[256];

    fprintf(stderr, "arbiter: %u histories of %u operations, SEED=%llu\n", histories, operations,
            (unsigned long long)first);
    for (uint32_t i = 0; i < histories; i++) {
        struct source source = {.state = first ^ (uint64_t)i << 32};
        cr_assert(history_run(&source, operations, difference, sizeof(difference)),
                  "SEED=%llu, history %u, %s", (unsigned long long)first, i, difference);
    }
}

Test(arbiter, short_histories)
{
    run(100000, 24);
}

Test(arbiter, long_histories)
{
    run(10, 20000);
}
