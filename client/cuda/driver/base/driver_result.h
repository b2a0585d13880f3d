/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_result: the client library's errors as CUDA's, and what a user can't read from a number.
 * Where the sentence says more than CUDA's number it goes to stderr, once for each error: a limit
 * that is reached, a kernel that faulted, a server that can't be reached. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_RESULT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_RESULT_H

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"
#include "common/cuda/front/front.h"

/* CUDA's number for an error that the engine has just returned in this thread. */
cuda_result driver_result_of(gpushare_error error) __attribute__((cold));

static inline cuda_result driver_result(gpushare_error error)
{
    return __builtin_expect(error == GPUSHARE_SUCCESS, 1) ? CUDA_OK : driver_result_of(error);
}

/* The same for an attempt to become a client, whose every refusal is a matter for its sentence. */
cuda_result driver_result_refused(gpushare_error error);

#endif
