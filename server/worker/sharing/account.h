/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * account: how long the device worked for each client.
 *
 * Each batch of a ring is a span between two timing events. While spans of several
 * clients run on the same multiprocessors at once, each moment is split equally
 * among these clients, SM group by SM group; several streams of one client count once. A
 * client alone on its multiprocessors gets every moment whole, whatever its share
 * of the device.
 *
 * Spans are limited; a batch that finds none free is not measured, and the
 * stream's next span counts for it too. A client has no more of them than are left
 * for others, so that none can take them all.
 *
 * While a trace is on each span is written down, too, on the host's clock: the device's is
 * laid so that no span begins before it was submitted nor ends after it was seen to
 * be over, and those of one stream don't overlap.
 *
 * account_begin and account_end: submitter. The rest: any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_ACCOUNT_H
#define GPUSHARE_SERVER_WORKER_SHARING_ACCOUNT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/trace.h"
#include "server/worker/client/queue_latency.h"

struct client;
struct client_stream;

enum { ACCOUNT_SPANS = 512 };

/* Counted by the submitter, under client->lock. */
struct account_client {
    uint64_t launches;
    uint64_t copies;
    uint64_t copied_bytes;
    _Atomic uint64_t gpu_nanoseconds; /* counted by account_collect */
    uint64_t waits[QUEUE_LATENCY_BUCKETS];
    uint32_t spans; /* that it has; under account->lock */
};

struct account_span {
    struct account_span *next;
    cuda_event start, end;
    struct client_stream *stream;
    struct share_set sm_groups; /* that it runs on: the client's may change meanwhile */
    uint64_t value;             /* of the stream's timeline; once reached, the span is over */
    uint64_t first;             /* the value before it */
    uint64_t begun;             /* when it was submitted, on the host's clock; 0: no trace was on */
    uint32_t weight;            /* batches that it stands for */
    bool started, over;
    double from, to; /* nanoseconds since the first span of all */
};

struct account {
    const struct cuda_driver *cuda;
    const struct partitions *partitions;
    pthread_mutex_t lock; /* of the two lists; never held across a driver call */
    struct account_span *free;
    uint32_t free_count;
    struct account_span *incoming, **incoming_end;
    pthread_mutex_t collecting; /* of all that follows */
    struct account_span *open;  /* not settled yet */
    struct account_span *base;  /* times are measured from its start */
    double base_time;
    double settled; /* everything before is counted */
    struct trace *trace;
    bool aligned;  /* since the trace began */
    double offset; /* of the host's clock from these times */
    struct account_span spans[ACCOUNT_SPANS];
};

/* Returns the driver's result. account->trace may be set then, before any span. */
cuda_result account_open(struct account *account, const struct cuda_driver *cuda,
                         const struct partitions *partitions);
void account_close(struct account *account);

/* The batch's first work is about to be submitted on stream->bound. */
void account_begin(struct account *account, struct client_stream *stream);
/* The batch is submitted but for its completion, which will write this value. */
void account_end(struct account *account, struct client_stream *stream, uint64_t value);

/* Counts what has ended since. */
void account_collect(struct account *account);

/* A trace begins, and what ran before is settled; it ends, and what still runs is written down so
 * far. Control thread. */
void account_trace_begin(struct account *account);
void account_trace_end(struct account *account);

/* The client goes; nothing of it is in flight. */
void account_forget(struct account *account, const struct client *client);

#endif
