/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream: a ring's producer with a lock, and the rules of CUDA's default streams. Any thread.
 *
 * Order between streams is explicit: a "wait" command names streams and timeline values. The
 * default stream waits for the last value of every blocking stream. A blocking stream waits for the
 * default stream's last value. Each stream remembers the values that it has waited for, so a wait
 * is pushed only when there is a new value. A value is named only after its descriptor was pushed,
 * so waits never form a circle.
 *
 * A destroyed stream stays in the list (as a zombie) until its work is done, so that events and
 * waits that name it keep their meaning. Then the server is told, and the object is freed.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_STREAM_H
#define GPUSHARE_CLIENT_ENGINE_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/ipc/ring.h"
#include "common/ipc/timeline.h"
#include "common/list.h"

struct gpushare_stream {
    gpushare_connection *connection;
    pthread_mutex_t lock; /* guards producer and joined; held from stream_begin to stream_end */
    struct ring_producer producer;
    uint64_t joined;              /* the default stream's value that this one has waited for */
    _Atomic uint64_t last;        /* producer.value for other threads */
    _Atomic uint32_t errors_seen; /* the status.error_count up to which errors were reported */
    uint64_t id;                  /* unique in the process */
    uint32_t index;
    uint32_t flags;
    _Atomic uint32_t note; /* a front's own word, which the engine does not read; 0 at first */
    int32_t priority;
    _Atomic bool aside;         /* a front's own: no work of the program's is in it */
    _Atomic bool has_ring;      /* the ring's memory is there; set once */
    bool zombie;                /* destroyed, with work in flight; guarded by connection->lists */
    uint64_t joined_by_default; /* this stream's value that the default stream has waited for */
    struct list_link in_connection; /* in connection->streams; the default stream is in no list */
    uint32_t marks[PROTO_RING_ENTRIES];
};

/*
 * Begins to push. It takes the stream's lock, and pushes the waits that the default-stream rules
 * ask for. If earlier work has failed, or work that it would have to wait for is lost, it returns
 * that error and holds nothing. On success the
 * caller pushes any number of descriptors, then calls stream_end, which releases the lock.
 */
gpushare_error stream_begin(struct gpushare_stream *stream);
void stream_end(struct gpushare_stream *stream);

/*
 * Pushes one descriptor, between begin and end. Waits while the ring is full. On success
 * stream->last is the descriptor's timeline value.
 */
gpushare_error stream_push(struct gpushare_stream *stream,
                           const struct ring_descriptor *descriptor);

/*
 * Takes room for `bytes` of parameters in the arena, between begin and end. Waits while the arena
 * is full. The next push gives the room to its descriptor. *at: where to write them; *offset: for
 * the descriptor.
 */
gpushare_error stream_arena(struct gpushare_stream *stream, uint32_t bytes, void **at,
                            uint32_t *offset);

/* Pushes a wait for one value, between begin and end. */
gpushare_error stream_push_wait(struct gpushare_stream *stream, struct proto_dependency dependency);

/* Pushes a command that does nothing, between begin and end: the stream's next timeline value. */
gpushare_error stream_push_nothing(struct gpushare_stream *stream);

/* begin, one push, end. */
gpushare_error stream_push_alone(struct gpushare_stream *stream,
                                 const struct ring_descriptor *descriptor);

/* Returns the last timeline value that was pushed. */
static inline uint64_t stream_last(const struct gpushare_stream *stream)
{
    return atomic_load_explicit(&stream->last, memory_order_acquire);
}

/* Whether the timeline of stream `index` has reached value. */
bool stream_has_reached(const gpushare_connection *connection, uint32_t index, uint64_t value);

/* Whether the work of a value was lost with a worker, by the stream's latest interruption. Ask
 * after the timeline has reached the value. */
bool stream_has_lost(const gpushare_connection *connection, uint32_t index, uint64_t value);

/* Whether it was, and the stream was recovered since. */
bool stream_has_recovered(const gpushare_connection *connection, uint32_t index, uint64_t value);

/* Waits until the timeline of stream `index` has reached value, whether its work was done or lost.
 * Returns SUCCESS, or the error that ended the connection. */
gpushare_error stream_await_value(gpushare_connection *connection, uint32_t index, uint64_t value);

/* The same, and returns INTERRUPTED if that work was lost. */
gpushare_error stream_wait_value(gpushare_connection *connection, uint32_t index, uint64_t value);

/* The same for values that the stream may have lost before: those of an interruption that was
 * recovered before the call are no failure, nor is one that the stream still waits to be recovered
 * from; stream_check returns that. */
gpushare_error stream_wait_issued(gpushare_connection *connection, uint32_t index, uint64_t value);

/* Whether work of the stream was lost, and it was not recovered yet. */
bool stream_is_interrupted(const struct gpushare_stream *stream);

/* Returns the error that ended the connection; INTERRUPTED while the stream is; or an error of the
 * stream's work that no call has returned yet. The latter counts as reported from then on. */
gpushare_error stream_check(struct gpushare_stream *stream);

/* Waits for all work pushed into the stream so far, then returns as stream_check. */
gpushare_error stream_wait_pushed(struct gpushare_stream *stream);

/* The same, for all work that a command pushed now would have to follow. For the default stream
 * that includes the blocking streams. */
gpushare_error stream_wait_all(struct gpushare_stream *stream);

/* Returns SUCCESS if all work that a command pushed now would have to follow is done; NOT_READY
 * if not; or an error of the stream's work that no call has returned yet. Never waits. */
gpushare_error stream_query(struct gpushare_stream *stream);

/* Waits for all work pushed into all streams so far, and reports the errors of all, but for those
 * that are aside. The first stream's error is returned. */
gpushare_error stream_wait_connection(gpushare_connection *connection);

/* Makes a stream object for a ring that begins with this timeline value. It is in no list yet;
 * stream_delete frees it. Returns NULL without memory. */
struct gpushare_stream *stream_new(gpushare_connection *connection, uint32_t index, uint64_t value);

/* Asks the server for a stream, and puts it into the connection's list. *stream is written on
 * success only. */
gpushare_error stream_open(gpushare_connection *connection, uint32_t flags, int32_t priority,
                           struct gpushare_stream **stream);

/* Destroys a stream of the list, at once or when its work is done. */
gpushare_error stream_retire(struct gpushare_stream *stream);

/* Frees the object alone. NULL is allowed. */
void stream_delete(struct gpushare_stream *stream);

#endif
