/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* stream_value: what a stream that waits for a value in memory asks of that value. Pure. */
#ifndef GPUSHARE_COMMON_CUDA_STREAM_VALUE_H
#define GPUSHARE_COMMON_CUDA_STREAM_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"

struct stream_value {
    uint64_t address; /* a multiple of width */
    uint64_t value;
    unsigned width;     /* bytes: 4 or 8 */
    unsigned condition; /* CUDA_STREAM_WAIT_VALUE_GEQ and the like */
};

/* Whether the wait is over with what is in memory. Of 4 bytes the upper half of `there` is not
 * looked at. "At least" is cyclic: it asks for the sign of the difference. */
static inline bool stream_value_met(const struct stream_value *wanted, uint64_t there)
{
    uint64_t all = wanted->width == 4 ? UINT32_MAX : UINT64_MAX;
    uint64_t sign = wanted->width == 4 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
    switch (wanted->condition) {
    case CUDA_STREAM_WAIT_VALUE_EQ:
        return !((there ^ wanted->value) & all);
    case CUDA_STREAM_WAIT_VALUE_AND:
        return (there & wanted->value & all) != 0;
    case CUDA_STREAM_WAIT_VALUE_NOR:
        return (~(there | wanted->value) & all) != 0;
    default:
        return !((there - wanted->value) & sign);
    }
}

#endif
