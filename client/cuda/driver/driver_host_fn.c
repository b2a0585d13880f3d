/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/driver_host_fn.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "common/list.h"

struct call {
    struct list_link link;
    struct driver_host_fn fn;
    gpushare_connection *connection;
    struct gpushare_stream *stream; /* is not destroyed before the call has returned */
    uint64_t value;
};

atomic_uint driver_host_fn_pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct list calls = LIST_INIT(calls); /* the first one runs, or will next; under the lock */
static bool started;                         /* the thread; under the lock */
static _Thread_local bool is_caller;

/* ---- the thread ---- */

static void make(const struct call *call)
{
    gpushare_error error = stream_wait_value(call->connection, call->stream->index, call->value);
    if (call->fn.callback)
        call->fn.callback(call->fn.handle, error ? CUDA_ERR_LAUNCH_FAILED : CUDA_OK, call->fn.user);
    else if (!error)
        call->fn.function(call->fn.user);
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
        atomic_fetch_sub(&driver_host_fn_pending, 1);
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* The lock is held. The program's signals are for its own threads. */
static int start(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, main_of_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error) {
        pthread_setname_np(thread, "gpushare-host");
        pthread_detach(thread);
    }
    return error;
}

/* ---- the callers ---- */

cuda_result driver_host_fn_push(struct gpushare_stream *stream, const struct driver_host_fn *fn)
{
    cuda_result result = CUDA_OK;
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        return CUDA_ERR_OUT_OF_MEMORY;
    *call = (struct call){.fn = *fn,
                          .connection = stream->connection,
                          .stream = stream,
                          .value = stream_last(stream)};
    pthread_mutex_lock(&lock);
    if (!started && start())
        result = CUDA_ERR_OPERATING_SYSTEM;
    if (result == CUDA_OK) {
        started = true;
        atomic_fetch_add(&driver_host_fn_pending, 1);
        list_append(&calls, &call->link);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (result != CUDA_OK)
        free(call);
    return result;
}

static bool is_ordered(const struct gpushare_stream *stream)
{
    return !(stream->flags & GPUSHARE_STREAM_NON_BLOCKING);
}

/* The default stream and the blocking ones wait for each other. The lock is held. */
static bool holds(const struct gpushare_stream *stream)
{
    const struct gpushare_stream *defaults = stream->connection->default_stream;
    struct call *call;
    LIST_FOR_EACH (call, &calls, link)
        if (call->stream == stream ||
            (call->connection == stream->connection && is_ordered(stream) &&
             is_ordered(call->stream) && (stream == defaults || call->stream == defaults)))
            return true;
    return false;
}

bool driver_host_fn_holds(const struct gpushare_stream *stream)
{
    pthread_mutex_lock(&lock);
    bool held = holds(stream);
    pthread_mutex_unlock(&lock);
    return held;
}

void driver_host_fn_await(const struct gpushare_stream *stream)
{
    pthread_mutex_lock(&lock);
    while (holds(stream))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
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

bool driver_host_fn_is_caller(void)
{
    return is_caller;
}
