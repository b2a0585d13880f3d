/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/local_memory.h"

void local_memory_open(struct local_memory *local, const struct cuda_driver *cuda)
{
    size_t bytes = 0;
    if (cuda->cuCtxGetLimit(&bytes, CUDA_LIMIT_STACK_SIZE) != CUDA_OK)
        bytes = 0;
    atomic_store(&local->room, bytes);
    atomic_store(&local->wished, false);
    local->unloadable = bytes ? local_kernel_load(&local->kernel, cuda, bytes) : CUDA_OK;
    if (!bytes)
        local->kernel.module = NULL;
}

void local_memory_close(struct local_memory *local, const struct cuda_driver *cuda)
{
    local_kernel_unload(&local->kernel, cuda);
}

cuda_result local_memory_extend(const struct local_memory *local, const struct cuda_driver *cuda,
                                cuda_stream stream)
{
    return local->kernel.module ? local_kernel_run(&local->kernel, cuda, stream) : CUDA_OK;
}

/* Leaves a larger kernel in *kernel, or none. */
static cuda_result launch_everywhere(const struct local_memory *local,
                                     const struct cuda_driver *cuda, uint64_t bytes,
                                     const cuda_stream *streams, uint32_t count,
                                     struct local_kernel *kernel)
{
    if (local->unloadable != CUDA_OK)
        return CUDA_OK;
    cuda_result result = local_kernel_load(kernel, cuda, bytes);
    for (uint32_t i = 0; i < count && result == CUDA_OK; i++)
        result = local_kernel_run(kernel, cuda, streams[i]);
    if (result != CUDA_OK)
        local_kernel_unload(kernel, cuda);
    return result;
}

cuda_result local_memory_grow(struct local_memory *local, const struct cuda_driver *cuda,
                              uint64_t bytes, const cuda_stream *streams, uint32_t count)
{
    uint64_t had = local_memory_room(local);
    struct local_kernel larger = {.module = NULL};
    if (bytes <= had)
        return CUDA_OK;
    cuda_result result = cuda->cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, bytes);
    if (result != CUDA_OK)
        return result;
    result = launch_everywhere(local, cuda, bytes, streams, count, &larger);
    if (result != CUDA_OK) {
        cuda->cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, had);
        return result;
    }
    local_kernel_unload(&local->kernel, cuda);
    local->kernel = larger;
    atomic_store(&local->room, bytes);
    return CUDA_OK;
}

void local_memory_wish(struct local_memory *local)
{
    atomic_store(&local->wished, true);
}

bool local_memory_take_wish(struct local_memory *local)
{
    return atomic_exchange(&local->wished, false);
}
