/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory of both sides. It lies where host and device reach it at one address, so no page ever
 * moves. Advice has no effect.
 */
#include <stdint.h>

#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

enum {
    ATTACH_GLOBAL = 1,
    ATTACH_HOST = 2,
    ATTACH_SINGLE = 4,
    ADVICE_LAST = 6,
    DEVICE_CPU = -1,
    LOCATION_NUMA = 3, /* and the next one, of the caller's own */
};

cuda_result cuMemAllocManaged(cuda_device_ptr *ptr, size_t size, unsigned flags)
{
    cuda_context context;
    if (!ptr || !size || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_check(NULL, &context));
    return front_managed_alloc(ptr, size);
}

/* A range within one managed allocation of the current context. */
static cuda_result check_range(cuda_device_ptr ptr, size_t size)
{
    cuda_context context;
    struct front_memory found;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (!size || !front_memory_find(ptr, &found) || found.kind != FRONT_MANAGED ||
        found.device != context->device || size > found.bytes - (ptr - found.address))
        return CUDA_ERR_INVALID_VALUE;
    return CUDA_OK;
}

static cuda_result check_place(cuda_mem_location place)
{
    cuda_device device;
    if (place.type == CUDA_MEM_LOCATION_DEVICE)
        return cuDeviceGet(&device, place.id);
    return place.type == CUDA_MEM_LOCATION_HOST || (int)place.type == LOCATION_NUMA ||
                   (int)place.type == LOCATION_NUMA + 1
               ? CUDA_OK
               : CUDA_ERR_INVALID_VALUE;
}

static cuda_mem_location place_of(cuda_device device)
{
    return device == DEVICE_CPU ? (cuda_mem_location){CUDA_MEM_LOCATION_HOST, 0}
                                : (cuda_mem_location){CUDA_MEM_LOCATION_DEVICE, device};
}

/* The memory is where both sides reach it already. */
cuda_result cuMemPrefetchAsync_v2(cuda_device_ptr ptr, size_t size, cuda_mem_location place,
                                  unsigned flags, cuda_stream stream)
{
    struct front_stream found;
    if (flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(stream, &found));
    DRIVER_TRY(check_place(place));
    return check_range(ptr, size);
}

cuda_result cuMemPrefetchAsync(cuda_device_ptr ptr, size_t size, cuda_device device,
                               cuda_stream stream)
{
    return cuMemPrefetchAsync_v2(ptr, size, place_of(device), 0, stream);
}

cuda_result cuMemAdvise_v2(cuda_device_ptr ptr, size_t size, int advice, cuda_mem_location place)
{
    enum { READ_MOSTLY_LAST = 2, UNSET_PREFERRED = 4 }; /* advice without a place */
    if (advice < 1 || advice > ADVICE_LAST)
        return CUDA_ERR_INVALID_VALUE;
    if (advice > READ_MOSTLY_LAST && advice != UNSET_PREFERRED)
        DRIVER_TRY(check_place(place));
    return check_range(ptr, size);
}

cuda_result cuMemAdvise(cuda_device_ptr ptr, size_t size, int advice, cuda_device device)
{
    return cuMemAdvise_v2(ptr, size, advice, place_of(device));
}

/* Attaching limits who may use the memory when; both sides always may here. */
cuda_result cuStreamAttachMemAsync(cuda_stream stream, cuda_device_ptr ptr, size_t size,
                                   unsigned flags)
{
    struct front_stream found;
    DRIVER_TRY(front_stream_find(stream, &found));
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST && flags != ATTACH_SINGLE)
        return CUDA_ERR_INVALID_VALUE;
    return check_range(ptr, size ? size : 1);
}

cuda_result cuMemPrefetchAsync_ptsz(cuda_device_ptr ptr, size_t size, cuda_device device,
                                    cuda_stream stream)
{
    return cuMemPrefetchAsync(ptr, size, device, front_stream_own(stream));
}

cuda_result cuMemPrefetchAsync_v2_ptsz(cuda_device_ptr ptr, size_t size, cuda_mem_location place,
                                       unsigned flags, cuda_stream stream)
{
    return cuMemPrefetchAsync_v2(ptr, size, place, flags, front_stream_own(stream));
}

cuda_result cuStreamAttachMemAsync_ptsz(cuda_stream stream, cuda_device_ptr ptr, size_t size,
                                        unsigned flags)
{
    return cuStreamAttachMemAsync(front_stream_own(stream), ptr, size, flags);
}
