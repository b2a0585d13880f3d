/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * bench: rows of measurements, each beside its yardstick in the same run.
 *
 * A row function measures and fills its results in; the row table (row.c) has the number that was
 * promised. A number that misses its promise is shown as "not met", and so is one whose scene came
 * about only in part (bench_doubt). A row that can't measure ends its process by bench_die, and the
 * next row begins (attempt.h).
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_BENCH_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/gpushare.h"
#include "tests/support/server.h"

enum { BENCH_FAULT_MAX = 300, BENCH_SWITCHES_MAX = 2000 };

struct bench_result {
    double value;     /* in the row's unit */
    double yardstick; /* in the same unit; 0: the row has none */
    double ratio;     /* value / yardstick, by the medians of pairs taken in turn */
    double spread; /* of the ratio (or value) over the rounds: (third quartile - first) / median */
    char fault[BENCH_FAULT_MAX]; /* a sentence: why the row is not met, whatever its value; empty:
                                    the value says */
    char note[500];              /* other observations; may be empty */
};

/* Makes the row one that is not met, by this sentence. Of several the first one stays. */
void bench_doubt(struct bench_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- rows, one function each ---- */
void bench_launch_async(struct bench_result *result);
void bench_launch_sync_pingpong(struct bench_result *result);
void bench_launch_sync_socket(struct bench_result *result);
void bench_launch_64(struct bench_result *result);
void bench_journal_launch(struct bench_result *result);
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
void bench_block_start(struct bench_result *result);
void bench_ring_bytes(struct bench_result *result);
void bench_neighbour_streams(struct bench_result *result);
void bench_stall_by_arrivals(struct bench_result *result);
void bench_stall_by_endless(struct bench_result *result);
void bench_load_waits(struct bench_result *result);
void bench_windows_share(struct bench_result *result);
void bench_fair_busy_on_busy_cpu(struct bench_result *result);
void bench_reclaim_ten_waves(struct bench_result *result);
void bench_strict_random_mixes(struct bench_result *result);
void bench_fair_pauses(struct bench_result *result);
void bench_limit_overrun(struct bench_result *result);
void bench_strict_come_and_go(struct bench_result *result);
void bench_user_totals(struct bench_result *result);
void bench_fault_recovery(struct bench_result *result);
void bench_kill_recovery(struct bench_result *result);
void bench_many_objects(struct bench_result *result);
void bench_client_death(struct bench_result *result);
void bench_innocent_throughput(struct bench_result *result);
void bench_restart_pause(struct bench_result *result);
void bench_launch_async_beside_metrics(struct bench_result *result);
void bench_launch_sync_beside_metrics(struct bench_result *result);
void bench_top_cpu(struct bench_result *result);
void bench_ctl_status(struct bench_result *result);
void bench_metrics_scrape(struct bench_result *result);
void bench_dropin_launch(struct bench_result *result);
void bench_dropin_sync(struct bench_result *result);
void bench_dropin_copy_pinned(struct bench_result *result);
void bench_dropin_copy_pageable(struct bench_result *result);
void bench_dropin_allocate(struct bench_result *result);
void bench_dropin_start(struct bench_result *result);
void bench_dropin_samples(struct bench_result *result);

/* ---- what rows share ---- */

/* The PTX of tests/programs/bench/kernels/bench.cu, NUL-terminated. */
extern const char bench_ptx[];

/* --short: a run of seconds, which shows that the rows work. It has fewer rounds, and its numbers
 * are not judged. */
extern bool bench_short;

/* Of the software GPU's choices, and of what rows draw. main sets it. */
extern uint64_t bench_seed;

/* Of rows with many scenes this one alone is played; -1: all are. */
extern int bench_scene;

/* Draws a number from `from` to `to`, both included, and moves *state on. A row begins with
 * bench_seed, so that the same seed draws the same scene. */
uint64_t bench_draw(uint64_t *state, uint64_t from, uint64_t to);

double bench_now(void); /* seconds, CLOCK_MONOTONIC */

void bench_sleep_until(double seconds);

/* Ends the process if the call fails, and names the call. */
#define BENCH_CHECK(call) bench_check((call), #call)
void bench_check(gpushare_error error, const char *call);
/* Ends the process with status 1, and this sentence on standard error. */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* From now on bench_die gives its sentence to this function too, in processes that are forked as
 * well. */
void bench_on_death(void (*keep)(const char *sentence));

double bench_median(double *values, size_t count); /* sorts the values */

/* Fills value, yardstick, ratio and spread from rounds of pairs taken in turn. */
void bench_pairs(struct bench_result *result, double *values, double *yardsticks, size_t count);

/*
 * Starts a server on the null driver, or on the strict software GPU, with the neighbours that are
 * expected (company.h). Clients of the row come after it. env: settings that go before
 * the usual ones, ending with NULL; may be NULL. On a steady device kernels last as long as they
 * say, for rows that compare with a run alone: neither neighbours nor chance make them longer.
 */
struct server *bench_server_null(const char *counters);
/* The same with a worker that notes nothing before it calls the driver. */
struct server *bench_server_unjournaled(const char *counters);
/* The same with a configuration. */
struct server *bench_server_null_configured(const char *counters, const char *config);
struct server *bench_server_soft(const char *const env[]);
/* One that bench_server_replace can end by a signal and start again (server_start_kept). */
struct server *bench_server_kept(const char *const env[]);
void bench_server_replace(struct server *server, int signal);
struct server *bench_server_steady(const char *const env[]);

/* Ends a server. The process ends if the server did not end well. */
void bench_server_stop(struct server *server);

/* Has the settings of all servers that are started from now on appended here, to a text of
 * BENCH_SWITCHES_MAX bytes. */
void bench_note_switches_in(char *text);
/* Appends the settings of a device without a server; the servers' are appended when they start. A
 * row that has several of the same settings names them once. The list ends with NULL. */
void bench_note_switches(const char *const settings[]);

/* Has the server end when this process ends early (bench_die). The servers above have that too. */
struct server *bench_adopt(struct server *server);

/* Put the calling thread, or all threads of a process, on one CPU; -1: on all. */
void bench_pin_self(int cpu);
void bench_pin_process(pid_t pid, int cpu);

/* Connects to a private server. percentage: the limit of threads asked for; 0: none. */
gpushare_connection *bench_connect(const struct server *server, double percentage);
uint32_t bench_multiprocessors(const struct server *server); /* number that the device has */
gpushare_function *bench_function(gpushare_connection *gpu, const char *name);

#endif
