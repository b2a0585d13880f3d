/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams and events. Their handles are the engine's objects. */
#include <string.h>

#include "client/cuda/driver/base/driver_absent.h"
#include "client/cuda/driver/base/driver_context.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/base/driver_host_fn.h"
#include "client/cuda/driver/base/driver_pool.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/copy.h"
#include "client/engine/event.h"
#include "client/engine/memory.h"
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

/* No stream is of a green context. */
cuda_result cuStreamGetCtx_v2(cuda_stream handle, cuda_context *context, cuda_green_ctx *green)
{
    DRIVER_TRY(cuStreamGetCtx(handle, context));
    if (green)
        *green = NULL;
    return CUDA_OK;
}

cuda_result cuStreamGetId(cuda_stream handle, unsigned long long *id)
{
    struct gpushare_stream *stream;
    if (!id)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    *id = stream->id;
    return CUDA_OK;
}

cuda_result cuStreamGetDevice(cuda_stream handle, cuda_device *ordinal)
{
    struct gpushare_stream *stream;
    if (!ordinal)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    const struct driver_device *device = driver_device_of(stream->connection);
    if (!device)
        return CUDA_ERR_CONTEXT_IS_DESTROYED;
    *ordinal = device->ordinal;
    return CUDA_OK;
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

/* mode: how the device waits for the function, which is a hint. */
cuda_result cuLaunchHostFunc_v2(cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)
{
    return mode > 1 ? CUDA_ERR_INVALID_VALUE : cuLaunchHostFunc(stream, fn, user);
}

cuda_result cuStreamAddCallback(cuda_stream stream, cuda_stream_callback callback, void *user,
                                unsigned flags)
{
    const struct driver_host_fn call = {.callback = callback, .handle = stream, .user = user};
    return callback && !flags ? push_call(stream, &call) : CUDA_ERR_INVALID_VALUE;
}

/* ---- attributes of streams ---- */

/* A stream's note: hints that are kept because programs read them back. */
enum {
    POLICY_MASK = 0x7, /* how a thread waits for the stream; 0 stands for POLICY_AUTO */
    POLICY_AUTO = 1,
    POLICY_LAST = 4,
    DOMAIN_SHIFT = 3, /* of fences: one for all is the wider fence */
    DOMAIN_MASK = 0x8,
    MAP_SHIFT = 16,
    MAP_MASK = 0xffff0000u,
};

/* The values are those of launches, without their number in front. */
cuda_result cuStreamGetAttribute(cuda_stream handle, int attribute, void *value)
{
    struct gpushare_stream *stream;
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    const uint32_t note = atomic_load(&stream->note);
    const struct cuda_access_window none = {0};
    uint16_t map = (uint16_t)(note >> MAP_SHIFT);
    int number;
    switch (attribute) {
    case CUDA_LAUNCH_ACCESS_POLICY_WINDOW:
        memcpy(value, &none, sizeof none);
        return CUDA_OK;
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN_MAP:
        memcpy(value, &map, sizeof map);
        return CUDA_OK;
    case CUDA_LAUNCH_SYNCHRONIZATION_POLICY:
        number = note & POLICY_MASK ? (int)(note & POLICY_MASK) : POLICY_AUTO;
        break;
    case CUDA_LAUNCH_PRIORITY:
        number = stream->priority;
        break;
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN:
        number = (int)(note >> DOMAIN_SHIFT & 1);
        break;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
    memcpy(value, &number, sizeof number);
    return CUDA_OK;
}

static void write_note(struct gpushare_stream *stream, uint32_t mask, uint32_t bits)
{
    uint32_t note = atomic_load(&stream->note);
    while (!atomic_compare_exchange_weak(&stream->note, &note, (note & ~mask) | bits))
        ;
}

/* A priority is the stream's from its making on, and no device here has windows of its cache for a
 * stream. */
cuda_result cuStreamSetAttribute(cuda_stream handle, int attribute, const void *value)
{
    struct gpushare_stream *stream;
    struct cuda_access_window window;
    uint16_t map;
    int number;
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    memcpy(&number, value, sizeof number);
    switch (attribute) {
    case CUDA_LAUNCH_ACCESS_POLICY_WINDOW:
        memcpy(&window, value, sizeof window);
        return window.bytes ? CUDA_ERR_NOT_SUPPORTED : CUDA_OK;
    case CUDA_LAUNCH_SYNCHRONIZATION_POLICY:
        if (number < POLICY_AUTO || number > POLICY_LAST)
            return CUDA_ERR_INVALID_VALUE;
        write_note(stream, POLICY_MASK, (uint32_t)number);
        return CUDA_OK;
    case CUDA_LAUNCH_PRIORITY:
        return number == stream->priority ? CUDA_OK : CUDA_ERR_NOT_SUPPORTED;
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN_MAP:
        memcpy(&map, value, sizeof map);
        write_note(stream, MAP_MASK, (uint32_t)map << MAP_SHIFT);
        return CUDA_OK;
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN:
        if (number != 0 && number != 1)
            return CUDA_ERR_INVALID_VALUE;
        write_note(stream, DOMAIN_MASK, (uint32_t)number << DOMAIN_SHIFT);
        return CUDA_OK;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

cuda_result cuStreamCopyAttributes(cuda_stream to_handle, cuda_stream from_handle)
{
    struct gpushare_stream *to, *from;
    DRIVER_TRY(driver_stream_resolve(to_handle, &to));
    DRIVER_TRY(driver_stream_resolve(from_handle, &from));
    if (to->priority != from->priority)
        return CUDA_ERR_NOT_SUPPORTED;
    atomic_store(&to->note, atomic_load(&from->note));
    return CUDA_OK;
}

/* ---- captures, of which there are none ---- */

/* The members behind the status are written for a stream that is captured alone. */
cuda_result cuStreamIsCapturing(cuda_stream handle, int *status)
{
    struct gpushare_stream *stream;
    if (!status)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_resolve(handle, &stream));
    *status = 0;
    return CUDA_OK;
}

cuda_result cuStreamGetCaptureInfo(cuda_stream stream, int *status, uint64_t *id)
{
    (void)id;
    return cuStreamIsCapturing(stream, status);
}

cuda_result cuStreamGetCaptureInfo_v2(cuda_stream stream, int *status, uint64_t *id, void **graph,
                                      const void **dependencies, size_t *count)
{
    (void)id;
    (void)graph;
    (void)dependencies;
    (void)count;
    return cuStreamIsCapturing(stream, status);
}

cuda_result cuStreamGetCaptureInfo_v3(cuda_stream stream, int *status, uint64_t *id, void **graph,
                                      const void **dependencies, const void **edges, size_t *count)
{
    (void)edges;
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, count);
}

/* A thread keeps its mode, which says how much a capture forbids it. */
cuda_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    enum { RELAXED = 2 };
    static _Thread_local int kept;
    if (!mode || *mode < 0 || *mode > RELAXED)
        return CUDA_ERR_INVALID_VALUE;
    int before = kept;
    kept = *mode;
    *mode = before;
    return CUDA_OK;
}

/* ---- values in memory ---- */

/* A fill of one word. The work before it in the stream is done by then, so the barrier that a flag
 * could leave out is there anyway. */
cuda_result cuStreamWriteValue32_v2(cuda_stream handle, cuda_device_ptr ptr, uint32_t value,
                                    unsigned flags)
{
    gpushare_connection *connection;
    if (flags & ~(unsigned)CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream_connection(handle, &connection));
    enum memory_kind kind = memory_classify(connection, ptr, sizeof value);
    struct gpushare_stream *stream;
    if (ptr % sizeof value || (kind != MEMORY_DEVICE && kind != MEMORY_HOST))
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_stream(connection, handle, &stream));
    return driver_work_result(connection, copy_fill(stream, ptr, value, sizeof value, 1));
}

/* No command waits for a value, and none writes 64 bits at once. */
static cuda_result check_operation(const cuda_mem_op_params *op)
{
    static atomic_flag named = ATOMIC_FLAG_INIT;
    switch (op->operation) {
    case CUDA_MEM_OP_WRITE_VALUE_32:
    case CUDA_MEM_OP_BARRIER:
        return CUDA_OK;
    default:
        return driver_absent_call("cuStreamBatchMemOp of waits, 64 bits and flushes", &named);
    }
}

/* A command of a stream follows the one before it, so a barrier is there anyway. */
cuda_result cuStreamBatchMemOp_v2(cuda_stream stream, unsigned count, cuda_mem_op_params *ops,
                                  unsigned flags)
{
    enum { COUNT_MAX = 256 }; /* CUDA's own limit */
    if (flags || count > COUNT_MAX || (count && !ops))
        return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        DRIVER_TRY(check_operation(&ops[i]));
    for (unsigned i = 0; i < count; i++)
        if (ops[i].operation == CUDA_MEM_OP_WRITE_VALUE_32)
            DRIVER_TRY(cuStreamWriteValue32_v2(stream, ops[i].write_value.address,
                                               ops[i].write_value.value, ops[i].write_value.flags));
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

/* flags: the only one that exists is for captures. */
cuda_result cuEventRecordWithFlags(cuda_event event, cuda_stream stream, unsigned flags)
{
    return flags ? CUDA_ERR_INVALID_VALUE : cuEventRecord(event, stream);
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
