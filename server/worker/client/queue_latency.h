/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * queue_latency: how long commands wait in a ring, from when the submitter could first see them
 * until they are handed to the device; counted by powers of two of microseconds.
 *
 * No clock is read for a command. A command that is served in the visit that found it has not
 * waited. A visit that leaves commands behind sets a mark: commands up to here were seen at this
 * time. A ring has few marks; when they are used up the two closest ones become one, of a time
 * between them. Commands that came between two looks, or since the last one, are taken to have come
 * in the middle of that time. So a wait is right to about a factor of two, and a short one to the
 * resolution of the submitter's clock, some tens of microseconds.
 *
 * Why marks and not one timestamp a batch: when a command came is known only from looks at the
 * ring's tail, and one ring may be looked at thousands of times before what it held is served. The
 * marks are those looks, thinned so that their number is bounded.
 *
 * Pure, times in nanoseconds on one clock; the submitter, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_QUEUE_LATENCY_H
#define GPUSHARE_SERVER_WORKER_CLIENT_QUEUE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

enum { QUEUE_LATENCY_MARKS = 8, QUEUE_LATENCY_BUCKETS = 32 };

/* Of one ring; zeroed at first. */
struct queue_latency {
    uint64_t rung;   /* when its doorbell was last found rung; 0: served since */
    uint32_t visit;  /* the visit that found it */
    uint32_t count;  /* marks */
    uint64_t looked; /* when its end was last looked at; while there are marks */
    uint32_t value[QUEUE_LATENCY_MARKS]; /* low bits of timeline values, rising: commands up to
                                            here... */
    uint64_t seen[QUEUE_LATENCY_MARKS];  /* ...and behind the mark before were there at this time */
};

/* The ring's doorbell was found rung in this visit. */
static inline void queue_latency_rung(struct queue_latency *wait, uint32_t visit, uint64_t now)
{
    if (wait->rung)
        return;
    wait->rung = now;
    wait->visit = visit;
}

/* The ring was looked at and commands up to `value` are left in it. */
void queue_latency_left(struct queue_latency *wait, uint32_t value, uint64_t now);

/* Whether the last look at the ring's end was that long ago, or never. */
static inline bool queue_latency_looked_before(const struct queue_latency *wait, uint64_t then)
{
    return !wait->count || wait->looked < then;
}

/* queue_latency_served for a ring that was left with something before. count: at least 1. */
void queue_latency_served_late(struct queue_latency *wait, uint64_t waits[QUEUE_LATENCY_BUCKETS],
                               uint32_t from, uint32_t count, uint64_t now);

/* `count` commands behind the value `from` were handed to the device. */
static inline void queue_latency_served(struct queue_latency *wait,
                                        uint64_t waits[QUEUE_LATENCY_BUCKETS], uint32_t from,
                                        uint32_t count, uint32_t visit, uint64_t now)
{
    if (!wait->count && (!wait->rung || wait->visit == visit))
        waits[0] += count;
    else
        queue_latency_served_late(wait, waits, from, count, now);
    wait->rung = 0;
}

/* The commands in the ring wait from now on: they could not have been handed over before. */
static inline void queue_latency_restart(struct queue_latency *wait, uint32_t visit, uint64_t now)
{
    wait->count = 0;
    wait->rung = now;
    wait->visit = visit;
}

/* The bucket of a wait. */
uint32_t queue_latency_bucket(uint64_t nanoseconds);

#endif
