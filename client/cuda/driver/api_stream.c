/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams and events. Their handles are the engine's objects. */
#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_pool.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/stream.h"

/* ---- streams ---- */

cuda_result cuStreamCreateWithPriority(cuda_stream *stream, unsigned flags, int priority)
{
    gpushare_connection *connection;
    struct gpushare_stream *made;
    if (!stream || (flags & ~(unsigned)CUDA_STREAM_NON_BLOCKING))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_context_connection(&connection));
    DRIVER_TRY(driver_result(stream_open(connection, flags, priority, &made)));
    *stream = (cuda_stream)made;
    return CUDA_OK;
}

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

cuda_result cuStreamDestroy_v2(cuda_stream handle)
{
    struct gpushare_stream *stream;
    const struct gpushare_stream *made = driver_stream_handle(handle);
    if (!made || made == GPUSHARE_STREAM_PER_THREAD)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    return driver_result(stream_retire(stream));
}

cuda_result cuStreamQuery(cuda_stream handle)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    return driver_work_result(stream->connection, stream_query(stream));
}

cuda_result cuStreamSynchronize(cuda_stream handle)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    DRIVER_TRY(driver_work_result(stream->connection, stream_wait_all(stream)));
    driver_pool_settle(stream->connection);
    return CUDA_OK;
}

/* flags: the only one that exists is for captures. */
cuda_result cuStreamWaitEvent(cuda_stream handle, cuda_event event, unsigned flags)
{
    struct gpushare_stream *stream;
    if (flags)
        return CUDA_ERR_INVALID_VALUE;
    if (!event)
        return CUDA_ERR_INVALID_HANDLE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    return driver_work_result(stream->connection,
                              event_hold_stream((struct gpushare_event *)event, stream));
}

cuda_result cuStreamGetPriority(cuda_stream handle, int *priority)
{
    struct gpushare_stream *stream;
    if (!priority)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    *priority = stream->priority;
    return CUDA_OK;
}

cuda_result cuStreamGetFlags(cuda_stream handle, unsigned *flags)
{
    struct gpushare_stream *stream;
    if (!flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    *flags = stream->flags;
    return CUDA_OK;
}

/* The contexts of a device share its streams, so the primary one stands for the one that made it.
 */
cuda_result cuStreamGetCtx(cuda_stream handle, cuda_context *context)
{
    struct gpushare_stream *stream;
    const struct driver_device *device;
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    cuda_context top = driver_context_top();
    device = driver_device_of(stream->connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    if (top && top->device == device) {
        *context = top;
        return CUDA_OK;
    }
    return driver_context_primary(device->ordinal, context);
}

static cuda_result push_call(cuda_stream handle, const struct driver_host_fn *call)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    struct driver_device *device = driver_device_of(stream->connection);
    return device ? driver_host_fn_push(device, stream, call) : CUDA_ERR_CONTEXT_IS_DESTROYED;
}

cuda_result cuLaunchHostFunc(cuda_stream stream, cuda_host_fn fn, void *user)
{
    const struct driver_host_fn call = {.function = fn, .user = user};
    return fn ? push_call(stream, &call) : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuStreamAddCallback(cuda_stream stream, cuda_stream_callback callback, void *user,
                                unsigned flags)
{
    const struct driver_host_fn call = {.callback = callback, .handle = stream, .user = user};
    return callback && !flags ? push_call(stream, &call) : CUDA_ERR_INVALID_VALUE;
}

/* ---- events ---- */

cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    gpushare_connection *connection;
    gpushare_event *made;
    if (!event || (flags & ~(unsigned)(CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING |
                                       CUDA_EVENT_INTERPROCESS)))
        return CUDA_ERR_INVALID_VALUE;
    if (flags & CUDA_EVENT_INTERPROCESS)
        return CUDA_ERR_NOT_SUPPORTED;
    DRIVER_TRY(driver_context_connection(&connection));
    uint32_t timing = flags & CUDA_EVENT_DISABLE_TIMING ? 0 : GPUSHARE_EVENT_TIMING;
    DRIVER_TRY(driver_result(event_open(connection, timing, &made)));
    *event = (cuda_event)made;
    return CUDA_OK;
}

static cuda_result check(cuda_event handle, struct gpushare_event **event)
{
    *event = (struct gpushare_event *)handle;
    return handle ? driver_connection_check((*event)->connection) : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuEventRecord(cuda_event handle, cuda_stream stream_handle)
{
    struct gpushare_event *event;
    struct gpushare_stream *stream;
    DRIVER_TRY(check(handle, &event));
    DRIVER_TRY(driver_stream(event->connection, stream_handle, &stream));
    return driver_work_result(event->connection, event_record(event, stream));
}

cuda_result cuEventQuery(cuda_event handle)
{
    struct gpushare_event *event;
    DRIVER_TRY(check(handle, &event));
    return driver_work_result(event->connection, event_query(event));
}

cuda_result cuEventSynchronize(cuda_event handle)
{
    struct gpushare_event *event;
    DRIVER_TRY(check(handle, &event));
    DRIVER_TRY(driver_work_result(event->connection, event_wait(event)));
    driver_pool_settle(event->connection);
    return CUDA_OK;
}

cuda_result cuEventDestroy_v2(cuda_event handle)
{
    struct gpushare_event *event;
    DRIVER_TRY(check(handle, &event));
    return driver_result(event_close(event));
}

cuda_result cuEventElapsedTime_v2(float *milliseconds, cuda_event start, cuda_event end)
{
    struct gpushare_event *first, *last;
    double time;
    if (!milliseconds)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(check(start, &first));
    DRIVER_TRY(check(end, &last));
    /* A time that went with a worker is lost, and no work: the context stays as it is. */
    DRIVER_TRY(driver_result(event_elapsed(first, last, &time)));
    *milliseconds = (float)time;
    return CUDA_OK;
}

cuda_result cuEventElapsedTime(float *milliseconds, cuda_event start, cuda_event end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}
