/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * day: clients of several users that come and go, and work in bursts, on GPUs of one mode. A third
 * of the clients pause for 1 to 50 ms within a burst, whenever they have had kernels for 0.1 to 5
 * s.
 *
 * The promise of each mode is computed here from its definition alone. Strict promises a client its
 * request; the rest goes in equal parts to the users of clients without a request, and there to
 * these clients. Fair promises the request and such a part of the idle time to all, up to the
 * limit. Turns promises equal parts to users. Concurrent promises nothing, and is compared with
 * equal parts.
 *
 * A client with short pauses is promised no more than that, and no less than such a
 * part of what it would have alone.
 *
 * The yardstick is plain time-slicing, as of NVIDIA's driver or of equal replicas: an equal part to
 * each client with work, whatever it and its user are to have.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_SIMULATE_DAY_H
#define GPUSHARE_TESTS_PROGRAMS_SIMULATE_DAY_H

#include <stdint.h>

enum { DAY_GPUS = 64, DAY_CLIENTS = 1000, DAY_MODES = 4 };

/* Of bursts: what clients had, against the mode's promise. */
struct day_errors {
    double median, p99, most; /* points */
    double jain;              /* of had / promised */
};

struct day_result {
    const char *mode;
    double busy; /* part of the promised time in which the devices ran something */
    struct day_errors errors, sliced; /* sliced: of plain time-slicing, against the same promise */
    double wait_median_ms, wait_p99_ms, wait_most_ms;
    double wait_most_request_ms; /* longest wait of a client with a request */
    uint32_t stretches;
    uint64_t kernels;
    uint32_t pauses; /* short ones, within bursts */
};

/* Runs a mode (of enum proto_mode) for this time on each of the GPUs. */
void day_run(int mode, uint64_t span_ns, uint32_t gpus, struct day_result *result);

#endif
