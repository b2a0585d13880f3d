/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * day: clients that come and go, and work in bursts, on GPUs of one mode.
 *
 * What a mode promises is computed here from its definition alone: in strict mode the
 * request, and of the rest an equal part to clients without one; in fair mode the
 * request and an equal part of the idle time, up to the limit; in turns an equal part;
 * in concurrent mode nothing is promised, and an equal part is what is compared with.
 */
#ifndef GPUSHARE_TESTS_SIMULATE_DAY_H
#define GPUSHARE_TESTS_SIMULATE_DAY_H

#include <stdint.h>

enum { DAY_GPUS = 64, DAY_CLIENTS = 1000, DAY_MODES = 4 };

struct day_result {
    const char *mode;
    double busy;                                /* of the time that the mode promised to somebody */
    double error_median, error_p99, error_most; /* points */
    double wait_median_ms, wait_p99_ms, wait_most_ms;
    double wait_most_request_ms; /* of clients with a request */
    double jain;
    uint32_t stretches;
    uint64_t kernels;
};

/* Runs a mode (as enum proto_mode) for so long on each of the GPUs. */
void day_run(int mode, uint64_t span_ns, uint32_t gpus, struct day_result *result);

#endif
