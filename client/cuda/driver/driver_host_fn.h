/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_host_fn: functions of the program that run in a stream's order, on a thread of this
 * library.
 *
 * A function is called when the work before it is done. Work behind it is pushed when the function
 * has returned: the server knows nothing of it, so the call that pushes such work waits. That is
 * where this differs from CUDA: a function must not wait for a thread that uses its stream
 * meanwhile. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_DRIVER_HOST_FN_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_DRIVER_HOST_FN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"

struct gpushare_stream;

/* One of both. A function is not called if the work before it is lost; a callback is told so. */
struct driver_host_fn {
    cuda_host_fn function;
    cuda_stream_callback callback;
    cuda_stream handle; /* for the callback */
    void *user;
};

/* Calls it when all work pushed into the stream so far is done. Returns 0, CUDA_ERR_OUT_OF_MEMORY,
 * or CUDA_ERR_OPERATING_SYSTEM if there is no thread. */
cuda_result driver_host_fn_push(struct gpushare_stream *stream, const struct driver_host_fn *call);

/* How many were pushed and have not returned, of all connections. */
extern atomic_uint driver_host_fn_pending;

/* Whether work pushed into the stream now would have to follow a function that has not returned;
 * and waits until it would not. */
bool driver_host_fn_holds(const struct gpushare_stream *stream);
void driver_host_fn_await(const struct gpushare_stream *stream);

/* Waits for all functions of a connection. */
void driver_host_fn_drain(const gpushare_connection *connection);

/* Whether this thread runs such a function, which must not call CUDA. */
bool driver_host_fn_is_caller(void);

#endif
