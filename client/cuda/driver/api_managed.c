/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory of both sides. It lies in the host's memory, which the device reaches at the same address,
 * so no page ever moves: kernels go over the bus for it, and it counts as the client's pinned
 * memory. Advice has no effect.
 */
#include <stdint.h>

#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"

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
    gpushare_connection *connection;
    void *buffer;
    if (!ptr || !size || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_connection(&connection));
    DRIVER_TRY(driver_result(memory_managed_alloc(connection, size, &buffer)));
    *ptr = (uint64_t)(uintptr_t)buffer;
    return CUDA_OK;
}

/* A range within one managed allocation of the current context. */
static cuda_result check_range(cuda_device_ptr ptr, size_t size)
{
    gpushare_connection *connection;
    struct allocation found;
    DRIVER_TRY(driver_context_connection(&connection));
    if (!size || !allocation_find(&connection->allocations, ptr, &found) ||
        found.kind != ALLOCATION_MANAGED || size > found.asked - (ptr - found.address))
        return CUDA_ERR_INVALID_VALUE;
    return CUDA_OK;
}

static cuda_result check_place(cuda_mem_location place)
{
    struct driver_device *device;
    if (place.type == CUDA_MEM_LOCATION_DEVICE)
        return driver_device_get(place.id, &device);
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
    gpushare_connection *connection;
    if (flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_connection(stream, &connection));
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
    gpushare_connection *connection;
    DRIVER_TRY(driver_stream_connection(stream, &connection));
    if (flags != ATTACH_GLOBAL && flags != ATTACH_HOST && flags != ATTACH_SINGLE)
        return CUDA_ERR_INVALID_VALUE;
    return check_range(ptr, size ? size : 1);
}

cuda_result cuMemPrefetchAsync_ptsz(cuda_device_ptr ptr, size_t size, cuda_device device,
                                    cuda_stream stream)
{
    return cuMemPrefetchAsync(ptr, size, device, driver_stream_own(stream));
}

cuda_result cuMemPrefetchAsync_v2_ptsz(cuda_device_ptr ptr, size_t size, cuda_mem_location place,
                                       unsigned flags, cuda_stream stream)
{
    return cuMemPrefetchAsync_v2(ptr, size, place, flags, driver_stream_own(stream));
}

cuda_result cuStreamAttachMemAsync_ptsz(cuda_stream stream, cuda_device_ptr ptr, size_t size,
                                        unsigned flags)
{
    return cuStreamAttachMemAsync(driver_stream_own(stream), ptr, size, flags);
}
