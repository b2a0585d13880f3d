/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_host_fn.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/cuda/driver/base/driver_result.h"
#include "client/cuda/driver/base/driver_thread.h"
#include "client/engine/connection.h"
#include "client/engine/recovery.h"
#include "client/engine/stream.h"
#include "common/list.h"

struct call {
    struct list_link link;
    struct driver_host_fn fn;
    gpushare_connection *connection;
    struct gpushare_stream *host; /* the stream that only the thread pushes into */
    uint32_t stream;              /* the program's, which may be destroyed meanwhile */
    uint64_t value;               /* of the work before the function */
};

/* Held over a push, so that values are named in the order of the calls. A push may wait for room in
 * the stream, which the thread makes: so the thread takes only the other lock, which is taken last.
 */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct list calls = LIST_INIT(calls); /* the first one runs, or will next; under the lock */
static bool started;                         /* the thread; under order */
static _Thread_local bool is_caller;

_Atomic unsigned driver_host_fn_ended;
atomic_bool driver_host_fn_used;

/* ---- the thread ---- */

/* The command that the program's stream waits for: it waits for what was reached already. It is
 * pushed after lost work too, since streams that are not lost may wait for it. */
static void let_go(const struct call *call)
{
    const struct proto_dependency reached = {.stream = call->stream, .value = call->value};
    gpushare_error error;
    /* The stream itself is interrupted if a worker was lost with its latest command in flight. Its
     * later values are named already, so they have to be reached. */
    while ((error = stream_begin(call->host)) == GPUSHARE_ERROR_INTERRUPTED) {
        struct gpushare_recovery lost = {0};
        if (recovery_ask(call->host, &lost))
            return;
    }
    if (error)
        return;
    (void)stream_push_wait(call->host, reached);
    stream_end(call->host);
}

static void make(const struct call *call)
{
    gpushare_error error = stream_wait_value(call->connection, call->stream, call->value);
    if (call->fn.callback)
        call->fn.callback(call->fn.handle, error ? CUDA_ERR_LAUNCH_FAILED : CUDA_OK, call->fn.user);
    else if (!error)
        call->fn.function(call->fn.user);
    atomic_fetch_add_explicit(&driver_host_fn_ended, 1, memory_order_release);
    let_go(call);
}

/* Ends with the process: CUDA has no call that would join it. */
static void *main_of_thread(void *unused)
{
    (void)unused;
    is_caller = true;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct call *call = LIST_FIRST(&calls, struct call, link);
        if (!call) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        make(call);
        pthread_mutex_lock(&lock);
        list_remove(&call->link);
        free(call);
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* Under order. */
static cuda_result start(void)
{
    if (started)
        return CUDA_OK;
    atomic_store(&driver_host_fn_used, true);
    DRIVER_TRY(driver_thread_start("gpushare-host", main_of_thread));
    started = true;
    return CUDA_OK;
}

/* ---- the callers ---- */

/* Under order. */
static cuda_result prepare(struct driver_device *device, const struct gpushare_stream *stream)
{
    DRIVER_TRY(start());
    if (device->host_stream)
        return CUDA_OK;
    device->host_value = 0;
    DRIVER_TRY(driver_result(
        stream_open(stream->connection, GPUSHARE_STREAM_NON_BLOCKING, 0, &device->host_stream)));
    device->host_value = stream_last(device->host_stream);
    return CUDA_OK;
}

/* Under order. */
static cuda_result push(struct driver_device *device, struct gpushare_stream *stream,
                        struct call *call)
{
    DRIVER_TRY(prepare(device, stream));
    /* It makes the stream wait for the work of others that the function must follow. */
    DRIVER_TRY(driver_result(stream_begin(stream)));
    const struct proto_dependency returned = {.stream = device->host_stream->index,
                                              .value = device->host_value + 1};
    call->connection = stream->connection;
    call->host = device->host_stream;
    call->stream = stream->index;
    call->value = stream_last(stream);
    gpushare_error error = stream_push_wait(stream, returned);
    stream_end(stream);
    DRIVER_TRY(driver_result(error));
    device->host_value++;
    pthread_mutex_lock(&lock);
    list_append(&calls, &call->link);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CUDA_OK;
}

cuda_result driver_host_fn_push(struct driver_device *device, struct gpushare_stream *stream,
                                const struct driver_host_fn *fn)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return CUDA_ERR_OUT_OF_MEMORY;
    call->fn = *fn;
    pthread_mutex_lock(&order);
    cuda_result result = push(device, stream, call);
    pthread_mutex_unlock(&order);
    if (result != CUDA_OK)
        free(call);
    return result;
}

/* The lock is held. */
static bool has_any(const gpushare_connection *connection)
{
    struct call *call;
    LIST_FOR_EACH (call, &calls, link)
        if (call->connection == connection)
            break;
    return call != NULL;
}

void driver_host_fn_drain(const gpushare_connection *connection)
{
    pthread_mutex_lock(&lock);
    while (has_any(connection))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

bool driver_host_fn_runs_here(void)
{
    return is_caller;
}
