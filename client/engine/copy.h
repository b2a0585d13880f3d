/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * copy: pushes copies and fills into a stream. Ordinary memory of this process goes through staging
 * buffers; the device reads and writes device memory and shared host buffers directly.
 *
 * Every call is in order with its stream, whose connection has been checked. count is at least 1
 * byte, or element. The calls also return errors of earlier work of the stream. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_COPY_H
#define GPUSHARE_CLIENT_ENGINE_COPY_H

#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_stream;

/*
 * Copies count bytes in any direction. The call returns at once if both sides are device memory or
 * shared host buffers. If the source is ordinary memory, it returns when the source has been read.
 * If the destination is ordinary memory, it returns when the data has arrived.
 *
 * Returns SUCCESS; INVALID_VALUE if a side is not within one allocation or the ranges overlap;
 * OUT_OF_MEMORY if there is no room for staging; or an error of the stream.
 */
gpushare_error copy_submit(struct gpushare_stream *stream, uint64_t destination, uint64_t source,
                           uint64_t count);

/* Copies device memory of one connection to device memory of another connection of this process,
 * or of the same one. stream: of either connection. Returns at once. */
gpushare_error copy_submit_peer(struct gpushare_stream *stream,
                                gpushare_connection *destination_connection, uint64_t destination,
                                gpushare_connection *source_connection, uint64_t source,
                                uint64_t count);

/* Copies count bytes of device memory that the caller holds (memory_hold) to a shared host buffer.
 * Returns at once. *value: the stream's timeline value behind the copy, on success. */
gpushare_error copy_submit_held(struct gpushare_stream *stream, uint64_t destination,
                                uint64_t source, uint64_t count, uint64_t *value);

/* Fills count elements of `width` bytes (1, 2 or 4) with the low bytes of value. The caller has
 * checked that the range is device memory or a shared host buffer. Returns at once. */
gpushare_error copy_fill(struct gpushare_stream *stream, uint64_t destination, uint32_t value,
                         uint32_t width, uint64_t count);

#endif
