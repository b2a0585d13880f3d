/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * blocked_rings: the rings of one client whose next command can't be handed over yet: its
 * conditions (client_stream.h: blocked_on) are not met.
 *
 * The set and its counts change here alone. A ring that is freed leaves the set in the same step:
 * otherwise it would be served when its conditions are met, though nobody counts its work any more.
 *
 * Pure. Under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_BLOCKED_RINGS_H
#define GPUSHARE_SERVER_WORKER_CLIENT_BLOCKED_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/ring.h"

struct client_stream;

enum { BLOCKED_RINGS_WORDS = PROTO_STREAMS_MAX / 64 };

/* Zeroed at first. */
struct blocked_rings {
    uint64_t bits[BLOCKED_RINGS_WORDS];
    uint32_t count;
    uint32_t linked; /* of them, those that wait for another device, or for their own end */
};

/* Adds a ring that is not in the set; its blocked_on stays as it is until it leaves. Returns
 * whether only the completer can see that it may go on. */
bool blocked_rings_add(struct blocked_rings *rings, const struct client_stream *stream);

/* Takes the ring out. Does nothing if it is not in the set. */
void blocked_rings_remove(struct blocked_rings *rings, const struct client_stream *stream);

void blocked_rings_clear(struct blocked_rings *rings);

bool blocked_rings_has(const struct blocked_rings *rings, uint32_t stream);

/* The first ring of the set at or after `from`, below `count`; count if none. */
uint32_t blocked_rings_next(const struct blocked_rings *rings, uint32_t from, uint32_t count);

#endif
