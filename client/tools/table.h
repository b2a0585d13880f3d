/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * table: rows of text in aligned columns, for terminals.
 *
 * Cells may hold what clients wrote: control characters, also those that hide in
 * UTF-8, become '?'. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_TABLE_H
#define GPUSHARE_CLIENT_TOOLS_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 32
#define TABLE_CELL        96 /* bytes of a cell; what is longer is cut */

struct table;

/*
 * headings: one a column, borrowed; one that begins with '>' is right-aligned. NULL
 * where memory is short.
 */
struct table *table_new(const char *const headings[], unsigned columns);
void table_free(struct table *table);

/* Adds a cell, after the last one, beginning a new row where one is full. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints it; bold: headings stand out by escape sequences. False where memory was short. */
bool table_print(const struct table *table, FILE *out, bool bold);

/* Makes text safe for a terminal, in place. */
void table_clean(char *text);

#endif
