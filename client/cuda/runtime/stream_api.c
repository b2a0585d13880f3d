/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdlib.h>

#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_driver.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/release.h"
#include "client/cuda/runtime/runtime_exports.h"

/* ---- streams ------------------------------------------------------------------------------ */

cudart_error cudaStreamCreate(cuda_stream *stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamCreate, stream, CUDA_STREAM_DEFAULT));
}

cudart_error cudaStreamCreateWithFlags(cuda_stream *stream, unsigned flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamCreate, stream, flags));
}

cudart_error cudaStreamCreateWithPriority(cuda_stream *stream, unsigned flags, int priority)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamCreateWithPriority, stream, flags, priority));
}

cudart_error cudaStreamDestroy(cuda_stream stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamDestroy, stream));
}

cudart_error cudaStreamSynchronize(cuda_stream stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamSynchronize, stream));
}

cudart_error cudaStreamQuery(cuda_stream stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamQuery, stream));
}

cudart_error cudaStreamWaitEvent(cuda_stream stream, cuda_event event, unsigned flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamWaitEvent, stream, event, flags));
}

cudart_error cudaStreamGetPriority(cuda_stream stream, int *priority)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamGetPriority, stream, priority));
}

cudart_error cudaStreamIsCapturing(cuda_stream stream, int *status)
{
    enum { CAPTURE_STATUS_NONE = 0 };
    ENTER();
    if (!status)
        return runtime_error_note(CUDART_INVALID_VALUE);
    if (runtime_driver.cuStreamIsCapturing)
        return runtime_error_note(DRIVER(cuStreamIsCapturing, stream, status));
    *status = CAPTURE_STATUS_NONE; /* a driver without the call has no captures */
    return CUDART_OK;
}

/* For a driver that has the call, a capture that the program began through the driver has members
 * which the runtime does not know. */
cudart_error stream_api_capture(cuda_stream stream, int *status)
{
    enum { CAPTURE_STATUS_NONE = 0 };
    cudart_error error = cudaStreamIsCapturing(stream, status);

    return error == CUDART_OK && *status != CAPTURE_STATUS_NONE
               ? runtime_error_note(CUDART_NOT_SUPPORTED)
               : error;
}

cudart_error cudaThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER();
    return runtime_error_note(DRIVER(cuThreadExchangeStreamCaptureMode, mode));
}

/* ---- what a stream is ---- */

cudart_error cudaStreamGetFlags(cuda_stream stream, unsigned *flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamGetFlags, stream, flags));
}

cudart_error cudaStreamGetDevice(cuda_stream stream, int *device)
{
    ENTER();
    if (!device)
        return runtime_error_note(CUDART_INVALID_VALUE);
    return runtime_error_note(DRIVER(cuStreamGetDevice, stream, device));
}

cudart_error cudaStreamGetId(cuda_stream stream, unsigned long long *id)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamGetId, stream, id));
}

/* Attributes have the driver's numbers and layouts. */
cudart_error cudaStreamGetAttribute(cuda_stream stream, int attribute, void *value)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamGetAttribute, stream, attribute, value));
}

cudart_error cudaStreamSetAttribute(cuda_stream stream, int attribute, const void *value)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamSetAttribute, stream, attribute, value));
}

cudart_error cudaStreamCopyAttributes(cuda_stream to, cuda_stream from)
{
    ENTER();
    return runtime_error_note(DRIVER(cuStreamCopyAttributes, to, from));
}

/* ---- functions on the host ---- */

cudart_error cudaLaunchHostFunc(cuda_stream stream, cuda_host_fn fn, void *user)
{
    ENTER();
    return runtime_error_note(DRIVER(cuLaunchHostFunc, stream, fn, user));
}

/* The mode says how the device waits for the function, which changes nothing that it can see. */
cudart_error cudaLaunchHostFunc_v2(cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)
{
    return mode > 1 ? runtime_error_note(CUDART_INVALID_VALUE)
                    : cudaLaunchHostFunc(stream, fn, user);
}

/* A callback on a driver that has functions on the host alone. */
struct callback {
    cuda_stream stream;
    cuda_stream_callback fn;
    void *user;
};

static void call_back(void *user)
{
    const struct callback callback = *(struct callback *)user;

    free(user);
    callback.fn(callback.stream, CUDA_OK, callback.user);
}

/* Unlike CUDA's own, this callback is not called when the context is lost before its turn. */
static cudart_error call_in_order(cuda_stream stream, cuda_stream_callback fn, void *user)
{
    struct callback *callback = malloc(sizeof(*callback));
    cudart_error error;

    if (!callback)
        return CUDART_MEMORY_ALLOCATION;
    *callback = (struct callback){stream, fn, user};
    error = DRIVER(cuLaunchHostFunc, stream, call_back, callback);
    if (error != CUDART_OK)
        free(callback);
    return error;
}

cudart_error cudaStreamAddCallback(cuda_stream stream, cuda_stream_callback fn, void *user,
                                   unsigned flags)
{
    ENTER();
    if (!fn || flags != 0)
        return runtime_error_note(CUDART_INVALID_VALUE);
    return runtime_error_note(runtime_driver.cuStreamAddCallback
                                  ? DRIVER(cuStreamAddCallback, stream, fn, user, flags)
                                  : call_in_order(stream, fn, user));
}

/* ---- events ------------------------------------------------------------------------------- */

cudart_error cudaEventCreate(cuda_event *event)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventCreate, event, CUDA_EVENT_DEFAULT));
}

cudart_error cudaEventCreateWithFlags(cuda_event *event, unsigned flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventCreate, event, flags));
}

cudart_error cudaEventDestroy(cuda_event event)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventDestroy, event));
}

cudart_error cudaEventRecord(cuda_event event, cuda_stream stream)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventRecord, event, stream));
}

cudart_error cudaEventRecordWithFlags(cuda_event event, cuda_stream stream, unsigned flags)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventRecordWithFlags, event, stream, flags));
}

cudart_error cudaEventQuery(cuda_event event)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventQuery, event));
}

cudart_error cudaEventSynchronize(cuda_event event)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventSynchronize, event));
}

cudart_error cudaEventElapsedTime(float *milliseconds, cuda_event start, cuda_event end)
{
    ENTER();
    return runtime_error_note(DRIVER(cuEventElapsedTime, milliseconds, start, end));
}
