/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_pool: the memory pools of the devices (memory_pool), over the engine. A device has a
 * default pool, a current one, and those that the program makes. Their blocks go with the device's
 * connection; the pools stay. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_POOL_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_POOL_H

#include <stdbool.h>

#include "client/cuda/driver/base/driver_device.h"
#include "common/cuda/memory_pool.h"

/* The device's default pool and its current one, which may be the same. CUDA_ERR_OUT_OF_MEMORY
 * without memory for them. */
cuda_result driver_pool_default(struct driver_device *device, struct memory_pool **pool);
cuda_result driver_pool_current(struct driver_device *device, struct memory_pool **pool);

/* NULL stands for the default pool. */
void driver_pool_make_current(struct driver_device *device, struct memory_pool *pool);

/* Makes a pool. most: the bytes that it may reserve, or 0. */
cuda_result driver_pool_create(struct driver_device *device, uint64_t most,
                               struct memory_pool **pool);

/* Ends a pool. CUDA_ERR_INVALID_VALUE for a default one. */
cuda_result driver_pool_destroy(struct memory_pool *pool);

/* Gives the pool of a handle, or CUDA_ERR_INVALID_VALUE. */
cuda_result driver_pool_check(cuda_mem_pool handle, struct memory_pool **pool);
cuda_mem_pool driver_pool_handle(struct memory_pool *pool);

static inline struct driver_device *driver_pool_device(const struct memory_pool *pool)
{
    return pool->place;
}

/* Gives the pool in which an allocation is in use, or NULL. */
struct memory_pool *driver_pool_of(cuda_device_ptr ptr);

/* Allocates at once. If memory is short, the pools' freed blocks are given back first. */
gpushare_error driver_pool_alloc(gpushare_connection *connection, size_t size,
                                 cuda_device_ptr *ptr);

/* Before an allocation is freed at once: takes it out of its pool. Returns false if it is free
 * already. */
bool driver_pool_disown(cuda_device_ptr ptr);

/* A thread has waited for work of the connection: releases what its device's pools need not keep.
 */
void driver_pool_settle(const gpushare_connection *connection);

#endif
