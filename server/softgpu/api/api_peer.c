/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies between devices. Each device's memory is the process's own, so they are copies like any
 * other, once it is known that each side is of the device that the caller names. */
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/front.h"
#include "server/softgpu/api/api.h"

static cuda_result check_end(cuda_context handle, uint64_t address, size_t size,
                             cuda_device *device)
{
    struct front_memory memory;
    cuda_context context;

    if (!handle)
        return CUDA_ERR_INVALID_CONTEXT;
    DRIVER_TRY(driver_context_check(handle, &context));
    *device = context->device;
    if (size && (!front_memory_find(address, &memory) ||
                 (memory.kind == FRONT_DEVICE && memory.device != context->device)))
        return CUDA_ERR_INVALID_VALUE;
    return CUDA_OK;
}

/* A stream of another device than the two can't order the copy with their work. */
static cuda_result copy(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                        cuda_context from, size_t size, cuda_stream handle)
{
    struct front_stream stream;
    cuda_device to_device, from_device;

    DRIVER_TRY(check_end(to, dst, size, &to_device));
    DRIVER_TRY(check_end(from, src, size, &from_device));
    DRIVER_TRY(front_stream_find(handle, &stream));
    if (stream.device != to_device && stream.device != from_device)
        return CUDA_ERR_NOT_SUPPORTED;
    return cuMemcpyAsync(dst, src, size, handle);
}

/* In order with all work of both devices, so each side waits for the other here. */
static cuda_result copy_in_order(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                                 cuda_context from, size_t size, cuda_stream handle)
{
    cuda_device device;
    cuda_result result;

    DRIVER_TRY(check_end(to, dst, size, &device));
    DRIVER_TRY(check_end(from, src, size, &device));
    DRIVER_TRY(cuCtxSynchronize_v2(from));
    DRIVER_TRY(cuCtxSynchronize_v2(to));
    DRIVER_TRY(driver_context_push(to));
    result = copy(dst, to, src, from, size, handle);
    if (result == CUDA_OK)
        result = cuStreamSynchronize(handle);
    (void)driver_context_pop(NULL);
    return result;
}

cuda_result cuMemcpyPeer(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                         cuda_context from, size_t size)
{
    return copy_in_order(dst, to, src, from, size, NULL);
}

cuda_result cuMemcpyPeer_ptds(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                              cuda_context from, size_t size)
{
    return copy_in_order(dst, to, src, from, size, CUDA_STREAM_PER_THREAD);
}

cuda_result cuMemcpyPeerAsync(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                              cuda_context from, size_t size, cuda_stream stream)
{
    return copy(dst, to, src, from, size, stream);
}

cuda_result cuMemcpyPeerAsync_ptsz(cuda_device_ptr dst, cuda_context to, cuda_device_ptr src,
                                   cuda_context from, size_t size, cuda_stream stream)
{
    return copy(dst, to, src, from, size, front_stream_own(stream));
}
