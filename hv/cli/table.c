// SPDX-License-Identifier: BSD-3-Clause
#include "hv/cli/table.h"

#include <stdarg.h>
#include <string.h>

#include "hv/cli/columns.h"

#define GAP 2

struct cell {
    char *text;
    int width; /* columns */
    enum table_mark mark;
};

struct table {
    const struct table_column *columns;
    size_t count;
    GPtrArray *cells; /* struct cell, row by row */
};

static void free_cell(void *data)
{
    struct cell *cell = data;

    g_free(cell->text);
    g_free(cell);
}

struct table *table_new(const struct table_column *columns, size_t count)
{
    struct table *table = g_new(struct table, 1);

    *table = (struct table){columns, count, g_ptr_array_new_with_free_func(free_cell)};
    return table;
}

void table_free(struct table *table)
{
    g_ptr_array_free(table->cells, TRUE);
    g_free(table);
}

void table_add(struct table *table, enum table_mark mark, const char *format, ...)
{
    GString *shown = g_string_new(NULL);
    struct cell *cell = g_new(struct cell, 1);
    va_list arguments;
    char *text;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    cli_put_printable(shown, text);
    g_free(text);
    cell->mark = mark;
    cell->width = cli_columns_of(shown->str, shown->len);
    cell->text = g_string_free(shown, FALSE);
    g_ptr_array_add(table->cells, cell);
}

size_t table_rows(const struct table *table)
{
    return table->cells->len / table->count;
}

static const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
    return g_ptr_array_index(table->cells, row * table->count + column);
}

/* ---- Widths ---- */

static void measure(const struct table *table, size_t rows, int *widths)
{
    for (size_t c = 0; c < table->count; c++) {
        widths[c] = (int)strlen(table->columns[c].title);
        for (size_t r = 0; r < rows; r++)
            widths[c] = MAX(widths[c], cell_at(table, r, c)->width);
    }
}

static int sum_of(const int *widths, size_t count)
{
    int sum = -GAP;

    for (size_t c = 0; c < count; c++)
        sum += widths[c] + GAP;
    return sum;
}

/* The widest column that may be cut further; -1: there is none. */
static int widest(const struct table *table, const int *widths, enum table_cut cut)
{
    int found = -1;

    for (int c = 0; c < (int)table->count; c++)
        if (table->columns[c].cut == cut && widths[c] > (int)strlen(table->columns[c].title) &&
            (found < 0 || widths[c] > widths[found]))
            found = c;
    return found;
}

static void fit(const struct table *table, int *widths, int width)
{
    for (int cut = TABLE_CUT_FIRST; cut > TABLE_WHOLE; cut--) {
        int column;

        while (sum_of(widths, table->count) > width &&
               (column = widest(table, widths, (enum table_cut)cut)) >= 0)
            widths[column]--;
    }
}

/* ---- Lines ---- */

void table_put_marked(GString *to, enum table_mark mark, const char *text, bool colours)
{
    static const char *const codes[TABLE_MARKS] = {
        [TABLE_PLAIN] = "",           [TABLE_HEADING] = "\033[1m", [TABLE_GOOD] = "\033[32m",
        [TABLE_WARNING] = "\033[33m", [TABLE_BAD] = "\033[1;31m",  [TABLE_UNKNOWN] = "\033[36m",
    };
    const bool coloured = colours && mark != TABLE_PLAIN && *text;

    g_string_append_printf(to, "%s%s%s", coloured ? codes[mark] : "", text,
                           coloured ? "\033[0m" : "");
}

static void put_spaces(GString *to, int count)
{
    g_string_append_printf(to, "%*s", count > 0 ? count : 0, "");
}

/* Wider than width: as much as fits, and a '+'. */
static char *cut(const struct cell *cell, int width)
{
    return cell->width <= width
               ? g_strdup(cell->text)
               : g_strdup_printf("%.*s+", cli_bytes_of(cell->text, width - 1), cell->text);
}

/* pad: what the cells before have left over; spaces come only if something follows them. */
static void put_cell(GString *to, const struct cell *cell, enum table_side side, int width,
                     bool colours, int *pad)
{
    char *text = cut(cell, width);
    const int rest = width - cli_columns_of(text, strlen(text));

    if (*text) {
        put_spaces(to, *pad + (side == TABLE_RIGHT ? rest : 0));
        table_put_marked(to, cell->mark, text, colours);
        *pad = side == TABLE_RIGHT ? 0 : rest;
    } else {
        *pad += width;
    }
    *pad += GAP;
    g_free(text);
}

static void put_titles(const struct table *table, GString *to, const int *widths, bool colours)
{
    int pad = 0;

    for (size_t c = 0; c < table->count; c++) {
        const char *title = table->columns[c].title;
        const struct cell cell = {(char *)title, (int)strlen(title), TABLE_HEADING};

        put_cell(to, &cell, table->columns[c].side, widths[c], colours, &pad);
    }
    g_string_append_c(to, '\n');
}

void table_write(const struct table *table, GString *to, int width, size_t most, bool colours)
{
    const size_t rows = MIN(table_rows(table), most);
    int *widths;

    if (!rows)
        return;
    widths = g_new(int, table->count);
    measure(table, rows, widths);
    fit(table, widths, width);
    put_titles(table, to, widths, colours);
    for (size_t r = 0; r < rows; r++) {
        int pad = 0;

        for (size_t c = 0; c < table->count; c++)
            put_cell(to, cell_at(table, r, c), table->columns[c].side, widths[c], colours, &pad);
        g_string_append_c(to, '\n');
    }
    g_free(widths);
}
