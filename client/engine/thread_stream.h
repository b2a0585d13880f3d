/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * thread_stream: finds the stream that a handle means to the calling thread.
 * GPUSHARE_STREAM_PER_THREAD is one blocking stream for each thread and connection. It is made when
 * it is first used, and destroyed with the thread or the connection.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_THREAD_STREAM_H
#define GPUSHARE_CLIENT_ENGINE_THREAD_STREAM_H

#include "client/gpushare.h"

struct gpushare_stream;

/*
 * Finds the stream of a handle. handle: NULL for the default stream, GPUSHARE_STREAM_PER_THREAD, or
 * a stream of this connection. Another connection's stream is refused with INVALID_HANDLE. Making
 * the thread's own stream may fail as stream_open does. Any thread.
 */
gpushare_error thread_stream_resolve(gpushare_connection *connection, gpushare_stream *handle,
                                     struct gpushare_stream **stream);

#endif
