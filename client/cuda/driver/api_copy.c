/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Copies and fills: the operations of the front, and copies between devices. */
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

/* A host buffer is of either side: its address is the one that the device has for it, too. */
static bool is_side(gpushare_connection *connection, uint64_t address, size_t size,
                    enum front_side side)
{
    if (side == FRONT_SIDE_EITHER)
        return true;
    const enum memory_kind kind = memory_classify(connection, address, size);
    return kind == MEMORY_HOST || (kind == MEMORY_DEVICE) == (side == FRONT_SIDE_DEVICE);
}

cuda_result front_copy(const struct front_copy *copy, cuda_stream handle, bool wait)
{
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    if (copy->size) {
        if (!copy->dst || !copy->src ||
            !is_side(connection, copy->dst, copy->size, copy->dst_side) ||
            !is_side(connection, copy->src, copy->size, copy->src_side))
            return CUDA_ERR_INVALID_VALUE;
        DRIVER_TRY(driver_connection_result(connection,
                                            copy_submit(stream, copy->dst, copy->src, copy->size)));
    }
    if (!wait)
        return CUDA_OK;
    gpushare_error error = stream_wait_pushed(stream);
    driver_connection_show(connection, false);
    return driver_connection_result(connection, error);
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

cuda_result front_fill(const struct front_fill *fill, cuda_stream handle, bool wait)
{
    gpushare_connection *connection;
    struct gpushare_stream *stream;
    size_t bytes;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_stream_of(connection, handle, &stream));
    if (!fill->count)
        return CUDA_OK;
    if (fill->dst % fill->width || __builtin_mul_overflow(fill->count, (size_t)fill->width, &bytes))
        return CUDA_ERR_INVALID_VALUE;
    enum memory_kind kind = memory_classify(connection, fill->dst, bytes);
    if (kind != MEMORY_DEVICE && kind != MEMORY_HOST)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_result(
        connection, copy_fill(stream, fill->dst, fill->value, fill->width, fill->count)));
    return wait && (kind == MEMORY_HOST || sync_memory_waits(fill->dst))
               ? driver_connection_result(connection, stream_wait_pushed(stream))
               : CUDA_OK;
}
