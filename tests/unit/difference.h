/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a history first differs from what the naive model says. */
#ifndef TESTS_UNIT_DIFFERENCE_H
#define TESTS_UNIT_DIFFERENCE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct difference {
    uint32_t operation; /* the one at hand */
    char *text;
    size_t size;
};

/* Writes it down; false, for the caller to return. */
__attribute__((format(printf, 2, 3))) static inline bool differ(struct difference *difference,
                                                                const char *format, ...)
{
    va_list arguments;
    int length =
        snprintf(difference->text, difference->size, "operation %u: ", difference->operation);

    va_start(arguments, format);
    vsnprintf(difference->text + length, difference->size - (size_t)length, format, arguments);
    va_end(arguments);
    return false;
}

/* In a function with a history, which has a difference: two numbers must be the same. */
#define SAME(got, wanted, what)                                                                    \
    do {                                                                                           \
        unsigned long long got_ = (got), wanted_ = (wanted);                                       \
        if (got_ != wanted_)                                                                       \
            return differ(&history->difference, "%s is 0x%llx, not 0x%llx", what, got_, wanted_);  \
    } while (0)

#endif
