/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"
#include "cpu.h"
#include "libc.h"

#define MAX_PREFIXES 8

static struct lock report_lock;
static unsigned passed_count, failed_count, skipped_count;
static char prefixes[MAX_PREFIXES][64];
static unsigned prefix_count;

static void say(const char *verdict, unsigned *counter, const char *why, const char *fmt,
                va_list args)
{
    char text[384];
    int n = 0;

    lock(&report_lock);
    ++*counter;
    for (unsigned i = 0; i < prefix_count; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s: ", prefixes[i]);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
    printf("%s %s%s\n", verdict, text, why);
    unlock(&report_lock);
}

static void say_result(bool passed, const char *why, const char *fmt, va_list args)
{
    if (passed)
        say("PASS", &passed_count, "", fmt, args);
    else
        say("FAIL", &failed_count, why, fmt, args);
}

void report(bool passed, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say_result(passed, "", fmt, args);
    va_end(args);
}

void report_equal(uint64_t got, uint64_t want, const char *fmt, ...)
{
    char why[96];
    va_list args;

    snprintf(why, sizeof(why), ": got %lu (%#lx), want %lu (%#lx)", got, got, want, want);
    va_start(args, fmt);
    say_result(got == want, why, fmt, args);
    va_end(args);
}

void report_skip(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say("SKIP", &skipped_count, "", fmt, args);
    va_end(args);
}

void report_prefix_push(const char *fmt, ...)
{
    va_list args;

    if (prefix_count == MAX_PREFIXES)
        panic("report_prefix_push: too many");
    va_start(args, fmt);
    vsnprintf(prefixes[prefix_count++], sizeof(prefixes[0]), fmt, args);
    va_end(args);
}

void report_prefix_pop(void)
{
    prefix_count--;
}

unsigned report_failures(void)
{
    return failed_count;
}

enum report_exit report_summary(void)
{
    printf("SUMMARY %u passed, %u failed, %u skipped\n", passed_count, failed_count, skipped_count);
    if (failed_count)
        return REPORT_EXIT_FAILED;
    return passed_count ? REPORT_EXIT_PASSED : REPORT_EXIT_NOTHING;
}
