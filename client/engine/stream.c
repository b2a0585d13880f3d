/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/session/failure.h"
#include "common/array.h"
#include "common/ipc/doorbell.h"
#include "common/messages.h"

/* ---- objects ---- */

/* While a stream has no ring, its errors_seen is so far from the number of its errors, of which
 * there are none. So the one comparison that each push makes anyway finds that out too. */
enum { NO_RING = 1 };

struct gpushare_stream *stream_new(gpushare_connection *connection, uint32_t index, uint64_t value)
{
    struct gpushare_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    struct ring ring = ring_at(connection->rings.base, connection->status_memory.base, index);
    static atomic_uint_fast64_t last_id;
    stream->connection = connection;
    stream->id = atomic_fetch_add(&last_id, 1) + 1;
    stream->index = index;
    atomic_init(&stream->last, value);
    stream->joined_by_default = value;
    atomic_init(&stream->errors_seen, shared_word_read(&ring.status->error_count) - NO_RING);
    pthread_mutex_init(&stream->lock, NULL);
    ring_producer_open(&stream->producer, ring, stream->marks, value);
    return stream;
}

void stream_delete(struct gpushare_stream *stream)
{
    if (!stream)
        return;
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

static bool is_default(const struct gpushare_stream *stream)
{
    return stream == stream->connection->default_stream;
}

/* Streams are counted behind their entry in the list: one that is counted is found there. */
static bool has_blocking(const gpushare_connection *connection)
{
    return atomic_load_explicit(&connection->blocking, memory_order_acquire) > 0;
}

/* ---- errors of work ---- */

bool stream_is_interrupted(const struct gpushare_stream *stream)
{
    return shared_word_read(&stream->producer.ring.status->lost_to) == RING_INTERRUPTED;
}

/* The sentence where somebody is blamed for the loss; otherwise sets nothing and returns SUCCESS.
 */
static gpushare_error fail_blamed(const gpushare_connection *connection, uint32_t index)
{
    switch (shared_word_read(&connection->status->lost_by)) {
    case PROTO_LOST_BY_SUSPECTS:
        return failure(MESSAGE(stream_interrupted_suspect), index);
    case PROTO_LOST_BY_ANOTHER:
        return failure(MESSAGE(stream_interrupted_victim), index);
    default:
        return GPUSHARE_SUCCESS;
    }
}

static gpushare_error fail_interrupted(const struct gpushare_stream *stream)
{
    gpushare_error error = fail_blamed(stream->connection, stream->index);
    return error ? error : failure(MESSAGE(stream_interrupted), stream->index);
}

/* Of several threads that see an error, the one that moves the mark reports it. A thread that has
 * read the count long ago must not move it back: errors that were reported would seem new. */
static bool move_mark(struct gpushare_stream *stream, uint32_t count)
{
    uint32_t seen = atomic_load_explicit(&stream->errors_seen, memory_order_relaxed);
    while ((int32_t)(count - seen) > 0)
        if (atomic_compare_exchange_weak_explicit(&stream->errors_seen, &seen, count,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    return false;
}

static gpushare_error report_error(struct gpushare_stream *stream) __attribute__((cold));
static gpushare_error report_error(struct gpushare_stream *stream)
{
    const struct proto_stream_status *status = stream->producer.ring.status;
    uint32_t count = shared_word_read(&status->error_count);
    if (!atomic_load_explicit(&stream->has_ring, memory_order_acquire))
        return GPUSHARE_SUCCESS;
    /* It stays so until recovery_ask takes the error as reported. */
    if (stream_is_interrupted(stream))
        return fail_interrupted(stream);
    if (!move_mark(stream, count))
        return GPUSHARE_SUCCESS;
    uint32_t error = shared_word_read(&status->error);
    return failure_plain(error ? error : PROTO_ERROR_UNKNOWN);
}

static inline bool has_difference(const struct gpushare_stream *stream)
{
    uint32_t count = shared_word_hint(&stream->producer.ring.status->error_count);
    return __builtin_expect(
        count != atomic_load_explicit(&stream->errors_seen, memory_order_relaxed), 0);
}

static inline gpushare_error check_errors(struct gpushare_stream *stream)
{
    return has_difference(stream) ? report_error(stream) : GPUSHARE_SUCCESS;
}

/* ---- the ring's memory ---- */

/* Asks for the ring and maps it. Two threads that ask for rings of the same segment both get it. */
static gpushare_error fetch_ring(gpushare_connection *connection, uint32_t index)
{
    struct proto_ring_make body = {.stream = index};
    struct proto_rings_made made;
    int fd = -1;
    struct session_call call = {.request = PROTO_RING_MAKE,
                                .body = &body,
                                .reply = PROTO_RINGS_MADE,
                                .reply_body = &made,
                                .reply_bytes = sizeof made,
                                .reply_fds = &fd,
                                .reply_fd_max = 1};
    gpushare_error error = connection_call(connection, &call);
    if (error)
        return error;
    pthread_mutex_lock(&connection->lists);
    int result = ring_memory_add(&connection->rings, made.first, made.count, fd);
    if (!result && !ring_memory_has(&connection->rings, index))
        result = -EBADF;
    /* Advice for a mapping does not hold for one that takes its place. */
    madvise(connection->rings.base, connection->rings.bytes, MADV_DONTFORK);
    pthread_mutex_unlock(&connection->lists);
    close(fd);
    if (result == -EBADF || result == -EINVAL)
        return failure(MESSAGE(server_memory_unsealed));
    return result ? failure(MESSAGE(server_memory_unmapped), strerror(-result)) : GPUSHARE_SUCCESS;
}

/* Called with the stream's lock, or before others know the stream. */
static gpushare_error need_ring(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    if (atomic_load_explicit(&stream->has_ring, memory_order_relaxed))
        return GPUSHARE_SUCCESS;
    pthread_mutex_lock(&connection->lists);
    bool has = ring_memory_has(&connection->rings, stream->index);
    pthread_mutex_unlock(&connection->lists);
    gpushare_error error = has ? GPUSHARE_SUCCESS : fetch_ring(connection, stream->index);
    if (error)
        return error;
    /* In this order: report_error takes a difference for an error once it sees has_ring. */
    atomic_fetch_add_explicit(&stream->errors_seen, NO_RING, memory_order_relaxed);
    atomic_store_explicit(&stream->has_ring, true, memory_order_release);
    return GPUSHARE_SUCCESS;
}

/* Before it pushes, a push finds out about errors of earlier work, and whether there is a ring. */
static gpushare_error find_difference(struct gpushare_stream *stream) __attribute__((cold));
static gpushare_error find_difference(struct gpushare_stream *stream)
{
    gpushare_error error = need_ring(stream);
    return error ? error : check_errors(stream);
}

/* ---- pushing ---- */

/* The ring or its arena is full: sleeps until the head moves, or for a while. */
static gpushare_error wait_room(struct gpushare_stream *stream) __attribute__((noinline));
static gpushare_error wait_room(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    uint32_t seen = stream->producer.head;
    uint32_t fault =
        ring_wait_room(&stream->producer, (struct proto_status_header *)connection->status);
    /* The head did not move. The server may have died without setting the fault word. */
    if (fault || (shared_word_hint(&stream->producer.ring.status->head) == seen &&
                  !connection_alive(connection)))
        return connection_dead(connection);
    return GPUSHARE_SUCCESS;
}

/* This is the producer's half of the handshake in tests/model/doorbell.pml. */
gpushare_error stream_push(struct gpushare_stream *stream, const struct ring_descriptor *descriptor)
{
    while (__builtin_expect(ring_room(&stream->producer) == RING_FULL, 0)) {
        gpushare_error error = wait_room(stream);
        if (error)
            return error;
    }
    if (ring_publish(&stream->producer, descriptor))
        doorbell_ring(stream->connection->header, stream->index, stream->connection->eventfd);
    /* Release: another stream that reads this value and names it in a wait must not be able to do
     * so before the descriptor can be seen, or waits could form a circle. */
    atomic_store_explicit(&stream->last, stream->producer.value, memory_order_release);
    return GPUSHARE_SUCCESS;
}

gpushare_error stream_arena(struct gpushare_stream *stream, uint32_t bytes, void **at,
                            uint32_t *offset)
{
    while (ring_room(&stream->producer) == RING_FULL ||
           ring_arena_room(&stream->producer, bytes, offset) == RING_FULL) {
        gpushare_error error = wait_room(stream);
        if (error)
            return error;
    }
    *at = stream->producer.ring.arena + *offset;
    return GPUSHARE_SUCCESS;
}

static gpushare_error push_waits(struct gpushare_stream *stream,
                                 const struct proto_dependency *waits, uint32_t count)
{
    union {
        struct ring_descriptor descriptor;
        struct proto_command_wait wait;
    } u = {.wait = {.opcode = PROTO_COMMAND_WAIT, .count = count}};
    memcpy(u.wait.on, waits, count * sizeof *waits);
    return stream_push(stream, &u.descriptor);
}

gpushare_error stream_push_wait(struct gpushare_stream *stream, struct proto_dependency dependency)
{
    return push_waits(stream, &dependency, 1);
}

gpushare_error stream_push_nothing(struct gpushare_stream *stream)
{
    union {
        struct ring_descriptor descriptor;
        struct proto_command_nop nop;
    } u = {.nop = {.opcode = PROTO_COMMAND_NOP}};
    return stream_push(stream, &u.descriptor);
}

/* ---- the default stream's rules ---- */

bool stream_has_reached(const gpushare_connection *connection, uint32_t index, uint64_t value)
{
    struct ring ring = ring_at(connection->rings.base, connection->status_memory.base, index);
    return shared_word_read(&ring.status->completed) >= value;
}

static bool own_has_reached(const struct gpushare_stream *stream, uint64_t value)
{
    return shared_word_read(&stream->producer.ring.status->completed) >= value;
}

/* A blocking stream waits for all that was pushed into the default stream before. */
static gpushare_error join_default(struct gpushare_stream *stream, uint64_t value)
{
    const struct gpushare_stream *source = stream->connection->default_stream;
    if (stream_is_interrupted(source))
        return failure(MESSAGE(stream_follows_interrupted), stream->index, source->index);
    if (!own_has_reached(source, value)) {
        struct proto_dependency wait = {.stream = source->index, .value = value};
        gpushare_error error = push_waits(stream, &wait, 1);
        if (error)
            return error;
    }
    stream->joined = value;
    return GPUSHARE_SUCCESS;
}

/* All that was pushed into each blocking stream before, and is not done. */
static gpushare_error find_joins(const struct gpushare_stream *stream, struct stream_joins *joins)
{
    gpushare_connection *connection = stream->connection;
    gpushare_error error = GPUSHARE_SUCCESS;
    struct gpushare_stream *s;
    joins->count = 0;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection) {
        uint64_t value = stream_last(s);
        if ((s->flags & GPUSHARE_STREAM_NON_BLOCKING) || value == s->joined_by_default)
            continue;
        /* Nobody can recover a stream that was destroyed. */
        if (!s->zombie && stream_is_interrupted(s)) {
            error = failure(MESSAGE(stream_follows_interrupted), stream->index, s->index);
            break;
        }
        if (own_has_reached(s, value)) {
            s->joined_by_default = value;
            continue;
        }
        if (array_reserve(joins->on, joins->room, joins->count + 1) < 0) {
            error = failure(MESSAGE(process_no_memory));
            break;
        }
        joins->on[joins->count++] = (struct proto_dependency){.stream = s->index, .value = value};
    }
    pthread_mutex_unlock(&connection->lists);
    return error;
}

/* In the order in which they were found. Where a stream was destroyed meanwhile, those behind it
 * are joined once more at the next time. */
static void note_joins(gpushare_connection *connection, const struct stream_joins *joins)
{
    struct gpushare_stream *s;
    size_t i = 0;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection)
        if (i < joins->count && joins->on[i].stream == s->index)
            s->joined_by_default = joins->on[i++].value;
    pthread_mutex_unlock(&connection->lists);
}

/* A push may wait for room until somebody else's work ends, so it is made without `lists`. */
static gpushare_error join_blocking(struct gpushare_stream *stream)
{
    enum { A_COMMAND = 3 };
    struct stream_joins *joins = &stream->connection->joins;
    gpushare_error error = find_joins(stream, joins);
    for (size_t i = 0; i < joins->count && !error; i += A_COMMAND)
        error =
            push_waits(stream, &joins->on[i], (uint32_t)min(joins->count - i, (size_t)A_COMMAND));
    if (joins->count && !error)
        note_joins(stream->connection, joins);
    return error;
}

static inline gpushare_error join_order(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    if (is_default(stream))
        return has_blocking(connection) ? join_blocking(stream) : GPUSHARE_SUCCESS;
    if (stream->flags & GPUSHARE_STREAM_NON_BLOCKING)
        return GPUSHARE_SUCCESS;
    uint64_t value = stream_last(connection->default_stream);
    return value == stream->joined ? GPUSHARE_SUCCESS : join_default(stream, value);
}

gpushare_error stream_begin(struct gpushare_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    gpushare_error error = has_difference(stream) ? find_difference(stream) : GPUSHARE_SUCCESS;
    if (!error)
        error = join_order(stream);
    if (__builtin_expect(error != 0, 0))
        pthread_mutex_unlock(&stream->lock);
    return error;
}

void stream_end(struct gpushare_stream *stream)
{
    pthread_mutex_unlock(&stream->lock);
}

gpushare_error stream_push_alone(struct gpushare_stream *stream,
                                 const struct ring_descriptor *descriptor)
{
    gpushare_error error = stream_begin(stream);
    if (error)
        return error;
    error = stream_push(stream, descriptor);
    stream_end(stream);
    return error;
}

/* ---- waiting ---- */

/* The end of the stream's latest interruption, and whether that has lost the work of this value. */
static uint64_t find_loss(const gpushare_connection *connection, uint32_t index, uint64_t value,
                          bool *lost)
{
    const struct proto_stream_status *status =
        ring_at(connection->rings.base, connection->status_memory.base, index).status;
    /* The end first: the server writes it last. */
    uint64_t lost_to = shared_word_read(&status->lost_to);
    *lost = ring_has_lost(shared_word_read(&status->lost_from), lost_to, value);
    return lost_to;
}

bool stream_has_lost(const gpushare_connection *connection, uint32_t index, uint64_t value)
{
    bool lost;
    find_loss(connection, index, value, &lost);
    return lost;
}

bool stream_has_recovered(const gpushare_connection *connection, uint32_t index, uint64_t value)
{
    bool lost;
    return find_loss(connection, index, value, &lost) != RING_INTERRUPTED && lost;
}

static gpushare_error fail_lost(const gpushare_connection *connection, uint32_t index)
{
    gpushare_error error = fail_blamed(connection, index);
    return error ? error : failure(MESSAGE(stream_work_lost), index);
}

gpushare_error stream_await_value(gpushare_connection *connection, uint32_t index, uint64_t value)
{
    struct ring ring = ring_at(connection->rings.base, connection->status_memory.base, index);
    struct timeline timeline = {.stream = ring.status,
                                .status = connection->status,
                                .ring = ring.header,
                                .header = connection->header,
                                .index = index,
                                .eventfd = connection->eventfd};
    if (timeline_wait(&timeline, value, &connection->spin, connection_alive, connection))
        return connection_dead(connection);
    return GPUSHARE_SUCCESS;
}

gpushare_error stream_wait_value(gpushare_connection *connection, uint32_t index, uint64_t value)
{
    gpushare_error error = stream_await_value(connection, index, value);
    if (!error && stream_has_lost(connection, index, value))
        error = fail_lost(connection, index);
    return error;
}

gpushare_error stream_wait_issued(gpushare_connection *connection, uint32_t index, uint64_t value)
{
    struct ring ring = ring_at(connection->rings.base, connection->status_memory.base, index);
    uint64_t before = shared_word_read(&ring.status->lost_to);
    gpushare_error error = stream_await_value(connection, index, value);
    if (!error && shared_word_read(&ring.status->lost_to) != before &&
        stream_has_lost(connection, index, value))
        error = fail_lost(connection, index);
    return error;
}

struct point {
    uint32_t index;
    uint64_t value;
};

static bool is_aside(const struct gpushare_stream *stream)
{
    return atomic_load_explicit(&stream->aside, memory_order_relaxed);
}

/*
 * The last values pushed into the default stream and the streams of the list that are not aside, or
 * only its blocking ones. The array is malloc'ed. NULL, with the sentence set, without memory.
 */
static struct point *snapshot_points(gpushare_connection *connection, bool blocking_only,
                                     uint32_t *count)
{
    uint32_t max = connection->attached.streams;
    struct point *points = malloc(max * sizeof *points);
    if (!points) {
        failure(MESSAGE(process_no_memory));
        return NULL;
    }
    uint32_t n = 0;
    points[n++] = (struct point){0, stream_last(connection->default_stream)};
    struct gpushare_stream *s;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection)
        if (n < max && !is_aside(s) &&
            (!blocking_only || !(s->flags & GPUSHARE_STREAM_NON_BLOCKING)))
            points[n++] = (struct point){s->index, stream_last(s)};
    pthread_mutex_unlock(&connection->lists);
    *count = n;
    return points;
}

static gpushare_error wait_points(gpushare_connection *connection, bool blocking_only)
{
    uint32_t count;
    struct point *points = snapshot_points(connection, blocking_only, &count);
    if (!points)
        return GPUSHARE_ERROR_OUT_OF_MEMORY;
    gpushare_error error = GPUSHARE_SUCCESS, interrupted = GPUSHARE_SUCCESS;
    for (uint32_t i = 0; i < count && !error; i++) {
        error = stream_wait_issued(connection, points[i].index, points[i].value);
        if (error == GPUSHARE_ERROR_INTERRUPTED) {
            interrupted = error;
            error = GPUSHARE_SUCCESS;
        }
    }
    free(points);
    return error ? error : interrupted;
}

gpushare_error stream_check(struct gpushare_stream *stream)
{
    gpushare_error error = connection_check(stream->connection);
    return error ? error : check_errors(stream);
}

gpushare_error stream_wait_pushed(struct gpushare_stream *stream)
{
    gpushare_error error =
        stream_wait_issued(stream->connection, stream->index, stream_last(stream));
    return error ? error : stream_check(stream);
}

gpushare_error stream_wait_all(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    if (!is_default(stream) || !has_blocking(connection))
        return stream_wait_pushed(stream);
    gpushare_error error = wait_points(connection, true);
    return error ? error : stream_check(stream);
}

gpushare_error stream_wait_connection(gpushare_connection *connection)
{
    gpushare_error error = wait_points(connection, false);
    if (error || (error = connection_check(connection)))
        return error;
    error = check_errors(connection->default_stream);
    struct gpushare_stream *s;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection) {
        /* This call reports the errors of all streams; the caller gets the first one. */
        gpushare_error other = is_aside(s) ? GPUSHARE_SUCCESS : check_errors(s);
        error = error ? error : other;
    }
    pthread_mutex_unlock(&connection->lists);
    return error;
}

gpushare_error stream_query(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    gpushare_error error = check_errors(stream);
    if (error)
        return error;
    if (!own_has_reached(stream, stream_last(stream)))
        return GPUSHARE_ERROR_NOT_READY;
    if (!is_default(stream) || !has_blocking(connection))
        return GPUSHARE_SUCCESS;
    struct gpushare_stream *s;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection)
        if (!(s->flags & GPUSHARE_STREAM_NON_BLOCKING) && !own_has_reached(s, stream_last(s)))
            break;
    pthread_mutex_unlock(&connection->lists);
    return s ? GPUSHARE_ERROR_NOT_READY : GPUSHARE_SUCCESS;
}

/* ---- life ---- */

/* Moves destroyed streams whose work is done to a list of their own. Called with the lists' lock.
 */
static void pick_done(gpushare_connection *connection, struct list *done)
{
    struct gpushare_stream *s;
    LIST_FOR_EACH (s, &connection->streams, in_connection) {
        if (!s->zombie || !own_has_reached(s, stream_last(s)))
            continue;
        list_remove(&s->in_connection);
        list_append(done, &s->in_connection);
        if (!(s->flags & GPUSHARE_STREAM_NON_BLOCKING))
            atomic_fetch_sub_explicit(&connection->blocking, 1, memory_order_release);
    }
}

/* Tells the server that the stream is gone, and frees the object, which is in no list that others
 * know. */
static gpushare_error return_stream(gpushare_connection *connection, struct gpushare_stream *stream)
{
    struct proto_stream_destroy body = {.stream = stream->index};
    struct session_call call = {
        .request = PROTO_STREAM_DESTROY, .body = &body, .reply = PROTO_DONE};
    gpushare_error error = connection_call(connection, &call);
    stream_delete(stream);
    return error;
}

static gpushare_error reap_streams(gpushare_connection *connection)
{
    struct list done = LIST_INIT(done);
    struct gpushare_stream *s;
    pthread_mutex_lock(&connection->lists);
    pick_done(connection, &done);
    pthread_mutex_unlock(&connection->lists);
    gpushare_error error = GPUSHARE_SUCCESS;
    LIST_FOR_EACH (s, &done, in_connection) {
        gpushare_error one = return_stream(connection, s);
        error = error ? error : one;
    }
    return error;
}

gpushare_error stream_retire(struct gpushare_stream *stream)
{
    gpushare_connection *connection = stream->connection;
    pthread_mutex_lock(&connection->lists);
    stream->zombie = true;
    pthread_mutex_unlock(&connection->lists);
    return reap_streams(connection);
}

/* Waits for the work of one destroyed stream, and reaps it. False if there is none. */
static bool wait_zombie(gpushare_connection *connection, gpushare_error *error)
{
    struct point point = {0, 0};
    bool found = false;
    struct gpushare_stream *s;
    pthread_mutex_lock(&connection->lists);
    LIST_FOR_EACH (s, &connection->streams, in_connection)
        if (s->zombie) {
            point = (struct point){s->index, stream_last(s)};
            found = true;
            break;
        }
    pthread_mutex_unlock(&connection->lists);
    if (found && !(*error = stream_await_value(connection, point.index, point.value)))
        *error = reap_streams(connection);
    return found && !*error;
}

gpushare_error stream_open(gpushare_connection *connection, uint32_t flags, int32_t priority,
                           struct gpushare_stream **stream)
{
    struct proto_stream_create body = {.priority = priority};
    struct proto_stream_created reply;
    struct session_call call = {.request = PROTO_STREAM_CREATE,
                                .body = &body,
                                .reply = PROTO_STREAM_CREATED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = reap_streams(connection);
    if (error)
        return error;
    /* A destroyed stream counts against the limit until its work is done. */
    while ((error = connection_call(connection, &call)) == GPUSHARE_ERROR_TOO_MANY_OBJECTS &&
           wait_zombie(connection, &error))
        ;
    if (error)
        return error;
    if (!reply.stream || reply.stream >= connection->attached.streams)
        return failure(MESSAGE(server_stream), reply.stream);
    struct gpushare_stream *made = stream_new(connection, reply.stream, reply.value);
    if (!made)
        return failure(MESSAGE(process_no_memory));
    made->flags = flags;
    made->priority = reply.priority;
    if ((error = need_ring(made))) {
        (void)return_stream(connection, made);
        return error;
    }
    pthread_mutex_lock(&connection->lists);
    list_prepend(&connection->streams, &made->in_connection);
    if (!(flags & GPUSHARE_STREAM_NON_BLOCKING))
        atomic_fetch_add_explicit(&connection->blocking, 1, memory_order_release);
    pthread_mutex_unlock(&connection->lists);
    *stream = made;
    return GPUSHARE_SUCCESS;
}
