/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet: an idle thread that notices when the machine was too busy to run it.
 *
 * A row of a 99th percentile drops the rounds that fell into such a moment, and says how many, or
 * takes the moments off.
 * Start it after the last fork, since it is a thread.
 */
#ifndef GPUSHARE_TESTS_BENCH_QUIET_H
#define GPUSHARE_TESTS_BENCH_QUIET_H

#include <stdbool.h>

/* Starts the thread. If a sleep of 1 ms takes more than 1 ms too long, that is a moment of
 * noise. */
void quiet_start(void);
void quiet_stop(void);

/* Whether there was no such moment between these times (CLOCK_MONOTONIC seconds), which must be
 * later than quiet_start. Always true in a short run. */
bool quiet_between(double from, double to);

/* The seconds of such moments between these times; 0 in a short run. */
double quiet_noise(double from, double to);

#endif
