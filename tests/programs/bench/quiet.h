/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet: an idle thread that notices when the machine was too busy to run it.
 *
 * A row of a 99th percentile drops the rounds that fell into such a moment, and says how
 * many. Start it after the last fork: it is a thread.
 */
#ifndef GPUSHARE_TESTS_BENCH_QUIET_H
#define GPUSHARE_TESTS_BENCH_QUIET_H

#include <stdbool.h>

/* A sleep of a millisecond that took more than one longer is a moment of noise. */
void quiet_start(void);
void quiet_stop(void);

/* Whether no such moment overlaps these (CLOCK_MONOTONIC seconds); until quiet_start is called
 * again. In a short run always true. */
bool quiet_between(double from, double to);

#endif
