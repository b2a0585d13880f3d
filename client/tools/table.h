/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * table: rows of text in aligned columns, for terminals.
 *
 * Cells may hold what clients wrote: control characters, also those that hide in
 * UTF-8, become '?'. One thread.
 *
 * Where rows are wider than the terminal, a table is printed in blocks one below the
 * other, each with as many columns as fit; the first ones, which say whose row it is,
 * stand in every block.
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
 * headings: one a column, borrowed. One that begins with '>' is right-aligned; with "+"
 * before that, it belongs to the column before it and stands in the same block. NULL
 * where memory is short. keys: how many of the first columns stand in every block.
 */
struct table *table_new(const char *const headings[], unsigned columns, unsigned keys);
void table_free(struct table *table);

/* Adds a cell, after the last one, beginning a new row where one is full. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints it. False where memory was short. */
bool table_print(const struct table *table, FILE *out, struct table_look look);

/* Makes text safe for a terminal, in place. */
void table_clean(char *text);

#endif
