/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies and fills. */
#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/driver/base/driver_connection.h"
#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_exports.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_stream.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"
#include "common/cuda/sync_memory.h"

enum { HOST, DEVICE, EITHER };

/* side: of which kind the memory must be, because the caller said so. A host buffer is of either:
 * its address is the one that the device has for it, too. */
static bool is_side(gpushare_connection *connection, uint64_t address, size_t size, int side)
{
    if (side == EITHER)
        return true;
    const enum memory_kind kind = memory_classify(connection, address, size);
    return kind == MEMORY_HOST || (kind == MEMORY_DEVICE) == (side == DEVICE);
}

static cuda_result submit(cuda_device_ptr dst, int dst_side, cuda_device_ptr src, int src_side,
                          size_t size, cuda_stream handle, bool wait)
{
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    if (size) {
        if (!dst || !src || !is_side(connection, dst, size, dst_side) ||
            !is_side(connection, src, size, src_side))
            return CUDA_ERR_INVALID_VALUE;
        DRIVER_TRY(driver_connection_result(connection, copy_submit(stream, dst, src, size)));
    }
    if (!wait)
        return CUDA_OK;
    gpushare_error error = stream_wait_pushed(stream);
    driver_connection_show(connection, false);
    return driver_connection_result(connection, error);
}

cuda_result cuMemcpy(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    return submit(dst, EITHER, src, EITHER, size, NULL, true);
}

cuda_result cuMemcpyAsync(cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)
{
    return submit(dst, EITHER, src, EITHER, size, stream, false);
}

cuda_result cuMemcpyHtoD_v2(cuda_device_ptr dst, const void *src, size_t size)
{
    return submit(dst, DEVICE, (uint64_t)(uintptr_t)src, HOST, size, NULL, true);
}

cuda_result cuMemcpyDtoH_v2(void *dst, cuda_device_ptr src, size_t size)
{
    return submit((uint64_t)(uintptr_t)dst, HOST, src, DEVICE, size, NULL, true);
}

/* CUDA does not wait for a copy within the device, unless a program asked for that. */
cuda_result cuMemcpyDtoD_v2(cuda_device_ptr dst, cuda_device_ptr src, size_t size)
{
    return submit(dst, DEVICE, src, DEVICE, size, NULL,
                  sync_memory_waits(dst) || sync_memory_waits(src));
}

cuda_result cuMemcpyHtoDAsync_v2(cuda_device_ptr dst, const void *src, size_t size,
                                 cuda_stream stream)
{
    return submit(dst, DEVICE, (uint64_t)(uintptr_t)src, HOST, size, stream, false);
}

cuda_result cuMemcpyDtoHAsync_v2(void *dst, cuda_device_ptr src, size_t size, cuda_stream stream)
{
    return submit((uint64_t)(uintptr_t)dst, HOST, src, DEVICE, size, stream, false);
}

cuda_result cuMemcpyDtoDAsync_v2(cuda_device_ptr dst, cuda_device_ptr src, size_t size,
                                 cuda_stream stream)
{
    return submit(dst, DEVICE, src, DEVICE, size, stream, false);
}

/* ---- copies between devices ---- */

static cuda_result connection_of(cuda_context handle, gpushare_connection **connection)
{
    return handle ? driver_connection_of(handle, connection) : CUDA_ERR_INVALID_CONTEXT;
}

/* The two devices of a copy, which may be one. */
struct ends {
    gpushare_connection *to, *from;
};

static cuda_result find_ends(cuda_context to, cuda_context from, struct ends *ends)
{
    DRIVER_TRY(connection_of(to, &ends->to));
    return connection_of(from, &ends->from);
}

static cuda_result submit_peer(const struct ends *ends, cuda_device_ptr dst, cuda_device_ptr src,
                               size_t size, struct gpushare_stream *stream)
{
    if (!size)
        return CUDA_OK;
    if (!dst || !src)
        return CUDA_ERR_INVALID_VALUE;
    return driver_connection_result(stream->connection,
                                    copy_submit_peer(stream, ends->to, dst, ends->from, src, size));
}

/* In order with all work of both devices, so each side waits for the other here. */
static cuda_result copy_peer(cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,
                             cuda_context src_context, size_t size, cuda_stream handle)
{
    struct ends ends;
    struct gpushare_stream *stream;
    DRIVER_TRY(find_ends(dst_context, src_context, &ends));
    DRIVER_TRY(driver_stream_of(ends.to, handle, &stream));
    if (ends.to == ends.from) {
        DRIVER_TRY(submit_peer(&ends, dst, src, size, stream));
        return sync_memory_waits(dst) || sync_memory_waits(src)
                   ? driver_connection_result(ends.to, stream_wait_pushed(stream))
                   : CUDA_OK;
    }
    DRIVER_TRY(driver_connection_result(ends.from, stream_wait_connection(ends.from)));
    DRIVER_TRY(driver_connection_result(ends.to, stream_wait_connection(ends.to)));
    DRIVER_TRY(submit_peer(&ends, dst, src, size, stream));
    return driver_connection_result(ends.to, stream_wait_pushed(stream));
}

cuda_result cuMemcpyPeer(cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,
                         cuda_context src_context, size_t size)
{
    return copy_peer(dst, dst_context, src, src_context, size, NULL);
}

cuda_result cuMemcpyPeer_ptds(cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,
                              cuda_context src_context, size_t size)
{
    return copy_peer(dst, dst_context, src, src_context, size, CUDA_STREAM_PER_THREAD);
}

cuda_result cuMemcpyPeerAsync(cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,
                              cuda_context src_context, size_t size, cuda_stream handle)
{
    struct ends ends;
    struct gpushare_stream *stream;
    DRIVER_TRY(find_ends(dst_context, src_context, &ends));
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    if (stream->connection != ends.to && stream->connection != ends.from)
        return DRIVER_ABSENT_CASE("cuMemcpyPeerAsync in a third GPU's stream");
    return submit_peer(&ends, dst, src, size, stream);
}

cuda_result cuMemcpyPeerAsync_ptsz(cuda_device_ptr dst, cuda_context dst_context,
                                   cuda_device_ptr src, cuda_context src_context, size_t size,
                                   cuda_stream stream)
{
    return cuMemcpyPeerAsync(dst, dst_context, src, src_context, size, front_stream_own(stream));
}

/* ---- fills ---- */

/* CUDA does not wait for a fill of device memory, whichever call it is; for one of host memory the
 * call that is not asynchronous waits. */
static cuda_result fill(cuda_device_ptr dst, uint32_t value, uint32_t width, size_t count,
                        cuda_stream handle, bool wait)
{
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    size_t bytes;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    if (!count)
        return CUDA_OK;
    if (dst % width || __builtin_mul_overflow(count, (size_t)width, &bytes))
        return CUDA_ERR_INVALID_VALUE;
    enum memory_kind kind = memory_classify(connection, dst, bytes);
    if (kind != MEMORY_DEVICE && kind != MEMORY_HOST)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_result(connection, copy_fill(stream, dst, value, width, count)));
    return wait && (kind == MEMORY_HOST || sync_memory_waits(dst))
               ? driver_connection_result(connection, stream_wait_pushed(stream))
               : CUDA_OK;
}

#define FILL(width, type, sync, async, own)                                                        \
    cuda_result sync(cuda_device_ptr dst, type value, size_t count)                                \
    {                                                                                              \
        return fill(dst, value, width, count, NULL, true);                                         \
    }                                                                                              \
    cuda_result own(cuda_device_ptr dst, type value, size_t count)                                 \
    {                                                                                              \
        return fill(dst, value, width, count, CUDA_STREAM_PER_THREAD, true);                       \
    }                                                                                              \
    cuda_result async(cuda_device_ptr dst, type value, size_t count, cuda_stream stream)           \
    {                                                                                              \
        return fill(dst, value, width, count, stream, false);                                      \
    }

FILL(1, unsigned char, cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD8_v2_ptds)
FILL(2, unsigned short, cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD16_v2_ptds)
FILL(4, unsigned, cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD32_v2_ptds)
