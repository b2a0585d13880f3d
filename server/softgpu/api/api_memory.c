/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory: virtual memory management, plain and host allocations, copies, fills.
 */
#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"
#include "common/cuda/sync_memory.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/cost.h"
#include "server/softgpu/device/engine.h"
#include "server/softgpu/device/enqueue.h"
#include "server/softgpu/device/grid.h"
#include "server/softgpu/memory/memory.h"

/* ---- virtual memory management: needs no context ------------------------------------- */

cuda_result cuMemGetAllocationGranularity(size_t *bytes, const cuda_mem_allocation_prop *prop,
                                          cuda_mem_granularity option)
{
    DRIVER_TRY(device_check());
    if (!bytes || !prop ||
        (option != CUDA_MEM_GRANULARITY_MINIMUM && option != CUDA_MEM_GRANULARITY_RECOMMENDED))
        return CUDA_ERR_INVALID_VALUE;
    *bytes = MEMORY_GRANULARITY;
    return CUDA_OK;
}

cuda_result cuMemAddressReserve(cuda_device_ptr *ptr, size_t size, size_t alignment,
                                cuda_device_ptr hint, unsigned long long flags)
{
    DRIVER_TRY(device_check());
    return flags == 0 ? memory_reserve(ptr, size, alignment, hint) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemAddressFree(cuda_device_ptr ptr, size_t size)
{
    DRIVER_TRY(device_check());
    return memory_unreserve(ptr, size);
}

cuda_result cuMemCreate(cuda_mem_handle *handle, size_t size, const cuda_mem_allocation_prop *prop,
                        unsigned long long flags)
{
    DRIVER_TRY(device_check());
    return flags == 0 ? memory_create(handle, size, prop) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemRelease(cuda_mem_handle handle)
{
    DRIVER_TRY(device_check());
    return memory_release(handle);
}

cuda_result cuMemMap(cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle,
                     unsigned long long flags)
{
    cuda_result result;

    DRIVER_TRY(device_check());
    if (flags != 0)
        return CUDA_ERR_INVALID_VALUE;
    context_lock_call_all(CONTEXT_CALL_MAP);
    result = memory_map(ptr, size, offset, handle);
    context_lock_release_all();
    return result;
}

/* A mapping does not show which device's kernels use it, so all devices have to become idle. */
static void await_all_devices(void)
{
    engine_lock();
    for (int i = 0; device_at(i); i++)
        stream_await_device(device_at(i));
    engine_unlock();
}

cuda_result cuMemUnmap(cuda_device_ptr ptr, size_t size)
{
    cuda_result result;

    DRIVER_TRY(device_check());
    context_lock_call_all(CONTEXT_CALL_UNMAP);
    if (device_settings()->unmap_waits)
        await_all_devices();
    result = memory_unmap(ptr, size);
    context_lock_release_all();
    return result;
}

cuda_result cuMemSetAccess(cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc,
                           size_t count)
{
    cuda_result result;

    DRIVER_TRY(device_check());
    context_lock_call_all(CONTEXT_CALL_SET_ACCESS);
    result = memory_set_access(ptr, size, desc, count);
    context_lock_release_all();
    return result;
}

cuda_result cuMemExportToShareableHandle(void *shareable, cuda_mem_handle handle,
                                         cuda_mem_handle_type type, unsigned long long flags)
{
    DRIVER_TRY(device_check());
    if (type != CUDA_MEM_HANDLE_POSIX_FD)
        return CUDA_ERR_NOT_SUPPORTED;
    return flags == 0 ? memory_export(shareable, handle) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemImportFromShareableHandle(cuda_mem_handle *handle, void *os_handle,
                                           cuda_mem_handle_type type)
{
    DRIVER_TRY(device_check());
    if (type != CUDA_MEM_HANDLE_POSIX_FD)
        return CUDA_ERR_NOT_SUPPORTED;
    return memory_import(handle, (int)(intptr_t)os_handle);
}

/* ---- plain and host allocations ---------------------------------------------------------- */

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    struct device *device;
    uint64_t left, total;

    DRIVER_TRY(api_current(&device));
    memory_info(device->ordinal, &left, &total);
    if (free_bytes)
        *free_bytes = left;
    if (total_bytes)
        *total_bytes = total;
    return CUDA_OK;
}

static cuda_result alloc(struct device *device, cuda_device_ptr *ptr, size_t size, bool managed)
{
    cuda_result result;

    context_lock_call(device, CONTEXT_CALL_ALLOC);
    result = memory_program_alloc(device->ordinal, ptr, size, managed);
    context_lock_release(device);
    return result;
}

cuda_result api_memory_alloc(struct device *device, cuda_device_ptr *ptr, size_t size)
{
    return alloc(device, ptr, size, false);
}

/* If memory is short, the pools' freed blocks are given back first. */
static cuda_result alloc_or_collect(cuda_device_ptr *ptr, size_t size, bool managed)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    result = alloc(device, ptr, size, managed);
    if (result == CUDA_ERR_OUT_OF_MEMORY && driver_pool_keeps() &&
        driver_pool_give_back(device_visible(device->ordinal)))
        result = alloc(device, ptr, size, managed);
    return result;
}

cuda_result cuMemAlloc_v2(cuda_device_ptr *ptr, size_t size)
{
    return alloc_or_collect(ptr, size, false);
}

/* Host and device reach the same bytes at one address anyway, so nothing has to move. */
cuda_result front_managed_alloc(cuda_device_ptr *ptr, size_t bytes)
{
    return alloc_or_collect(ptr, bytes, true);
}

/* Taking memory away waits for the work in flight, which may use it, as on hardware. With the
 * context's lock the call itself waits, as its class says. */
static cuda_result await_work(struct device *device)
{
    return device_settings()->context_lock ? CUDA_OK : api_await(device);
}

cuda_result cuMemFree_v2(cuda_device_ptr ptr)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    if (ptr == 0)
        return CUDA_OK;
    if (!driver_pool_disown(ptr))
        return CUDA_ERR_INVALID_VALUE;
    sync_memory_forget(ptr);
    DRIVER_TRY(await_work(device));
    context_lock_call(device, CONTEXT_CALL_FREE);
    result = device_check();
    if (result == CUDA_OK)
        result = memory_free(ptr);
    context_lock_release(device);
    return result;
}

cuda_result cuMemHostRegister_v2(void *ptr, size_t size, unsigned flags)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    context_lock_call(device, CONTEXT_CALL_REGISTER);
    result = memory_host_register(ptr, size, flags);
    if (result == CUDA_OK)
        cost_pay_registration(size);
    context_lock_release(device);
    return result;
}

cuda_result cuMemHostUnregister(void *ptr)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    DRIVER_TRY(await_work(device));
    context_lock_call(device, CONTEXT_CALL_UNREGISTER);
    result = memory_host_unregister(ptr);
    context_lock_release(device);
    return result;
}

cuda_result cuMemHostAlloc(void **ptr, size_t size, unsigned flags)
{
    const unsigned known =
        CUDA_HOST_ALLOC_PORTABLE | CUDA_HOST_ALLOC_DEVICEMAP | CUDA_HOST_ALLOC_WRITECOMBINED;
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    if (flags & ~known)
        return CUDA_ERR_INVALID_VALUE;
    context_lock_call(device, CONTEXT_CALL_ALLOC_HOST);
    result = memory_host_alloc(ptr, size);
    if (result == CUDA_OK)
        cost_pay_registration(size);
    context_lock_release(device);
    return result;
}

cuda_result cuMemAllocHost_v2(void **ptr, size_t size)
{
    return cuMemHostAlloc(ptr, size, 0);
}

cuda_result cuMemFreeHost(void *ptr)
{
    struct device *device;
    cuda_result result;

    DRIVER_TRY(api_current(&device));
    DRIVER_TRY(await_work(device));
    context_lock_call(device, CONTEXT_CALL_FREE_HOST);
    result = memory_host_free(ptr);
    context_lock_release(device);
    return result;
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Host memory that was registered piece by piece is no one range to the driver: it looks up the
 * registration that holds the first byte. */
static bool leaves_registration(const struct memory_place *place, uint64_t address, size_t size)
{
    return place->host && device_settings()->whole_registrations && size > place->end - address;
}

static cuda_result find_side(enum front_side kind, uint64_t address, size_t size, uint32_t access,
                             struct memory_side *side, bool *host)
{
    struct memory_place place;
    bool found = memory_locate(address, &place);

    if (address == 0 || (kind == FRONT_SIDE_DEVICE && !found))
        return CUDA_ERR_INVALID_VALUE;
    /* Memory that we know must allow the whole access. Other memory is ordinary memory of the
     * caller's, which is read and written as it is. */
    if (found &&
        (!memory_accessible(address, size, access) || leaves_registration(&place, address, size)))
        return CUDA_ERR_INVALID_VALUE;
    *side = (struct memory_side){.address = address, .checked = found};
    *host = !found || place.host;
    return CUDA_OK;
}

/*
 * Queues the copy. *pageable says whether ordinary host memory takes part. Then the call must not
 * return before the copy is done.
 */
static cuda_result submit_copy(struct stream *stream, const struct front_copy *copy, bool *pageable)
{
    struct memory_side to, from;
    bool to_host, from_host;
    struct device *device = stream->device;
    struct operation *op;

    DRIVER_TRY(find_side(copy->dst_side, copy->dst, copy->size, MEMORY_WRITE, &to, &to_host));
    DRIVER_TRY(find_side(copy->src_side, copy->src, copy->size, MEMORY_READ, &from, &from_host));
    *pageable = !to.checked || !from.checked;
    op = stream_operation_create(OPERATION_COPY);
    if (!op)
        return CUDA_ERR_OUT_OF_MEMORY;
    op->copy.to = to;
    op->copy.from = from;
    op->copy.bytes = copy->size;
    if (to_host || from_host) {
        unsigned direction = to_host && device_profile()->copy_engines > 1 ? 1 : 0;

        op->copy.engine = &device->copy[direction];
        op->copy.stats = &device->stats->copy[direction];
    }
    return enqueue_operation(stream, op);
}

static cuda_result await_stream(struct stream *stream)
{
    cuda_result result;

    engine_lock();
    result = stream_await(stream);
    engine_unlock();
    return result;
}

cuda_result front_copy(const struct front_copy *copy, cuda_stream handle, bool wait)
{
    struct stream *stream;
    bool pageable = false;

    DRIVER_TRY(api_stream(handle, &stream));
    if (copy->size == 0)
        return CUDA_OK;
    DRIVER_TRY(submit_copy(stream, copy, &pageable));
    return wait || pageable ? await_stream(stream) : CUDA_OK;
}

/* ---- fills ------------------------------------------------------------------------------------
 */

/* Returns NULL without memory. */
static struct operation *create_fill(const struct fill *fill)
{
    const bool kernel = device_settings()->fill_kernels != 0;
    struct operation *op = stream_operation_create(kernel ? OPERATION_KERNEL : OPERATION_FILL);

    if (op && kernel) {
        op->grid = grid_create_fill(fill);
        if (op->grid)
            return op;
        stream_operation_unref(op);
        return NULL;
    }
    if (op)
        op->fill = *fill;
    return op;
}

cuda_result front_fill(const struct front_fill *fill, cuda_stream handle, bool wait)
{
    struct memory_place place;
    struct stream *stream;
    struct operation *op;
    size_t size;

    DRIVER_TRY(api_stream(handle, &stream));
    if (fill->count == 0)
        return CUDA_OK;
    if (fill->dst % fill->width != 0 || __builtin_mul_overflow(fill->count, fill->width, &size) ||
        !memory_accessible(fill->dst, size, MEMORY_WRITE) || !memory_locate(fill->dst, &place) ||
        leaves_registration(&place, fill->dst, size))
        return CUDA_ERR_INVALID_VALUE;
    op = create_fill(&(struct fill){fill->dst, fill->count, fill->value, fill->width});
    if (!op)
        return CUDA_ERR_OUT_OF_MEMORY;
    DRIVER_TRY(enqueue_operation(stream, op));
    return wait && (place.host || place.managed || sync_memory_waits(fill->dst))
               ? await_stream(stream)
               : CUDA_OK;
}
