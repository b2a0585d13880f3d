/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/slice.h"

#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "common/ipc/ring.h"
#include "common/util.h"

/* Bytes from an address to the next multiple that no command may cross. */
static uint64_t bytes_to_edge(const struct gpushare_stream *stream, uint64_t address)
{
    const gpushare_connection *connection = stream->connection;
    bool on_device = address >= connection->device_base &&
                     address - connection->device_base < connection->window_bytes;
    uint64_t step = on_device ? PROTO_SLICE_BYTES : PROTO_REGISTRATION_BYTES;
    return step - address % step;
}

gpushare_error slice_push_copy(struct gpushare_stream *stream, uint64_t destination,
                               uint64_t source, uint64_t count)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    for (uint64_t at = 0; !error && at < count;) {
        uint64_t bytes =
            min(bytes_to_edge(stream, destination + at), bytes_to_edge(stream, source + at));
        bytes = min(bytes, count - at);
        union {
            struct ring_descriptor descriptor;
            struct proto_command_copy copy;
        } u = {.copy = {.opcode = PROTO_COMMAND_COPY,
                        .destination = destination + at,
                        .source = source + at,
                        .count = bytes}};
        error = stream_push(stream, &u.descriptor);
        at += bytes;
    }
    return error;
}

gpushare_error slice_push_fill(struct gpushare_stream *stream, uint64_t destination, uint32_t value,
                               uint32_t width, uint64_t count)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    for (uint64_t at = 0; !error && at < count;) {
        /* The edge is a multiple of every width, so no element lies across it. */
        uint64_t elements =
            min(bytes_to_edge(stream, destination + at * width) / width, count - at);
        union {
            struct ring_descriptor descriptor;
            struct proto_command_fill fill;
        } u = {.fill = {.opcode = PROTO_COMMAND_FILL,
                        .value = value,
                        .destination = destination + at * width,
                        .count = elements,
                        .width = width}};
        error = stream_push(stream, &u.descriptor);
        at += elements;
    }
    return error;
}
