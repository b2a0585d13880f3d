/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/peer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/engine/recovery.h"
#include "client/engine/slice.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"
#include "common/ipc/ring.h"

enum {
    PEER_CHUNK = 4 << 20,
    /* The source's device fills one chunk while the destination's device empties the other. */
    PEER_CHUNKS = 2,
    PEER_CHUNK_MIN = 64 << 10,
};

/* A host buffer that both devices reach, and the streams that copy to it and from it. */
struct road {
    uint8_t *buffer; /* NULL before the first copy */
    uint64_t chunk_bytes;
    /* Streams of the library, one on each connection. */
    struct gpushare_stream *source_side, *destination_side;
    uint32_t next; /* the chunk that the next copy uses */
    struct {
        uint32_t stream; /* the destination's stream that last emptied the chunk */
        uint64_t value;  /* its timeline value when that is done; 0: never used */
    } emptied[PEER_CHUNKS];
};

/* The link or the road from one connection to another. The connection that is the source of
 * copies keeps the road; the connection whose streams wait keeps the link. */
struct peer {
    uint64_t id;           /* of the other connection */
    _Atomic uint32_t link; /* 0: not asked for yet */
    pthread_mutex_t lock;  /* road */
    struct road road;
    struct list_link in_peers;
};

void peer_init(struct peers *peers)
{
    pthread_mutex_init(&peers->lock, NULL);
    list_init(&peers->members);
}

static void delete_peer(struct peer *peer)
{
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}

void peer_destroy(struct peers *peers, bool here)
{
    struct peer *p;
    LIST_FOR_EACH (p, &peers->members, in_peers)
        delete_peer(p);
    list_init(&peers->members);
    if (here)
        pthread_mutex_destroy(&peers->lock);
}

/* The entry for the connection with this id, or NULL. Called with the lock. */
static struct peer *look_up(const struct peers *peers, uint64_t id)
{
    struct peer *p;
    LIST_FOR_EACH (p, &peers->members, in_peers)
        if (p->id == id)
            break;
    return p;
}

/* The entry for `to`, made if there is none. */
static gpushare_error find_peer(gpushare_connection *from, const gpushare_connection *to,
                                struct peer **out)
{
    pthread_mutex_lock(&from->peers.lock);
    struct peer *p = look_up(&from->peers, to->id);
    if (!p && (p = calloc(1, sizeof *p))) {
        p->id = to->id;
        pthread_mutex_init(&p->lock, NULL);
        list_prepend(&from->peers.members, &p->in_peers);
    }
    pthread_mutex_unlock(&from->peers.lock);
    *out = p;
    return p ? GPUSHARE_SUCCESS : failure(MESSAGE(process_no_memory));
}

static gpushare_error check_group(const gpushare_connection *a, const gpushare_connection *b)
{
    if (memcmp(a->attached.group, b->attached.group, sizeof a->attached.group) != 0)
        return failure(MESSAGE(peer_other_server));
    return GPUSHARE_SUCCESS;
}

gpushare_error peer_link(gpushare_connection *from, gpushare_connection *to, uint32_t *link)
{
    struct peer *peer;
    gpushare_error error = check_group(from, to);
    if (error || (error = find_peer(from, to, &peer)))
        return error;
    uint32_t known = atomic_load_explicit(&peer->link, memory_order_acquire);
    if (!known) {
        struct proto_link body = {.client = to->attached.client};
        struct proto_linked reply;
        struct session_call call = {.request = PROTO_LINK,
                                    .body = &body,
                                    .reply = PROTO_LINKED,
                                    .reply_body = &reply,
                                    .reply_bytes = sizeof reply};
        if ((error = connection_call(from, &call)))
            return error;
        /* Two threads may both have asked: both links name the same connection. */
        known = reply.link;
        atomic_store_explicit(&peer->link, known, memory_order_release);
    }
    *link = known;
    return GPUSHARE_SUCCESS;
}

/* Removes the entry for one connection. The server frees links with their connections. */
static void forget_peer(gpushare_connection *connection, uint64_t id)
{
    pthread_mutex_lock(&connection->peers.lock);
    struct peer *gone = look_up(&connection->peers, id);
    if (gone)
        list_remove(&gone->in_peers);
    pthread_mutex_unlock(&connection->peers.lock);
    if (!gone)
        return;
    /* The buffer is charged to this connection, which lives on: it is freed. The server is asked
     * without the lock. */
    void *buffer = gone->road.buffer;
    struct gpushare_stream *side = gone->road.source_side;
    delete_peer(gone);
    if (side)
        (void)stream_retire(side);
    if (buffer)
        (void)memory_buffer_free(connection, (uint64_t)(uintptr_t)buffer);
}

void peer_forget(gpushare_connection *connection)
{
    /* Each road from here uses a stream of the connection at its far end. */
    struct peer *p;
    LIST_FOR_EACH (p, &connection->peers.members, in_peers) {
        gpushare_connection *other = p->road.destination_side ? connection_hold(p->id) : NULL;
        if (other) {
            (void)stream_retire(p->road.destination_side);
            connection_release(other);
        }
        p->road.destination_side = NULL;
    }
    gpushare_connection *other;
    for (uint64_t id = 0; (other = connection_hold_next(id));) {
        id = other->id;
        forget_peer(other, connection->id);
        connection_release(other);
    }
}

/* ---- copies ---- */

static gpushare_error share_buffer(gpushare_connection *destination, gpushare_connection *source,
                                   void *buffer)
{
    struct proto_host_import body = {.client = source->attached.client,
                                     .address = (uint64_t)(uintptr_t)buffer};
    struct session_call call = {.request = PROTO_HOST_IMPORT, .body = &body, .reply = PROTO_DONE};
    return connection_call(destination, &call);
}

/* Makes the road from source to destination, as far as parts of it are missing. Called with the
 * peer's lock. */
static gpushare_error build_road(gpushare_connection *destination, gpushare_connection *source,
                                 struct road *road)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    if (!road->source_side &&
        (error = stream_open(source, GPUSHARE_STREAM_NON_BLOCKING, 0, &road->source_side)))
        return error;
    if (!road->destination_side && (error = stream_open(destination, GPUSHARE_STREAM_NON_BLOCKING,
                                                        0, &road->destination_side)))
        return error;
    if (road->buffer)
        return error;
    void *buffer;
    uint64_t chunk = PEER_CHUNK;
    while ((error = memory_buffer_alloc(source, chunk * PEER_CHUNKS, &buffer)) ==
               GPUSHARE_ERROR_OUT_OF_MEMORY &&
           chunk / 2 >= PEER_CHUNK_MIN)
        chunk /= 2;
    if (error)
        return failure_prefix(error, MESSAGE_TEXT(copy_no_peer_buffer));
    if ((error = share_buffer(destination, source, buffer))) {
        (void)memory_buffer_free(source, (uint64_t)(uintptr_t)buffer);
        return error;
    }
    road->buffer = buffer;
    road->chunk_bytes = chunk;
    return GPUSHARE_SUCCESS;
}

/* One of the two halves of a copy: into the buffer, or out of it. */
struct leg {
    struct gpushare_stream *stream;
    gpushare_connection *other;
    uint32_t link; /* the number by which this leg's connection names the other's timelines */
};

/* Pushes one copy of a leg (count 0: none), which begins when the other connection's stream has
 * reached value. *done: the leg's timeline value after it. */
static gpushare_error push_copy(const struct leg *leg, uint32_t other_stream, uint64_t value,
                                uint64_t destination, uint64_t source, uint64_t count,
                                uint64_t *done)
{
    struct proto_dependency wait = {.stream = other_stream, .link = leg->link, .value = value};
    gpushare_error error = stream_begin(leg->stream);
    if (error)
        return error;
    if (!stream_has_reached(leg->other, other_stream, value))
        error = stream_push_wait(leg->stream, wait);
    if (!error)
        error = slice_push_copy(leg->stream, destination, source, count);
    *done = leg->stream->producer.value;
    stream_end(leg->stream);
    return error;
}

/* Work pushed into `leg` from now on waits for all work pushed into `other` so far. */
static gpushare_error follow_stream(const struct leg *leg, const struct gpushare_stream *other)
{
    uint64_t ignored;
    return push_copy(leg, other->index, stream_last(other), 0, 0, 0, &ignored);
}

/* Nobody else knows the helper. If work of it was lost, the streams that waited for that work are
 * interrupted themselves, and tell their owners. */
static gpushare_error recover_helper(struct gpushare_stream *helper)
{
    struct gpushare_recovery ignored = {0};
    return stream_is_interrupted(helper) ? recovery_ask(helper, &ignored) : GPUSHARE_SUCCESS;
}

/* Waits that the default-stream rules ask for are pushed when a stream is next used. Streams that
 * follow this one must wait for the same work, so these waits are pushed now. */
static gpushare_error join_default_stream(struct gpushare_stream *stream)
{
    gpushare_error error = stream_begin(stream);
    if (!error)
        stream_end(stream);
    return error;
}

static gpushare_error push_legs(const struct leg *in, const struct leg *out, struct road *road,
                                uint64_t to, uint64_t from, uint64_t count)
{
    for (uint64_t at = 0; at < count;) {
        uint32_t chunk = road->next;
        uint64_t piece = count - at < road->chunk_bytes ? count - at : road->chunk_bytes;
        uint64_t buffer = (uint64_t)(uintptr_t)road->buffer + chunk * road->chunk_bytes;
        uint64_t filled, emptied;
        gpushare_error error =
            push_copy(in, road->emptied[chunk].stream, road->emptied[chunk].value, buffer,
                      from + at, piece, &filled);
        if (!error)
            error = push_copy(out, in->stream->index, filled, to + at, buffer, piece, &emptied);
        if (error)
            return error;
        road->emptied[chunk].stream = out->stream->index;
        road->emptied[chunk].value = emptied;
        road->next = (chunk + 1) % PEER_CHUNKS;
        at += piece;
    }
    return GPUSHARE_SUCCESS;
}

gpushare_error peer_copy(gpushare_connection *destination, uint64_t to, gpushare_connection *source,
                         uint64_t from, uint64_t count, struct gpushare_stream *stream)
{
    struct peer *peer;
    struct leg in = {.other = destination}, out = {.other = source};
    gpushare_error error;
    if ((error = peer_link(source, destination, &in.link)) ||
        (error = peer_link(destination, source, &out.link)) ||
        (error = find_peer(source, destination, &peer)) || (error = join_default_stream(stream)))
        return error;
    pthread_mutex_lock(&peer->lock);
    struct road *road = &peer->road;
    if (!(error = build_road(destination, source, road))) {
        bool at_source = stream->connection == source;
        in.stream = at_source ? stream : road->source_side;
        out.stream = at_source ? road->destination_side : stream;
        const struct leg *mine = at_source ? &in : &out, *helper = at_source ? &out : &in;
        /* The helper's leg begins no sooner than the caller's stream would, and what is pushed into
         * the caller's stream later begins after both legs. */
        if (!(error = recover_helper(helper->stream)) && !(error = follow_stream(helper, stream)) &&
            !(error = push_legs(&in, &out, road, to, from, count)) && at_source)
            error = follow_stream(mine, helper->stream);
    }
    pthread_mutex_unlock(&peer->lock);
    return error;
}
