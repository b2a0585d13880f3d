/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * day: clients that come and go, and work in bursts, on GPUs of one mode.
 *
 * The promise of each mode is computed here from its definition alone. Strict promises a client its
 * request, and clients without a request equal parts of the rest. Fair promises the request and an
 * equal part of the idle time, up to the limit. Turns promises equal parts. Concurrent promises
 * nothing, and is compared with equal parts.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_SIMULATE_DAY_H
#define GPUSHARE_TESTS_PROGRAMS_SIMULATE_DAY_H

#include <stdint.h>

enum { DAY_GPUS = 64, DAY_CLIENTS = 1000, DAY_MODES = 4 };

struct day_result {
    const char *mode;
    double busy; /* part of the promised time in which the devices ran something */
    double error_median, error_p99, error_most; /* points */
    double wait_median_ms, wait_p99_ms, wait_most_ms;
    double wait_most_request_ms; /* longest wait of a client with a request */
    double jain;
    uint32_t stretches;
    uint64_t kernels;
};

/* Runs a mode (of enum proto_mode) for this time on each of the GPUs. */
void day_run(int mode, uint64_t span_ns, uint32_t gpus, struct day_result *result);

#endif
