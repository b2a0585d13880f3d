/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_driver: the driver that the runtime stands on, which is whatever libcuda.so.1 the loader
 * finds: the software GPU's, gpushare's, or NVIDIA's. It is opened at the first call that needs it,
 * and tried again after a failure. Its code stays mapped until the process ends. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_DRIVER_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_DRIVER_H

#include "client/cuda/runtime/base/runtime_abi.h"

/* Opens and initialises the driver. Returns 0; CUDART_INSUFFICIENT_DRIVER if there is none; or what
 * cuInit returned. */
cudart_error runtime_driver_open(void);

/* X(name, symbol, version, need, (parameters)), as CUDA_DRIVER_ENTRIES has them: what the runtime
 * alone calls. A driver may lack any of them. */
#define RUNTIME_DRIVER_ENTRIES(X)                                                                  \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, 0, (cuda_device device))         \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, 0,                               \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       cuda_stream stream, void **params))                                                         \
    X(cuStreamAddCallback, cuStreamAddCallback, 5000, 0,                                           \
      (cuda_stream stream, cuda_stream_callback fn, void *user, unsigned flags))                   \
    X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, 0, (cuda_stream stream, int *status))       \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020, 0,                                                  \
      (cuda_device_ptr * ptr, size_t size, cuda_stream stream))                                    \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, 0, (cuda_device_ptr ptr, cuda_stream stream))         \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000, 0,                                               \
      (cuda_device_ptr * ptr, size_t size, unsigned flags))

struct runtime_driver {
#define X(name, symbol, version, need, params) cuda_result(*name) params;
    CUDA_DRIVER_ENTRIES(X)
    RUNTIME_DRIVER_ENTRIES(X)
#undef X
};

/* The entries of the driver, once runtime_driver_open has returned 0. An entry that the driver
 * lacks is NULL: DRIVER calls them. */
extern struct runtime_driver runtime_driver;

/* The result of a driver call; CUDART_NOT_SUPPORTED if the driver lacks it. */
#define DRIVER(name, ...)                                                                          \
    (runtime_driver.name ? (cudart_error)runtime_driver.name(__VA_ARGS__)                          \
                         : (cudart_error)CUDART_NOT_SUPPORTED)

#endif
