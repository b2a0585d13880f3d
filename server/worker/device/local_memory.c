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
}

cuda_result local_memory_grow(struct local_memory *local, const struct cuda_driver *cuda,
                              uint64_t bytes)
{
    if (bytes <= local_memory_room(local))
        return CUDA_OK;
    cuda_result result = cuda->cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, bytes);
    if (result == CUDA_OK)
        atomic_store(&local->room, bytes);
    return result;
}

void local_memory_wish(struct local_memory *local)
{
    atomic_store(&local->wished, true);
}

bool local_memory_take_wish(struct local_memory *local)
{
    return atomic_exchange(&local->wished, false);
}
