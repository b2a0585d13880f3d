/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <string.h>

#include "client/cuda/runtime/registry.h"
#include "client/cuda/runtime/release.h"
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/base/runtime_pointer.h"
#include "client/cuda/runtime/runtime_exports.h"

enum { NO_DEVICE = -2 }; /* cudaInvalidDeviceId */

static cuda_device_ptr address(const void *ptr)
{
    return (cuda_device_ptr)(uintptr_t)ptr;
}

/* ---- allocating ------------------------------------------------------------------------- */

cudart_error cudaMalloc(void **ptr, size_t size)
{
    cuda_device_ptr allocated = 0;
    cudart_error error;

    ENTER();
    if (!ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = size > 0 ? DRIVER(cuMemAlloc, &allocated, size) : CUDART_OK;
    if (error == CUDART_OK)
        *ptr = (void *)(uintptr_t)allocated;
    return runtime_error_note(error);
}

/* cudaFree(0) is how programs have the context made. */
cudart_error cudaFree(void *ptr)
{
    ENTER();
    return runtime_error_note(ptr ? DRIVER(cuMemFree, address(ptr)) : CUDART_OK);
}

cudart_error cudaMallocManaged(void **ptr, size_t size, unsigned flags)
{
    cuda_device_ptr allocated = 0;
    cudart_error error;

    ENTER();
    if (!ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = DRIVER(cuMemAllocManaged, &allocated, size, flags);
    if (error == CUDART_OK)
        *ptr = (void *)(uintptr_t)allocated;
    return runtime_error_note(error);
}

cudart_error cudaHostAlloc(void **ptr, size_t size, unsigned flags)
{
    ENTER();
    if (!ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    if (size == 0) {
        *ptr = NULL;
        return CUDART_OK;
    }
    return runtime_error_note(DRIVER(cuMemHostAlloc, ptr, size, flags));
}

cudart_error cudaMallocHost(void **ptr, size_t size)
{
    return cudaHostAlloc(ptr, size, 0);
}

cudart_error cudaFreeHost(void *ptr)
{
    ENTER();
    return runtime_error_note(ptr ? DRIVER(cuMemFreeHost, ptr) : CUDART_OK);
}

cudart_error cudaHostRegister(void *ptr, size_t size, unsigned flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemHostRegister, ptr, size, flags));
}

cudart_error cudaHostUnregister(void *ptr)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemHostUnregister, ptr));
}

cudart_error cudaHostGetDevicePointer(void **device_ptr, void *host, unsigned flags)
{
    cuda_device_ptr found = 0;
    cudart_error error;

    ENTER();
    if (!device_ptr)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = DRIVER(cuMemHostGetDevicePointer, &found, host, flags);
    if (error == CUDART_OK)
        *device_ptr = (void *)(uintptr_t)found;
    return runtime_error_note(error);
}

cudart_error cudaHostGetFlags(unsigned *flags, void *host)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemHostGetFlags, flags, host));
}

cudart_error cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemGetInfo, free_bytes, total_bytes));
}

/* A value alone, which needs no texture and no device. */
struct cudart_channel_format cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
    return (struct cudart_channel_format){x, y, z, w, kind};
}

/* ---- copying ------------------------------------------------------------------------------ */

cudart_error cudaMemcpy(void *dst, const void *src, size_t size, int kind)
{
    cudart_error error;

    ENTER();
    switch (kind) {
    case CUDART_HOST_TO_DEVICE:
        error = DRIVER(cuMemcpyHtoD, address(dst), src, size);
        break;
    case CUDART_DEVICE_TO_HOST:
        error = DRIVER(cuMemcpyDtoH, dst, address(src), size);
        break;
    case CUDART_DEVICE_TO_DEVICE:
        error = DRIVER(cuMemcpyDtoD, address(dst), address(src), size);
        break;
    case CUDART_HOST_TO_HOST:
    case CUDART_MEMCPY_DEFAULT:
        error = DRIVER(cuMemcpy, address(dst), address(src), size);
        break;
    default:
        error = CUDART_INVALID_MEMCPY_DIRECTION;
    }
    return runtime_error_note(error);
}

cudart_error cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, cuda_stream stream)
{
    cudart_error error;

    ENTER();
    switch (kind) {
    case CUDART_HOST_TO_DEVICE:
        error = DRIVER(cuMemcpyHtoDAsync, address(dst), src, size, stream);
        break;
    case CUDART_DEVICE_TO_HOST:
        error = DRIVER(cuMemcpyDtoHAsync, dst, address(src), size, stream);
        break;
    case CUDART_DEVICE_TO_DEVICE:
        error = DRIVER(cuMemcpyDtoDAsync, address(dst), address(src), size, stream);
        break;
    case CUDART_HOST_TO_HOST:
    case CUDART_MEMCPY_DEFAULT:
        error = DRIVER(cuMemcpyAsync, address(dst), address(src), size, stream);
        break;
    default:
        error = CUDART_INVALID_MEMCPY_DIRECTION;
    }
    return runtime_error_note(error);
}

static cudart_error find_peers(int dst, int src, cuda_context *dst_context,
                               cuda_context *src_context)
{
    cudart_error error = runtime_context_primary(dst, dst_context);

    return error == CUDART_OK ? runtime_context_primary(src, src_context) : error;
}

cudart_error cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t size)
{
    cuda_context to, from;
    cudart_error error;

    ENTER();
    error = find_peers(dst_device, src_device, &to, &from);
    return runtime_error_note(error == CUDART_OK
                                  ? DRIVER(cuMemcpyPeer, address(dst), to, address(src), from, size)
                                  : error);
}

cudart_error cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                 size_t size, cuda_stream stream)
{
    cuda_context to, from;
    cudart_error error;

    ENTER();
    error = find_peers(dst_device, src_device, &to, &from);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpyPeerAsync, address(dst), to,
                                                          address(src), from, size, stream)
                                                 : error);
}

/* CUDA waits for no copy within the device. */
cudart_error cudaMemcpy_ptds(void *dst, const void *src, size_t size, int kind)
{
    cudart_error error = cudaMemcpyAsync(dst, src, size, kind, CUDA_STREAM_PER_THREAD);

    return error == CUDART_OK && kind != CUDART_DEVICE_TO_DEVICE
               ? cudaStreamSynchronize(CUDA_STREAM_PER_THREAD)
               : error;
}

cudart_error cudaMemset(void *dst, int value, size_t size)
{
    ENTER();
    return runtime_error_note(
        size > 0 ? DRIVER(cuMemsetD8, address(dst), (unsigned char)value, size) : CUDART_OK);
}

cudart_error cudaMemsetAsync(void *dst, int value, size_t size, cuda_stream stream)
{
    ENTER();
    return runtime_error_note(
        size > 0 ? DRIVER(cuMemsetD8Async, address(dst), (unsigned char)value, size, stream)
                 : CUDART_OK);
}

/* CUDA waits for no fill of the device's memory. */
cudart_error cudaMemset_ptds(void *dst, int value, size_t size)
{
    cudart_error error = cudaMemsetAsync(dst, value, size, CUDA_STREAM_PER_THREAD);

    return error == CUDART_OK && size > 0 && !runtime_pointer_is_of_device(dst)
               ? cudaStreamSynchronize(CUDA_STREAM_PER_THREAD)
               : error;
}

/* ---- variables of the program ------------------------------------------------------------- */

/* Where size bytes at the offset of a variable lie. */
static cudart_error symbol_range(const void *symbol, size_t size, size_t offset, char **place)
{
    cuda_context context;
    cuda_device_ptr start = 0;
    size_t bytes = 0;
    cudart_error error = runtime_context_enter(&context);

    if (error == CUDART_OK)
        error = registry_variable_place(symbol, context, &start, &bytes);
    if (error == CUDART_OK && (offset > bytes || size > bytes - offset))
        error = CUDART_INVALID_VALUE;
    *place = (char *)(uintptr_t)start + offset;
    return error;
}

static cudart_error check_kind(int kind, int against)
{
    return kind == against || kind == CUDART_HOST_TO_HOST ? CUDART_INVALID_MEMCPY_DIRECTION
                                                          : CUDART_OK;
}

typedef cudart_error (*copy_fn)(void *dst, const void *src, size_t size, int kind);

static cudart_error copy_to_symbol(const void *symbol, const void *src, size_t size, size_t offset,
                                   int kind, copy_fn copy)
{
    char *place;
    cudart_error error = symbol_range(symbol, size, offset, &place);

    if (error == CUDART_OK)
        error = check_kind(kind, CUDART_DEVICE_TO_HOST);
    return error == CUDART_OK ? copy(place, src, size, kind) : runtime_error_note(error);
}

static cudart_error copy_from_symbol(void *dst, const void *symbol, size_t size, size_t offset,
                                     int kind, copy_fn copy)
{
    char *place;
    cudart_error error = symbol_range(symbol, size, offset, &place);

    if (error == CUDART_OK)
        error = check_kind(kind, CUDART_HOST_TO_DEVICE);
    return error == CUDART_OK ? copy(dst, place, size, kind) : runtime_error_note(error);
}

cudart_error cudaMemcpyToSymbol(const void *symbol, const void *src, size_t size, size_t offset,
                                int kind)
{
    return copy_to_symbol(symbol, src, size, offset, kind, cudaMemcpy);
}

cudart_error cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t size,
                                     size_t offset, int kind)
{
    return copy_to_symbol(symbol, src, size, offset, kind, cudaMemcpy_ptds);
}

cudart_error cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t size, size_t offset,
                                  int kind)
{
    return copy_from_symbol(dst, symbol, size, offset, kind, cudaMemcpy);
}

cudart_error cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t size, size_t offset,
                                       int kind)
{
    return copy_from_symbol(dst, symbol, size, offset, kind, cudaMemcpy_ptds);
}

cudart_error cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t size,
                                     size_t offset, int kind, cuda_stream stream)
{
    char *place;
    cudart_error error = symbol_range(symbol, size, offset, &place);

    if (error == CUDART_OK)
        error = check_kind(kind, CUDART_DEVICE_TO_HOST);
    return error == CUDART_OK ? cudaMemcpyAsync(place, src, size, kind, stream)
                              : runtime_error_note(error);
}

cudart_error cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t size, size_t offset,
                                       int kind, cuda_stream stream)
{
    char *place;
    cudart_error error = symbol_range(symbol, size, offset, &place);

    if (error == CUDART_OK)
        error = check_kind(kind, CUDART_HOST_TO_DEVICE);
    return error == CUDART_OK ? cudaMemcpyAsync(dst, place, size, kind, stream)
                              : runtime_error_note(error);
}

cudart_error cudaGetSymbolAddress(void **ptr, const void *symbol)
{
    char *place;
    cudart_error error = ptr ? symbol_range(symbol, 0, 0, &place) : CUDART_INVALID_VALUE;

    if (error == CUDART_OK)
        *ptr = place;
    return runtime_error_note(error);
}

cudart_error cudaGetSymbolSize(size_t *size, const void *symbol)
{
    cuda_context context;
    cuda_device_ptr place;
    cudart_error error = size ? runtime_context_enter(&context) : CUDART_INVALID_VALUE;

    if (error == CUDART_OK)
        error = registry_variable_place(symbol, context, &place, size);
    return runtime_error_note(error);
}

/* ---- pointers ----------------------------------------------------------------------------- */

/* As of cuPointerGetAttributes, to which an address that CUDA does not know is no error. */
static cudart_error describe(const void *ptr, struct cudart_pointer_attributes *found)
{
    unsigned type = 0, managed = 0;
    cuda_device_ptr device_ptr = 0;
    void *host_ptr = NULL;
    int device = -1;
    cuda_pointer_attribute attributes[] = {CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_IS_MANAGED,
                                           CUDA_POINTER_DEVICE_POINTER, CUDA_POINTER_HOST_POINTER,
                                           CUDA_POINTER_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &device_ptr, &host_ptr, &device};
    cudart_error error = DRIVER(cuPointerGetAttributes, sizeof(attributes) / sizeof(attributes[0]),
                                attributes, values, address(ptr));

    if (error != CUDART_OK)
        return error;
    *found = (struct cudart_pointer_attributes){.type = managed ? CUDART_MEMORY_MANAGED : (int)type,
                                                .device = device,
                                                .device_ptr = (void *)(uintptr_t)device_ptr,
                                                .host_ptr = host_ptr};
    /* The type's numbers are the driver's; one that it does not have is ordinary memory. */
    if (type != CUDA_MEMORYTYPE_HOST && type != CUDA_MEMORYTYPE_DEVICE && !managed)
        *found = (struct cudart_pointer_attributes){.type = CUDART_MEMORY_UNREGISTERED,
                                                    .device = NO_DEVICE,
                                                    .host_ptr = (void *)(uintptr_t)ptr};
    return CUDART_OK;
}

cudart_error cudaPointerGetAttributes(void *attributes, const void *ptr)
{
    struct cudart_pointer_attributes found;
    cudart_error error;

    ENTER();
    if (!attributes)
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = describe(ptr, &found);
    if (error == CUDART_OK) {
        memset(attributes, 0, release_pointer_bytes);
        memcpy(attributes, &found, sizeof(found));
    }
    return runtime_error_note(error);
}
