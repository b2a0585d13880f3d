/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams and events. Their handles are the engine's objects. */
#include "common/cuda/front/driver_absent.h"
#include "client/cuda/driver/base/driver_connection.h"
#include "common/cuda/front/driver_exports.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_stream.h"
#include "client/cuda/driver/base/driver_wait.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/event.h"
#include "client/engine/memory.h"
#include "client/engine/stream.h"
#include "client/engine/value_slot.h"
#include "common/cuda/front/front.h"

/* ---- streams ---- */

cuda_result cuStreamCreateWithPriority(cuda_stream *stream, unsigned flags, int priority)
{
    gpushare_connection *connection;
    struct gpushare_stream *made;
    if (!stream || (flags & ~(unsigned)CUDA_STREAM_NON_BLOCKING))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_connection_current(&connection));
    DRIVER_TRY(driver_result(stream_open(connection, flags, priority, &made)));
    *stream = (cuda_stream)made;
    return CUDA_OK;
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
    return driver_connection_result(stream->connection, stream_query(stream));
}

cuda_result cuStreamSynchronize(cuda_stream handle)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    gpushare_error error = stream_wait_all(stream);
    driver_connection_show(stream->connection, false);
    DRIVER_TRY(driver_connection_result(stream->connection, error));
    driver_connection_settle(stream->connection);
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
    return driver_connection_result(stream->connection,
                                    event_hold_stream((struct gpushare_event *)event, stream));
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

/* ---- words in memory ---- */

static bool is_reachable(gpushare_connection *connection, const struct stream_value *word)
{
    enum memory_kind kind = memory_classify(connection, word->address, word->width);
    return kind == MEMORY_DEVICE || kind == MEMORY_HOST;
}

/* A write of 4 bytes is a fill of one word. No fill is so wide as 8. */
static cuda_result push_word(struct gpushare_stream *stream, const struct front_word *word)
{
    const struct stream_value *value = &word->value;
    if (word->wait)
        return driver_wait_push(stream, value);
    return driver_connection_result(
        stream->connection,
        value->width == 4
            ? copy_fill(stream, value->address, (uint32_t)value->value, value->width, 1)
            : value_slot_write(stream, value->address, value->value));
}

cuda_result front_words(cuda_stream handle, const struct front_word *words, unsigned count)
{
    struct gpushare_stream *stream;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    for (unsigned i = 0; i < count; i++)
        if (!is_reachable(stream->connection, &words[i].value))
            return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        DRIVER_TRY(push_word(stream, &words[i]));
    return CUDA_OK;
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
        return DRIVER_ABSENT_CASE("cuEventCreate for other processes");
    DRIVER_TRY(driver_connection_current(&connection));
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
    DRIVER_TRY(driver_stream_of(event->connection, stream_handle, &stream));
    return driver_connection_result(event->connection, event_record(event, stream));
}

cuda_result cuEventQuery(cuda_event handle)
{
    struct gpushare_event *event;
    DRIVER_TRY(check(handle, &event));
    return driver_connection_result(event->connection, event_query(event));
}

cuda_result cuEventSynchronize(cuda_event handle)
{
    struct gpushare_event *event;
    DRIVER_TRY(check(handle, &event));
    gpushare_error error = event_wait(event);
    driver_connection_show(event->connection, false);
    DRIVER_TRY(driver_connection_result(event->connection, error));
    driver_connection_settle(event->connection);
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
