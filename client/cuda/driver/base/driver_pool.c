/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_pool.h"

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/allocation.h"
#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"

/* ---- the engine's calls; a pool's place is its device ---- */

static gpushare_connection *connection_of(void *device)
{
    return atomic_load_explicit(&((struct driver_device *)device)->connection,
                                memory_order_acquire);
}

static cuda_result alloc(void *device, cuda_device_ptr *ptr, size_t size)
{
    return driver_result(memory_device_alloc(connection_of(device), size, ptr));
}

static cuda_result release(void *device, cuda_device_ptr ptr)
{
    return driver_result(memory_device_free(connection_of(device), ptr));
}

static cuda_result measure(void *device, cuda_device_ptr ptr, size_t *size)
{
    struct allocation found;
    if (!allocation_find(&connection_of(device)->allocations, ptr, &found) ||
        found.address != ptr || found.kind != ALLOCATION_DEVICE)
        return CUDA_ERR_INVALID_VALUE;
    *size = found.asked;
    return CUDA_OK;
}

static cuda_result mark(void *device, cuda_stream handle, cuda_event *made)
{
    gpushare_connection *connection = connection_of(device);
    struct gpushare_stream *stream;
    gpushare_event *event;
    DRIVER_TRY(driver_stream(connection, handle, &stream));
    DRIVER_TRY(driver_result(event_open(connection, 0, &event)));
    cuda_result result = driver_work_result(connection, event_record(event, stream));
    if (result == CUDA_OK)
        *made = (cuda_event)event;
    else
        (void)event_close(event);
    return result;
}

static cuda_result follow(void *device, cuda_stream handle, cuda_event event)
{
    gpushare_connection *connection = connection_of(device);
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream(connection, handle, &stream));
    return driver_work_result(connection, event_hold_stream((gpushare_event *)event, stream));
}

/* Nobody is told of lost work here: the call that waits for it says so. */
static cuda_result query(cuda_event event)
{
    return event_query((gpushare_event *)event) ? CUDA_ERR_NOT_READY : CUDA_OK;
}

static cuda_result await(cuda_event event)
{
    gpushare_event *made = (gpushare_event *)event;
    return driver_work_result(made->connection, event_wait(made));
}

static void drop(cuda_event event)
{
    (void)event_close((gpushare_event *)event);
}

static const struct memory_pool_calls calls = {.alloc = alloc,
                                               .release = release,
                                               .measure = measure,
                                               .mark = mark,
                                               .follow = follow,
                                               .query = query,
                                               .await = await,
                                               .drop = drop};
static struct memory_pools pools = MEMORY_POOLS_INIT(pools, &calls);

/* By the devices' ordinals; NULL is the default pool. */
static _Atomic(struct memory_pool *) current[LIMITS_DEVICES_MAX];

/* ---- pools ---- */

/* The connection is about to close, and memory and events with it. */
static void forget(struct driver_device *device)
{
    memory_pool_forget(&pools, device);
}

/* Each way to a pool of the program's leads through here, so the first one is the default. */
cuda_result driver_pool_default(struct driver_device *device, struct memory_pool **pool)
{
    atomic_store(&device->before_close, forget);
    *pool = memory_pool_first(&pools, device);
    return *pool ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result driver_pool_current(struct driver_device *device, struct memory_pool **pool)
{
    *pool = atomic_load(&current[device->ordinal]);
    return *pool ? CUDA_OK : driver_pool_default(device, pool);
}

void driver_pool_make_current(struct driver_device *device, struct memory_pool *pool)
{
    atomic_store(&current[device->ordinal], pool);
}

cuda_result driver_pool_create(struct driver_device *device, uint64_t most,
                               struct memory_pool **pool)
{
    struct memory_pool *first;
    DRIVER_TRY(driver_pool_default(device, &first));
    *pool = memory_pool_new(&pools, device, most);
    return *pool ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result driver_pool_destroy(struct memory_pool *pool)
{
    struct driver_device *device = driver_pool_device(pool);
    struct memory_pool *first;
    DRIVER_TRY(driver_pool_default(device, &first));
    if (pool == first)
        return CUDA_ERR_INVALID_VALUE;
    struct memory_pool *expected = pool;
    (void)atomic_compare_exchange_strong(&current[device->ordinal], &expected, NULL);
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

static bool is_short(gpushare_error error)
{
    return error == GPUSHARE_ERROR_OUT_OF_MEMORY || error == GPUSHARE_ERROR_NO_ROOM ||
           error == GPUSHARE_ERROR_ADDRESS_SPACE_FULL;
}

gpushare_error driver_pool_alloc(gpushare_connection *connection, size_t size, cuda_device_ptr *ptr)
{
    gpushare_error error = memory_device_alloc(connection, size, ptr);
    if (is_short(error) && memory_pool_give_back(&pools, driver_device_of(connection)))
        error = memory_device_alloc(connection, size, ptr);
    return error;
}

bool driver_pool_disown(cuda_device_ptr ptr)
{
    return memory_pool_disown(&pools, ptr);
}

void driver_pool_settle(const gpushare_connection *connection)
{
    if (atomic_load_explicit(&pools.freed, memory_order_relaxed))
        memory_pool_settle(&pools, driver_device_of(connection));
}
