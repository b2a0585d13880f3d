/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Managed memory: hints about its place. CUDA 12 names a place by a device's number, and CUDA 13 by
 * a location. */
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/release.h"
#include "client/cuda/runtime/runtime_exports.h"

cuda_mem_location managed_api_place(int device)
{
    enum { CPU = -1 }; /* cudaCpuDeviceId */

    return device == CPU ? (cuda_mem_location){CUDA_MEM_LOCATION_HOST, 0}
                         : (cuda_mem_location){CUDA_MEM_LOCATION_DEVICE, device};
}

cudart_error managed_api_prefetch(const void *ptr, size_t size, cuda_mem_location place,
                                  unsigned flags, cuda_stream stream)
{
    ENTER();
    return runtime_error_note(
        DRIVER(cuMemPrefetchAsync, (cuda_device_ptr)(uintptr_t)ptr, size, place, flags, stream));
}

cudart_error managed_api_advise(const void *ptr, size_t size, int advice, cuda_mem_location place)
{
    ENTER();
    return runtime_error_note(
        DRIVER(cuMemAdvise, (cuda_device_ptr)(uintptr_t)ptr, size, advice, place));
}

cudart_error cudaMemRangeGetAttribute(void *data, size_t data_size, int attribute, const void *ptr,
                                      size_t size)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemRangeGetAttribute, data, data_size, attribute,
                                     (cuda_device_ptr)(uintptr_t)ptr, size));
}

cudart_error cudaMemRangeGetAttributes(void **data, size_t *data_sizes, int *attributes,
                                       size_t count, const void *ptr, size_t size)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemRangeGetAttributes, data, data_sizes, attributes, count,
                                     (cuda_device_ptr)(uintptr_t)ptr, size));
}

cudart_error cudaStreamAttachMemAsync(cuda_stream stream, void *ptr, size_t size, unsigned flags)
{
    ENTER();
    return runtime_error_note(
        DRIVER(cuStreamAttachMemAsync, stream, (cuda_device_ptr)(uintptr_t)ptr, size, flags));
}
