/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Streams, events, stream memory operations, functions on the host.
 */
#include <stdlib.h>

#include "common/cuda/front/driver_pool.h"
#include "common/cuda/front/front.h"
#include "common/util.h"
#include "server/softgpu/api/api.h"
#include "server/softgpu/device/context_lock.h"
#include "server/softgpu/device/cost.h"
#include "server/softgpu/device/enqueue.h"
#include "server/softgpu/report.h"

/* A thread's own default stream on each device, made when first used. */
static _Thread_local struct stream *per_thread[SETTINGS_MAX_DEVICES];

static struct stream *make_stream(struct device *device, unsigned flags, int priority)
{
    struct stream *stream;

    context_lock_call(device, CONTEXT_CALL_STREAM_CREATE);
    cost_pay_creation();
    engine_lock();
    stream = stream_create(device, (struct stream_place){0}, flags, priority);
    engine_unlock();
    context_lock_release(device);
    return stream;
}

static cuda_result per_thread_stream(struct device *device, struct stream **stream)
{
    struct stream **mine = &per_thread[device->ordinal];

    if (!*mine)
        *mine = make_stream(device, CUDA_STREAM_DEFAULT, DEVICE_PRIORITY_LEAST);
    *stream = *mine;
    return *mine ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result api_stream(cuda_stream handle, struct stream **stream)
{
    struct device *device;

    DRIVER_TRY(api_current(&device));
    if (!handle || handle == CUDA_STREAM_LEGACY) {
        *stream = device->legacy;
        return CUDA_OK;
    }
    if (handle == CUDA_STREAM_PER_THREAD)
        return per_thread_stream(device, stream);
    *stream = (struct stream *)handle;
    if ((*stream)->magic != STREAM_MAGIC)
        return CUDA_ERR_INVALID_HANDLE;
    if ((*stream)->green && !api_green_alive((*stream)->green))
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    return CUDA_OK;
}

static cuda_result event_of(cuda_event handle, struct event **event)
{
    DRIVER_TRY(device_check());
    *event = (struct event *)handle;
    return handle && (*event)->magic == EVENT_MAGIC ? CUDA_OK : CUDA_ERR_INVALID_HANDLE;
}

cuda_result cuStreamCreateWithPriority(cuda_stream *handle, unsigned flags, int priority)
{
    struct device *device;
    struct stream *stream;

    DRIVER_TRY(api_current(&device));
    if (!handle || (flags & ~(unsigned)CUDA_STREAM_NON_BLOCKING))
        return CUDA_ERR_INVALID_VALUE;
    stream = make_stream(device, flags, priority);
    *handle = (cuda_stream)stream;
    return stream ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result cuStreamDestroy_v2(cuda_stream handle)
{
    struct device *device;
    struct stream *stream;

    DRIVER_TRY(api_stream(handle, &stream));
    if (!handle || handle == CUDA_STREAM_LEGACY || handle == CUDA_STREAM_PER_THREAD)
        return CUDA_ERR_INVALID_HANDLE;
    device = stream->device;
    context_lock_call(device, CONTEXT_CALL_STREAM_DESTROY);
    engine_lock();
    if (stream->green)
        api_green_stream_gone(stream->green);
    stream_destroy(stream);
    engine_unlock();
    context_lock_release(device);
    return CUDA_OK;
}

cuda_result cuStreamQuery(cuda_stream handle)
{
    struct stream *stream;
    bool idle;

    DRIVER_TRY(api_stream(handle, &stream));
    engine_lock();
    idle = stream_idle(stream);
    engine_unlock();
    DRIVER_TRY(device_check());
    return idle ? CUDA_OK : CUDA_ERR_NOT_READY;
}

/* After a wait for work. */
static cuda_result settle(const struct device *device)
{
    if (driver_pool_keeps())
        driver_pool_settle(device_visible(device->ordinal));
    return CUDA_OK;
}

cuda_result cuStreamSynchronize(cuda_stream handle)
{
    struct stream *stream;
    cuda_result result;

    DRIVER_TRY(api_stream(handle, &stream));
    engine_lock();
    result = stream_await(stream);
    engine_unlock();
    return result == CUDA_OK ? settle(stream->device) : result;
}

cuda_result cuStreamWaitEvent(cuda_stream handle, cuda_event event_handle, unsigned flags)
{
    struct operation *op = NULL;
    struct stream *stream;
    struct event *event;
    bool needed;

    DRIVER_TRY(api_stream(handle, &stream));
    DRIVER_TRY(event_of(event_handle, &event));
    if (flags & ~1u)
        return CUDA_ERR_INVALID_VALUE;
    engine_lock();
    /* An end that no program can see yet is none. */
    needed = event->op && !stream_operation_seen(event->op);
    if (needed)
        op = stream_operation_create(OPERATION_MARK);
    if (op && stream_operation_after(op, event->op) < 0) {
        stream_operation_unref(op);
        op = NULL;
    }
    engine_unlock();
    if (!needed)
        return CUDA_OK;
    return op ? enqueue_operation(stream, op) : CUDA_ERR_OUT_OF_MEMORY;
}

/* ---- stream memory operations ------------------------------------------------------------- */

/* Writes that stand together are one operation, as they are on a device. */
static unsigned count_writes(const struct front_word *words, unsigned count)
{
    unsigned run = 0;

    while (run < count && !words[run].wait)
        run++;
    return run;
}

static cuda_result submit_writes(struct stream *stream, const struct front_word *words,
                                 unsigned count)
{
    struct operation *op;

    if (stream->green && device_settings()->no_green_memops)
        return CUDA_ERR_NOT_SUPPORTED;
    op = stream_operation_create(OPERATION_WRITE);
    if (op)
        op->write.writes = malloc(count * sizeof(*op->write.writes));
    if (!op || !op->write.writes) {
        free(op);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    for (unsigned i = 0; i < count; i++)
        op->write.writes[i] = (struct operation_write){words[i].value.address, words[i].value.value,
                                                       words[i].value.width};
    op->write.count = count;
    return enqueue_operation(stream, op);
}

static cuda_result submit_wait(struct stream *stream, const struct stream_value *wanted)
{
    struct operation *op;

    if (stream->green && device_settings()->no_green_memops)
        return CUDA_ERR_NOT_SUPPORTED;
    op = stream_operation_create(OPERATION_WAIT);
    if (!op)
        return CUDA_ERR_OUT_OF_MEMORY;
    op->wait.wanted = *wanted;
    return enqueue_operation(stream, op);
}

cuda_result front_words(cuda_stream handle, const struct front_word *words, unsigned count)
{
    struct stream *stream;
    unsigned run;

    DRIVER_TRY(api_stream(handle, &stream));
    for (unsigned i = 0; i < count; i++)
        if (!memory_accessible(words[i].value.address, words[i].value.width,
                               words[i].wait ? MEMORY_READ : MEMORY_WRITE))
            return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i += run) {
        run = count_writes(&words[i], count - i);
        if (run)
            DRIVER_TRY(submit_writes(stream, &words[i], run));
        else
            DRIVER_TRY(submit_wait(stream, &words[i].value));
        run = max(run, 1u);
    }
    return CUDA_OK;
}

cuda_result cuLaunchHostFunc(cuda_stream handle, cuda_host_fn fn, void *user)
{
    struct stream *stream;
    struct operation *op;

    DRIVER_TRY(api_stream(handle, &stream));
    if (!fn)
        return CUDA_ERR_INVALID_VALUE;
    op = stream_operation_create(OPERATION_HOST);
    if (!op)
        return CUDA_ERR_OUT_OF_MEMORY;
    op->host.fn = fn;
    op->host.user = user;
    return enqueue_operation(stream, op);
}

struct callback {
    cuda_stream_callback call;
    cuda_stream stream;
    void *user;
};

static void call_back(void *user)
{
    const struct callback callback = *(struct callback *)user;

    free(user);
    callback.call(callback.stream, CUDA_OK, callback.user);
}

/* After an error functions are not called any more, so each is told of none. */
cuda_result cuStreamAddCallback(cuda_stream stream, cuda_stream_callback call, void *user,
                                unsigned flags)
{
    struct callback *callback;
    cuda_result result;

    if (!call || flags)
        return CUDA_ERR_INVALID_VALUE;
    callback = malloc(sizeof(*callback));
    if (!callback)
        return CUDA_ERR_OUT_OF_MEMORY;
    *callback = (struct callback){call, stream, user};
    result = cuLaunchHostFunc(stream, call_back, callback);
    if (result != CUDA_OK)
        free(callback);
    return result;
}

/* ---- events -----------------------------------------------------------------------------------
 */

cuda_result cuEventCreate(cuda_event *handle, unsigned flags)
{
    const unsigned known = CUDA_EVENT_BLOCKING_SYNC | CUDA_EVENT_DISABLE_TIMING;
    struct device *device;
    struct event *event;

    DRIVER_TRY(api_current(&device));
    if (!handle)
        return CUDA_ERR_INVALID_VALUE;
    if (flags & CUDA_EVENT_INTERPROCESS)
        return CUDA_ERR_NOT_SUPPORTED;
    if (flags & ~known)
        return CUDA_ERR_INVALID_VALUE;
    engine_lock();
    event = stream_event_create(device, flags);
    engine_unlock();
    *handle = (cuda_event)event;
    return event ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

cuda_result cuEventDestroy_v2(cuda_event handle)
{
    struct event *event;

    DRIVER_TRY(event_of(handle, &event));
    engine_lock();
    stream_event_destroy(event);
    engine_unlock();
    return CUDA_OK;
}

cuda_result cuEventRecord(cuda_event handle, cuda_stream stream_handle)
{
    struct stream *stream;
    struct event *event;
    struct operation *op;
    cuda_result result;

    DRIVER_TRY(api_stream(stream_handle, &stream));
    DRIVER_TRY(event_of(handle, &event));
    if (event->device != stream->device)
        return CUDA_ERR_INVALID_HANDLE;
    op = stream_operation_create(OPERATION_MARK);
    if (!op)
        return CUDA_ERR_OUT_OF_MEMORY;
    stream_operation_ref(op);
    result = enqueue_operation(stream, op);
    engine_lock();
    if (result != CUDA_OK) {
        stream_operation_unref(op);
    } else {
        stream_operation_unref(event->op);
        event->op = op;
    }
    engine_unlock();
    return result;
}

cuda_result cuEventQuery(cuda_event handle)
{
    struct event *event;
    bool done;

    DRIVER_TRY(event_of(handle, &event));
    engine_lock();
    done = !event->op || stream_operation_seen(event->op);
    engine_unlock();
    DRIVER_TRY(device_check());
    return done ? CUDA_OK : CUDA_ERR_NOT_READY;
}

cuda_result cuEventSynchronize(cuda_event handle)
{
    struct event *event;
    cuda_result result = CUDA_OK;

    DRIVER_TRY(event_of(handle, &event));
    engine_lock();
    if (event->op)
        result = stream_operation_await(event->op);
    engine_unlock();
    return result == CUDA_OK ? settle(event->device) : result;
}

cuda_result cuEventElapsedTime_v2(float *milliseconds, cuda_event start_handle,
                                  cuda_event end_handle)
{
    struct event *start, *end;
    cuda_result result = CUDA_OK;

    DRIVER_TRY(event_of(start_handle, &start));
    DRIVER_TRY(event_of(end_handle, &end));
    if (!milliseconds)
        return CUDA_ERR_INVALID_VALUE;
    if (start->device != end->device || (start->flags & CUDA_EVENT_DISABLE_TIMING) ||
        (end->flags & CUDA_EVENT_DISABLE_TIMING))
        return CUDA_ERR_INVALID_HANDLE;
    engine_lock();
    if (!start->op || !end->op)
        result = CUDA_ERR_INVALID_HANDLE;
    else if (!stream_operation_seen(start->op) || !stream_operation_seen(end->op))
        result = CUDA_ERR_NOT_READY;
    else
        *milliseconds = (float)((double)((int64_t)(end->op->end - start->op->end)) / 1e6);
    engine_unlock();
    return result;
}
