/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_stream: one ring as the worker sees it: what was taken from it, how far the device
 * has come, what the ring waits for, and the CUstream that it has on loan.
 *
 * Under the client's lock, except where a member or a function says otherwise. Timeline values
 * count a ring's descriptors from 1.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STREAM_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"
#include "server/worker/client/queue_latency.h"
#include "server/worker/client/stream_entries.h"
#include "server/worker/client/stream_waits.h"
#include "server/worker/client/work_length.h"

struct meter_span;
struct batch_end;
struct client;
struct pool_stream;

enum stream_state {
    STREAM_FREE,
    STREAM_OPEN,
    STREAM_CLOSING, /* destroyed by the client; commands up to `limit` are still carried out */
};

/* The conditions of a blocked ring (blocked_rings.h): timeline values, room for a kernel's local
 * memory, or, of an interrupted stream, the end of what the device still has of it. */
struct stream_dependencies {
    uint32_t count;
    struct proto_dependency on[3];
    uint64_t local_bytes; /* a thread; 0: none */
    bool own_end;
};

struct client_stream {
    struct client *client;
    uint32_t index;
    enum stream_state state;
    int32_t wish;     /* the priority that its client asked for, as the driver numbers them */
    int32_t priority; /* the priority that it has */
    struct ring_consumer ring;
    uint64_t *shadow; /* value that the device has reached; clients can't see this word; NULL: the
                       * entry's first stream was not opened yet, and all of the entry is zeroes */
    uint64_t *begun;  /* shared: value of the last command that the driver may have; likewise */
    _Atomic uint64_t written;               /* value that the device was last told to write */
    struct batch_end *first_end, *last_end; /* batches in flight whose ends are polled */
    uint64_t limit;                         /* last value of a closing stream */
    uint64_t lost_from, lost_to;            /* the latest interruption, as in the shadow memory */
    uint64_t woken;            /* completer: the shadow when it last woke the sleepers */
    struct work_span work;     /* what runs of it now */
    _Atomic uint64_t moved_at; /* when its work in flight was last seen to get on; ns, 0: never */
    uint64_t excused;          /* completer: until then it may have waited for other work, ns */
    uint64_t unsplit;          /* up to this value, batches are of a time without a limit */
    bool watched;              /* a thread sleeps on the timeline, so the completer looks often */
    struct stream_dependencies blocked_on;
    struct stream_waits waits; /* its commands in flight that wait for other streams */
    struct pool_stream *bound; /* under the pool's lock; only the submitter sets it while open */
    struct client_stream *next_user; /* of the same pool_stream; under the pool's lock */
    uint64_t settled;        /* the pool's changes at which it was bound as well as can be, or 0 */
    struct meter_span *span; /* submitter: of the batch under way, or NULL */
    uint32_t unmeasured;     /* submitter: batches that found no free span */
    struct queue_latency latency;  /* submitter */
    struct stream_entries entries; /* submitter */
    uint64_t traced;               /* meter's lock: end of the latest span in a trace, ns */
};

/* Timeline value that the device has reached; 0 if the stream was never open. Any thread. */
uint64_t client_stream_reached(const struct client_stream *stream);

/* Sets the reached value in the device's place: where the timeline of a stream's next user
 * begins. The stream is or was open. */
void client_stream_set_reached(struct client_stream *stream, uint64_t value);

/* Timeline value that the device was last told to write. Any thread. */
uint64_t client_stream_written(const struct client_stream *stream);

/* Notes the command that is handed over next in the journal, and its value, before the driver is
 * called for it; or takes the value back, since the command was not handed over after all. If this
 * process dies in between, the next worker does not carry out the command again. Submitter. */
void client_stream_begin(struct client_stream *stream, const struct ring_descriptor *command);
void client_stream_begin_undo(struct client_stream *stream);

/* ---- interruption: work that was lost with a worker, and all that was to follow it ---- */

/* Marks the stream interrupted: what comes after `finished` is lost, and the client's next call
 * learns it. The commands in its ring are not run from now on; client_stream_drop drops them. Call
 * it before the timeline reaches a lost value. */
void client_stream_interrupt(struct client_stream *stream, uint64_t finished);

static inline bool client_stream_is_interrupted(const struct client_stream *stream)
{
    return stream->lost_to == RING_INTERRUPTED;
}

/* Drops the commands that an interrupted stream's ring holds: the timeline reaches the last of them
 * as if they had run. Only when the device has nothing of the stream. Returns 0, or -EPROTO if the
 * ring's tail lies. */
int client_stream_drop(struct client_stream *stream);

/* Whether a dependency asks for the work of a lost value, of this client's or of a linked one's. */
bool client_stream_dependency_lost(const struct client *client, const struct proto_dependency *on);

/* Lets an interrupted stream go on behind what was dropped, and sets what its client is told of the
 * latest interruption: the last finished value, and the number of lost commands, 0 if a later one
 * has finished since. Returns false, and changes nothing, if not all was dropped yet. */
bool client_stream_recover(struct client_stream *stream, uint64_t *finished, uint64_t *dropped);

/* Whether the device has something of the stream that it was not seen to finish. Any thread. */
static inline bool client_stream_in_flight(const struct client_stream *stream)
{
    return client_stream_reached(stream) < client_stream_written(stream);
}

/* Commands that the stream may add until it has so many in flight. Submitter. */
uint32_t client_stream_lacking(const struct client_stream *stream, uint32_t each);

/* Timeline value of the last descriptor that the client has pushed. The client's tail is not
 * trusted: the result is never more than one ring ahead of what was read. */
uint64_t client_stream_pushed(const struct client_stream *stream);

/* Device addresses of the client's word and of the private shadow, which a completion writes. */
uint64_t client_stream_status_address(const struct client_stream *stream);
uint64_t client_stream_shadow_address(const struct client_stream *stream);

/* Whether a closing stream has reached its limit. The caller unbinds and frees it. */
bool client_stream_has_ended(const struct client_stream *stream);

/* Whether a thread sleeps on the stream's timeline. */
void client_stream_set_watched(struct client_stream *stream, bool watched);

/* Counts a non-fatal failure of work in the stream's status, where the client finds it. */
void client_stream_report(struct client_stream *stream, uint32_t error);

/* Whether every dependency of a blocked ring is met: a value on this device has been submitted, a
 * value on another device has completed, there is room for the local memory or the driver refused
 * to make it; and the device has nothing of a stream that waits for its own end. */
bool client_stream_may_go_on(const struct client_stream *stream);

/* ---- the client's table of streams ---- */

/* Makes a table for so many streams, of which none is open, or returns NULL without memory. Only
 * entries of streams that were opened use memory: no function here writes to another one. */
struct client_stream *client_stream_make_table(uint32_t count);

/* Frees a table of so many streams. NULL is allowed. */
void client_stream_free_table(struct client_stream *table, uint32_t count);

/* Sets every stream's reached value, in the device's place, so high that no value is waited for any
 * more: also a ring of a client on another device goes on, whatever stream it waits for. */
void client_stream_end_timelines(struct client *client);

/* Limits the client's streams to the priorities between first and last, as the driver numbers them
 * (greater priorities are smaller numbers), and gives each stream its wish within that range. */
void client_stream_set_range(struct client *client, int32_t first, int32_t last);

/* The priority that a stream has on SM groups that are all its client's own (at_home), or
 * elsewhere: at home it comes before those who borrow, by one if the range has room. */
int32_t client_stream_priority(const struct client *client, const struct client_stream *stream,
                               bool at_home);

/* Gives each stream its priority anew, after the client's place or range changed. */
void client_stream_find_priorities(struct client *client);

/* Opens stream `index`, whose timeline goes on where its last user ended; or, of a client that is
 * being restored, where the last worker has begun: then its ring keeps what waits there, and the
 * stream is interrupted if the device was not seen to finish all of it.
 *
 * priority
 * is the client's wish as the driver numbers it; the stream gets the nearest one that its client
 * may have. Returns NULL if the stream is in use or the index is not below the number that the
 * client was granted. */
struct client_stream *client_stream_open(struct client *client, uint32_t index, int32_t priority);

/* Closes a stream: the commands in its ring are still carried out, then it is free again. */
void client_stream_close(struct client *client, struct client_stream *stream);

/* Frees the number of a closing stream that has ended and is bound to nothing. Its ring is not read
 * until the number's next stream opens, whatever its tail says. The client may have set the tail
 * back before it destroyed the stream, so the ring may be ready, blocked and slept for. */
void client_stream_free(struct client *client, struct client_stream *stream);

/* The stream of this index if it is open or closing, else NULL. Any index is allowed. */
struct client_stream *client_stream_find(struct client *client, uint32_t index);

#endif
