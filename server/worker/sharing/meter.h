/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * meter: how long the device worked for each client.
 *
 * Each batch of a ring is a span between two timing events, or has the second one alone. While
 * spans of several clients run on the same multiprocessors at once, each moment is split equally
 * among these clients, SM group by SM group, each for as much as it has multiprocessors; several
 * streams of one client count once. A client alone on its multiprocessors gets every moment whole,
 * whatever its share of the device.
 *
 * A span begins when its stream comes to it, so it has the time in it in which its kernel waits for
 * multiprocessors. They go to kernels in their order, and to urgent ones first. So the moment
 * belongs to the client whose work ends next. Another client has a part of it only where a kernel
 * leaves it room.
 *
 * That is known of a launch that is a batch by itself. The kernels of a longer batch take turns
 * with those of other streams, and split the time.
 *
 *   Worked: kernels of a and of b's eight clients fill the device for 5 ms each, and all are handed
 *   over at once; a's is the last. Each client is charged 5 ms. Parts of what is open would be
 *   14 ms for a, and 0.6 ms for the first of b's.
 *
 * The number of spans is limited. A batch that finds no free span is not measured, and the stream's
 * next span counts for it too. A client may have no more spans than are left for others, so that
 * no client can take them all.
 *
 * While a trace is on, each span is also written into the trace, on the host's clock. The device's
 * clock is laid over the host's so that no span begins before it was submitted or ends after it
 * was seen to be over. Spans of one stream don't overlap.
 *
 * One of sixteen batches of a client is timed on both clocks, for the time that it was at the
 * driver: from its submission to its end on the device. The device's clock is laid over the host's
 * for that (meter_clock.h).
 *
 * A batch that finds its hardware queue empty begins when it is submitted, whatever else the
 * process has on the device. While batches of that kind have told of late how the clocks lie, the
 * next ones need no start event: their client waits for one call of the driver less.
 *
 * One in sixteen has one nevertheless. If that one began late, its queue or the device is used by
 * somebody who is not known here, and the client's next batches have start events.
 *
 * A span's last event stands behind the words that tell the client of the batch's end, since a call
 * of the driver takes some microseconds, and a client that waits would wait for it. The span has
 * the words in it, 2 us on the software GPU.
 *
 * The submitter calls meter_begin, meter_hand_over and meter_end; any thread may call the rest.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_METER_H
#define GPUSHARE_SERVER_WORKER_SHARING_METER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "server/worker/sharing/meter_clock.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/trace.h"
#include "server/worker/client/queue_latency.h"

struct client;
struct client_stream;

enum { METER_SPANS = 512 };

/* Limits of meter_settle, ns. The control thread has others to serve, and a device that was lost
 * never comes to an end. At a client's end its last batch is charged, or never. */
#define METER_SETTLE_NS      200000
#define METER_SETTLE_LAST_NS 5000000

/* A client's use of the device. The submitter counts, under client->lock. */
struct meter_client {
    uint64_t launches;
    uint64_t copies;
    uint64_t copied_bytes;
    _Atomic uint64_t gpu_nanoseconds; /* meter_collect counts them; readable without a lock */
    uint64_t waits[LATENCY_BUCKETS];
    uint32_t spans; /* that the client has; under meter->lock */
    uint32_t turns; /* of its batches with a span, for the choice of those that are timed */
    /* Behind these: another thread writes them than those above. Not 0: one of its last batches
     * that told of the clocks began late, though nothing was before it. */
    _Atomic uint32_t late;
    /* Batches by their time at the driver; meter_collect counts them; readable without a lock. */
    _Atomic uint64_t latencies[LATENCY_BUCKETS];
};

struct meter_span {
    struct meter_span *next;
    cuda_event start, end;
    struct client_stream *stream;
    struct sm_group_set sm_groups; /* that the span runs on: the client may move meanwhile */
    uint64_t value;                /* of the stream's timeline; once reached, the span is over */
    uint64_t first;                /* the timeline value before the span */
    uint64_t begun;                /* when it was submitted, on the host's clock; 0: unknown */
    uint64_t called;               /* before its first work was handed over; `begun` may be later */
    bool timed;                    /* its time at the driver is counted */
    bool alone;                    /* nothing was before it in its hardware queue */
    bool by_host;                  /* it began when it was submitted, and has no start event */
    bool handed;                   /* of by_host: `begun` is final */
    uint32_t weight;               /* batches that it stands for */
    uint32_t width;     /* of its one kernel (launch_width.h); 0: another kind of batch */
    uint64_t launches;  /* the client's, before the span */
    bool started, over; /* from is known; to is known */
    double from, to;    /* nanoseconds since the first span of all */
};

struct meter {
    const struct cuda_driver *cuda;
    const struct partition_table *partitions;
    pthread_mutex_t lock; /* of `free` and `incoming`; never held across a driver call */
    struct meter_span *free;
    uint32_t free_count;
    struct meter_span *incoming, **incoming_end;
    pthread_mutex_t collecting; /* of all members below */
    struct meter_span *open;    /* spans that are not counted to their end */
    struct meter_span *base;    /* `from` and `to` are measured from its start */
    double base_time;
    double settled; /* time up to which everything is counted */
    struct meter_clock latencies, begins;
    struct trace *trace;
    bool aligned;  /* offset was set since the trace began */
    double offset; /* host's clock less the clock of `from` and `to` */
    struct meter_span spans[METER_SPANS];
};

/* Makes the events; the calling thread has the context. Returns the driver's result; after a
 * failure the meter is closed. cuda and partitions stay the caller's. The caller may set
 * meter->trace afterwards, before the first span. */
cuda_result meter_open(struct meter *meter, const struct cuda_driver *cuda,
                       const struct partition_table *partitions);
void meter_close(struct meter *meter);

/* The batch's first work is about to be submitted on stream->bound. alone: nothing else is in
 * flight in its hardware queue. Under client->lock. */
void meter_begin(struct meter *meter, struct client_stream *stream, bool alone);
/* A driver's call for the batch came back. The first one tells of its begin; later ones do nothing,
 * as without a span.
 * Under client->lock. */
void meter_hand_over(struct client_stream *stream);
/* The batch is submitted with its completion, which writes this timeline value. Only if meter_begin
 * has set stream->span. Under client->lock. */
void meter_end(struct meter *meter, struct client_stream *stream, uint64_t value);

/* Adds the time of spans that have ended, and of spans under way as far as it is certain, to the
 * clients' gpu_nanoseconds. Takes locks; calls the driver. */
void meter_collect(struct meter *meter);

/* As meter_collect, until every batch that the client saw the end of is counted to its end: for as
 * long as the device takes to get from a batch's words to its last event, and at most `limit` ns.
 * The client's lock was taken since it saw that end. */
void meter_settle(struct meter *meter, const struct client *client, uint64_t limit);

/* Whether the device's time of some batch of the client is not in its gpu_nanoseconds to the end.
 * If it is, that time is seen there by a look behind this one. */
bool meter_owes(struct meter *meter, const struct client *client);

/* A trace begins: work that ran before is counted first, so that it stays out of the trace. A trace
 * ends: work that still runs is written as far as it has come. Control thread. */
void meter_trace_begin(struct meter *meter);
void meter_trace_end(struct meter *meter);

/* Forgets a client that leaves; nothing of it is in flight. Control thread. */
void meter_forget(struct meter *meter, const struct client *client);

#endif
