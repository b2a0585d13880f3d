/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The calls of programs whose default stream is the thread's own. */
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/cuda/sync_memory.h"

/* Of a copy that does not return before it is done. */
static cuda_result done(cuda_result pushed)
{
    return pushed == CUDA_OK ? cuStreamSynchronize(CUDA_STREAM_PER_THREAD) : pushed;
}

cuda_result cuMemcpy_ptds(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    return done(cuMemcpyAsync(dst, src, size, CUDA_STREAM_PER_THREAD));
}

cuda_result cuMemcpyAsync_ptsz(cuda_device_ptr dst, cuda_device_ptr src, size_t size,
                               cuda_stream stream)
{
    return cuMemcpyAsync(dst, src, size, front_stream_own(stream));
}

cuda_result cuMemcpyHtoD_v2_ptds(cuda_device_ptr dst, const void *src, size_t size)
{
    return done(cuMemcpyHtoDAsync_v2(dst, src, size, CUDA_STREAM_PER_THREAD));
}

cuda_result cuMemcpyDtoH_v2_ptds(void *dst, cuda_device_ptr src, size_t size)
{
    return done(cuMemcpyDtoHAsync_v2(dst, src, size, CUDA_STREAM_PER_THREAD));
}

cuda_result cuMemcpyDtoD_v2_ptds(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    cuda_result pushed = cuMemcpyDtoDAsync_v2(dst, src, size, CUDA_STREAM_PER_THREAD);
    return sync_memory_waits(dst) || sync_memory_waits(src) ? done(pushed) : pushed;
}

cuda_result cuMemcpyHtoDAsync_v2_ptsz(cuda_device_ptr dst, const void *src, size_t size,
                                      cuda_stream stream)
{
    return cuMemcpyHtoDAsync_v2(dst, src, size, front_stream_own(stream));
}

cuda_result cuMemcpyDtoHAsync_v2_ptsz(void *dst, cuda_device_ptr src, size_t size,
                                      cuda_stream stream)
{
    return cuMemcpyDtoHAsync_v2(dst, src, size, front_stream_own(stream));
}

cuda_result cuMemcpyDtoDAsync_v2_ptsz(cuda_device_ptr dst, cuda_device_ptr src, size_t size,
                                      cuda_stream stream)
{
    return cuMemcpyDtoDAsync_v2(dst, src, size, front_stream_own(stream));
}

cuda_result cuMemsetD8Async_ptsz(cuda_device_ptr dst, unsigned char value, size_t count,
                                 cuda_stream stream)
{
    return cuMemsetD8Async(dst, value, count, front_stream_own(stream));
}

cuda_result cuMemsetD16Async_ptsz(cuda_device_ptr dst, unsigned short value, size_t count,
                                  cuda_stream stream)
{
    return cuMemsetD16Async(dst, value, count, front_stream_own(stream));
}

cuda_result cuMemsetD32Async_ptsz(cuda_device_ptr dst, unsigned value, size_t count,
                                  cuda_stream stream)
{
    return cuMemsetD32Async(dst, value, count, front_stream_own(stream));
}

cuda_result cuStreamQuery_ptsz(cuda_stream stream)
{
    return cuStreamQuery(front_stream_own(stream));
}

cuda_result cuStreamSynchronize_ptsz(cuda_stream stream)
{
    return cuStreamSynchronize(front_stream_own(stream));
}

cuda_result cuStreamWaitEvent_ptsz(cuda_stream stream, cuda_event event, unsigned flags)
{
    return cuStreamWaitEvent(front_stream_own(stream), event, flags);
}

cuda_result cuStreamGetPriority_ptsz(cuda_stream stream, int *priority)
{
    return cuStreamGetPriority(front_stream_own(stream), priority);
}

cuda_result cuStreamGetFlags_ptsz(cuda_stream stream, unsigned *flags)
{
    return cuStreamGetFlags(front_stream_own(stream), flags);
}

cuda_result cuStreamGetCtx_ptsz(cuda_stream stream, cuda_context *context)
{
    return cuStreamGetCtx(front_stream_own(stream), context);
}

cuda_result cuStreamAddCallback_ptsz(cuda_stream stream, cuda_stream_callback callback, void *user,
                                     unsigned flags)
{
    return cuStreamAddCallback(front_stream_own(stream), callback, user, flags);
}

cuda_result cuLaunchHostFunc_ptsz(cuda_stream stream, cuda_host_fn fn, void *user)
{
    return cuLaunchHostFunc(front_stream_own(stream), fn, user);
}

cuda_result cuEventRecord_ptsz(cuda_event event, cuda_stream stream)
{
    return cuEventRecord(event, front_stream_own(stream));
}

cuda_result cuLaunchKernel_ptsz(cuda_function function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                                void **params, void **extra)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          front_stream_own(stream), params, extra);
}

cuda_result cuLaunchCooperativeKernel_ptsz(cuda_function function, unsigned grid_x, unsigned grid_y,
                                           unsigned grid_z, unsigned block_x, unsigned block_y,
                                           unsigned block_z, unsigned shared_bytes,
                                           cuda_stream stream, void **params)
{
    return cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                     shared_bytes, front_stream_own(stream), params);
}

cuda_result cuLaunchKernelEx_ptsz(const struct cuda_launch_config *config, cuda_function function,
                                  void **params, void **extra)
{
    if (!config)
        return CUDA_ERR_INVALID_VALUE;
    struct cuda_launch_config own = *config;
    own.stream = front_stream_own(config->stream);
    return cuLaunchKernelEx(&own, function, params, extra);
}

cuda_result cuStreamGetCtx_v2_ptsz(cuda_stream stream, cuda_context *context, cuda_green_ctx *green)
{
    return cuStreamGetCtx_v2(front_stream_own(stream), context, green);
}

cuda_result cuStreamGetId_ptsz(cuda_stream stream, unsigned long long *id)
{
    return cuStreamGetId(front_stream_own(stream), id);
}

cuda_result cuStreamGetDevice_ptsz(cuda_stream stream, cuda_device *device)
{
    return cuStreamGetDevice(front_stream_own(stream), device);
}

cuda_result cuLaunchHostFunc_v2_ptsz(cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)
{
    return cuLaunchHostFunc_v2(front_stream_own(stream), fn, user, mode);
}

cuda_result cuStreamGetAttribute_ptsz(cuda_stream stream, int attribute, void *value)
{
    return cuStreamGetAttribute(front_stream_own(stream), attribute, value);
}

cuda_result cuStreamSetAttribute_ptsz(cuda_stream stream, int attribute, const void *value)
{
    return cuStreamSetAttribute(front_stream_own(stream), attribute, value);
}

cuda_result cuStreamCopyAttributes_ptsz(cuda_stream to, cuda_stream from)
{
    return cuStreamCopyAttributes(front_stream_own(to), front_stream_own(from));
}

cuda_result cuStreamIsCapturing_ptsz(cuda_stream stream, int *status)
{
    return cuStreamIsCapturing(front_stream_own(stream), status);
}

cuda_result cuStreamGetCaptureInfo_ptsz(cuda_stream stream, int *status, uint64_t *id)
{
    return cuStreamGetCaptureInfo(front_stream_own(stream), status, id);
}

cuda_result cuStreamGetCaptureInfo_v2_ptsz(cuda_stream stream, int *status, uint64_t *id,
                                           void **graph, const void **dependencies, size_t *count)
{
    return cuStreamGetCaptureInfo_v2(front_stream_own(stream), status, id, graph, dependencies,
                                     count);
}

cuda_result cuStreamGetCaptureInfo_v3_ptsz(cuda_stream stream, int *status, uint64_t *id,
                                           void **graph, const void **dependencies,
                                           const void **edges, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(front_stream_own(stream), status, id, graph, dependencies,
                                     edges, count);
}

cuda_result cuStreamWaitValue32_v2_ptsz(cuda_stream stream, cuda_device_ptr ptr, uint32_t value,
                                        unsigned flags)
{
    return cuStreamWaitValue32_v2(front_stream_own(stream), ptr, value, flags);
}

cuda_result cuStreamWaitValue64_v2_ptsz(cuda_stream stream, cuda_device_ptr ptr, uint64_t value,
                                        unsigned flags)
{
    return cuStreamWaitValue64_v2(front_stream_own(stream), ptr, value, flags);
}

cuda_result cuStreamWriteValue32_v2_ptsz(cuda_stream stream, cuda_device_ptr ptr, uint32_t value,
                                         unsigned flags)
{
    return cuStreamWriteValue32_v2(front_stream_own(stream), ptr, value, flags);
}

cuda_result cuStreamWriteValue64_v2_ptsz(cuda_stream stream, cuda_device_ptr ptr, uint64_t value,
                                         unsigned flags)
{
    return cuStreamWriteValue64_v2(front_stream_own(stream), ptr, value, flags);
}

cuda_result cuEventRecordWithFlags_ptsz(cuda_event event, cuda_stream stream, unsigned flags)
{
    return cuEventRecordWithFlags(event, front_stream_own(stream), flags);
}

cuda_result cuStreamBatchMemOp_v2_ptsz(cuda_stream stream, unsigned count, cuda_mem_op_params *ops,
                                       unsigned flags)
{
    return cuStreamBatchMemOp_v2(front_stream_own(stream), count, ops, flags);
}

cuda_result cuMemcpy3DBatchAsync_ptsz(size_t count, cuda_batch_3d *blocks, size_t *failed,
                                      unsigned long long flags, cuda_stream stream)
{
    return cuMemcpy3DBatchAsync(count, blocks, failed, flags, front_stream_own(stream));
}

cuda_result cuMemcpy3DBatchAsync_v2_ptsz(size_t count, cuda_batch_3d *blocks,
                                         unsigned long long flags, cuda_stream stream)
{
    return cuMemcpy3DBatchAsync_v2(count, blocks, flags, front_stream_own(stream));
}

cuda_result cuMemcpyBatchAsync_ptsz(cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes,
                                    size_t count, cuda_copy_attributes *attributes, size_t *firsts,
                                    size_t attribute_count, size_t *failed, cuda_stream stream)
{
    return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, firsts, attribute_count, failed,
                              front_stream_own(stream));
}

cuda_result cuMemcpyBatchAsync_v2_ptsz(cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes,
                                       size_t count, cuda_copy_attributes *attributes,
                                       size_t *firsts, size_t attribute_count, cuda_stream stream)
{
    return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attributes, firsts, attribute_count,
                                 front_stream_own(stream));
}
