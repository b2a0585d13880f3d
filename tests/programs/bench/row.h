/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * row: the table of the bench's rows, and how a result of each is judged.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_ROW_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/programs/bench/bench.h"

struct row {
    const char *name, *unit, *yardstick; /* yardstick: NULL without one */
    enum row_judged { RATIO_MAX, RATIO_MIN, RATIO_WITHIN, VALUE_MAX, VALUE_MIN, STATED } judged;
    double low, high; /* bounds: at most is judged by `high`, at least by `low` */
    void (*run)(struct bench_result *result);
    unsigned neighbours; /* kinds of tests/support/scene.h to draw from; 0: it is measured without
                            any */
};

/* The rows in the order of the table, row_count of them. */
extern const struct row rows[];
extern const size_t row_count;

/* NULL if there is none of this name. */
const struct row *row_find(const char *name);

/* A result with a fault, and one that is no number, meets no bound. */
bool row_met(const struct row *row, const struct bench_result *result);

/* Whether the first of two results is further from what the row is to reach. A fault is worse than
 * a number that meets the bound, and hides none that misses it. */
bool row_worse(const struct row *row, const struct bench_result *one,
               const struct bench_result *other);

/* Writes the bounds for the printed table, such as "<= 10". */
void row_bounds(const struct row *row, char *text, size_t size);

/* Makes the list of all rows for --list. The caller gives it to json_decref. */
json_t *row_list(void);

#endif
