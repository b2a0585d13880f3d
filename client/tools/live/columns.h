/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * columns: the clients in columns that the user chose, as a table or as CSV. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_COLUMNS_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/live/overview.h"
#include "client/tools/table.h"
#include "common/error.h"

enum { COLUMNS_MAX = 40, COLUMNS_NAMES = 700 };

/* Places in the table of all columns. */
struct columns {
    unsigned char which[COLUMNS_MAX];
    unsigned count;
    bool csv; /* numbers in the units that their names say, commas between */
};

/* Reads "csv", which means all columns, or names with commas between. Returns 0, or an error number
 * that *why explains. */
uint32_t columns_parse(const char *text, struct columns *columns, struct error *why);

/* Writes the names of all columns, with commas between. Returns text. */
const char *columns_names(char text[COLUMNS_NAMES]);

void columns_print(FILE *out, const struct columns *columns, const struct overview *overview,
                   struct table_look look);

#endif
