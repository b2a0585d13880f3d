/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_driver: the driver that the runtime stands on, which is whatever libcuda.so.1 the loader
 * finds: the software GPU's, gpushare's, or NVIDIA's. It is opened at the first call that needs it,
 * and tried again after a failure. Its code stays mapped until the process ends. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_RUNTIME_DRIVER_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_RUNTIME_DRIVER_H

#include "client/cuda/runtime/runtime_abi.h"

/* Opens and initialises the driver. Returns 0; CUDART_INSUFFICIENT_DRIVER if there is none; or what
 * cuInit returned. */
cudart_error runtime_driver_open(void);

/* The entries of the driver, once runtime_driver_open has returned 0. An entry that the driver
 * lacks is NULL: DRIVER calls them. */
extern struct cuda_driver runtime_driver;

/* The result of a driver call; CUDART_NOT_SUPPORTED if the driver lacks it. */
#define DRIVER(name, ...)                                                                          \
    (runtime_driver.name ? (cudart_error)runtime_driver.name(__VA_ARGS__)                          \
                         : (cudart_error)CUDART_NOT_SUPPORTED)

#endif
