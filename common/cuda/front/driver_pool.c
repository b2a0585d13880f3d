/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/front/driver_pool.h"

#include "common/cuda/front/front.h"

static struct memory_pools pools = MEMORY_POOLS_INIT(pools, &front_pool_calls);

/* NULL is the default pool. */
static _Atomic(struct memory_pool *) current[DEVICES_MAX];

/* ---- pools ---- */

/* Each way to a pool of the program's leads through here, so the first one is the default. */
cuda_result driver_pool_default(cuda_device device, struct memory_pool **pool)
{
    *pool = memory_pool_first(&pools, driver_pool_place(device));
    return *pool ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result driver_pool_current(cuda_device device, struct memory_pool **pool)
{
    *pool = atomic_load(&current[device]);
    return *pool ? CUDA_OK : driver_pool_default(device, pool);
}

void driver_pool_make_current(cuda_device device, struct memory_pool *pool)
{
    atomic_store(&current[device], pool);
}

cuda_result driver_pool_create(cuda_device device, uint64_t most, struct memory_pool **pool)
{
    struct memory_pool *first;
    DRIVER_TRY(driver_pool_default(device, &first));
    *pool = memory_pool_new(&pools, driver_pool_place(device), most);
    return *pool ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result driver_pool_destroy(struct memory_pool *pool)
{
    cuda_device device = driver_pool_device(pool);
    struct memory_pool *first;
    DRIVER_TRY(driver_pool_default(device, &first));
    if (pool == first)
        return CUDA_ERR_INVALID_VALUE;
    struct memory_pool *expected = pool;
    (void)atomic_compare_exchange_strong(&current[device], &expected, NULL);
    memory_pool_retire(pool);
    return CUDA_OK;
}

cuda_result driver_pool_check(cuda_mem_pool handle, struct memory_pool **pool)
{
    *pool = (struct memory_pool *)handle;
    return handle && memory_pool_is(&pools, *pool) ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

cuda_mem_pool driver_pool_handle(struct memory_pool *pool)
{
    return (cuda_mem_pool)pool;
}

struct memory_pool *driver_pool_of(cuda_device_ptr ptr)
{
    return memory_pool_of(&pools, ptr);
}

/* ---- beside calls that allocate and free at once ---- */

bool driver_pool_give_back(cuda_device device)
{
    return memory_pool_give_back(&pools, driver_pool_place(device));
}

bool driver_pool_disown(cuda_device_ptr ptr)
{
    return memory_pool_disown(&pools, ptr);
}

bool driver_pool_keeps(void)
{
    return atomic_load_explicit(&pools.freed, memory_order_relaxed) != 0;
}

void driver_pool_settle(cuda_device device)
{
    memory_pool_settle(&pools, driver_pool_place(device));
}

void driver_pool_forget(cuda_device device)
{
    memory_pool_forget(&pools, driver_pool_place(device));
}
