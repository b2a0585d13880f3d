/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "examples/support/csv.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds the numbers of one line to the table. Returns how many they are, or -1 if a field is none.
 */
static int parse_line(char *line, struct csv *table, size_t *used, size_t *room)
{
    int columns = 0;
    for (char *field = line;; columns++) {
        char *end;
        errno = 0;
        double value = strtod(field, &end);
        if (end == field || errno || !isfinite(value))
            return -1;
        end += strspn(end, " \t\r\n");
        if (*end && *end != ',' && *end != ';')
            return -1;
        if (*used == *room) {
            *room = *room ? *room * 2 : 1024;
            double *grown = realloc(table->values, *room * sizeof *grown);
            if (!grown)
                return -1;
            table->values = grown;
        }
        table->values[(*used)++] = value;
        if (!*end)
            return columns + 1;
        field = end + 1;
    }
}

int csv_read(const char *path, struct csv *table)
{
    *table = (struct csv){0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    char *line = NULL;
    size_t size = 0, used = 0, room = 0;
    unsigned number = 0;
    bool good = true;
    while (good && getline(&line, &size, file) > 0) {
        number++;
        if (line[strspn(line, " \t\r\n")] == 0)
            continue;
        size_t before = used;
        int columns = parse_line(line, table, &used, &room);
        if (columns < 0 && table->rows == 0 && number == 1) {
            used = before; /* the header line */
            continue;
        }
        if (columns < 0) {
            fprintf(stderr, "%s:%u: not a line of numbers separated by commas\n", path, number);
            good = false;
        } else if (table->columns && (unsigned)columns != table->columns) {
            fprintf(stderr, "%s:%u: %d numbers, the lines before have %u\n", path, number, columns,
                    table->columns);
            good = false;
        } else {
            table->columns = (unsigned)columns;
            table->rows++;
        }
    }
    free(line);
    fclose(file);
    if (good && table->rows == 0) {
        fprintf(stderr, "%s: no line of numbers\n", path);
        good = false;
    }
    if (!good) {
        free(table->values);
        *table = (struct csv){0};
    }
    return good ? 0 : -1;
}
