/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct table {
    const char *const *headings;
    unsigned columns;
    size_t count, room;
    bool failed;
    char (*cells)[TABLE_CELL];
};

struct table *table_new(const char *const headings[], unsigned columns)
{
    struct table *table = calloc(1, sizeof *table);
    if (table) {
        table->headings = headings;
        table->columns = columns;
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
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 64;
        void *cells = realloc(table->cells, room * TABLE_CELL);
        if (!cells) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->room = room;
    }
    va_list arguments;
    va_start(arguments, format);
    char *cell = table->cells[table->count++];
    vsnprintf(cell, TABLE_CELL, format, arguments);
    va_end(arguments);
    table_clean(cell);
}

/* Characters, not bytes. */
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

bool table_print(const struct table *table, FILE *out, bool bold)
{
    int widths[TABLE_COLUMNS_MAX] = {0};
    bool right[TABLE_COLUMNS_MAX];
    if (table->columns == 0 || table->columns > TABLE_COLUMNS_MAX)
        return false;
    for (unsigned i = 0; i < table->columns; i++) {
        right[i] = table->headings[i][0] == '>';
        widths[i] = width_of(table->headings[i] + right[i]);
    }
    for (size_t i = 0; i < table->count; i++) {
        int width = width_of(table->cells[i]);
        if (width > widths[i % table->columns])
            widths[i % table->columns] = width;
    }
    fputs(bold ? "\033[1m" : "", out);
    for (unsigned i = 0; i < table->columns; i++)
        print_cell(out, table->headings[i] + right[i], widths[i], right[i],
                   i == table->columns - 1);
    fputs(bold ? "\033[0m\n" : "\n", out);
    for (size_t i = 0; i < table->count; i++) {
        unsigned column = (unsigned)(i % table->columns);
        bool last = column == table->columns - 1;
        print_cell(out, table->cells[i], widths[column], right[column], last);
        if (last)
            fputc('\n', out);
    }
    return !table->failed;
}
