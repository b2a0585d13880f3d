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

/* Fills *wanted from the arguments of a call. Returns CUDA_ERR_INVALID_VALUE for flags that CUDA
 * does not know or an address that is no multiple of width; CUDA_ERR_NOT_SUPPORTED for a flush of
 * remote writes, which no device of ours has (CAN_FLUSH_REMOTE_WRITES is 0). */
static inline cuda_result stream_value_read(struct stream_value *wanted, cuda_device_ptr address,
                                            uint64_t value, unsigned width, unsigned flags)
{
    unsigned condition = flags & ~(unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH;
    if (condition > CUDA_STREAM_WAIT_VALUE_NOR || address % width)
        return CUDA_ERR_INVALID_VALUE;
    if (flags & (unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERR_NOT_SUPPORTED;
    *wanted = (struct stream_value){address, value, width, condition};
    return CUDA_OK;
}

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
