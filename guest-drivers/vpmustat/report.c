/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void report_begin(struct report *report, FILE *out, enum report_format format,
                  const struct report_column *columns, unsigned width)
{
    *report = (struct report){.out = out, .format = format, .columns = columns, .width = width};
}

static bool make_room(struct report *report)
{
    size_t room = report->room ? report->room * 2 : 64;
    char **cells;

    if (report->used < report->room)
        return true;
    cells = (char **)realloc((void *)report->cells, room * sizeof(*cells));
    if (!cells)
        return false;
    report->cells = cells;
    report->room = room;
    return true;
}

static void add(struct report *report, const char *text)
{
    size_t size = text ? strlen(text) + 1 : 0;
    char *copy = text ? malloc(size) : NULL;

    if ((text && !copy) || !make_room(report)) {
        free(copy);
        report->failed = true;
        return;
    }
    if (text)
        memcpy(copy, text, size);
    report->cells[report->used++] = copy;
}

void report_words(struct report *report, const char *words)
{
    add(report, words);
}

void report_number(struct report *report, uint64_t number)
{
    report_decimal(report, number, 0);
}

void report_decimal(struct report *report, uint64_t value, unsigned decimals)
{
    uint64_t unit = 1;
    char text[32];

    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    if (decimals)
        snprintf(text, sizeof(text), "%" PRIu64 ".%0*" PRIu64, value / unit, (int)decimals,
                 value % unit);
    else
        snprintf(text, sizeof(text), "%" PRIu64, value);
    add(report, text);
}

void report_none(struct report *report)
{
    add(report, NULL);
}

/* ---- Text ---- */

/* Digits in groups of three, before any decimals. */
static void group_digits(const char *number, char *to)
{
    size_t whole = strcspn(number, ".");

    for (size_t i = 0; number[i]; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            *to++ = ',';
        *to++ = number[i];
    }
    *to = 0;
}

static const char *shown(const struct report *report, size_t cell, char buffer[64])
{
    const char *text = report->cells[cell];

    if (!text)
        return "-";
    if (report->columns[cell % report->width].kind != REPORT_NUMBER || strlen(text) > 40)
        return text;
    group_digits(text, buffer);
    return buffer;
}

/* Characters of UTF-8. */
static int columns_of(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

static void measure(const struct report *report, int *widths)
{
    char buffer[64];

    for (unsigned i = 0; i < report->width; i++)
        widths[i] = columns_of(report->columns[i].name);
    for (size_t i = 0; i < report->used; i++) {
        int width = columns_of(shown(report, i, buffer));
        if (width > widths[i % report->width])
            widths[i % report->width] = width;
    }
}

static void pad(FILE *out, int count)
{
    for (; count > 0; count--)
        fputc(' ', out);
}

/* A line of the table, without blanks at its end. */
static void print_line(const struct report *report, const int *widths, const char *const *texts)
{
    int owed = 2;

    for (unsigned i = 0; i < report->width; i++) {
        int blanks = widths[i] - columns_of(texts[i]);
        bool right = report->columns[i].kind == REPORT_NUMBER;

        if (report->columns[i].kind == REPORT_GROUP)
            continue;
        pad(report->out, owed + (right ? blanks : 0));
        fputs(texts[i], report->out);
        owed = 2 + (right ? 0 : blanks);
    }
    fputc('\n', report->out);
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool group_changes(const struct report *report, size_t row)
{
    for (unsigned i = 0; i < report->width; i++) {
        if (report->columns[i].kind == REPORT_GROUP && row &&
            !same(report->cells[row + i], report->cells[row + i - report->width]))
            return true;
    }
    return !row;
}

static void print_heading(const struct report *report, const int *widths, size_t row)
{
    const char *names[REPORT_COLUMNS];
    int widest = 0;

    if (row)
        fputc('\n', report->out);
    for (unsigned i = 0; i < report->width; i++) {
        names[i] = report->columns[i].name;
        if (report->columns[i].kind == REPORT_GROUP && columns_of(names[i]) > widest)
            widest = columns_of(names[i]);
    }
    for (unsigned i = 0; i < report->width; i++) {
        const char *text = report->cells[row + i];
        if (report->columns[i].kind == REPORT_GROUP && text)
            fprintf(report->out, "%-*s  %s\n", widest, names[i], text);
    }
    print_line(report, widths, names);
}

static void print_text(const struct report *report)
{
    int widths[REPORT_COLUMNS];

    measure(report, widths);
    for (size_t row = 0; row < report->used; row += report->width) {
        char buffers[REPORT_COLUMNS][64];
        const char *texts[REPORT_COLUMNS];

        if (group_changes(report, row))
            print_heading(report, widths, row);
        for (unsigned i = 0; i < report->width; i++)
            texts[i] = shown(report, row + i, buffers[i]);
        print_line(report, widths, texts);
    }
}

/* ---- CSV (RFC 4180) ---- */

static void print_field(FILE *out, const char *text)
{
    if (!text)
        return;
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void print_csv(const struct report *report)
{
    for (unsigned i = 0; i < report->width; i++) {
        print_field(report->out, report->columns[i].name);
        fputs(i + 1 < report->width ? "," : "\r\n", report->out);
    }
    for (size_t i = 0; i < report->used; i++) {
        print_field(report->out, report->cells[i]);
        fputs((i + 1) % report->width ? "," : "\r\n", report->out);
    }
}

/* ---- JSON (RFC 8259) ---- */

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void print_json_cell(const struct report *report, size_t cell)
{
    const struct report_column *column = &report->columns[cell % report->width];
    const char *text = report->cells[cell];

    print_string(report->out, column->name);
    fputs(": ", report->out);
    if (!text)
        fputs("null", report->out);
    else if (column->kind == REPORT_NUMBER)
        fputs(text, report->out);
    else
        print_string(report->out, text);
}

static void print_json(const struct report *report)
{
    fputs("[", report->out);
    for (size_t i = 0; i < report->used; i++) {
        if (i % report->width == 0)
            fputs(i ? ",\n {" : "\n {", report->out);
        print_json_cell(report, i);
        fputs((i + 1) % report->width ? ", " : "}", report->out);
    }
    fputs("\n]\n", report->out);
}

int report_end(struct report *report)
{
    static void (*const print[])(const struct report *) = {print_text, print_csv, print_json};

    report->used -= report->used % report->width;
    if (!report->failed)
        print[report->format](report);
    for (size_t i = 0; i < report->used; i++)
        free(report->cells[i]);
    free((void *)report->cells);
    return report->failed || fflush(report->out) || ferror(report->out) ? -1 : 0;
}
