/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_context: CUDA's contexts, which are local objects: each stands on its device's connection.
 * A thread has a stack of current ones. Any thread.
 *
 * A context object is never freed, so that a handle of a destroyed one is recognised.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_CONTEXT_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_CONTEXT_H

#include "client/cuda/driver/base/driver_device.h"
#include "common/cuda/cuda_driver.h"

struct gpushare_stream;

struct cuda_context_object {
    struct driver_device *device;
    unsigned long long id; /* unique in the process */
    _Atomic unsigned flags;
    atomic_bool alive;
};

/* The device's primary context. It is alive while it is retained. */
cuda_result driver_context_primary(cuda_device ordinal, cuda_context *context);
cuda_result driver_context_retain(cuda_context primary);
/* all: whoever retained it. Returns CUDA_ERR_INVALID_CONTEXT if nobody has. */
cuda_result driver_context_release(cuda_context primary, bool all);

cuda_result driver_context_create(cuda_device ordinal, unsigned flags, cuda_context *context);
cuda_result driver_context_destroy(cuda_context context);

/* The thread's stack. The top is NULL if it is empty. */
cuda_result driver_context_push(cuda_context context);
cuda_result driver_context_pop(cuda_context *context);
cuda_result driver_context_set(cuda_context context);
cuda_context driver_context_top(void);

/* Gives the context of a handle: NULL stands for the thread's current one. */
cuda_result driver_context_check(cuda_context handle, cuda_context *context);

/* Gives the connection of the thread's current context, checked: it can be used now. Returns
 * CUDA_ERR_NOT_INITIALIZED, CUDA_ERR_INVALID_CONTEXT, CUDA_ERR_CONTEXT_IS_DESTROYED or the sticky
 * error that ended it. */
cuda_result driver_context_connection(gpushare_connection **connection);

/* The same for the connection of an object, and without one. */
cuda_result driver_connection_check(gpushare_connection *connection);

/* The result of work on a connection: from a lost launch on, every later call returns the same. */
cuda_result driver_work_result(gpushare_connection *connection, gpushare_error error);

/* Gives the engine's stream of a handle of the connection, which may be one of CUDA's special
 * values. */
cuda_result driver_stream(gpushare_connection *connection, cuda_stream handle,
                          struct gpushare_stream **stream);

/* Gives the connection of a stream's handle, checked. A made stream belongs to its connection,
 * whichever context is current. */
cuda_result driver_stream_connection(cuda_stream handle, gpushare_connection **connection);

/* Both. */
cuda_result driver_stream_resolve(cuda_stream handle, struct gpushare_stream **stream);

/* A handle as the calls of per-thread default streams mean it. */
static inline cuda_stream driver_stream_own(cuda_stream handle)
{
    return handle ? handle : CUDA_STREAM_PER_THREAD;
}

/* The same handle for the engine's calls that take handles. */
gpushare_stream *driver_stream_handle(cuda_stream handle);

#endif
