// SPDX-License-Identifier: BSD-3-Clause
/* Log lines: logfmt on standard error, with the journal's priority in front where that reads it. */
#ifndef VPMUD_LOG_H
#define VPMUD_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h> /* LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO */

/* key=value; a text is quoted where it has to be, so that no name can forge a field or a line. */
struct log_field {
    const char *key;
    const char *text; /* NULL: the number */
    uint64_t number;
};

#define TEXT(name, value) ((struct log_field){.key = (name), .text = (value)})
#define NUMBER(name, value) ((struct log_field){.key = (name), .number = (uint64_t)(value)})

/* Writes "event=EVENT key=value ..."; the list ends with a field without a key. */
void log_fields(int priority, const char *event, const struct log_field *fields);

/*
 * Lines of LOG_INFO are gathered, and written when there is nothing else to do, with the next line
 * that is more than information, or when there are many: a request need not pay for a write.
 */
bool log_is_unwritten(void);
void log_flush(void);

#define log_event(priority, event, ...)                                                            \
    log_fields((priority), (event), (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}})

/*
 * Formats the line with a newline, at most size bytes with the NUL; what does not fit is cut, the
 * newline stays. Returns its length. size is at least 2.
 */
uint32_t log_format(char *line, uint32_t size, const char *event, const struct log_field *fields);

#endif
