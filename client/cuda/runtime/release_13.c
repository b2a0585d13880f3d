/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/release.h"

#include "client/cuda/runtime/device_properties.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"

__attribute__((constructor)) static void set_release(void)
{
    enum { RESERVED_BYTES = 64 };
    release_number = 13000;
    release_pointer_bytes = sizeof(struct cudart_pointer_attributes) + RESERVED_BYTES;
}

cudart_error cudaGetDeviceProperties(void *properties, int ordinal)
{
    return runtime_error_note(device_properties_13(properties, ordinal));
}

RELEASE_FORM(cudaMemPrefetchAsync,
             (const void *ptr, size_t size, cuda_mem_location place, unsigned flags,
              cuda_stream stream),
             (ptr, size, place, flags, release_own_stream(stream)))
{
    return managed_api_prefetch(ptr, size, place, flags, stream);
}

RELEASE(cudaMemAdvise, (const void *ptr, size_t size, int advice, cuda_mem_location place))
{
    return managed_api_advise(ptr, size, advice, place);
}

RELEASE_FORM(cudaStreamGetCaptureInfo,
             (cuda_stream stream, int *status, unsigned long long *id, void **graph,
              const void **dependencies, const void **edges, size_t *count),
             (release_own_stream(stream), status, id, graph, dependencies, edges, count))
{
    (void)id, (void)graph, (void)dependencies, (void)edges, (void)count;
    return stream_api_capture(stream, status);
}

RELEASE_FORM(cudaMemcpy3DBatchAsync,
             (size_t count, cuda_batch_3d *blocks, unsigned long long flags, cuda_stream stream),
             (count, blocks, flags, release_own_stream(stream)))
{
    return block_api_blocks(count, blocks, NULL, flags, stream);
}

RELEASE_FORM(cudaMemcpyBatchAsync,
             (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
              cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count,
              cuda_stream stream),
             (dsts, srcs, sizes, count, attributes, firsts, attribute_count,
              release_own_stream(stream)))
{
    return block_api_batch(&(struct runtime_batch){dsts, srcs, sizes, count, attributes, firsts,
                                                   attribute_count, NULL},
                           stream);
}
