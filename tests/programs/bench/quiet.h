/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet: an idle thread that notices when other programs kept the machine from running it.
 *
 * A moment of noise is a sleep of 1 ms that took more than 1 ms too long, in a second in which
 * programs that are not below the bench, or another machine on the same hardware, used CPU time.
 * CPU time of the server, its clients and the bench is no noise: it is part of what is measured.
 *
 * A row of a 99th percentile drops the rounds that fell into such a moment, and says how many, or
 * takes the others' part of the moments off. Start it after the last fork, since it is a thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_QUIET_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_QUIET_H

#include <stdbool.h>

#include "tests/programs/bench/bench.h"

/* Starts and ends the thread. Its findings stay until the next start. */
void quiet_start(void);
void quiet_stop(void);

/*
 * Below, times are CLOCK_MONOTONIC seconds later than quiet_start, and are asked for after
 * quiet_stop. In a short run, whose numbers nobody judges, there is never noise.
 */

/* Whether there was no moment of noise between these times. */
bool quiet_between(double from, double to);

/* The seconds of such moments between these times, each times the others' part of the CPUs in its
 * second. */
double quiet_noise(double from, double to);

/* The part of the CPUs that others used between these times, 0 to 1. */
double quiet_others(double from, double to);

/* The result is doubtful if the others' part was more than a row can be measured beside. */
void quiet_judge(struct bench_result *result, double from, double to);

/* The result is doubtful if more than a tenth of a row's rounds were dropped for noise. A tenth is
 * more than a 99th percentile bears, so a row prints that of all its rounds too. Ends the process
 * if none is left. */
void quiet_judge_dropped(struct bench_result *result, unsigned dropped, unsigned all);

#endif
