/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * csv: a table of numbers from a file, with or without a header line.
 */
#ifndef GPUSHARE_EXAMPLES_SUPPORT_CSV_H
#define GPUSHARE_EXAMPLES_SUPPORT_CSV_H

struct csv {
    double *values; /* row by row; free() */
    unsigned rows, columns;
};

/* Reads the file; prints file, line and reason, and returns -1, if it is not such a table. */
int csv_read(const char *path, struct csv *table);

#endif
