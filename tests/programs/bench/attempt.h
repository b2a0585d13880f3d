/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * attempt: one run of a row, in a process of its own, so that a row that can't measure ends nothing
 * but itself. The program becomes the one that orphans of the row are given to, and ends them: no
 * server or client of a row lives on beside the next. One thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_ATTEMPT_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_ATTEMPT_H

#include <stdbool.h>

#include "tests/programs/bench/bench.h"

struct attempt {
    bool measured; /* false: the result has nothing but `fault`, which says why */
    struct bench_result result;
    char switches[BENCH_SWITCHES_MAX]; /* of the row's servers so far; measured or not */
};

/*
 * Runs the row and waits for its end. It is killed after so many seconds. The fault of one that was
 * not measured is the first sentence of bench_die in any process of the row, or else how the
 * process ended. The caller must have no other children.
 */
void attempt_make(struct attempt *attempt, void (*row)(struct bench_result *result),
                  double limit_seconds);

#endif
