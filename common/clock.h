/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * clock: the machine's monotonic clock, in nanoseconds.
 * All processes of one machine read the same clock. Any thread, also in a signal handler.
 */
#ifndef GPUSHARE_COMMON_CLOCK_H
#define GPUSHARE_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "common/units.h"

/* Returns the time of CLOCK_MONOTONIC, or of another clock of clock_gettime. */
static inline uint64_t clock_read(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UNITS_SECOND + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* Returns a duration, or a moment of that clock, as the calls of the system take it. */
static inline struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / UNITS_SECOND),
                             .tv_nsec = (long)(ns % UNITS_SECOND)};
}

#endif
