/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kernel: what the driver knows of a CUfunction, and the dynamic shared memory that it may have.
 * Any thread with the context that may wait for it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_KERNEL_H
#define GPUSHARE_SERVER_WORKER_CODE_KERNEL_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"

struct gpu;

/* An attribute; 0 if the driver does not say it. */
uint32_t kernel_attribute(const struct cuda_driver *cuda, cuda_function function,
                          cuda_function_attribute which);

/* Raises the function's dynamic shared memory to the most that it can have. Returns this number of
 * bytes, or 0 if the driver refused. */
uint32_t kernel_raise_shared(const struct gpu *gpu, cuda_function function);

/* The same for all functions of a module that has not too many of them, if the driver can list
 * them. In a quiet window. */
void kernel_raise_all(const struct gpu *gpu, cuda_module module);

#endif
