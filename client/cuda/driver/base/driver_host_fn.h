/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_host_fn: functions of the program that run in a stream's order, on a thread of this
 * library.
 *
 * A device has one stream more, into which the thread pushes a command when a function has
 * returned. The program's stream waits for that command's timeline value, which is named before the
 * command is there. So the caller waits at most for room in a full stream.
 * Functions run one after another, in the order in which they were pushed. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_HOST_FN_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_HOST_FN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "client/cuda/driver/base/driver_device.h"
#include "common/cuda/cuda_driver.h"

struct gpushare_stream;

/* One of both. A function is not called if the work before it is lost; a callback is told so. */
struct driver_host_fn {
    cuda_host_fn function;
    cuda_stream_callback callback;
    cuda_stream handle; /* for the callback */
    void *user;
};

/* Calls it when all work before it in the stream is done, which is of the device. Returns 0, an
 * error of the stream, CUDA_ERR_OUT_OF_MEMORY, or CUDA_ERR_OPERATING_SYSTEM if there is no thread.
 */
cuda_result driver_host_fn_push(struct driver_device *device, struct gpushare_stream *stream,
                                const struct driver_host_fn *call);

/* Waits for all functions that were pushed on a connection. Before it closes. */
void driver_host_fn_drain(const gpushare_connection *connection);

/* Read by the functions below alone: how many functions have returned, whether any was ever pushed,
 * and whether this thread runs them. */
extern _Atomic unsigned driver_host_fn_ended;
extern atomic_bool driver_host_fn_used;
bool driver_host_fn_runs_here(void);

/* After a wait for work: what the functions before that have written is visible to this thread. The
 * waiting thread hears of their end from the server, which is no order in the sense of the C
 * memory model, nor to ThreadSanitizer. */
static inline void driver_host_fn_order(void)
{
    (void)atomic_load_explicit(&driver_host_fn_ended, memory_order_acquire);
}

/* Whether this thread runs such a function, which must not call CUDA. Every launch asks this, and
 * a variable of the thread costs a library a call. */
static inline bool driver_host_fn_is_caller(void)
{
    return __builtin_expect(atomic_load_explicit(&driver_host_fn_used, memory_order_relaxed) &&
                                driver_host_fn_runs_here(),
                            0);
}

#endif
