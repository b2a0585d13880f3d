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

#define TABLE_COLUMNS_MAX 40
#define TABLE_CELL        96 /* bytes of a cell, its NUL included; a longer text is cut */

struct table;

/* How tables look. */
struct table_look {
    bool bold;      /* escape sequences make the headings bold */
    unsigned width; /* of the terminal, in characters; 0: unlimited, each row is one line */
};

/*
 * Makes a table; the caller frees it with table_free. headings: one for each column; they stay the
 * caller's, and outlive the table. A column whose heading begins with '>' is right-aligned. A "+"
 * before that keeps the column in one block with the column before it. keys: how many of the first
 * columns are repeated in every block; fewer than columns. NULL without memory.
 */
struct table *table_new(const char *const headings[], unsigned columns, unsigned keys);
void table_free(struct table *table);

/* Adds a cell behind the last one. When a row is full, the next cell begins a new row. Without
 * memory the cell is missing, and table_print says so. */
void table_add(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the table. Returns false if memory was short at any time. */
bool table_print(const struct table *table, FILE *out, struct table_look look);

/* Makes a text safe for a terminal, in place: control characters become '?'. */
void table_clean(char *text);

#endif
