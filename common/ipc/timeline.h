/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * timeline: waits for a 64-bit word that the device writes, and wakes the threads that wait.
 *
 * The word only grows, and a waiter wants it to reach a value. The waiter first spins for a bounded
 * time, and where that may pay, yields its processor between its looks for a while: a sleep ends
 * only once two more threads were woken.
 *
 * Then it announces itself, looks once more, and sleeps on the word's low 32 bits: a futex is 32
 * bits wide, and works on a read-only shared mapping. The device can't wake a futex, so the
 * worker's completer polls while any waiter is announced. tests/model/waiter.pml checks the
 * handshake.
 *
 * Any thread.
 */
#ifndef GPUSHARE_COMMON_IPC_TIMELINE_H
#define GPUSHARE_COMMON_IPC_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/units.h"
#include "protocol.h"

/* The longest sleep on a shared word. A waiter notices within this time that its peer has died. */
#define TIMELINE_SLEEP_NS UNITS_TENTH

/* The parts of a stream and its connection that a waiter needs. They stay the caller's. */
struct timeline {
    const struct proto_stream_status *stream; /* holds the word */
    const struct proto_status_header *status; /* holds the fault word */
    struct proto_ring_header *ring;           /* counts announced waiters */
    struct proto_client_header *header;       /* the doorbell, to wake the submitter */
    uint32_t index;                           /* index of the stream */
    int eventfd;
};

/* How the threads of a connection wait before they sleep. */
struct timeline_spin {
    uint64_t spin_ns;    /* at most so long without a pause; 0: not at all */
    uint64_t yield_ns;   /* then so long with yields, where that may pay */
    _Atomic bool yields; /* the last wait that slept did not yield, and took at most spin_ns and
                          * twice yield_ns, its wake-ups included; at first false */
};

/* Returns the value that the timeline has reached. */
uint64_t timeline_reached(const struct timeline *timeline);

/* Announces the calling thread as a waiter, then looks again. Returns true if the value is
 * reached or the fault word is set. timeline_wait_done withdraws the announcement, in either
 * case. */
bool timeline_wait_prepare(const struct timeline *timeline, uint64_t value);
void timeline_wait_done(const struct timeline *timeline);

/*
 * Waits until the value is reached or the fault word is set. spin: how to wait before the first
 * sleep; NULL: sleep at once. alive: whether the connection is still there; asked about ten
 * times a second during sleep, with `context`; NULL for never.
 *
 * Returns 0 if the value is reached, even if the connection failed afterwards. Otherwise returns
 * the fault word, or PROTO_ERROR_CONNECTION_LOST after `alive` returned false.
 */
uint32_t timeline_wait(const struct timeline *timeline, uint64_t value, struct timeline_spin *spin,
                       bool (*alive)(void *), void *context);

/* Server: whether a waiter of this ring's timeline is announced. A client that lies here delays
 * only its own threads. */
bool timeline_is_watched(const struct proto_ring_header *ring);

/* Sleeps (FUTEX_WAIT) while the shared word holds `seen`, for at most this many nanoseconds. It
 * may return early. */
void timeline_sleep(const uint32_t *word, uint32_t seen, uint64_t nanoseconds);

/* Wakes every thread that sleeps on the word, in all processes. */
void timeline_wake(const uint32_t *word);

/* The 32-bit word on which the waiters of a stream sleep. */
const uint32_t *timeline_word(const struct proto_stream_status *stream);

/*
 * Server: tells a client that its connection has ended. Sets the fault word and wakes every thread
 * that sleeps on one of its `count` streams, for a value or for room. If a fault was set before,
 * the first one stays.
 */
void timeline_fail(struct proto_status_header *status, struct proto_stream_status *streams,
                   uint32_t count, uint32_t error);

#endif
