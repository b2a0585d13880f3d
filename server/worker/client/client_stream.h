/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_stream: one ring as the worker sees it: what was taken from it, how far the device
 * has come, what it waits for, and the CUstream that it has on loan.
 *
 * Under the client's lock but what says otherwise.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STREAM_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"
#include "server/worker/client/queue_latency.h"

struct account_span;
struct client;
struct pool_stream;

enum stream_state {
    STREAM_FREE,
    STREAM_OPEN,
    STREAM_CLOSING, /* destroyed by the client; up to `limit` is still carried out */
};

/* The timeline values that a blocked ring waits for. */
struct stream_dependencies {
    uint32_t count;
    struct proto_dependency on[3];
};

struct client_stream {
    struct client *client;
    uint32_t index;
    enum stream_state state;
    int32_t wish;     /* the priority that its client asked for */
    int32_t priority; /* what it has, as the driver numbers them */
    struct ring_consumer ring;
    uint64_t *shadow;         /* what the device has reached; private to the server */
    _Atomic uint64_t written; /* value that the device was last told to write */
    uint64_t limit;           /* of a closing stream: its last value */
    uint64_t woken;           /* completer: the shadow when the sleepers were last woken */
    bool watched;             /* somebody sleeps on the timeline: the completer looks often */
    struct stream_dependencies blocked_on;
    struct pool_stream *bound; /* under the pool's lock; only the submitter sets it while open */
    struct client_stream *next_user; /* of the same pool_stream */
    struct account_span *span;       /* the submitter's: of the batch under way, or NULL */
    uint32_t unmeasured;             /* the submitter's: batches that found no span free */
    struct queue_latency latency;    /* the submitter's */
    uint64_t traced;                 /* the account's: end of the latest span in a trace, ns */
};

/* Timeline value up to which the device has come. */
uint64_t client_stream_reached(const struct client_stream *stream);

/* The server's own word for it: where the timeline of a new user of the stream begins, or that
 * nothing more will be reached. */
void client_stream_set_reached(struct client_stream *stream, uint64_t value);

/* Timeline value up to which the device was told to write. */
uint64_t client_stream_written(const struct client_stream *stream);

/* Value of the last descriptor that the client has pushed; never more than a ring ahead. */
uint64_t client_stream_pushed(const struct client_stream *stream);

/* Device addresses of the two words that a completion writes. */
uint64_t client_stream_status_address(const struct client_stream *stream);
uint64_t client_stream_shadow_address(const struct client_stream *stream);

/* A closing stream that has reached its limit becomes free; unbinding it is the caller's. */
bool client_stream_has_ended(const struct client_stream *stream);

/* Counts a failure of work that is not fatal, for the client to find. */
void client_stream_report(struct client_stream *stream, uint32_t error);

/* Whether every dependency of a blocked ring is submitted (another device's: completed). */
bool client_stream_may_go_on(const struct client_stream *stream);

/* ---- the client's table of them ---- */

/* Its streams have the priorities that this range leaves them, as the driver numbers them. Under
 * the lock. */
void client_stream_set_range(struct client *client, int32_t first, int32_t last);

/* Opens a stream, continuing its timeline, with the driver's priority for a wish, within what the
 * client was granted. NULL if the number is taken, or more than the client may have. */
struct client_stream *client_stream_open(struct client *client, uint32_t index, int32_t priority);

/* The commands in its ring are still carried out; then the stream is free again. */
void client_stream_close(struct client *client, struct client_stream *stream);

/* Stream `index` if it is open (or closing), else NULL. */
struct client_stream *client_stream_find(struct client *client, uint32_t index);

#endif
