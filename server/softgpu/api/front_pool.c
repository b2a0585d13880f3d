/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The front's operations below its memory pools, on the software GPU itself. A block is allocated
 * as other memory is, and released as memory is unmapped. */
#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/device/context_lock.h"

static struct device *device_of(const void *place)
{
    return device_at(driver_pool_at(place));
}

static cuda_result alloc(void *place, cuda_device_ptr *ptr, size_t size)
{
    return api_memory_alloc(device_of(place), ptr, size);
}

/* The streams that used the block have come past it, so nothing waits for the device: a program may
 * wait for one stream beside a kernel that has no end. */
static cuda_result release(void *place, cuda_device_ptr ptr)
{
    struct device *device = device_of(place);
    cuda_result result;

    context_lock_call(device, CONTEXT_CALL_UNMAP);
    result = memory_free(ptr);
    context_lock_release(device);
    return result;
}

static cuda_result measure(void *place, cuda_device_ptr ptr, size_t *size)
{
    struct memory_place found;

    if (!memory_is_programs(ptr) || !memory_locate(ptr, &found) ||
        found.device != device_of(place)->ordinal)
        return CUDA_ERR_INVALID_VALUE;
    *size = found.end - found.start;
    return CUDA_OK;
}

static void drop(cuda_event event)
{
    engine_lock();
    stream_event_destroy((struct event *)event);
    engine_unlock();
}

static cuda_result mark(void *place, cuda_stream stream, cuda_event *made)
{
    struct event *event;
    cuda_result result;

    engine_lock();
    event = stream_event_create(device_of(place), CUDA_EVENT_DISABLE_TIMING);
    engine_unlock();
    if (!event)
        return CUDA_ERR_OUT_OF_MEMORY;
    result = cuEventRecord((cuda_event)event, stream);
    if (result == CUDA_OK)
        *made = (cuda_event)event;
    else
        drop((cuda_event)event);
    return result;
}

static cuda_result follow(void *place, cuda_stream stream, cuda_event event)
{
    (void)place;
    return cuStreamWaitEvent(stream, event, 0);
}

static cuda_result await(cuda_event event)
{
    const struct event *made = (const struct event *)event;
    cuda_result result = CUDA_OK;

    engine_lock();
    if (made->op)
        result = stream_operation_await(made->op);
    engine_unlock();
    return result;
}

const struct memory_pool_calls front_pool_calls = {.alloc = alloc,
                                                   .release = release,
                                                   .measure = measure,
                                                   .mark = mark,
                                                   .follow = follow,
                                                   .query = cuEventQuery,
                                                   .await = await,
                                                   .drop = drop};
