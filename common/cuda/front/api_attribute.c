/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams: the shorter forms of calls on them, what they are, their attributes, captures, of which
 * there are none, and their operations on words in memory. */
#include <string.h>

#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_context.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

/* ---- shorter forms ---- */

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

/* flags: the only one that exists is for captures. */
cuda_result cuEventRecordWithFlags(cuda_event event, cuda_stream stream, unsigned flags)
{
    return flags ? CUDA_ERR_INVALID_VALUE : cuEventRecord(event, stream);
}

cuda_result cuEventElapsedTime(float *milliseconds, cuda_event start, cuda_event end)
{
    return cuEventElapsedTime_v2(milliseconds, start, end);
}

/* ---- what streams are ---- */

cuda_result cuStreamGetPriority(cuda_stream handle, int *priority)
{
    struct front_stream stream;
    if (!priority)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    *priority = stream.priority;
    return CUDA_OK;
}

cuda_result cuStreamGetFlags(cuda_stream handle, unsigned *flags)
{
    struct front_stream stream;
    if (!flags)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    *flags = stream.flags;
    return CUDA_OK;
}

/* The contexts of a device share its streams, so another one may stand for the one that made it. */
cuda_result cuStreamGetCtx(cuda_stream handle, cuda_context *context)
{
    struct front_stream stream;
    if (!context)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    return driver_context_of_object(stream.device, context);
}

cuda_result cuStreamGetCtx_v2(cuda_stream handle, cuda_context *context, cuda_green_ctx *green)
{
    struct front_stream stream;
    DRIVER_TRY(cuStreamGetCtx(handle, context));
    DRIVER_TRY(front_stream_find(handle, &stream));
    if (green)
        *green = stream.green;
    return CUDA_OK;
}

cuda_result cuStreamGetId(cuda_stream handle, unsigned long long *id)
{
    struct front_stream stream;
    if (!id)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    *id = stream.id;
    return CUDA_OK;
}

cuda_result cuStreamGetDevice(cuda_stream handle, cuda_device *device)
{
    struct front_stream stream;
    if (!device)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    *device = stream.device;
    return CUDA_OK;
}

/* mode: how the device waits for the function, which is a hint. */
cuda_result cuLaunchHostFunc_v2(cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)
{
    return mode > 1 ? CUDA_ERR_INVALID_VALUE : cuLaunchHostFunc(stream, fn, user);
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
    struct front_stream stream;
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    const uint32_t note = atomic_load(stream.note);
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
        number = stream.priority;
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

static void write_note(const struct front_stream *stream, uint32_t mask, uint32_t bits)
{
    uint32_t note = atomic_load(stream->note);
    while (!atomic_compare_exchange_weak(stream->note, &note, (note & ~mask) | bits))
        ;
}

/* A priority is the stream's from its making on, and no device here has windows of its cache for a
 * stream. */
cuda_result cuStreamSetAttribute(cuda_stream handle, int attribute, const void *value)
{
    struct front_stream stream;
    struct cuda_access_window window;
    uint16_t map;
    int number;
    if (!value)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
    memcpy(&number, value, sizeof number);
    switch (attribute) {
    case CUDA_LAUNCH_ACCESS_POLICY_WINDOW:
        memcpy(&window, value, sizeof window);
        return window.bytes ? DRIVER_ABSENT_CASE("cuStreamSetAttribute of an access policy window")
                            : CUDA_OK;
    case CUDA_LAUNCH_SYNCHRONIZATION_POLICY:
        if (number < POLICY_AUTO || number > POLICY_LAST)
            return CUDA_ERR_INVALID_VALUE;
        write_note(&stream, POLICY_MASK, (uint32_t)number);
        return CUDA_OK;
    case CUDA_LAUNCH_PRIORITY:
        return number == stream.priority
                   ? CUDA_OK
                   : DRIVER_ABSENT_CASE("cuStreamSetAttribute of another priority");
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN_MAP:
        memcpy(&map, value, sizeof map);
        write_note(&stream, MAP_MASK, (uint32_t)map << MAP_SHIFT);
        return CUDA_OK;
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN:
        if (number != 0 && number != 1)
            return CUDA_ERR_INVALID_VALUE;
        write_note(&stream, DOMAIN_MASK, (uint32_t)number << DOMAIN_SHIFT);
        return CUDA_OK;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
}

cuda_result cuStreamCopyAttributes(cuda_stream to_handle, cuda_stream from_handle)
{
    struct front_stream to, from;
    DRIVER_TRY(front_stream_find(to_handle, &to));
    DRIVER_TRY(front_stream_find(from_handle, &from));
    if (to.priority != from.priority)
        return DRIVER_ABSENT_CASE("cuStreamCopyAttributes between priorities");
    atomic_store(to.note, atomic_load(from.note));
    return CUDA_OK;
}

/* ---- captures, of which there are none ---- */

/* The members behind the status are written for a stream that is captured alone. */
cuda_result cuStreamIsCapturing(cuda_stream handle, int *status)
{
    struct front_stream stream;
    if (!status)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(front_stream_find(handle, &stream));
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

/* ---- words in memory ---- */

/* CAN_FLUSH_REMOTE_WRITES is 0 for every device. */
static cuda_result refuse_flush(void)
{
    return DRIVER_ABSENT_CASE("flushes of remote writes in a stream's order");
}

/* The work before a write is done by then, so the barrier that a flag could leave out is there
 * anyway. */
static cuda_result read_write(struct front_word *word, unsigned flags)
{
    word->wait = false;
    return flags & ~(unsigned)CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ? CUDA_ERR_INVALID_VALUE
                                                                        : CUDA_OK;
}

static cuda_result read_wait(struct front_word *word, unsigned flags)
{
    word->wait = true;
    word->value.condition = flags & ~(unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH;
    if (word->value.condition > CUDA_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERR_INVALID_VALUE;
    return flags & (unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH ? refuse_flush() : CUDA_OK;
}

static cuda_result read_operation(cuda_mem_op operation, cuda_device_ptr ptr, uint64_t value,
                                  unsigned flags, struct front_word *word)
{
    bool wide = operation == CUDA_MEM_OP_WRITE_VALUE_64 || operation == CUDA_MEM_OP_WAIT_VALUE_64;
    word->value = (struct stream_value){
        .address = ptr, .value = wide ? value : (uint32_t)value, .width = wide ? 8 : 4};
    switch (operation) {
    case CUDA_MEM_OP_FLUSH_REMOTE_WRITES:
        return refuse_flush();
    case CUDA_MEM_OP_WRITE_VALUE_32:
    case CUDA_MEM_OP_WRITE_VALUE_64:
        DRIVER_TRY(read_write(word, flags));
        break;
    case CUDA_MEM_OP_WAIT_VALUE_32:
    case CUDA_MEM_OP_WAIT_VALUE_64:
        DRIVER_TRY(read_wait(word, flags));
        break;
    default:
        return CUDA_ERR_INVALID_VALUE;
    }
    return ptr % word->value.width ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

/* The members of an operation that waits lie where those of one that writes do, and a value of 4
 * bytes where the lower half of one of 8 does. An operation of a stream follows the one before it,
 * so a barrier is there anyway. */
cuda_result cuStreamBatchMemOp_v2(cuda_stream handle, unsigned count, cuda_mem_op_params *ops,
                                  unsigned flags)
{
    enum { OPERATIONS_MAX = 256 }; /* CUDA's own limit */
    struct front_word words[OPERATIONS_MAX];
    struct front_stream stream;
    unsigned used = 0;
    DRIVER_TRY(front_stream_find(handle, &stream));
    if (!count || count > OPERATIONS_MAX || !ops || flags)
        return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (ops[i].operation != CUDA_MEM_OP_BARRIER)
            DRIVER_TRY(read_operation(ops[i].operation, ops[i].write_value.address,
                                      ops[i].write_value.value64, ops[i].write_value.flags,
                                      &words[used++]));
    return used ? front_words(handle, words, used) : CUDA_OK;
}

static cuda_result put_word(cuda_stream handle, cuda_mem_op operation, cuda_device_ptr ptr,
                            uint64_t value, unsigned flags)
{
    struct front_word word;
    struct front_stream stream;
    DRIVER_TRY(front_stream_find(handle, &stream));
    DRIVER_TRY(read_operation(operation, ptr, value, flags, &word));
    return front_words(handle, &word, 1);
}

cuda_result cuStreamWriteValue32_v2(cuda_stream stream, cuda_device_ptr ptr, uint32_t value,
                                    unsigned flags)
{
    return put_word(stream, CUDA_MEM_OP_WRITE_VALUE_32, ptr, value, flags);
}

cuda_result cuStreamWriteValue64_v2(cuda_stream stream, cuda_device_ptr ptr, uint64_t value,
                                    unsigned flags)
{
    return put_word(stream, CUDA_MEM_OP_WRITE_VALUE_64, ptr, value, flags);
}

cuda_result cuStreamWaitValue32_v2(cuda_stream stream, cuda_device_ptr ptr, uint32_t value,
                                   unsigned flags)
{
    return put_word(stream, CUDA_MEM_OP_WAIT_VALUE_32, ptr, value, flags);
}

cuda_result cuStreamWaitValue64_v2(cuda_stream stream, cuda_device_ptr ptr, uint64_t value,
                                   unsigned flags)
{
    return put_word(stream, CUDA_MEM_OP_WAIT_VALUE_64, ptr, value, flags);
}
