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

static void put_field(struct text *text, const struct log_field *field)
{
    char number[24];

    put(text, ' ');
    put_string(text, field->key);
    put(text, '=');
    if (field->text) {
        put_value(text, field->text);
        return;
    }
    snprintf(number, sizeof(number), "%llu", (unsigned long long)field->number);
    put_string(text, number);
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
static int put_head(char *line, size_t size, int priority)
{
    static const char *const levels[] = {[LOG_ERR] = "error",
                                         [LOG_WARNING] = "warning",
                                         [LOG_NOTICE] = "notice",
                                         [LOG_INFO] = "info"};
    struct timespec now;
    struct tm utc;
    char stamp[32];

    if (getenv("JOURNAL_STREAM"))
        return snprintf(line, size, "<%d>", priority);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
    return snprintf(line, size, "time=%s.%03ldZ level=%s ", stamp, now.tv_nsec / 1000000,
                    levels[priority]);
}

void log_fields(int priority, const char *event, const struct log_field *fields)
{
    char line[1536];
    uint32_t head = (uint32_t)put_head(line, sizeof(line), priority);
    uint32_t length = head + log_format(line + head, (uint32_t)sizeof(line) - head, event, fields);

    /* One call, one line. If standard error is gone or full there is nobody to tell. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}
