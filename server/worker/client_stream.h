/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream: one ring as the worker sees it: what was taken from it, how far the device
 * has come, what it waits for, and the CUstream that it has on loan.
 *
 * Under the client's lock but what says otherwise.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_STREAM_H
#define GPUSHARE_SERVER_WORKER_CLIENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ring.h"
#include "server/worker/queue_latency.h"

struct account_span;
struct client;
struct pool_stream;

enum stream_state {
    STREAM_FREE,
    STREAM_OPEN,
    STREAM_CLOSING, /* destroyed by the client; up to `limit` is still carried out */
};

/* What a held ring waits for. */
struct stream_hold {
    uint32_t count;
    struct proto_dependency on[3];
};

struct stream {
    struct client *client;
    uint32_t index;
    enum stream_state state;
    int32_t wish;     /* the priority that its client asked for */
    int32_t priority; /* what it has, as the driver numbers them */
    struct ring_consumer ring;
    uint64_t *twin;   /* what the device has reached; private to the server */
    uint64_t written; /* value that the device was last told to write; atomic */
    uint64_t limit;   /* of a closing stream: its last value */
    uint64_t woken;   /* completer: the twin when the sleepers were last woken */
    bool watched;     /* somebody sleeps on the timeline: the completer looks often */
    struct stream_hold hold;
    struct pool_stream *bound; /* under the pool's lock; only the submitter sets it while open */
    struct stream *next_user;  /* of the same pool_stream */
    struct account_span *span; /* the submitter's: of the batch under way, or NULL */
    uint32_t unmeasured;       /* the submitter's: batches that found no span free */
    struct wait wait;          /* the submitter's */
    uint64_t traced;           /* the account's: end of the latest span in a trace, ns */
};

/* Timeline value up to which the device has come. */
uint64_t stream_reached(const struct stream *stream);

/* Timeline value up to which the submitter was told to write. */
uint64_t stream_written(const struct stream *stream);

/* Value of the last descriptor that the client has pushed; never more than a ring ahead. */
uint64_t stream_pushed(const struct stream *stream);

/* Device addresses of the two words that a completion writes. */
uint64_t stream_status_address(const struct stream *stream);
uint64_t stream_twin_address(const struct stream *stream);

/* A closing stream that has reached its limit becomes free; unbinding it is the caller's. */
bool stream_finished(const struct stream *stream);

/* Counts a failure of work that is not fatal, for the client to find. */
void stream_report(struct stream *stream, uint32_t error);

/* Whether every dependency of a held ring is submitted (another device's: completed). */
bool stream_hold_over(const struct stream *stream);

#endif
