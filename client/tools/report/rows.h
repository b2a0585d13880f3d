/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * rows: prints sums as a table, as CSV (RFC 4180), or as JSON
 * (schemas/gpusharectl-report.schema.json). One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_REPORT_ROWS_H
#define GPUSHARE_CLIENT_TOOLS_REPORT_ROWS_H

#include <stdint.h>
#include <stdio.h>

#include "client/tools/report/sums.h"
#include "client/tools/table.h"

/* With a last row of all together. */
void rows_print_table(FILE *out, const struct sums *sums, struct table_look look);

/* Without it. */
void rows_print_csv(FILE *out, const struct sums *sums);

/* damaged: lines that could not be read. well: there are none, and all files were read. */
void rows_print_json(FILE *out, const struct sums *sums, uint64_t damaged, bool well);

#endif
