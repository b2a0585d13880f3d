/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/ordered_memory.h"

#include "client/cuda/runtime/base/runtime_driver.h"
#include "common/cuda/memory_pool.h"

/* ---- the driver's calls, in the current context, which is the place ---- */

static cuda_result alloc(void *context, cuda_device_ptr *ptr, size_t size)
{
    (void)context;
    return (cuda_result)DRIVER(cuMemAlloc, ptr, size);
}

static cuda_result release(void *context, cuda_device_ptr ptr)
{
    (void)context;
    return (cuda_result)DRIVER(cuMemFree, ptr);
}

static cuda_result measure(void *context, cuda_device_ptr ptr, size_t *size)
{
    cuda_device_ptr base = 0;
    cuda_result result = (cuda_result)DRIVER(cuMemGetAddressRange, &base, size, ptr);

    (void)context;
    return result == CUDA_OK && base != ptr ? CUDA_ERR_INVALID_VALUE : result;
}

static cuda_result mark(void *context, cuda_stream stream, cuda_event *made)
{
    cuda_event event = NULL;
    cuda_result result = (cuda_result)DRIVER(cuEventCreate, &event, CUDA_EVENT_DISABLE_TIMING);

    (void)context;
    if (result != CUDA_OK)
        return result;
    result = (cuda_result)DRIVER(cuEventRecord, event, stream);
    if (result == CUDA_OK)
        *made = event;
    else
        (void)DRIVER(cuEventDestroy, event);
    return result;
}

static cuda_result follow(void *context, cuda_stream stream, cuda_event event)
{
    (void)context;
    return (cuda_result)DRIVER(cuStreamWaitEvent, stream, event, 0);
}

static cuda_result query(cuda_event event)
{
    return (cuda_result)DRIVER(cuEventQuery, event);
}

static cuda_result await(cuda_event event)
{
    return (cuda_result)DRIVER(cuEventSynchronize, event);
}

static void drop(cuda_event event)
{
    (void)DRIVER(cuEventDestroy, event);
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

/* ---- the current context's one pool ---- */

static cuda_context current_context(void)
{
    cuda_context context = NULL;

    return DRIVER(cuCtxGetCurrent, &context) == CUDART_OK ? context : NULL;
}

cudart_error ordered_memory_alloc(cuda_device_ptr *ptr, size_t size, cuda_stream stream)
{
    struct memory_pool *pool = memory_pool_first(&pools, current_context());

    return pool ? (cudart_error)memory_pool_alloc(pool, ptr, size, stream)
                : CUDART_MEMORY_ALLOCATION;
}

cudart_error ordered_memory_free(cuda_device_ptr ptr, cuda_stream stream)
{
    struct memory_pool *pool = memory_pool_first(&pools, current_context());

    return pool ? (cudart_error)memory_pool_free(pool, ptr, stream) : CUDART_MEMORY_ALLOCATION;
}

bool ordered_memory_disown(cuda_device_ptr ptr)
{
    return memory_pool_disown(&pools, ptr);
}

void ordered_memory_trim(void)
{
    memory_pool_settle(&pools, current_context());
}

bool ordered_memory_await(void)
{
    return memory_pool_give_back(&pools, current_context());
}

void ordered_memory_forget(cuda_context context)
{
    memory_pool_forget(&pools, context);
}
