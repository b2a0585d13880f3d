/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: what the bench prints of a row, and what it writes into its file.
 */
#ifndef GPUSHARE_TESTS_BENCH_REPORT_H
#define GPUSHARE_TESTS_BENCH_REPORT_H

#include <jansson.h>

#include "tests/programs/bench/attempt.h"
#include "tests/programs/bench/row.h"

/* Prints the head of the table. */
void report_head(void);

/* Prints the row's line, and a second one with its servers' settings. */
void report_row(const struct row *row, const struct attempt *attempt);

/* Makes the row's object in results.json; numbers that were not measured are null. The caller gives
 * it to json_decref. */
json_t *report_json(const struct row *row, const struct attempt *attempt);

#endif
