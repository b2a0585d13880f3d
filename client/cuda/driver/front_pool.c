/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations below its memory pools, through the engine. A pool is used while a context
 * stands on its device, so the device has a connection. */
#include "client/cuda/driver/base/driver_connection.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_stream.h"
#include "client/engine/range/allocation.h"
#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"
#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"

static gpushare_connection *connection_of(const void *place)
{
    struct driver_device *device;
    return driver_device_get(driver_pool_at(place), &device) == CUDA_OK
               ? atomic_load_explicit(&device->connection, memory_order_acquire)
               : NULL;
}

static cuda_result alloc(void *place, cuda_device_ptr *ptr, size_t size)
{
    return driver_result(memory_device_alloc(connection_of(place), size, ptr));
}

static cuda_result release(void *place, cuda_device_ptr ptr)
{
    return driver_result(memory_device_free(connection_of(place), ptr));
}

static cuda_result measure(void *place, cuda_device_ptr ptr, size_t *size)
{
    struct allocation found;
    if (!allocation_find(&connection_of(place)->allocations, ptr, &found) || found.address != ptr ||
        found.kind != ALLOCATION_DEVICE)
        return CUDA_ERR_INVALID_VALUE;
    *size = found.asked;
    return CUDA_OK;
}

static cuda_result mark(void *place, cuda_stream handle, cuda_event *made)
{
    gpushare_connection *connection = connection_of(place);
    struct gpushare_stream *stream;
    gpushare_event *event;
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    DRIVER_TRY(driver_result(event_open(connection, 0, &event)));
    cuda_result result = driver_connection_result(connection, event_record(event, stream));
    if (result == CUDA_OK)
        *made = (cuda_event)event;
    else
        (void)event_close(event);
    return result;
}

static cuda_result follow(void *place, cuda_stream handle, cuda_event event)
{
    gpushare_connection *connection = connection_of(place);
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    return driver_connection_result(connection, event_hold_stream((gpushare_event *)event, stream));
}

/* Nobody is told of lost work here: the call that waits for it says so. */
static cuda_result query(cuda_event event)
{
    return event_query((gpushare_event *)event) ? CUDA_ERR_NOT_READY : CUDA_OK;
}

static cuda_result await(cuda_event event)
{
    gpushare_event *made = (gpushare_event *)event;
    return driver_connection_result(made->connection, event_wait(made));
}

static void drop(cuda_event event)
{
    (void)event_close((gpushare_event *)event);
}

static void trim(void *place)
{
    gpushare_connection *connection = connection_of(place);
    if (connection)
        (void)memory_device_trim(connection);
}

const struct memory_pool_calls front_pool_calls = {.alloc = alloc,
                                                   .release = release,
                                                   .measure = measure,
                                                   .mark = mark,
                                                   .follow = follow,
                                                   .query = query,
                                                   .await = await,
                                                   .drop = drop,
                                                   .trim = trim};
