/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_waits: the commands of a ring that wait, on the device, for other streams of its client,
 * and that the device was not seen to finish.
 *
 * A command that is given no event is not among them: what it asks for was reached already, or one
 * CUstream keeps the order. So a stream whose present command is among them occupies nothing until
 * the streams that it waits for have come far enough.
 *
 * Pure. Under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_STREAM_WAITS_H
#define GPUSHARE_SERVER_WORKER_CLIENT_STREAM_WAITS_H

#include <stdbool.h>
#include <stdint.h>

enum { STREAM_WAITS_MAX = 16, STREAM_WAITS_SOURCES = 3 };

struct stream_wait {
    uint64_t value; /* of the command, in the timeline of its own stream */
    uint32_t count;
    struct {
        uint32_t stream; /* index */
        uint64_t value;  /* in that stream's timeline */
    } sources[STREAM_WAITS_SOURCES];
};

/* Zeroed at first; oldest first. */
struct stream_waits {
    uint32_t count;
    struct stream_wait waits[STREAM_WAITS_MAX];
};

/* The stream has reached a value: forgets what ended. Returns whether there is room for one more.
 */
bool stream_waits_reach(struct stream_waits *waits, uint64_t reached);

/* Remembers a command, whose value is greater than those before. Without room it is left out. */
void stream_waits_add(struct stream_waits *waits, const struct stream_wait *wait);

/* The command of this value, or NULL if it does not wait. Valid until the next change. */
const struct stream_wait *stream_waits_find(const struct stream_waits *waits, uint64_t value);

#endif
