/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: the C library aligns no columns, and ncurses draws screens, not lines for a pipe.
 */
#include "client/tools/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

struct table {
    const char *const *headings;
    unsigned columns, keys;
    size_t count, room;
    bool failed;
    char (*cells)[TABLE_CELL];
};

struct table *table_new(const char *const headings[], unsigned columns, unsigned keys)
{
    struct table *table = calloc(1, sizeof *table);
    if (table) {
        table->headings = headings;
        table->columns = columns;
        table->keys = keys;
    }
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    free(table->cells);
    free(table);
}

void table_clean(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            *c = '?';
        } else if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
            /* U+0080 to U+009F: terminals may take U+009B for ESC [. */
            *c = '?';
            memmove(c + 1, c + 2, strlen((char *)c + 2) + 1);
        }
    }
}

void table_add(struct table *table, const char *format, ...)
{
    if (array_reserve(table->cells, table->room, table->count + 1) < 0) {
        table->failed = true;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    char *cell = table->cells[table->count++];
    vsnprintf(cell, TABLE_CELL, format, arguments);
    va_end(arguments);
    table_clean(cell);
}

/* In characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_cell(FILE *out, const char *text, int width, bool right, bool last)
{
    int blanks = width - width_of(text);
    if (right)
        fprintf(out, "%*s%s", blanks, "", text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : blanks, "");
    if (!last)
        fputs("  ", out);
}

#define GAP 2 /* blanks between columns, as print_cell writes them */

struct layout {
    const char *names[TABLE_COLUMNS_MAX];
    int widths[TABLE_COLUMNS_MAX];
    bool right[TABLE_COLUMNS_MAX], follows[TABLE_COLUMNS_MAX];
};

static void measure_columns(const struct table *table, struct layout *layout)
{
    for (unsigned i = 0; i < table->columns; i++) {
        const char *name = table->headings[i];
        name += layout->follows[i] = *name == '+';
        name += layout->right[i] = *name == '>';
        layout->names[i] = name;
        layout->widths[i] = width_of(name);
    }
    for (size_t i = 0; i < table->count; i++) {
        int width = width_of(table->cells[i]);
        if (width > layout->widths[i % table->columns])
            layout->widths[i % table->columns] = width;
    }
}

/* The end of the block that begins with column first; it has at least one column. */
static unsigned block_end(const struct table *table, const struct layout *layout, unsigned first,
                          unsigned width_max)
{
    unsigned width = 0, end = first;
    for (unsigned i = 0; i < table->keys; i++)
        width += (unsigned)layout->widths[i] + GAP;
    for (unsigned i = first; i < table->columns; i++) {
        if (!layout->follows[i])
            end = i;
        width += (unsigned)layout->widths[i];
        if (width_max && width > width_max && end > first)
            return end;
        width += GAP;
    }
    return table->columns;
}

/* cells: one a column. */
static void print_line(const struct table *table, FILE *out, const struct layout *layout,
                       const char *const cells[], unsigned first, unsigned end)
{
    for (unsigned i = 0; i < table->keys; i++)
        print_cell(out, cells[i], layout->widths[i], layout->right[i], false);
    for (unsigned i = first; i < end; i++)
        print_cell(out, cells[i], layout->widths[i], layout->right[i], i == end - 1);
}

static void print_block(const struct table *table, FILE *out, const struct layout *layout,
                        unsigned first, unsigned end, bool bold)
{
    const char *cells[TABLE_COLUMNS_MAX];
    fputs(bold ? "\033[1m" : "", out);
    print_line(table, out, layout, layout->names, first, end);
    fputs(bold ? "\033[0m\n" : "\n", out);
    for (size_t row = 0; row + table->columns <= table->count; row += table->columns) {
        for (unsigned i = 0; i < table->columns; i++)
            cells[i] = table->cells[row + i];
        print_line(table, out, layout, cells, first, end);
        fputc('\n', out);
    }
}

bool table_print(const struct table *table, FILE *out, struct table_look look)
{
    struct layout layout = {0};
    if (table->columns == 0 || table->columns > TABLE_COLUMNS_MAX || table->keys >= table->columns)
        return false;
    measure_columns(table, &layout);
    for (unsigned first = table->keys, end; first < table->columns; first = end) {
        end = block_end(table, &layout, first, look.width);
        if (first > table->keys)
            fputc('\n', out);
        print_block(table, out, &layout, first, end, look.bold);
    }
    return !table->failed;
}
