/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an image says: one line per check, "PASS name", "FAIL name: why" or "SKIP name: why", the
 * name behind the stack of prefixes; and one last "SUMMARY n passed, n failed, n skipped".
 */
#ifndef GUEST_REPORT_H
#define GUEST_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum report_exit { REPORT_EXIT_PASSED, REPORT_EXIT_FAILED, REPORT_EXIT_NOTHING };

void report(bool passed, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As report(), and a failure says both numbers. */
void report_equal(uint64_t got, uint64_t want, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The text is "name: why". */
void report_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void report_prefix_push(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void report_prefix_pop(void);

/* Failures so far. */
unsigned report_failures(void);

/* Prints the SUMMARY line; returns the exit code. All skipped, or nothing said, is no pass. */
enum report_exit report_summary(void);

#endif
