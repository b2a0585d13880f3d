/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * thread_stream: GPUSHARE_STREAM_PER_THREAD: one blocking stream a thread and
 * connection, made at first use, destroyed with the thread or the connection.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_THREAD_STREAM_H
#define GPUSHARE_CLIENT_ENGINE_THREAD_STREAM_H

#include "client/gpushare.h"

struct gpushare_stream;

/* The calling thread's own stream of this connection. */
gpushare_error thread_stream_get(gpushare_connection *connection, struct gpushare_stream **stream);

#endif
