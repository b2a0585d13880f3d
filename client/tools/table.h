/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * table: rows of text in aligned columns, for terminals.
 *
 * Cells may hold text that clients wrote: control characters, also those that UTF-8 can encode in
 * two bytes, become '?'. One thread.
 *
 * A table that is wider than the terminal is printed in blocks one below the other, each with as
 * many columns as fit. The first columns, which name the row, are repeated in every block.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_TABLE_H
#define GPUSHARE_CLIENT_TOOLS_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 32
#define TABLE_CELL        96 /* bytes of a cell; what is longer is cut */

struct table;

/* How tables look. */
struct table_look {
    bool bold;      /* headings stand out by escape sequences */
    unsigned width; /* of the terminal, in characters; 0: none, each row is one line */
};

/*
 * headings: one for each column, borrowed. A column whose heading begins with '>' is right-aligned;
 * a "+" before that keeps it in the same block as the column before it. keys: how many of the first
 * columns are repeated in every block. NULL where memory is short.
 */
struct table *table_new(const char *const headings[], unsigned columns, unsigned keys);
void table_free(struct table *table);

/* Adds a cell after the last one; a row that is full is followed by a new one. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints it. False where memory was short. */
bool table_print(const struct table *table, FILE *out, struct table_look look);

/* Makes text safe for a terminal, in place. */
void table_clean(char *text);

#endif
