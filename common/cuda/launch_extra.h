/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* launch_extra: the parameter block in the `extra` array of a launch. Pure; any thread. */
#ifndef GPUSHARE_COMMON_CUDA_LAUNCH_EXTRA_H
#define GPUSHARE_COMMON_CUDA_LAUNCH_EXTRA_H

#include <stddef.h>

#include "common/cuda/cuda_driver.h"

/* Reads pairs of key and value up to END. wanted: bytes of the kernel's parameters, which the block
 * has at least. Returns 0 or CUDA_ERR_INVALID_VALUE. */
static inline cuda_result launch_extra_read(void *const *extra, size_t wanted, const void **block)
{
    size_t bytes = 0;
    *block = NULL;
    for (; *extra != CUDA_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CUDA_LAUNCH_PARAM_BUFFER_POINTER)
            *block = extra[1];
        else if (*extra == CUDA_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
        else
            return CUDA_ERR_INVALID_VALUE;
    return bytes < wanted || (bytes && !*block) ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

#endif
