/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * arrivals: ten clients a second that come and go while a row measures another one.
 *
 * Each is a process. It connects, loads a module of 1 MB that nobody has loaded before, allocates
 * 64 MiB of pinned memory and 64 MiB of the device's, copies the one to the other, and exits. When
 * it comes, in which order it does these things, whether it waits for the copy and whether it says
 * good-bye are drawn at random.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_ARRIVALS_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_ARRIVALS_H

#include <stdbool.h>

#include "tests/programs/bench/bench.h"
#include "tests/support/server.h"

struct arrivals;

struct arrival {
    double began, ended; /* CLOCK_MONOTONIC seconds; ended is 0 where it did not end by itself */
};

/*
 * Has clients arrive until arrivals_stop. patience: seconds after which one that could not do all
 * of this is killed. One whose call fails says so on standard error; it is counted, and so is one
 * that crashes.
 */
struct arrivals *arrivals_start(const struct server *server, double patience);
/* Kills those that are left. */
void arrivals_stop(struct arrivals *arrivals);

/* For the time after arrivals_stop. */
unsigned arrivals_count(const struct arrivals *arrivals);
struct arrival arrivals_one(const struct arrivals *arrivals, unsigned number);
unsigned arrivals_killed(const struct arrivals *arrivals);
unsigned arrivals_failed(const struct arrivals *arrivals);
/* The result is doubtful if an arrival crashed or a call of one failed, or if fewer than four
 * fifths of ten a second arrived between these times (CLOCK_MONOTONIC seconds). A short run needs
 * only one. */
void arrivals_judge(struct bench_result *result, const struct arrivals *arrivals, double from,
                    double to);
void arrivals_free(struct arrivals *arrivals);

#endif
