/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_pool: the memory pools of the devices (memory_pool), over front_pool_calls. A device has a
 * default pool, a current one, and those that the program makes. Their blocks go with the device's
 * last context; the pools stay. Any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_FRONT_DRIVER_POOL_H
#define GPUSHARE_COMMON_CUDA_FRONT_DRIVER_POOL_H

#include <stdbool.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/memory_pool.h"

/* The device's default pool and its current one, which may be the same. CUDA_ERR_OUT_OF_MEMORY
 * without memory for them. */
cuda_result driver_pool_default(cuda_device device, struct memory_pool **pool);
cuda_result driver_pool_current(cuda_device device, struct memory_pool **pool);

/* NULL stands for the default pool. */
void driver_pool_make_current(cuda_device device, struct memory_pool *pool);

/* Makes a pool. most: the bytes that it may reserve, or 0. */
cuda_result driver_pool_create(cuda_device device, uint64_t most, struct memory_pool **pool);

/* Ends a pool. CUDA_ERR_INVALID_VALUE for a default one. */
cuda_result driver_pool_destroy(struct memory_pool *pool);

/* Gives the pool of a handle, or CUDA_ERR_INVALID_VALUE. */
cuda_result driver_pool_check(cuda_mem_pool handle, struct memory_pool **pool);
cuda_mem_pool driver_pool_handle(struct memory_pool *pool);

/* The place of a device's pools, and the device of a place. NULL is no place. */
static inline void *driver_pool_place(cuda_device device)
{
    return (void *)((uintptr_t)device + 1);
}

static inline cuda_device driver_pool_at(const void *place)
{
    return (cuda_device)((uintptr_t)place - 1);
}

static inline cuda_device driver_pool_device(const struct memory_pool *pool)
{
    return driver_pool_at(pool->place);
}

/* Gives the pool in which an allocation is in use, or NULL. */
struct memory_pool *driver_pool_of(cuda_device_ptr ptr);

/* Memory is short for an allocation that is made at once: gives back what the pools of the device
 * keep. Returns whether there was any. */
bool driver_pool_give_back(cuda_device device);

/* Before an allocation is freed at once: takes it out of its pool. Returns false if it is free
 * already. */
bool driver_pool_disown(cuda_device_ptr ptr);

/* Whether pools keep any block. If so, a wait for work is followed by driver_pool_settle, which
 * releases what the device's pools need not keep. */
bool driver_pool_keeps(void);
void driver_pool_settle(cuda_device device);

/* The device's last context is about to end, and memory and events with it. */
void driver_pool_forget(cuda_device device);

#endif
