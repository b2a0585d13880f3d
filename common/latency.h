/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * latency: histograms of waits, in classes that double. Each count is an unsigned 64-bit number.
 */
#ifndef GPUSHARE_COMMON_LATENCY_H
#define GPUSHARE_COMMON_LATENCY_H

#include <stdint.h>

#include "common/util.h"

enum { LATENCY_BUCKETS = 32 };

/* The class of a time in ns. The first one has times below 2 us, number i those from 2^i us up to
 * 2^(i+1), and the last one all longer ones. */
static inline uint32_t latency_bucket(uint64_t ns)
{
    uint64_t us = ns / 1000;
    if (us < 2)
        return 0;
    uint32_t log = 63 - (uint32_t)__builtin_clzll(us);
    return min(log, (uint32_t)LATENCY_BUCKETS - 1);
}

#endif
