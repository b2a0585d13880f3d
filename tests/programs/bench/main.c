/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * make bench: runs the rows, prints a table, writes results.json.
 *
 * usage: bench [--short] [--seed N] OUT.json [ROW...]
 *        bench --list
 *
 * --seed repeats what the software GPU and the rows chose at random in another run; without it,
 * $SOFTGPU_SEED does. --list prints the rows as JSON: what each measures, in which unit, beside
 * which yardstick, and its aim.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "tests/programs/bench/bench.h"

enum judged { RATIO_MAX, RATIO_MIN, RATIO_WITHIN, VALUE_MAX, VALUE_MIN, STATED };

static const struct row {
    const char *name, *unit, *yardstick;
    enum judged judged;
    double low, high; /* bounds: AT_MOST is judged by `high`, AT_LEAST by `low` */
    void (*run)(struct bench_result *result);
} rows[] = {
    {"launch_async", "ns", "getppid() system call", RATIO_MAX, 0, 1.0, bench_launch_async},
    {"launch_sync_vs_pingpong", "ns", "shared-memory ping-pong", RATIO_MAX, 0, 4,
     bench_launch_sync_pingpong},
    {"launch_sync_vs_socket", "ns", "Unix socket round trip", RATIO_MAX, 0, 0.2,
     bench_launch_sync_socket},
    {"copy_h2d", "GB/s", "memcpy between memfds", RATIO_MIN, 0.95, 0, bench_copy_h2d},
    {"copy_d2h", "GB/s", "memcpy between memfds", RATIO_MIN, 0.95, 0, bench_copy_d2h},
    {"overlap_two_clients", "ms", "one alone", RATIO_MAX, 0, 1.1, bench_overlap_clients},
    {"overlap_two_clients_serialized", "ms", "one alone (control: must not overlap)", RATIO_MIN,
     1.8, 0, bench_overlap_control},
    {"overlap_copy_compute", "ms", "the longest alone", RATIO_MAX, 0, 1.15,
     bench_overlap_copy_compute},
    {"threads_25_alone", "blocks/s", "uncapped x granted share", RATIO_WITHIN, 0.98, 1.02,
     bench_threads_25},
    {"strict_share_error_points", "points", NULL, VALUE_MAX, 0, 1, bench_strict_share},
    {"fair_busy_ratio", "of the time", NULL, VALUE_MIN, 0.97, 0, bench_fair_busy},
    {"fair_idle_split_error_points", "points", NULL, VALUE_MAX, 0, 1.5, bench_fair_idle_split},
    {"lease_5ms_loss", "of throughput", NULL, VALUE_MAX, 0, 0.03, bench_lease_loss},
    {"reclaim_ms_p99", "ms", NULL, VALUE_MAX, 0, 10, bench_reclaim},
    {"accounting_error", "of busy time", NULL, VALUE_MAX, 0, 0.01, bench_accounting},
    {"threads_30_70_error", "of granted", NULL, VALUE_MAX, 0, 0.05, bench_threads_30_70},
    {"priority_p99", "ms", "alone plus one kernel", RATIO_MAX, 0, 1.1, bench_priority},
    {"share_change_ms", "ms", NULL, VALUE_MAX, 0, 20, bench_share_change},
    {"memory_exact_bytes", "bytes", NULL, VALUE_MAX, 0, 2 << 20, bench_memory_exact},
    {"launch_with_64_clients", "ns", "1 connected", RATIO_MAX, 0, 1.1, bench_launch_64},
    {"idle_cpu_seconds", "s", NULL, VALUE_MAX, 0, 0.02, bench_idle_cpu},
    {"idle_thread_wakeups", "wake-ups", NULL, VALUE_MAX, 0, 10, bench_idle_wakeups},
    {"idle_client_bytes", "bytes", NULL, STATED, 0, 0, bench_idle_bytes},
    {"neighbour_streams", "of alone", NULL, VALUE_MIN, 0.97, 0, bench_neighbour_streams},
    {"stall_by_arrivals_ms_p99", "ms", NULL, VALUE_MAX, 0, 25, bench_stall_by_arrivals},
    {"stall_by_endless_ms", "ms", NULL, VALUE_MAX, 0, 120, bench_stall_by_endless},
    {"load_waits_ms_p99", "ms", NULL, VALUE_MAX, 0, 1500, bench_load_waits},
    {"windows_share", "of the time", NULL, VALUE_MAX, 0, 0.05, bench_windows_share},
    {"fair_busy_on_busy_cpu", "of the time", NULL, VALUE_MIN, 0.95, 0, bench_fair_busy_on_busy_cpu},
    {"reclaim_ten_waves_ms_p99", "ms", NULL, VALUE_MAX, 0, 15, bench_reclaim_ten_waves},
    {"softgpu_lane_instructions_per_second", "1/s", NULL, VALUE_MIN, 1e9, 0,
     bench_lane_instructions},
};

static bool met(const struct row *row, const struct bench_result *result)
{
    if (result->doubtful)
        return false;
    switch (row->judged) {
    case RATIO_MAX:
        return result->ratio <= row->high;
    case RATIO_MIN:
        return result->ratio >= row->low;
    case RATIO_WITHIN:
        return result->ratio >= row->low && result->ratio <= row->high;
    case VALUE_MAX:
        return result->value <= row->high;
    case VALUE_MIN:
        return result->value >= row->low;
    case STATED:
        break;
    }
    return true;
}

static void reach_text(const struct row *row, char *text, size_t size)
{
    switch (row->judged) {
    case RATIO_MAX:
    case VALUE_MAX:
        snprintf(text, size, "<= %g", row->high);
        break;
    case RATIO_MIN:
    case VALUE_MIN:
        snprintf(text, size, ">= %g", row->low);
        break;
    case RATIO_WITHIN:
        snprintf(text, size, "%g..%g", row->low, row->high);
        break;
    case STATED:
        snprintf(text, size, "-");
        break;
    }
}

/* Makes "ratio" or "value" with its bounds; a row that is only stated has none. */
static json_t *aim(const struct row *row)
{
    bool ratio = row->judged <= RATIO_WITHIN;
    bool least =
        row->judged == RATIO_MIN || row->judged == RATIO_WITHIN || row->judged == VALUE_MIN;
    bool most = row->judged == RATIO_MAX || row->judged == RATIO_WITHIN || row->judged == VALUE_MAX;
    if (row->judged == STATED)
        return json_null();
    return json_pack("{s:s, s:o, s:o}", "of", ratio ? "ratio" : "value", "at_least",
                     least ? json_real(row->low) : json_null(), "at_most",
                     most ? json_real(row->high) : json_null());
}

static int list_rows(void)
{
    json_t *list = json_array();
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:o}", "name", rows[r].name, "unit",
                                              rows[r].unit, "yardstick", rows[r].yardstick, "aim",
                                              aim(&rows[r])));
    int result = json_dumpf(list, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(list);
    return result < 0 || fflush(stdout) != 0;
}

static uint64_t default_seed(void)
{
    const char *given = getenv("SOFTGPU_SEED");
    uint32_t drawn = 0;
    if (given)
        return strtoull(given, NULL, 10);
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
        bench_die("no random numbers");
    return drawn;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strcmp(name, argv[i]))
            return true;
    return argc <= 2;
}

static json_t *to_json(const struct row *row, const struct bench_result *result, bool good)
{
    json_t *none = json_null();
    return json_pack("{s:s, s:f, s:s, s:o, s:o, s:f, s:s*, s:b, s:s, s:s}", "name", row->name,
                     "value", result->value, "unit", row->unit, "yardstick",
                     row->yardstick ? json_real(result->yardstick) : none, "ratio",
                     row->yardstick ? json_real(result->ratio) : none, "spread", result->spread,
                     "yardstick_is", row->yardstick, "met", good, "note", result->note, "switches",
                     bench_switches());
}

int main(int argc, char **argv)
{
    bench_seed = default_seed();
    if (argc > 1 && !strcmp(argv[1], "--short")) {
        bench_short = true;
        argc--;
        argv++;
    }
    if (argc > 2 && !strcmp(argv[1], "--seed")) {
        bench_seed = strtoull(argv[2], NULL, 10);
        argc -= 2;
        argv += 2;
    }
    if (argc == 2 && !strcmp(argv[1], "--list"))
        return list_rows();
    if (argc < 2) {
        fprintf(stderr, "usage: bench [--short] [--seed N] OUT.json [ROW...] | --list\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        bool known = false;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            known |= !strcmp(rows[r].name, argv[i]);
        if (!known)
            bench_die("there is no row '%s'", argv[i]);
    }
    json_t *list = json_array();
    unsigned missed = 0;
    printf("seed %llu\n", (unsigned long long)bench_seed);
    printf("%-38s %14s %-9s %12s %8s %9s %7s  %s\n", "row", "value", "unit", "yardstick", "ratio",
           "reach", "spread", "");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const struct row *row = &rows[r];
        if (!wanted(row->name, argc, argv))
            continue;
        if (row->run == bench_accounting && strcmp(server_driver(), "softgpu")) {
            printf("%-38s only on the software GPU\n", row->name);
            continue;
        }
        struct bench_result result = {0};
        char reach[32], ratio[32] = "-", yardstick[32] = "-";
        bench_switches_forget();
        row->run(&result);
        bool good = met(row, &result);
        missed += !good;
        reach_text(row, reach, sizeof reach);
        if (row->yardstick) {
            snprintf(ratio, sizeof ratio, "%.3f", result.ratio);
            snprintf(yardstick, sizeof yardstick, "%.5g", result.yardstick);
        }
        printf("%-38s %14.6g %-9s %12s %8s %9s %6.1f%%  %s%s%s\n", row->name, result.value,
               row->unit, yardstick, ratio, reach, result.spread * 100,
               row->judged == STATED ? "stated"
               : good                ? "met"
               : result.doubtful     ? "DOUBTFUL"
                                     : "NOT MET",
               result.note[0] ? "; " : "", result.note);
        if (bench_switches()[0])
            printf("    on %s\n", bench_switches());
        fflush(stdout);
        json_array_append_new(list, to_json(row, &result, good));
    }
    if (json_dump_file(list, argv[1], JSON_INDENT(2)) < 0)
        bench_die("%s can't be written", argv[1]);
    json_decref(list);
    printf("%u not met; %s\n", missed, argv[1]);
    /* Short rows tell whether they run, not how well. */
    return missed && !bench_short;
}
