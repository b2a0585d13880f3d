/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_result: the client library's errors as CUDA's, and what a user can't read from a number:
 * the sentence of an error that CUDA has no number for goes to stderr, once for each kind. Any
 * thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_RESULT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_RESULT_H

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"

/* CUDA's number for an error that the engine has just returned in this thread. */
cuda_result driver_result_of(gpushare_error error) __attribute__((cold));

static inline cuda_result driver_result(gpushare_error error)
{
    return __builtin_expect(error == GPUSHARE_SUCCESS, 1) ? CUDA_OK : driver_result_of(error);
}

#define DRIVER_TRY(call)                                                                           \
    do {                                                                                           \
        cuda_result tried_ = (call);                                                               \
        if (tried_ != CUDA_OK)                                                                     \
            return tried_;                                                                         \
    } while (0)

#endif
