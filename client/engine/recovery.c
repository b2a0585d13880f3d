/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/recovery.h"

#include "client/engine/connection.h"
#include "client/engine/event.h"
#include "client/engine/staging.h"
#include "client/engine/stream.h"

_Static_assert(sizeof(((struct gpushare_recovery *)0)->ranges) ==
                   PROTO_LOST_RANGES_MAX * sizeof(struct gpushare_host_range),
               "the public number");

/* The stream remembers its latest interruption only, and this one is over. */
static void mark_events(gpushare_connection *connection, uint32_t stream)
{
    gpushare_event *e;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (e, &connection->events, in_connection) {
        pthread_mutex_lock(&e->lock);
        if (e->recorded && !e->settled && e->stream == stream &&
            stream_has_lost(connection, stream, e->value))
            e->lost = true;
        pthread_mutex_unlock(&e->lock);
    }
    pthread_mutex_unlock(&connection->lists);
}

/* A staging buffer is the library's own affair. */
static void take_ranges(gpushare_connection *connection, const struct proto_stream_recovered *reply,
                        struct gpushare_recovery *recovery)
{
    recovery->more_ranges = reply->more;
    for (uint32_t i = 0; i < reply->ranges && i < GPUSHARE_RECOVERY_RANGES; i++)
        if (!staging_owns(connection, reply->addresses[i]))
            recovery->ranges[recovery->range_count++] = (struct gpushare_host_range){
                .start = (void *)(uintptr_t)reply->addresses[i], .bytes = reply->counts[i]};
}

/* Called with the stream's lock: nothing is pushed meanwhile. */
static gpushare_error ask_recovery(struct gpushare_stream *stream,
                                   struct gpushare_recovery *recovery)
{
    gpushare_connection *connection = stream->connection;
    const struct proto_stream_status *status = stream->producer.ring.status;
    struct proto_stream_recover body = {.stream = stream->index};
    struct proto_stream_recovered reply;
    struct session_call call = {.request = PROTO_STREAM_RECOVER,
                                .body = &body,
                                .reply = PROTO_STREAM_RECOVERED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(connection, &call);
    if (error)
        return error;
    mark_events(connection, stream->index);
    recovery->finished = reply.finished;
    recovery->dropped = reply.dropped;
    take_ranges(connection, &reply, recovery);
    /* Nothing was pushed meanwhile. So errors since then are of this interruption, which a worker
     * may have told again; another one shows in the ends, which stand before its error. */
    uint32_t count = shared_word_read(&status->error_count);
    if (!stream_is_interrupted(stream))
        atomic_store_explicit(&stream->errors_seen, count, memory_order_release);
    return GPUSHARE_SUCCESS;
}

gpushare_error recovery_ask(struct gpushare_stream *stream, struct gpushare_recovery *recovery)
{
    pthread_mutex_lock(&stream->lock);
    /* A command in its ring may wait for a lost value, which interrupts this stream too. */
    gpushare_error error =
        stream_await_value(stream->connection, stream->index, stream_last(stream));
    if (!error && stream_is_interrupted(stream))
        error = ask_recovery(stream, recovery);
    else if (!error)
        *recovery = (struct gpushare_recovery){.finished = stream_last(stream)};
    pthread_mutex_unlock(&stream->lock);
    return error;
}
