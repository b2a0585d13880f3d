/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Blocks of memory: rows at a distance of a pitch, and planes of rows. The driver copies and fills
 * them. */
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/base/runtime_pointer.h"
#include "client/cuda/runtime/release.h"
#include "client/cuda/runtime/runtime_exports.h"

static cuda_device_ptr address(const void *ptr)
{
    return (cuda_device_ptr)(uintptr_t)ptr;
}

/* ---- allocating ------------------------------------------------------------------------- */

static cudart_error alloc_rows(void **ptr, size_t *pitch, size_t width, size_t rows)
{
    enum { ELEMENT = 4 }; /* bytes; the driver takes 4, 8 or 16, and its pitch suits all of them */
    cuda_device_ptr allocated = 0;
    cudart_error error;

    if (width == 0 || rows == 0) {
        *ptr = NULL;
        *pitch = 0;
        return CUDART_OK;
    }
    error = DRIVER(cuMemAllocPitch, &allocated, pitch, width, rows, ELEMENT);
    if (error == CUDART_OK)
        *ptr = (void *)(uintptr_t)allocated;
    return error;
}

cudart_error cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    ENTER();
    if (!ptr || !pitch)
        return runtime_error_note(CUDART_INVALID_VALUE);
    return runtime_error_note(alloc_rows(ptr, pitch, width, height));
}

cudart_error cudaMalloc3D(struct cudart_pitched_ptr *block, struct cudart_extent extent)
{
    struct cudart_pitched_ptr made = {.row_bytes = extent.width, .rows = extent.height};
    size_t rows;
    cudart_error error;

    ENTER();
    if (!block || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return runtime_error_note(CUDART_INVALID_VALUE);
    error = alloc_rows(&made.ptr, &made.pitch, extent.width, rows);
    if (error == CUDART_OK)
        *block = made;
    return runtime_error_note(error);
}

/* ---- copying ------------------------------------------------------------------------------ */

/* The driver's words for the two sides of a kind of copy. */
static cudart_error find_types(int kind, int *src, int *dst)
{
    const bool from_host = kind == CUDART_HOST_TO_DEVICE || kind == CUDART_HOST_TO_HOST;
    const bool to_host = kind == CUDART_DEVICE_TO_HOST || kind == CUDART_HOST_TO_HOST;

    if (kind < CUDART_HOST_TO_HOST || kind > CUDART_MEMCPY_DEFAULT)
        return CUDART_INVALID_MEMCPY_DIRECTION;
    *src = from_host ? CUDA_MEMORYTYPE_HOST : CUDA_MEMORYTYPE_DEVICE;
    *dst = to_host ? CUDA_MEMORYTYPE_HOST : CUDA_MEMORYTYPE_DEVICE;
    if (kind == CUDART_MEMCPY_DEFAULT)
        *src = *dst = CUDA_MEMORYTYPE_UNIFIED;
    return CUDART_OK;
}

static cudart_error describe_2d(cuda_memcpy_2d *copy, void *dst, size_t dst_pitch, const void *src,
                                size_t src_pitch, size_t width, size_t height, int kind)
{
    *copy = (cuda_memcpy_2d){.src_host = src,
                             .src_device = address(src),
                             .src_pitch = src_pitch,
                             .dst_host = dst,
                             .dst_device = address(dst),
                             .dst_pitch = dst_pitch,
                             .width = width,
                             .height = height};
    if (width > src_pitch || width > dst_pitch)
        return CUDART_INVALID_PITCH;
    return find_types(kind, &copy->src_type, &copy->dst_type);
}

cudart_error cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                          size_t width, size_t height, int kind)
{
    cuda_memcpy_2d copy;
    cudart_error error;

    ENTER();
    error = describe_2d(&copy, dst, dst_pitch, src, src_pitch, width, height, kind);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy2DUnaligned, &copy) : error);
}

cudart_error cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                               size_t width, size_t height, int kind, cuda_stream stream)
{
    cuda_memcpy_2d copy;
    cudart_error error;

    ENTER();
    error = describe_2d(&copy, dst, dst_pitch, src, src_pitch, width, height, kind);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy2DAsync, &copy, stream) : error);
}

/* An error of the copy, or what waiting for it returns. CUDA waits for no copy within the device.
 */
static cudart_error wait_unless(bool within_device, cudart_error error)
{
    return error == CUDART_OK && !within_device ? cudaStreamSynchronize(CUDA_STREAM_PER_THREAD)
                                                : error;
}

cudart_error cudaMemcpy2D_ptds(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                               size_t width, size_t height, int kind)
{
    return wait_unless(kind == CUDART_DEVICE_TO_DEVICE,
                       cudaMemcpy2DAsync(dst, dst_pitch, src, src_pitch, width, height, kind,
                                         CUDA_STREAM_PER_THREAD));
}

/* Arrays are textures' memory, which is not carried. Without them an extent's width is in bytes. */
static cudart_error describe_3d(cuda_memcpy_3d *copy, const struct cudart_memcpy_3d *wanted)
{
    if (!wanted)
        return CUDART_INVALID_VALUE;
    if (wanted->src_array || wanted->dst_array)
        return CUDART_NOT_SUPPORTED;
    *copy = (cuda_memcpy_3d){.src_x = wanted->src_pos.x,
                             .src_y = wanted->src_pos.y,
                             .src_z = wanted->src_pos.z,
                             .src_host = wanted->src.ptr,
                             .src_device = address(wanted->src.ptr),
                             .src_pitch = wanted->src.pitch,
                             .src_height = wanted->src.rows,
                             .dst_x = wanted->dst_pos.x,
                             .dst_y = wanted->dst_pos.y,
                             .dst_z = wanted->dst_pos.z,
                             .dst_host = wanted->dst.ptr,
                             .dst_device = address(wanted->dst.ptr),
                             .dst_pitch = wanted->dst.pitch,
                             .dst_height = wanted->dst.rows,
                             .width = wanted->extent.width,
                             .height = wanted->extent.height,
                             .depth = wanted->extent.depth};
    return find_types(wanted->kind, &copy->src_type, &copy->dst_type);
}

cudart_error cudaMemcpy3D(const struct cudart_memcpy_3d *wanted)
{
    cuda_memcpy_3d copy;
    cudart_error error;

    ENTER();
    error = describe_3d(&copy, wanted);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy3D, &copy) : error);
}

cudart_error cudaMemcpy3DAsync(const struct cudart_memcpy_3d *wanted, cuda_stream stream)
{
    cuda_memcpy_3d copy;
    cudart_error error;

    ENTER();
    error = describe_3d(&copy, wanted);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy3DAsync, &copy, stream) : error);
}

cudart_error cudaMemcpy3D_ptds(const struct cudart_memcpy_3d *wanted)
{
    return wait_unless(wanted && wanted->kind == CUDART_DEVICE_TO_DEVICE,
                       cudaMemcpy3DAsync(wanted, CUDA_STREAM_PER_THREAD));
}

/* ---- copying between devices ---- */

static cudart_error describe_peer(cuda_memcpy_3d *copy, const struct cudart_memcpy_3d_peer *wanted)
{
    cudart_error error;

    if (!wanted)
        return CUDART_INVALID_VALUE;
    error = describe_3d(copy, &(struct cudart_memcpy_3d){.src_array = wanted->src_array,
                                                         .src_pos = wanted->src_pos,
                                                         .src = wanted->src,
                                                         .dst_array = wanted->dst_array,
                                                         .dst_pos = wanted->dst_pos,
                                                         .dst = wanted->dst,
                                                         .extent = wanted->extent,
                                                         .kind = CUDART_DEVICE_TO_DEVICE});
    if (error == CUDART_OK)
        error = runtime_context_primary(wanted->src_device, &copy->src_context);
    if (error == CUDART_OK)
        error = runtime_context_primary(wanted->dst_device, &copy->dst_context);
    return error;
}

cudart_error cudaMemcpy3DPeer(const struct cudart_memcpy_3d_peer *wanted)
{
    cuda_memcpy_3d copy;
    cudart_error error;

    ENTER();
    error = describe_peer(&copy, wanted);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy3DPeer, &copy) : error);
}

cudart_error cudaMemcpy3DPeerAsync(const struct cudart_memcpy_3d_peer *wanted, cuda_stream stream)
{
    cuda_memcpy_3d copy;
    cudart_error error;

    ENTER();
    error = describe_peer(&copy, wanted);
    return runtime_error_note(error == CUDART_OK ? DRIVER(cuMemcpy3DPeerAsync, &copy, stream)
                                                 : error);
}

cudart_error cudaMemcpy3DPeer_ptds(const struct cudart_memcpy_3d_peer *wanted)
{
    return wait_unless(false, cudaMemcpy3DPeerAsync(wanted, CUDA_STREAM_PER_THREAD));
}

/* ---- filling ------------------------------------------------------------------------------ */

static cudart_error fill_rows(void *dst, size_t pitch, int value, size_t width, size_t height,
                              cuda_stream stream)
{
    if (width == 0 || height == 0)
        return CUDART_OK;
    return DRIVER(cuMemsetD2D8Async, address(dst), pitch, (unsigned char)value, width, height,
                  stream);
}

cudart_error cudaMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height)
{
    ENTER();
    if (width == 0 || height == 0)
        return CUDART_OK;
    return runtime_error_note(
        DRIVER(cuMemsetD2D8, address(dst), pitch, (unsigned char)value, width, height));
}

cudart_error cudaMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
                               cuda_stream stream)
{
    ENTER();
    return runtime_error_note(fill_rows(dst, pitch, value, width, height, stream));
}

/* CUDA waits for no fill of the device's memory, and for each of other memory. */
static cudart_error wait_for_fill(const void *dst, cuda_stream stream, cudart_error error)
{
    return error == CUDART_OK && !runtime_pointer_is_of_device(dst) ? cudaStreamSynchronize(stream)
                                                                    : error;
}

cudart_error cudaMemset2D_ptds(void *dst, size_t pitch, int value, size_t width, size_t height)
{
    return wait_for_fill(
        dst, CUDA_STREAM_PER_THREAD,
        cudaMemset2DAsync(dst, pitch, value, width, height, CUDA_STREAM_PER_THREAD));
}

cudart_error cudaMemset3DAsync(struct cudart_pitched_ptr block, int value,
                               struct cudart_extent extent, cuda_stream stream)
{
    char *plane = block.ptr;
    size_t plane_bytes = 0;
    cudart_error error = CUDART_OK;

    ENTER();
    /* Of a single plane nobody needs to know how many rows there are. */
    if (extent.depth > 1 && (__builtin_mul_overflow(block.pitch, block.rows, &plane_bytes) ||
                             extent.height > block.rows))
        return runtime_error_note(CUDART_INVALID_VALUE);
    for (size_t z = 0; z < extent.depth && error == CUDART_OK; z++)
        error = fill_rows(plane + z * plane_bytes, block.pitch, value, extent.width, extent.height,
                          stream);
    return runtime_error_note(error);
}

cudart_error cudaMemset3D(struct cudart_pitched_ptr block, int value, struct cudart_extent extent)
{
    return wait_for_fill(block.ptr, NULL, cudaMemset3DAsync(block, value, extent, NULL));
}

cudart_error cudaMemset3D_ptds(struct cudart_pitched_ptr block, int value,
                               struct cudart_extent extent)
{
    return wait_for_fill(block.ptr, CUDA_STREAM_PER_THREAD,
                         cudaMemset3DAsync(block, value, extent, CUDA_STREAM_PER_THREAD));
}

/* ---- batches ---- */

/* Addresses have the driver's layout, and the driver writes none of the arrays. */
cudart_error block_api_batch(const struct runtime_batch *batch, cuda_stream stream)
{
    ENTER();
    return runtime_error_note(
        DRIVER(cuMemcpyBatchAsync, (cuda_device_ptr *)(uintptr_t)batch->dsts,
               (cuda_device_ptr *)(uintptr_t)batch->srcs, (size_t *)(uintptr_t)batch->sizes,
               batch->count, (cuda_copy_attributes *)(uintptr_t)batch->attributes,
               (size_t *)(uintptr_t)batch->firsts, batch->attribute_count, batch->failed, stream));
}

/* The driver's layout, again. */
cudart_error block_api_blocks(size_t count, cuda_batch_3d *blocks, size_t *failed,
                              unsigned long long flags, cuda_stream stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuMemcpy3DBatchAsync, count, blocks, failed, flags, stream));
}
