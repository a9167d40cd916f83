// SPDX-License-Identifier: BSD-3-Clause
#include "log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "needs.h"

NEEDS("write clock_gettime");

#define LOG_LINE 1536u /* bytes of a line at most */

struct text {
    char *at;
    uint32_t room; /* without the newline and the NUL */
};

static void put(struct text *text, char c)
{
    if (!text->room)
        return;
    *text->at++ = c;
    text->room--;
}

static void put_string(struct text *text, const char *string)
{
    while (*string)
        put(text, *string++);
}

/* Bytes above ASCII are parts of UTF-8; a terminal's C1 controls cannot be told from them. */
static bool is_plain(unsigned char c)
{
    return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7F;
}

static void put_quoted_byte(struct text *text, unsigned char c)
{
    char code[8];

    if (c == '"' || c == '\\') {
        put(text, '\\');
        put(text, (char)c);
    } else if (c < ' ' || c == 0x7F) {
        snprintf(code, sizeof(code), "\\x%02x", c);
        put_string(text, code);
    } else {
        put(text, (char)c);
    }
}

static void put_value(struct text *text, const char *value)
{
    const char *c = value;

    while (*c && is_plain((unsigned char)*c))
        c++;
    if (c != value && !*c) {
        put_string(text, value);
        return;
    }
    put(text, '"');
    for (c = value; *c; c++)
        put_quoted_byte(text, (unsigned char)*c);
    put(text, '"');
}

static void put_number(struct text *text, uint64_t number)
{
    char digits[24], *at = digits + sizeof(digits) - 1;

    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    put_string(text, at);
}

static void put_field(struct text *text, const struct log_field *field)
{
    put(text, ' ');
    put_string(text, field->key);
    put(text, '=');
    if (field->text)
        put_value(text, field->text);
    else
        put_number(text, field->number);
}

uint32_t log_format(char *line, uint32_t size, const char *event, const struct log_field *fields)
{
    struct text text = {.at = line, .room = size - 2};

    put_string(&text, "event=");
    put_string(&text, event);
    for (; fields->key; fields++)
        put_field(&text, fields);
    *text.at++ = '\n';
    *text.at = '\0';
    return (uint32_t)(text.at - line);
}

/* sd-daemon(3): a line of a service may begin with its priority; the journal knows the time. */
static bool goes_to_journal(void)
{
    static enum { NOT_KNOWN, NO, YES } answer;

    if (answer == NOT_KNOWN)
        answer = getenv("JOURNAL_STREAM") ? YES : NO;
    return answer == YES;
}

/* Without printf(): each lease that comes and goes has a line. */
static void put_time(struct text *text)
{
    static time_t second;
    static char stamp[32];
    struct timespec now;
    struct tm utc;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != second) {
        second = now.tv_sec;
        gmtime_r(&second, &utc);
        strftime(stamp, sizeof(stamp), "time=%Y-%m-%dT%H:%M:%S.", &utc);
    }
    put_string(text, stamp);
    for (long unit = 100000000; unit >= 1000000; unit /= 10)
        put(text, (char)('0' + now.tv_nsec / unit % 10));
}

static uint32_t put_head(char *line, uint32_t size, int priority)
{
    static const char *const levels[] = {[LOG_ERR] = "Z level=error ",
                                         [LOG_WARNING] = "Z level=warning ",
                                         [LOG_NOTICE] = "Z level=notice ",
                                         [LOG_INFO] = "Z level=info "};
    struct text text = {.at = line, .room = size};

    if (goes_to_journal()) {
        put(&text, '<');
        put(&text, (char)('0' + priority));
        put(&text, '>');
    } else {
        put_time(&text);
        put_string(&text, levels[priority]);
    }
    return (uint32_t)(text.at - line);
}

static char unwritten[16384];
static uint32_t unwritten_size;

bool log_is_unwritten(void)
{
    return unwritten_size;
}

void log_flush(void)
{
    /* If standard error is gone or full there is nobody to tell. */
    if (unwritten_size && write(STDERR_FILENO, unwritten, unwritten_size) < 0)
        unwritten_size = 0;
    unwritten_size = 0;
}

void log_fields(int priority, const char *event, const struct log_field *fields)
{
    char *line = unwritten + unwritten_size;
    uint32_t head = put_head(line, LOG_LINE, priority);

    unwritten_size += head + log_format(line + head, LOG_LINE - head, event, fields);
    if (priority < LOG_INFO || unwritten_size > sizeof(unwritten) - LOG_LINE)
        log_flush();
}
