/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * work_length: how long a client's commands take in their streams, and what is expected of those
 * that are on the device.
 *
 * The scheduler's pace says how many commands a client gets done in a time. Here is asked when the
 * last one will have ended, so each stream is measured by itself: commands of one stream run one
 * after the other.
 *
 * Pure; times in nanoseconds. Under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_WORK_LENGTH_H
#define GPUSHARE_SERVER_WORKER_CLIENT_WORK_LENGTH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/units.h"

/* The assumed length of a command while nothing is known. */
#define WORK_LENGTH_UNKNOWN_NS (50 * UNITS_MS)

/* Of a client; zeroed at first. */
struct work_length {
    uint64_t mean_ns; /* of its recent commands; 0: unknown */
    uint64_t peak_ns; /* the longest of them, fading */
};

/* Of one stream; zeroed at first. */
struct work_span {
    uint64_t started_at; /* the command that runs began then at the earliest */
    uint64_t value;      /* of the stream's timeline, at that time */
    uint64_t order;      /* among the commands of all streams, by `started_at`; set by the caller */
    uint64_t batch;      /* timeline value at the end of the batch that runs; 0: unknown */
};

struct work_expected {
    uint64_t left_ns; /* until all that is in flight has ended; overdue: what has passed already */
    uint64_t likely_ns; /* until it has, as likely later as earlier; 0 if overdue */
    bool overdue;       /* what runs should have ended long ago */
};

/* The stream, on which nothing was in flight, is handed something. value: what it has reached. */
void work_length_begin(struct work_span *span, uint64_t value, uint64_t now);

/* The stream is seen to have reached a value. */
void work_length_reach(struct work_length *length, struct work_span *span, uint64_t value,
                       uint64_t now);

/* The number of commands that take about this time together: 1 at least, and while nothing is
 * known. */
uint64_t work_length_fit(const struct work_length *length, uint64_t ns);

/*
 * in_flight: commands of the stream that have not ended, 1 or more; batch: how many of these may
 * have ended without its being seen.
 */
struct work_expected work_length_expect(const struct work_length *length,
                                        const struct work_span *span, uint64_t in_flight,
                                        uint64_t batch, uint64_t now);

#endif
