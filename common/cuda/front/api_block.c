/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies and fills of bytes, and of blocks: rows at a distance of a pitch, and planes of rows. Each
 * row of a block is a command of its own unless all rows lie without a gap. And batches of copies.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/cuda/sync_memory.h"

/* ---- copies of bytes ---- */

#define COPY(dst, dst_side, src, src_side, size)                                                   \
    (&(struct front_copy){(uint64_t)(dst), (uint64_t)(src), FRONT_SIDE_##dst_side,                 \
                          FRONT_SIDE_##src_side, size})

cuda_result cuMemcpy(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    return front_copy(COPY(dst, EITHER, src, EITHER, size), NULL, true);
}

cuda_result cuMemcpyAsync(cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)
{
    return front_copy(COPY(dst, EITHER, src, EITHER, size), stream, false);
}

cuda_result cuMemcpyHtoD_v2(cuda_device_ptr dst, const void *src, size_t size)
{
    return front_copy(COPY(dst, DEVICE, (uintptr_t)src, HOST, size), NULL, true);
}

cuda_result cuMemcpyDtoH_v2(void *dst, cuda_device_ptr src, size_t size)
{
    return front_copy(COPY((uintptr_t)dst, HOST, src, DEVICE, size), NULL, true);
}

/* CUDA does not wait for a copy within the device, unless a program asked for that. */
cuda_result cuMemcpyDtoD_v2(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    return front_copy(COPY(dst, DEVICE, src, DEVICE, size), NULL,
                      sync_memory_waits(dst) || sync_memory_waits(src));
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_device_ptr dst, const void *src, size_t size,
                                 cuda_stream stream)
{
    return front_copy(COPY(dst, DEVICE, (uintptr_t)src, HOST, size), stream, false);
}

cuda_result cuMemcpyDtoHAsync_v2(void *dst, cuda_device_ptr src, size_t size, cuda_stream stream)
{
    return front_copy(COPY((uintptr_t)dst, HOST, src, DEVICE, size), stream, false);
}

cuda_result cuMemcpyDtoDAsync_v2(cuda_device_ptr dst, cuda_device_ptr src, size_t size,
                                 cuda_stream stream)
{
    return front_copy(COPY(dst, DEVICE, src, DEVICE, size), stream, false);
}

/* ---- fills of bytes ---- */

/* CUDA does not wait for a fill of device memory, whichever call it is. */
#define FILL_BYTES(bytes, type, sync, own, async)                                                  \
    cuda_result sync(cuda_device_ptr dst, type value, size_t count)                                \
    {                                                                                              \
        return front_fill(&(struct front_fill){dst, value, bytes, count}, NULL, true);             \
    }                                                                                              \
    cuda_result own(cuda_device_ptr dst, type value, size_t count)                                 \
    {                                                                                              \
        return front_fill(&(struct front_fill){dst, value, bytes, count}, CUDA_STREAM_PER_THREAD,  \
                          true);                                                                   \
    }                                                                                              \
    cuda_result async(cuda_device_ptr dst, type value, size_t count, cuda_stream stream)           \
    {                                                                                              \
        return front_fill(&(struct front_fill){dst, value, bytes, count}, stream, false);          \
    }

FILL_BYTES(1, unsigned char, cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuMemsetD8Async)
FILL_BYTES(2, unsigned short, cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuMemsetD16Async)
FILL_BYTES(4, unsigned, cuMemsetD32_v2, cuMemsetD32_v2_ptds, cuMemsetD32Async)

/* ---- blocks ---- */

/* One side: the address of the first byte, and the distances of rows and planes. */
struct side {
    uint64_t start;
    size_t pitch, plane;
};

/* ---- copies ---- */

/* The memory of one side; arrays are textures' memory, which is not carried. */
static cuda_result base_of(int type, const void *host, cuda_device_ptr device, uint64_t *base)
{
    switch (type) {
    case CUDA_MEMORYTYPE_HOST:
        *base = (uint64_t)(uintptr_t)host;
        return CUDA_OK;
    case CUDA_MEMORYTYPE_DEVICE:
    case CUDA_MEMORYTYPE_UNIFIED:
        *base = device;
        return CUDA_OK;
    case CUDA_MEMORYTYPE_ARRAY:
        return DRIVER_ABSENT_CASE("copies of arrays");
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

static cuda_result find_src(const cuda_memcpy_3d *copy, struct side *side)
{
    DRIVER_TRY(base_of(copy->src_type, copy->src_host, copy->src_device, &side->start));
    side->pitch = copy->src_pitch ? copy->src_pitch : copy->src_x + copy->width;
    side->plane = side->pitch * (copy->src_height ? copy->src_height : copy->src_y + copy->height);
    side->start += copy->src_x + copy->src_y * side->pitch + copy->src_z * side->plane;
    return copy->src_x + copy->width > side->pitch ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

static cuda_result find_dst(const cuda_memcpy_3d *copy, struct side *side)
{
    DRIVER_TRY(base_of(copy->dst_type, copy->dst_host, copy->dst_device, &side->start));
    side->pitch = copy->dst_pitch ? copy->dst_pitch : copy->dst_x + copy->width;
    side->plane = side->pitch * (copy->dst_height ? copy->dst_height : copy->dst_y + copy->height);
    side->start += copy->dst_x + copy->dst_y * side->pitch + copy->dst_z * side->plane;
    return copy->dst_x + copy->width > side->pitch ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

/* The stream of a copy, and the contexts of its two sides, which only a copy between peers names.
 */
struct way {
    cuda_stream stream;
    cuda_context to, from;
};

static cuda_result push_bytes(const struct way *way, uint64_t to, uint64_t from, size_t bytes)
{
    return way->to ? cuMemcpyPeerAsync(to, way->to, from, way->from, bytes, way->stream)
                   : cuMemcpyAsync(to, from, bytes, way->stream);
}

static cuda_result push_plane(const struct way *way, const cuda_memcpy_3d *copy, struct side to,
                              struct side from)
{
    if (to.pitch == copy->width && from.pitch == copy->width)
        return push_bytes(way, to.start, from.start, copy->width * copy->height);
    for (size_t y = 0; y < copy->height; y++)
        DRIVER_TRY(
            push_bytes(way, to.start + y * to.pitch, from.start + y * from.pitch, copy->width));
    return CUDA_OK;
}

static cuda_result push_on(const struct way *way, const cuda_memcpy_3d *copy, bool wait)
{
    struct side to, from;
    size_t plane;
    cuda_context context;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (!copy->width || !copy->height || !copy->depth)
        return CUDA_OK;
    DRIVER_TRY(find_src(copy, &from));
    DRIVER_TRY(find_dst(copy, &to));
    if (!to.start || !from.start || __builtin_mul_overflow(copy->width, copy->height, &plane))
        return CUDA_ERR_INVALID_VALUE;
    for (size_t z = 0; z < copy->depth; z++) {
        DRIVER_TRY(push_plane(way, copy, to, from));
        to.start += to.plane;
        from.start += from.plane;
    }
    return wait ? cuStreamSynchronize(way->stream) : CUDA_OK;
}

static cuda_result push_copy(const cuda_memcpy_3d *copy, cuda_stream stream, bool wait)
{
    return push_on(&(struct way){.stream = stream}, copy, wait);
}

static cuda_memcpy_3d deepen(const cuda_memcpy_2d *copy)
{
    return (cuda_memcpy_3d){.src_x = copy->src_x,
                            .src_y = copy->src_y,
                            .src_type = copy->src_type,
                            .src_host = copy->src_host,
                            .src_device = copy->src_device,
                            .src_pitch = copy->src_pitch,
                            .dst_x = copy->dst_x,
                            .dst_y = copy->dst_y,
                            .dst_type = copy->dst_type,
                            .dst_host = copy->dst_host,
                            .dst_device = copy->dst_device,
                            .dst_pitch = copy->dst_pitch,
                            .width = copy->width,
                            .height = copy->height,
                            .depth = 1};
}

static cuda_result push_2d(const cuda_memcpy_2d *copy, cuda_stream stream, bool wait)
{
    if (!copy)
        return CUDA_ERR_INVALID_VALUE;
    const cuda_memcpy_3d deep = deepen(copy);
    return push_copy(&deep, stream, wait);
}

cuda_result cuMemcpy2D_v2(const cuda_memcpy_2d *copy)
{
    return push_2d(copy, NULL, true);
}

cuda_result cuMemcpy2DUnaligned_v2(const cuda_memcpy_2d *copy)
{
    return push_2d(copy, NULL, true);
}

cuda_result cuMemcpy2DAsync_v2(const cuda_memcpy_2d *copy, cuda_stream stream)
{
    return push_2d(copy, stream, false);
}

cuda_result cuMemcpy3D_v2(const cuda_memcpy_3d *copy)
{
    return copy ? push_copy(copy, NULL, true) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemcpy3DAsync_v2(const cuda_memcpy_3d *copy, cuda_stream stream)
{
    return copy ? push_copy(copy, stream, false) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemcpy2D_v2_ptds(const cuda_memcpy_2d *copy)
{
    return push_2d(copy, CUDA_STREAM_PER_THREAD, true);
}

cuda_result cuMemcpy2DUnaligned_v2_ptds(const cuda_memcpy_2d *copy)
{
    return push_2d(copy, CUDA_STREAM_PER_THREAD, true);
}

cuda_result cuMemcpy3D_v2_ptds(const cuda_memcpy_3d *copy)
{
    return copy ? push_copy(copy, CUDA_STREAM_PER_THREAD, true) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuMemcpy2DAsync_v2_ptsz(const cuda_memcpy_2d *copy, cuda_stream stream)
{
    return cuMemcpy2DAsync_v2(copy, front_stream_own(stream));
}

cuda_result cuMemcpy3DAsync_v2_ptsz(const cuda_memcpy_3d *copy, cuda_stream stream)
{
    return cuMemcpy3DAsync_v2(copy, front_stream_own(stream));
}

/* ---- copies between devices ---- */

/* A side in the host's memory is of no device, and the copy an ordinary one of the current context.
 */
static cuda_result push_peer(const cuda_memcpy_3d *copy, cuda_stream stream, bool wait)
{
    if (!copy)
        return CUDA_ERR_INVALID_VALUE;
    if (copy->src_type == CUDA_MEMORYTYPE_HOST || copy->dst_type == CUDA_MEMORYTYPE_HOST)
        return push_copy(copy, stream, wait);
    if (!copy->src_context || !copy->dst_context)
        return CUDA_ERR_INVALID_CONTEXT;
    return push_on(&(struct way){stream, copy->dst_context, copy->src_context}, copy, wait);
}

cuda_result cuMemcpy3DPeer(const cuda_memcpy_3d *copy)
{
    return push_peer(copy, NULL, true);
}

cuda_result cuMemcpy3DPeerAsync(const cuda_memcpy_3d *copy, cuda_stream stream)
{
    return push_peer(copy, stream, false);
}

cuda_result cuMemcpy3DPeer_ptds(const cuda_memcpy_3d *copy)
{
    return push_peer(copy, CUDA_STREAM_PER_THREAD, true);
}

cuda_result cuMemcpy3DPeerAsync_ptsz(const cuda_memcpy_3d *copy, cuda_stream stream)
{
    return cuMemcpy3DPeerAsync(copy, front_stream_own(stream));
}

/* ---- memory ---- */

cuda_result cuMemAllocPitch_v2(cuda_device_ptr *ptr, size_t *pitch, size_t width, size_t height,
                               unsigned element)
{
    /* Rows begin where NVIDIA's driver would have them begin: at multiples of the texture
     * alignment. */
    enum { ROW_ALIGNMENT = 512 };
    size_t wide, bytes;
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
        __builtin_add_overflow(width, (size_t)ROW_ALIGNMENT - 1, &wide))
        return CUDA_ERR_INVALID_VALUE;
    wide -= wide % ROW_ALIGNMENT;
    if (__builtin_mul_overflow(wide, height, &bytes))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(cuMemAlloc_v2(ptr, bytes));
    *pitch = wide;
    return CUDA_OK;
}

/* ---- fills ---- */

struct fill {
    cuda_device_ptr dst;
    size_t pitch, width, height; /* bytes, elements, rows */
    uint32_t value, element;     /* bytes of an element */
};

static cuda_result push_fill(const struct fill *fill, cuda_stream stream, bool wait)
{
    cuda_context context;
    size_t row, bytes;
    bool host;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (!fill->width || !fill->height)
        return CUDA_OK;
    if (__builtin_mul_overflow(fill->width, (size_t)fill->element, &row) ||
        (fill->height > 1 && fill->pitch < row) ||
        __builtin_mul_overflow(fill->pitch, fill->height - 1, &bytes) ||
        __builtin_add_overflow(bytes, row, &bytes) || fill->dst % fill->element ||
        (fill->height > 1 && fill->pitch % fill->element))
        return CUDA_ERR_INVALID_VALUE;
    if (!front_memory_fillable(fill->dst, bytes, &host))
        return CUDA_ERR_INVALID_VALUE;
    for (size_t y = 0; y < fill->height; y++)
        DRIVER_TRY(front_fill(&(struct front_fill){fill->dst + y * fill->pitch, fill->value,
                                                   fill->element, fill->width},
                              stream, false));
    return wait && (host || sync_memory_waits(fill->dst)) ? cuStreamSynchronize(stream) : CUDA_OK;
}

#define FILL(name, type, bytes, stream)                                                            \
    cuda_result name(cuda_device_ptr dst, size_t pitch, type value, size_t width, size_t height)   \
    {                                                                                              \
        return push_fill(&(struct fill){dst, pitch, width, height, value, bytes}, stream, true);   \
    }
#define FILL_ASYNC(name, type, bytes, on)                                                          \
    cuda_result name(cuda_device_ptr dst, size_t pitch, type value, size_t width, size_t height,   \
                     cuda_stream stream)                                                           \
    {                                                                                              \
        return push_fill(&(struct fill){dst, pitch, width, height, value, bytes}, on(stream),      \
                         false);                                                                   \
    }
#define SAME(stream) (stream)

FILL(cuMemsetD2D8_v2, unsigned char, 1, NULL)
FILL(cuMemsetD2D16_v2, unsigned short, 2, NULL)
FILL(cuMemsetD2D32_v2, unsigned, 4, NULL)
FILL(cuMemsetD2D8_v2_ptds, unsigned char, 1, CUDA_STREAM_PER_THREAD)
FILL(cuMemsetD2D16_v2_ptds, unsigned short, 2, CUDA_STREAM_PER_THREAD)
FILL(cuMemsetD2D32_v2_ptds, unsigned, 4, CUDA_STREAM_PER_THREAD)
FILL_ASYNC(cuMemsetD2D8Async, unsigned char, 1, SAME)
FILL_ASYNC(cuMemsetD2D16Async, unsigned short, 2, SAME)
FILL_ASYNC(cuMemsetD2D32Async, unsigned, 4, SAME)
FILL_ASYNC(cuMemsetD2D8Async_ptsz, unsigned char, 1, front_stream_own)
FILL_ASYNC(cuMemsetD2D16Async_ptsz, unsigned short, 2, front_stream_own)
FILL_ASYNC(cuMemsetD2D32Async_ptsz, unsigned, 4, front_stream_own)

/* ---- batches of copies ---- */

struct batch {
    const cuda_device_ptr *dsts, *srcs;
    const size_t *sizes;
    size_t count;
    const cuda_copy_attributes *attributes;
    const size_t *firsts; /* the copy that each of the attributes begins with */
    size_t attribute_count;
};

/* Each copy has attributes: those that begin last, up to it. */
static bool batch_is_sound(const struct batch *batch)
{
    if (!batch->dsts || !batch->srcs || !batch->sizes || !batch->attributes || !batch->firsts ||
        !batch->attribute_count || batch->attribute_count > batch->count || batch->firsts[0])
        return false;
    for (size_t i = 0; i < batch->attribute_count; i++) {
        const cuda_copy_attributes *each = &batch->attributes[i];
        if (each->order < CUDA_COPY_ORDER_STREAM || each->order > CUDA_COPY_ORDER_ANY ||
            each->flags & ~(unsigned)CUDA_COPY_PREFER_OVERLAP || batch->firsts[i] >= batch->count ||
            (i && batch->firsts[i] <= batch->firsts[i - 1]))
            return false;
    }
    return true;
}

/* Whether a source has to be read before the call returns, and is not already: a copy of ordinary
 * memory has read it. */
static bool outlives_call(int order, uint64_t src)
{
    struct front_memory memory;
    return order == CUDA_COPY_ORDER_DURING_CALL && front_memory_find(src, &memory);
}

/* In the order of the batch, which is one of those that are allowed. */
static cuda_result push_batch(const struct batch *batch, size_t *failed, cuda_stream stream)
{
    cuda_context context;
    bool await = false;
    DRIVER_TRY(driver_context_check(NULL, &context));
    if (!stream || stream == CUDA_STREAM_LEGACY || !batch_is_sound(batch))
        return CUDA_ERR_INVALID_VALUE;
    for (size_t i = 0, at = 0; i < batch->count; i++) {
        if (at + 1 < batch->attribute_count && batch->firsts[at + 1] == i)
            at++;
        cuda_result result = cuMemcpyAsync(batch->dsts[i], batch->srcs[i], batch->sizes[i], stream);
        if (result != CUDA_OK) {
            *failed = i;
            return result;
        }
        await |= outlives_call(batch->attributes[at].order, batch->srcs[i]);
    }
    return await ? cuStreamSynchronize(stream) : CUDA_OK;
}

cuda_result cuMemcpyBatchAsync(cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes,
                               size_t count, cuda_copy_attributes *attributes, size_t *firsts,
                               size_t attribute_count, size_t *failed, cuda_stream stream)
{
    size_t unused;
    if (!failed)
        failed = &unused;
    *failed = SIZE_MAX; /* of no copy */
    return push_batch(
        &(struct batch){dsts, srcs, sizes, count, attributes, firsts, attribute_count}, failed,
        stream);
}

cuda_result cuMemcpyBatchAsync_v2(cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes,
                                  size_t count, cuda_copy_attributes *attributes, size_t *firsts,
                                  size_t attribute_count, cuda_stream stream)
{
    return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes, firsts, attribute_count, NULL,
                              stream);
}

/* ---- batches of copies of blocks ---- */

static cuda_result check_block(const cuda_batch_3d *block)
{
    if (block->src.type == CUDA_COPY_OPERAND_ARRAY || block->dst.type == CUDA_COPY_OPERAND_ARRAY)
        return CUDA_ERR_NOT_SUPPORTED;
    bool sound = block->src.type == CUDA_COPY_OPERAND_POINTER &&
                 block->dst.type == CUDA_COPY_OPERAND_POINTER && block->width && block->height &&
                 block->depth && block->order >= CUDA_COPY_ORDER_STREAM &&
                 block->order <= CUDA_COPY_ORDER_ANY &&
                 !(block->flags & ~(unsigned)CUDA_COPY_PREFER_OVERLAP);
    return sound ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

static cuda_result push_block(const cuda_batch_3d *block, cuda_stream stream)
{
    const cuda_memcpy_3d copy = {.src_type = CUDA_MEMORYTYPE_UNIFIED,
                                 .src_device = block->src.ptr,
                                 .src_pitch = block->src.row,
                                 .src_height = block->src.rows,
                                 .dst_type = CUDA_MEMORYTYPE_UNIFIED,
                                 .dst_device = block->dst.ptr,
                                 .dst_pitch = block->dst.row,
                                 .dst_height = block->dst.rows,
                                 .width = block->width,
                                 .height = block->height,
                                 .depth = block->depth};
    DRIVER_TRY(check_block(block));
    return push_copy(&copy, stream, false);
}

cuda_result cuMemcpy3DBatchAsync(size_t count, cuda_batch_3d *blocks, size_t *failed,
                                 unsigned long long flags, cuda_stream stream)
{
    bool await = false;
    size_t unused;
    if (!failed)
        failed = &unused;
    *failed = SIZE_MAX; /* of no copy */
    if (!count || !blocks || flags || !stream || stream == CUDA_STREAM_LEGACY)
        return CUDA_ERR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        cuda_result result = push_block(&blocks[i], stream);
        if (result != CUDA_OK) {
            *failed = i;
            return result;
        }
        await |= outlives_call(blocks[i].order, blocks[i].src.ptr);
    }
    return await ? cuStreamSynchronize(stream) : CUDA_OK;
}

cuda_result cuMemcpy3DBatchAsync_v2(size_t count, cuda_batch_3d *blocks, unsigned long long flags,
                                    cuda_stream stream)
{
    return cuMemcpy3DBatchAsync(count, blocks, NULL, flags, stream);
}
