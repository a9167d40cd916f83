/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include "libc.h"
#include "processor.h"
#include "report.h"

static bool expected;
static unsigned seen;

#define FORMATTED(text, fmt)                                                                       \
    char text[256];                                                                                \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    vsnprintf(text, sizeof(text), fmt, args);                                                      \
    va_end(args)

void check(bool passed, const char *fmt, ...)
{
    FORMATTED(text, fmt);
    bool enabled = interrupts_off();

    report(passed, "%s", text);
    interrupts_restore(enabled);
}

void check_equal(uint64_t got, uint64_t want, const char *fmt, ...)
{
    FORMATTED(text, fmt);
    bool enabled = interrupts_off();

    report_equal(got, want, "%s", text);
    interrupts_restore(enabled);
}

void check_skip(const char *fmt, ...)
{
    FORMATTED(text, fmt);
    bool enabled = interrupts_off();

    report_skip("%s", text);
    interrupts_restore(enabled);
}

void note(const char *fmt, ...)
{
    FORMATTED(text, fmt);
    bool enabled = interrupts_off();

    printf("%s\n", text);
    interrupts_restore(enabled);
}

void violation(const char *fmt, ...)
{
    FORMATTED(text, fmt);
    bool enabled = interrupts_off();

    if (expected) {
        __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
        printf("expected violation: %s\n", text);
    } else {
        report(false, "violation: %s", text);
    }
    interrupts_restore(enabled);
}

void violations_expect(void)
{
    seen = 0;
    expected = true;
}

unsigned violations_seen(void)
{
    expected = false;
    return seen;
}
