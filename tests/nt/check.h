/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports from any thread, at any IRQL: the library's locks are taken with interrupts off. */
#ifndef NT_CHECK_H
#define NT_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/** Reports a check, as report() does. */
void check(bool passed, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Reports a comparison, as report_equal() does. */
void check_equal(uint64_t got, uint64_t want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/** Reports a check that this machine cannot run: "name: why". */
void check_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * Reports that a driver broke a rule of the kernel: a call at a wrong IRQL, a
 * leak, an IRP completed twice. A scenario that provokes violations brackets
 * them with violations_expect() and violations_seen().
 */
void violation(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** From now on violations are counted and printed, not reported as failures. */
void violations_expect(void);

/** Ends that, and returns how many there were. */
unsigned violations_seen(void);

/** Prints without a verdict. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
