/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launch: pushes kernels into a stream's ring.
 *
 * The functions have the arguments of gpushare_launch and gpushare_launch_packed, in the same
 * order. So those can reach the engine by a jump, and no register is moved on the hot path.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_LAUNCH_H
#define GPUSHARE_CLIENT_ENGINE_LAUNCH_H

#include <stdint.h>

#include "client/gpushare.h"

/*
 * Queues a launch; blocks only while the ring is full. function: its connection has been checked.
 * stream: a handle, NULL for the default stream. parameters: one pointer for each parameter of the
 * kernel; the values are read before the call returns. Returns the errors of gpushare_launch that
 * concern the geometry, the parameters (one that is NULL too), the stream and earlier work of the
 * stream. Any thread.
 */
gpushare_error launch_kernel(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             void *const *parameters);

/* A launch's grid, block and dynamic shared memory. */
struct launch_shape {
    struct gpushare_dim grid, block;
    uint32_t shared;
};

/* The same for callers that have the six sizes one by one: put together in registers, they would be
 * written to the stack and read again in other widths, which takes 5 ns. */
gpushare_error launch_shaped(gpushare_function *function, const struct launch_shape *shape,
                             gpushare_stream *stream, void *const *parameters);

/* The same as launch_kernel, with the parameters laid out in one block of function->parameter_bytes
 * bytes. */
gpushare_error launch_packed(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             const void *parameters);

/* Where the parameters come from: one pointer each, or a block laid out already. */
struct launch_source {
    void *const *each;
    const void *packed;
};

/*
 * The same for a grid whose blocks wait for one another, and so have to be on the multiprocessors
 * all at once. Returns COOPERATIVE_LAUNCH_TOO_LARGE if the client's share has no room for that now,
 * and NOT_SUPPORTED from an older server. If the share becomes smaller before the launch has begun,
 * the stream fails with the former. May ask the server.
 */
gpushare_error launch_cooperative(gpushare_function *function, struct gpushare_dim grid,
                                  struct gpushare_dim block, uint32_t shared,
                                  gpushare_stream *stream, struct launch_source source);

#endif
