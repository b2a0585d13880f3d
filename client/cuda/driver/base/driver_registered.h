/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_registered: ordinary memory of this process that the program has registered. The device
 * can't reach it: copies from and to it are staged, as with any ordinary memory, and it has no
 * device pointer. It is known here so that the rules of registration hold. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_REGISTERED_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_REGISTERED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"

/* device: the ordinal of the one whose context registers it. Returns 0;
 * CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED if part of the range is; or CUDA_ERR_OUT_OF_MEMORY.
 * bytes: at least 1, without an overflow of the address. */
cuda_result driver_registered_add(uint64_t address, uint64_t bytes, cuda_device device);

/* Returns 0; CUDA_ERR_INVALID_VALUE inside of a range that begins elsewhere; or
 * CUDA_ERR_HOST_MEMORY_NOT_REGISTERED. */
cuda_result driver_registered_remove(uint64_t address);

/* The device's last context has ended, and its registrations with it. */
void driver_registered_forget(cuda_device device);

/* Gives the range that holds the address. Returns false, and writes nothing, if there is none. */
bool driver_registered_find(uint64_t address, uint64_t *start, uint64_t *bytes);

#endif
