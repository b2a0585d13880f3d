/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * queue_latency: how long commands wait in a ring, from when the submitter could first see them
 * until it hands them to the device; counted by powers of two of microseconds.
 *
 * No clock is read for a single command. A command that is served in the visit that found it has
 * not waited. A visit that leaves commands behind sets a mark: commands up to this value were seen
 * at this time. A ring has few marks; when they are used up, the two closest ones become one with a
 * time between them.
 *
 * Commands that arrived between two looks, or since the last one, count as if they had arrived in
 * the middle of that time. So a wait is right to about a factor of two, and a short one to the
 * resolution of the submitter's clock, some tens of microseconds.
 *
 * Why marks and not one timestamp for each batch: only looks at the ring's tail show when a command
 * arrived, and the submitter may look at a ring thousands of times before it serves what the ring
 * held. The marks are those looks, thinned so that their number is bounded.
 *
 * Pure. Times are nanoseconds on one clock. The submitter calls it, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_QUEUE_LATENCY_H
#define GPUSHARE_SERVER_WORKER_CLIENT_QUEUE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/latency.h"

enum { QUEUE_LATENCY_MARKS = 8 };

/* The marks of one ring; zeroed at first. */
struct queue_latency {
    uint64_t rung;  /* when its doorbell was last found rung; 0: served since */
    uint32_t visit; /* the visit that found it rung */
    uint32_t count; /* number of marks */
    uint64_t
        looked_at; /* when a look last left commands behind, and what was not there by then came
                   later; 0: the ring was empty then. Not valid while `rung` stands alone. */
    /* Mark i: commands behind value[i - 1] and up to value[i] were in the ring at time seen[i].
     * The values are the low bits of timeline values, and rise. */
    uint32_t value[QUEUE_LATENCY_MARKS];
    uint64_t seen[QUEUE_LATENCY_MARKS];
};

/* This visit found the ring's doorbell rung. */
static inline void queue_latency_rung(struct queue_latency *latency, uint32_t visit, uint64_t now)
{
    if (latency->rung)
        return;
    latency->rung = now;
    latency->visit = visit;
}

/* The submitter looked at the ring and left commands up to `value` in it. */
void queue_latency_left(struct queue_latency *latency, uint32_t value, uint64_t now);

/* Whether the ring's tail was last read before that time, or never. */
static inline bool queue_latency_looked_before(const struct queue_latency *latency, uint64_t then)
{
    return !latency->count || latency->looked_at < then;
}

/* queue_latency_served for a ring in which an earlier visit left commands. count is at least 1. */
void queue_latency_served_late(struct queue_latency *latency, uint64_t waits[LATENCY_BUCKETS],
                               uint32_t from, uint32_t count, uint64_t now);

/* The submitter handed `count` commands behind the value `from` to the device. waits counts them,
 * by latency_bucket of their wait. */
static inline void queue_latency_served(struct queue_latency *latency,
                                        uint64_t waits[LATENCY_BUCKETS], uint32_t from,
                                        uint32_t count, uint32_t visit, uint64_t now)
{
    if (!latency->count && (!latency->rung || latency->visit == visit)) {
        waits[0] += count;
        latency->looked_at = 0;
    } else {
        queue_latency_served_late(latency, waits, from, count, now);
    }
    latency->rung = 0;
}

/* The commands in the ring count as waiting from now on: until now they waited for another ring. */
static inline void queue_latency_restart(struct queue_latency *latency, uint32_t visit,
                                         uint64_t now)
{
    latency->count = 0;
    latency->looked_at = 0;
    latency->rung = now;
    latency->visit = visit;
}

#endif
