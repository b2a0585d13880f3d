/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * timeline: waiting for a 64-bit word that the device writes, and being woken.
 *
 * The word grows; a waiter wants it to reach a value. It spins a bounded time,
 * then announces itself, looks again, and sleeps on the word's low 32 bits
 * (futexes are 32 bits wide and work on read-only shared mappings). The device
 * can't wake a futex: the worker's completer polls while anybody is announced.
 * tests/model/waiter.pml.
 */
#ifndef GPUSHARE_COMMON_TIMELINE_H
#define GPUSHARE_COMMON_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"

/* Bound of every sleep on a shared word: how late a dead peer is noticed. */
#define TIMELINE_SLEEP_NS (100 * 1000000L)

/* The parts of its stream and its connection that a waiter needs. */
struct timeline {
    const struct proto_stream_status *stream; /* completed */
    const struct proto_status_header *status; /* fault */
    struct proto_ring_header *ring;           /* waiter */
    struct proto_client_header *header;       /* doorbell */
    uint32_t index;                           /* of the stream */
    int eventfd;
};

/* The value reached so far. */
uint64_t timeline_reached(const struct timeline *timeline);

/* Announces the caller, then looks again: true if the value is reached or the fault word set.
 * Undone by timeline_wait_done. */
bool timeline_wait_prepare(const struct timeline *timeline, uint64_t value);
void timeline_wait_done(const struct timeline *timeline);

/*
 * Waits until value is reached or the fault word is set. Spins for spin_ns first.
 * alive, if not NULL, is asked about ten times a second while asleep; false ends
 * the wait with PROTO_ERROR_CONNECTION_LOST. Returns 0, or an error number.
 */
uint32_t timeline_wait(const struct timeline *timeline, uint64_t value, uint64_t spin_ns,
                       bool (*alive)(void *), void *context);

/* Server: has anybody announced itself on this ring's timeline? A client may lie, to its own harm.
 */
bool timeline_is_watched(const struct proto_ring_header *ring);

/* FUTEX_WAIT on a shared 32-bit word while it holds `seen`, for at most this long. Spurious returns
 * are possible. */
void timeline_sleep(const uint32_t *word, uint32_t seen, long nanoseconds);

/* Wakes every sleeper on the word. */
void timeline_wake(const uint32_t *word);

/* The word of a stream that its waiters sleep on. */
const uint32_t *timeline_word(const struct proto_stream_status *stream);

/*
 * Server: ends a connection for its client: sets the fault word and wakes every
 * sleeper of every stream. The first error stays.
 */
void timeline_fail(struct proto_status_header *status, struct proto_stream_status *streams,
                   uint32_t count, uint32_t error);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t timeline_now(void);

#endif
