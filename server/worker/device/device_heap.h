/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* device_heap: the heap of the context, from which the kernels of all clients allocate (malloc in
 * CUDA C). The driver fixes its size when it makes it. */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_DEVICE_HEAP_H
#define GPUSHARE_SERVER_WORKER_DEVICE_DEVICE_HEAP_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"

/*
 * Has the driver make a heap of so many bytes in the current context, in which no module that
 * allocates was loaded. bytes 0: of the driver's own size, with the first module that needs it.
 * *granted becomes the size as the driver tells it, 0 if it does not. Returns 0, or an error number
 * with one sentence in why.
 */
uint32_t device_heap_open(const struct cuda_driver *cuda, uint64_t bytes, uint64_t *granted,
                          struct error *why);

#endif
