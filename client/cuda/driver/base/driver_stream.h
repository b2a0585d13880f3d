/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* driver_stream: the handles of CUDA's streams as the engine's streams. Any thread. */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_STREAM_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_STREAM_H

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"

struct gpushare_stream;

/* Gives the engine's stream of a handle of the connection, which may be one of CUDA's special
 * values. */
cuda_result driver_stream_of(gpushare_connection *connection, cuda_stream handle,
                             struct gpushare_stream **stream);

/* Gives the connection of a stream's handle, checked. A made stream belongs to its connection,
 * whichever context is current. */
cuda_result driver_stream_connection(cuda_stream handle, gpushare_connection **connection);

/* Both. */
cuda_result driver_stream_resolve(cuda_stream handle, struct gpushare_stream **stream);

/* The same handle for the engine's calls that take handles. */
static inline gpushare_stream *driver_stream_handle(cuda_stream handle)
{
    if (handle == CUDA_STREAM_LEGACY)
        return NULL;
    return handle == CUDA_STREAM_PER_THREAD ? GPUSHARE_STREAM_PER_THREAD
                                            : (gpushare_stream *)handle;
}

#endif
