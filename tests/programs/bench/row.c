/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/scene.h"

/* Neighbours beside which a row means what it says. */
enum {
    ANY = SCENE_LOOPS | SCENE_PAUSES | SCENE_VISITS | SCENE_STREAMS | SCENE_GREEDY,
    FORESEEN = ANY & ~SCENE_LOOPS, /* no share of time holds beside kernels without a known end */
    /* Memory is cleared by the copy engine. */
    WITHOUT_COPIES = SCENE_LOOPS | SCENE_PAUSES | SCENE_STREAMS,
    /* On the null driver kernels take no time: others would keep the worker's CPU busy. */
    AT_CALLS = SCENE_PAUSES | SCENE_VISITS,
};

const struct row rows[] = {
    {"launch_async", "ns", "getppid() system call", RATIO_MAX, 0, 1.0, bench_launch_async,
     AT_CALLS},
    {"launch_sync_vs_pingpong", "ns", "shared-memory ping-pong", RATIO_MAX, 0, 4,
     bench_launch_sync_pingpong, AT_CALLS},
    {"launch_sync_vs_socket", "ns", "Unix socket round trip", RATIO_MAX, 0, 0.2,
     bench_launch_sync_socket, AT_CALLS},
    {"copy_h2d", "GB/s", "memcpy between memfds", RATIO_MIN, 0.95, 0, bench_copy_h2d, 0},
    {"copy_d2h", "GB/s", "memcpy between memfds", RATIO_MIN, 0.95, 0, bench_copy_d2h, 0},
    {"overlap_two_clients", "ms", "one alone", RATIO_MAX, 0, 1.1, bench_overlap_clients, ANY},
    {"overlap_two_clients_serialized", "ms", "one alone (control: must not overlap)", RATIO_MIN,
     1.8, 0, bench_overlap_control, 0},
    {"overlap_copy_compute", "ms", "the longest alone", RATIO_MAX, 0, 1.15,
     bench_overlap_copy_compute, WITHOUT_COPIES},
    {"threads_25_alone", "blocks/s", "uncapped x granted share", RATIO_WITHIN, 0.98, 1.02,
     bench_threads_25, 0},
    {"strict_share_error_points", "points", NULL, VALUE_MAX, 0, 1, bench_strict_share, FORESEEN},
    {"fair_busy_ratio", "of the time", NULL, VALUE_MIN, 0.97, 0, bench_fair_busy, 0},
    {"fair_idle_split_error_points", "points", NULL, VALUE_MAX, 0, 1.5, bench_fair_idle_split, 0},
    {"lease_5ms_loss", "of throughput", NULL, VALUE_MAX, 0, 0.03, bench_lease_loss, 0},
    {"reclaim_ms_p99", "ms", NULL, VALUE_MAX, 0, 10, bench_reclaim, ANY},
    {"accounting_error", "of busy time", NULL, VALUE_MAX, 0, 0.01, bench_accounting, 0},
    {"threads_30_70_error", "of granted", NULL, VALUE_MAX, 0, 0.05, bench_threads_30_70,
     WITHOUT_COPIES},
    {"priority_p99", "ms", "alone plus one kernel", RATIO_MAX, 0, 1.1, bench_priority, ANY},
    {"share_change_ms", "ms", NULL, VALUE_MAX, 0, 20, bench_share_change, ANY},
    {"memory_exact_bytes", "bytes", NULL, VALUE_MAX, 0, 0, bench_memory_exact, 0},
    {"launch_with_64_clients", "ns", "1 connected", RATIO_MAX, 0, 1.1, bench_launch_64, 0},
    {"journal_launch_ns", "ns", NULL, VALUE_MAX, 0, 5, bench_journal_launch, AT_CALLS},
    {"idle_cpu_seconds", "s", NULL, VALUE_MAX, 0, 0.02, bench_idle_cpu, 0},
    {"idle_thread_wakeups", "wake-ups", NULL, VALUE_MAX, 0, 10, bench_idle_wakeups, 0},
    {"idle_client_bytes", "bytes", NULL, STATED, 0, 0, bench_idle_bytes, 0},
    {"neighbour_streams", "of alone", NULL, VALUE_MIN, 0.97, 0, bench_neighbour_streams, 0},
    {"stall_by_arrivals_ms_p99", "ms", NULL, VALUE_MAX, 0, 25, bench_stall_by_arrivals, 0},
    {"stall_by_endless_ms", "ms", NULL, VALUE_MAX, 0, 120, bench_stall_by_endless, 0},
    {"load_waits_ms_p99", "ms", NULL, VALUE_MAX, 0, 1500, bench_load_waits, 0},
    {"windows_share", "of the time", NULL, VALUE_MAX, 0, 0.05, bench_windows_share, 0},
    {"fair_busy_on_busy_cpu", "of the time", NULL, VALUE_MIN, 0.95, 0, bench_fair_busy_on_busy_cpu,
     0},
    {"reclaim_ten_waves_ms_p99", "ms", NULL, VALUE_MAX, 0, 15, bench_reclaim_ten_waves, ANY},
    {"strict_random_mixes_points", "points", NULL, VALUE_MAX, 0, 1, bench_strict_random_mixes, 0},
    {"strict_come_and_go_points", "points", NULL, VALUE_MAX, 0, 1.5, bench_strict_come_and_go, 0},
    {"fair_pauses_points", "points", NULL, VALUE_MIN, -1, 0, bench_fair_pauses, 0},
    {"user_totals_points", "points", NULL, VALUE_MAX, 0, 1, bench_user_totals, 0},
    {"limit_overrun_points", "points", NULL, VALUE_MAX, 0, 1, bench_limit_overrun, 0},
    {"fault_recovery_ms_p99", "ms", NULL, VALUE_MAX, 0, 30, bench_fault_recovery, 0},
    {"worker_kill_recovery_ms_p99", "ms", NULL, VALUE_MAX, 0, 30, bench_kill_recovery, 0},
    {"recovery_1000_objects_ms", "ms", NULL, VALUE_MAX, 0, 250, bench_many_objects, 0},
    {"supervisor_restart_pause_ms", "ms", NULL, VALUE_MAX, 0, 50, bench_restart_pause, 0},
    {"launch_async_beside_metrics", "ns", "without them", RATIO_MAX, 0, 1.03,
     bench_launch_async_beside_metrics, 0},
    {"launch_sync_beside_metrics", "ns", "without them", RATIO_MAX, 0, 1.03,
     bench_launch_sync_beside_metrics, 0},
    {"top_cpu", "of a core", NULL, VALUE_MAX, 0, 0.02, bench_top_cpu, 0},
    {"ctl_status_ms", "ms", NULL, VALUE_MAX, 0, 20, bench_ctl_status, 0},
    {"metrics_scrape_ms", "ms", NULL, VALUE_MAX, 0, 50, bench_metrics_scrape, 0},
    {"client_death_reclaim_ms", "ms", NULL, VALUE_MAX, 0, 50, bench_client_death, 0},
    {"innocent_throughput_beside_faults", "of alone", NULL, VALUE_MIN, 0.9, 0,
     bench_innocent_throughput, 0},
    {"dropin_launch_ns", "ns", NULL, VALUE_MAX, 0, 60, bench_dropin_launch, AT_CALLS},
    {"dropin_launch_sync_us", "us", NULL, VALUE_MAX, 0, 1.5, bench_dropin_sync, 0},
    {"dropin_copy_pinned", "GB/s", "on the device itself", RATIO_MIN, 0.97, 0,
     bench_dropin_copy_pinned, 0},
    {"dropin_copy_pageable", "GB/s", "on the device itself", RATIO_MIN, 0.85, 0,
     bench_dropin_copy_pageable, 0},
    {"dropin_malloc_warm", "ms", "on the device itself", RATIO_MAX, 0, 0.5, bench_dropin_allocate,
     0},
    {"dropin_start_ms", "ms", NULL, VALUE_MAX, 0, 5, bench_dropin_start, 0},
    {"dropin_samples_wall", "ms", "on the device itself", RATIO_MAX, 0, 1.03, bench_dropin_samples,
     0},
    {"ring_bytes_idle_client", "bytes", NULL, VALUE_MAX, 0, 64 << 10, bench_ring_bytes, 0},
    {"softgpu_lane_instructions_per_second", "1/s", NULL, VALUE_MIN, 1e9, 0,
     bench_lane_instructions, 0},
    {"softgpu_block_start_ns", "ns", NULL, VALUE_MAX, 0, 600, bench_block_start, 0},
};

const size_t row_count = sizeof rows / sizeof rows[0];

const struct row *row_find(const char *name)
{
    for (size_t i = 0; i < row_count; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

bool row_met(const struct row *row, const struct bench_result *result)
{
    if (result->fault[0])
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

/* A busy machine is a fault. It must not take the place of a number that misses the bound. */
static int badness(const struct row *row, const struct bench_result *result)
{
    enum { MEETS, FAULTY, MISSES, NO_NUMBER };
    if (result->fault[0])
        return FAULTY;
    if (isnan(row->judged <= RATIO_WITHIN ? result->ratio : result->value))
        return NO_NUMBER;
    return row_met(row, result) ? MEETS : MISSES;
}

bool row_worse(const struct row *row, const struct bench_result *one,
               const struct bench_result *other)
{
    const double middle = (row->low + row->high) / 2;
    if (badness(row, one) != badness(row, other))
        return badness(row, one) > badness(row, other);
    switch (row->judged) {
    case RATIO_MAX:
        return !(one->ratio <= other->ratio);
    case RATIO_MIN:
        return !(one->ratio >= other->ratio);
    case RATIO_WITHIN:
        return !(fabs(one->ratio - middle) <= fabs(other->ratio - middle));
    case VALUE_MIN:
        return !(one->value >= other->value);
    case VALUE_MAX:
    case STATED:
        break;
    }
    return !(one->value <= other->value);
}

void row_bounds(const struct row *row, char *text, size_t size)
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

json_t *row_list(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < row_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s?, s:o}", "name", rows[i].name, "unit",
                                              rows[i].unit, "yardstick", rows[i].yardstick, "aim",
                                              aim(&rows[i])));
    return list;
}
