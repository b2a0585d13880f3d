/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * bench: rows of measurements, each beside its yardstick in the same run.
 *
 * A row function measures and fills its results in; what was promised stands in the
 * row table (bench.c). Rows never fail for a missed number, only when they can't
 * measure: a missed number is shown as "not met".
 */
#ifndef GPUSHARE_TESTS_BENCH_BENCH_H
#define GPUSHARE_TESTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/gpushare.h"
#include "tests/support/server.h"

struct bench_result {
    double value;     /* in the row's unit */
    double yardstick; /* in the same unit; 0 where the row has none */
    double ratio;     /* value / yardstick, by the medians of pairs taken in turn */
    double spread;  /* of the ratio (or value) over the rounds: (third quartile - first) / median */
    char note[300]; /* what else was seen; may be empty */
};

/* ---- rows, one function each ---- */
void bench_launch_async(struct bench_result *result);
void bench_launch_sync_pingpong(struct bench_result *result);
void bench_launch_sync_socket(struct bench_result *result);
void bench_launch_64(struct bench_result *result);
void bench_copy_h2d(struct bench_result *result);
void bench_copy_d2h(struct bench_result *result);
void bench_overlap_clients(struct bench_result *result);
void bench_overlap_control(struct bench_result *result);
void bench_overlap_copy_compute(struct bench_result *result);
void bench_threads_25(struct bench_result *result);
void bench_threads_30_70(struct bench_result *result);
void bench_strict_share(struct bench_result *result);
void bench_fair_busy(struct bench_result *result);
void bench_fair_idle_split(struct bench_result *result);
void bench_lease_loss(struct bench_result *result);
void bench_reclaim(struct bench_result *result);
void bench_accounting(struct bench_result *result);
void bench_memory_exact(struct bench_result *result);
void bench_priority(struct bench_result *result);
void bench_share_change(struct bench_result *result);
void bench_idle_cpu(struct bench_result *result);
void bench_idle_wakeups(struct bench_result *result);
void bench_idle_bytes(struct bench_result *result);
void bench_lane_instructions(struct bench_result *result);

/* ---- what rows share ---- */

/* The PTX of tests/programs/bench/kernels/bench.cu, NUL-terminated. */
extern const char bench_ptx[];

/* A run of seconds, which shows that rows work (option --short): fewer rounds, numbers are not
 * judged. */
extern bool bench_short;

double bench_now(void); /* seconds, CLOCK_MONOTONIC */

void bench_sleep_until(double seconds);

/* Ends the program, naming the row's call. */
#define BENCH_CHECK(call) bench_check((call), #call)
void bench_check(gpushare_error error, const char *call);
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

double bench_median(double *values, size_t count); /* sorts */

/* Fills value, yardstick, ratio and spread from rounds of pairs taken in turn. */
void bench_pairs(struct bench_result *result, double *values, double *yardsticks, size_t count);

/* A server on the null driver, or on the friendly software GPU with further settings
 * (NULL-terminated, may be NULL). */
struct server *bench_server_null(const char *counters);
struct server *bench_server_soft(const char *const env[]);

/* When this process ends early (bench_die), the server ends with it. All servers above are so. */
struct server *bench_adopt(struct server *server);

/* Puts the calling thread, or all threads of a process, on one CPU; -1: on all. */
void bench_pin_self(int cpu);
void bench_pin_process(pid_t pid, int cpu);

/* Connects to a private server. percentage: 0 for no wish. */
gpushare_connection *bench_connect(const struct server *server, double percentage);
uint32_t bench_multiprocessors(const struct server *server); /* of the device */
gpushare_function *bench_function(gpushare_connection *gpu, const char *name);

#endif
