/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * copy: copies and fills into a stream. Ordinary memory of this process goes through staging
 * buffers; device memory and shared host buffers are named to the device directly.
 *
 * Every call is in order with the stream, whose connection was checked; count is at least 1
 * byte, or element. Errors of earlier work of the stream are returned too. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_COPY_H
#define GPUSHARE_CLIENT_ENGINE_COPY_H

#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_stream;

/*
 * Copies count bytes in any direction. Returns at once where both sides are device memory or
 * shared host buffers; when the source was read, where it is ordinary memory; when the data
 * arrived, where the destination is. INVALID_VALUE if a side is not within one allocation or
 * the ranges overlap, OUT_OF_MEMORY without room for staging.
 */
gpushare_error copy_submit(struct gpushare_stream *stream, uint64_t destination, uint64_t source,
                           uint64_t count);

/* Copies device memory of one connection to device memory of another of this process, or of the
 * same. stream: of one of the two. Returns at once. */
gpushare_error copy_submit_peer(struct gpushare_stream *stream,
                                gpushare_connection *destination_connection, uint64_t destination,
                                gpushare_connection *source_connection, uint64_t source,
                                uint64_t count);

/* Fills count elements of `width` bytes (1, 2 or 4) of device memory. The caller has checked that
 * they are. Returns at once. */
gpushare_error copy_fill(struct gpushare_stream *stream, uint64_t destination, uint32_t value,
                         uint32_t width, uint64_t count);

#endif
