/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launch: kernels into a stream's ring.
 *
 * The signatures are those of gpushare_launch and gpushare_launch_packed, in the same order, so
 * that these reach the engine by a jump: nothing is moved between registers on the hot path.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_LAUNCH_H
#define GPUSHARE_CLIENT_ENGINE_LAUNCH_H

#include <stdint.h>

#include "client/gpushare.h"

/*
 * Queues a launch; blocks only while the ring is full. function: of a connection that was
 * checked. stream: a handle, NULL for the default stream. parameters: as many pointers as the
 * kernel has parameters, none of them NULL; read before the call returns. Errors as
 * gpushare_launch, for the geometry, the stream and earlier work of the stream.
 */
gpushare_error launch_kernel(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             void *const *parameters);

/* The same with the parameter block laid out: function->parameter_bytes bytes of it. */
gpushare_error launch_packed(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             const void *parameters);

#endif
