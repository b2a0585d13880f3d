/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/release.h"

#include "client/cuda/runtime/device_properties.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

__attribute__((constructor)) static void set_release(void)
{
    release_number = 12090;
    release_pointer_bytes = sizeof(struct cudart_pointer_attributes);
}

cudart_error cudaGetDeviceProperties_v2(void *properties, int ordinal)
{
    return runtime_error_note(device_properties_12(properties, ordinal));
}

/* ---- places are devices' numbers ---- */

RELEASE_FORM(cudaMemPrefetchAsync, (const void *ptr, size_t size, int device, cuda_stream stream),
             (ptr, size, device, release_own_stream(stream)))
{
    return managed_api_prefetch(ptr, size, managed_api_place(device), 0, stream);
}

cudart_error cudaMemPrefetchAsync_v2(const void *ptr, size_t size, cuda_mem_location place,
                                     unsigned flags, cuda_stream stream)
{
    return managed_api_prefetch(ptr, size, place, flags, stream);
}

cudart_error cudaMemPrefetchAsync_v2_ptsz(const void *ptr, size_t size, cuda_mem_location place,
                                          unsigned flags, cuda_stream stream)
{
    return cudaMemPrefetchAsync_v2(ptr, size, place, flags, release_own_stream(stream));
}

RELEASE(cudaMemAdvise, (const void *ptr, size_t size, int advice, int device))
{
    return managed_api_advise(ptr, size, advice, managed_api_place(device));
}

cudart_error cudaMemAdvise_v2(const void *ptr, size_t size, int advice, cuda_mem_location place)
{
    return managed_api_advise(ptr, size, advice, place);
}

/* ---- each form has more of a capture ---- */

RELEASE_FORM(cudaStreamGetCaptureInfo, (cuda_stream stream, int *status, unsigned long long *id),
             (release_own_stream(stream), status, id))
{
    (void)id;
    return stream_api_capture(stream, status);
}

cudart_error cudaStreamGetCaptureInfo_v2(cuda_stream stream, int *status, unsigned long long *id,
                                         void **graph, const void **dependencies, size_t *count)
{
    (void)id, (void)graph, (void)dependencies, (void)count;
    return stream_api_capture(stream, status);
}

cudart_error cudaStreamGetCaptureInfo_v3(cuda_stream stream, int *status, unsigned long long *id,
                                         void **graph, const void **dependencies,
                                         const void **edges, size_t *count)
{
    (void)id, (void)graph, (void)dependencies, (void)edges, (void)count;
    return stream_api_capture(stream, status);
}

cudart_error cudaStreamGetCaptureInfo_v2_ptsz(cuda_stream stream, int *status,
                                              unsigned long long *id, void **graph,
                                              const void **dependencies, size_t *count)
{
    return cudaStreamGetCaptureInfo_v2(release_own_stream(stream), status, id, graph, dependencies,
                                       count);
}

cudart_error cudaStreamGetCaptureInfo_v3_ptsz(cuda_stream stream, int *status,
                                              unsigned long long *id, void **graph,
                                              const void **dependencies, const void **edges,
                                              size_t *count)
{
    return cudaStreamGetCaptureInfo_v3(release_own_stream(stream), status, id, graph, dependencies,
                                       edges, count);
}

/* ---- a batch says which copy failed ---- */

RELEASE_FORM(cudaMemcpyBatchAsync,
             (void **dsts, void **srcs, size_t *sizes, size_t count,
              cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count,
              size_t *failed, cuda_stream stream),
             (dsts, srcs, sizes, count, attributes, firsts, attribute_count, failed,
              release_own_stream(stream)))
{
    return block_api_batch(&(struct runtime_batch){dsts, (const void *const *)srcs, sizes, count,
                                                   attributes, firsts, attribute_count, failed},
                           stream);
}

RELEASE_FORM(cudaMemcpy3DBatchAsync,
             (size_t count, cuda_batch_3d *blocks, size_t *failed, unsigned long long flags,
              cuda_stream stream),
             (count, blocks, failed, flags, release_own_stream(stream)))
{
    return block_api_blocks(count, blocks, failed, flags, stream);
}

/* ---- older names ---- */

cudart_error cudaEventElapsedTime_v2(float *milliseconds, cuda_event start, cuda_event end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}

cudart_error cudaThreadExit(void)
{
    return cudaDeviceReset();
}

cudart_error cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

cudart_error cudaThreadGetLimit(size_t *value, int limit)
{
    return cudaDeviceGetLimit(value, limit);
}

cudart_error cudaThreadSetLimit(int limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

cudart_error cudaThreadGetCacheConfig(int *config)
{
    return cudaDeviceGetCacheConfig(config);
}

cudart_error cudaThreadSetCacheConfig(int config)
{
    return cudaDeviceSetCacheConfig(config);
}
