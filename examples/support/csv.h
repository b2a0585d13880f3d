/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * csv: a table of numbers from a file, with or without a header line.
 */
#ifndef GPUSHARE_EXAMPLES_SUPPORT_CSV_H
#define GPUSHARE_EXAMPLES_SUPPORT_CSV_H

struct csv {
    double *values; /* row by row; the caller frees them */
    unsigned rows, columns;
};

/* Reads a file into *table. Returns 0; or -1 after printing file, line and reason. */
int csv_read(const char *path, struct csv *table);

#endif
