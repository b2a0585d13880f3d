/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* driver_thread: threads of this library's own in the program's process. */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_THREAD_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_THREAD_H

#include "common/cuda/cuda_driver.h"

/* Starts a thread that ends with the process. All signals are blocked in it: they are for the
 * program's own threads. name: 15 bytes at most. Returns CUDA_ERR_OPERATING_SYSTEM without one. */
cuda_result driver_thread_start(const char *name, void *(*run)(void *unused));

#endif
