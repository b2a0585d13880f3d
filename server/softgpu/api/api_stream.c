/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Streams, events, stream memory operations, functions on the host.
 */
#include <stdlib.h>

#include "common/cuda/front/driver_pool.h"
#include "common/cuda/stream_value.h"
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

static cuda_result make_write(struct operation_write *write, cuda_device_ptr address,
                              uint64_t value, unsigned width, unsigned flags)
{
    /* Work before it is done by then, so the barrier that a flag could leave out is there anyway.
     */
    if (flags & ~(unsigned)CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) {
        report("stream write: flags 0x%x are not supported", flags);
        return CUDA_ERR_NOT_SUPPORTED;
    }
    if (address % width != 0 || !memory_accessible(address, width, MEMORY_WRITE))
        return CUDA_ERR_INVALID_VALUE;
    *write = (struct operation_write){address, value, width};
    return CUDA_OK;
}

static cuda_result submit_writes(struct stream *stream, const struct operation_write *writes,
                                 unsigned count)
{
    struct operation *op;

    if (stream->green && device_settings()->no_green_memops)
        return CUDA_ERR_NOT_SUPPORTED;
    op = stream_operation_create(OPERATION_WRITE);
    if (op)
        op->write.writes = malloc(count * sizeof(*writes));
    if (!op || !op->write.writes) {
        free(op);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    for (unsigned i = 0; i < count; i++)
        op->write.writes[i] = writes[i];
    op->write.count = count;
    return enqueue_operation(stream, op);
}

static cuda_result write_value(cuda_stream handle, cuda_device_ptr address, uint64_t value,
                               unsigned width, unsigned flags)
{
    struct operation_write write;
    struct stream *stream;

    DRIVER_TRY(api_stream(handle, &stream));
    DRIVER_TRY(make_write(&write, address, value, width, flags));
    return submit_writes(stream, &write, 1);
}

cuda_result cuStreamWriteValue32_v2(cuda_stream stream, cuda_device_ptr address, uint32_t value,
                                    unsigned flags)
{
    return write_value(stream, address, value, 4, flags);
}

cuda_result cuStreamWriteValue64_v2(cuda_stream stream, cuda_device_ptr address, uint64_t value,
                                    unsigned flags)
{
    return write_value(stream, address, value, 8, flags);
}

static cuda_result read_wait(struct stream_value *wanted, cuda_device_ptr address, uint64_t value,
                             unsigned width, unsigned flags)
{
    cuda_result result = stream_value_read(wanted, address, value, width, flags);

    if (result == CUDA_ERR_NOT_SUPPORTED)
        report("stream wait: a flush of remote writes is not supported");
    DRIVER_TRY(result);
    return memory_accessible(address, width, MEMORY_READ) ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
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

static cuda_result wait_value(cuda_stream handle, cuda_device_ptr address, uint64_t value,
                              unsigned width, unsigned flags)
{
    struct stream_value wanted;
    struct stream *stream;

    DRIVER_TRY(api_stream(handle, &stream));
    DRIVER_TRY(read_wait(&wanted, address, value, width, flags));
    return submit_wait(stream, &wanted);
}

cuda_result cuStreamWaitValue32_v2(cuda_stream stream, cuda_device_ptr address, uint32_t value,
                                   unsigned flags)
{
    return wait_value(stream, address, value, 4, flags);
}

cuda_result cuStreamWaitValue64_v2(cuda_stream stream, cuda_device_ptr address, uint64_t value,
                                   unsigned flags)
{
    return wait_value(stream, address, value, 8, flags);
}

/* One of a batch, checked. A barrier is one with the order of the stream, and no operation. */
struct memory_operation {
    enum { MEMORY_BARRIER, MEMORY_WAIT, MEMORY_STORE } kind;
    struct stream_value wanted;
    struct operation_write write;
};

static cuda_result read_mem_op(const cuda_mem_op_params *params, struct memory_operation *read)
{
    bool wide = params->operation == CUDA_MEM_OP_WRITE_VALUE_64 ||
                params->operation == CUDA_MEM_OP_WAIT_VALUE_64;
    uint64_t value = wide ? params->write_value.value64 : params->write_value.value;
    cuda_device_ptr address = params->write_value.address;
    unsigned flags = params->write_value.flags;

    switch (params->operation) {
    case CUDA_MEM_OP_WRITE_VALUE_32:
    case CUDA_MEM_OP_WRITE_VALUE_64:
        read->kind = MEMORY_STORE;
        return make_write(&read->write, address, value, wide ? 8 : 4, flags);
    case CUDA_MEM_OP_WAIT_VALUE_32:
    case CUDA_MEM_OP_WAIT_VALUE_64:
        read->kind = MEMORY_WAIT;
        return read_wait(&read->wanted, address, value, wide ? 8 : 4, flags);
    case CUDA_MEM_OP_BARRIER:
        read->kind = MEMORY_BARRIER;
        return CUDA_OK;
    case CUDA_MEM_OP_FLUSH_REMOTE_WRITES:
        report("stream memory operation %d is not supported: only waits, writes and barriers are",
               (int)params->operation);
        return CUDA_ERR_NOT_SUPPORTED;
    }
    return CUDA_ERR_INVALID_VALUE;
}

/* Writes that stand together are one operation, as they are on a device. */
static cuda_result submit_batch(struct stream *stream, const struct memory_operation *ops,
                                unsigned count, struct operation_write *writes)
{
    unsigned used = 0;

    for (unsigned i = 0; i < count; i++) {
        if (ops[i].kind == MEMORY_STORE)
            writes[used++] = ops[i].write;
        if (ops[i].kind != MEMORY_WAIT)
            continue;
        if (used)
            DRIVER_TRY(submit_writes(stream, writes, used));
        used = 0;
        DRIVER_TRY(submit_wait(stream, &ops[i].wanted));
    }
    return used ? submit_writes(stream, writes, used) : CUDA_OK;
}

cuda_result cuStreamBatchMemOp_v2(cuda_stream handle, unsigned count, cuda_mem_op_params *ops,
                                  unsigned flags)
{
    enum { OPERATIONS_MAX = 256 };
    struct memory_operation read[OPERATIONS_MAX];
    struct operation_write writes[OPERATIONS_MAX];
    struct stream *stream;

    DRIVER_TRY(api_stream(handle, &stream));
    if (count == 0 || count > OPERATIONS_MAX || !ops || flags != 0)
        return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        DRIVER_TRY(read_mem_op(&ops[i], &read[i]));
    return submit_batch(stream, read, count, writes);
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
