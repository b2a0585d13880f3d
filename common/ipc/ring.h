/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ring: one client stream's queue of 64-byte descriptors in shared memory, with an
 * arena for long kernel parameters. One producer (the client's thread that holds
 * the stream), one consumer (the worker's submitter). Layout: schemas/protocol.xml,
 * ring_header. Only the functions here touch indices (liburing's habit).
 *
 * Trust: the producer may be hostile. The consumer believes the tail only as a
 * distance of at most PROTO_RING_ENTRIES from its own head, and copies a
 * descriptor before it looks at it. The head stands in memory that the producer
 * can't write.
 *
 * The order that no wake-up is lost by: the producer stores the tail, then loads
 * the head; the consumer stores the head, then loads the tail; all four are
 * sequentially consistent. So either the producer sees that all before its own
 * descriptor was consumed (the ring was empty: it must ring the doorbell), or the
 * consumer sees the new tail and goes on. tests/model/doorbell.pml.
 */
#ifndef GPUSHARE_COMMON_RING_H
#define GPUSHARE_COMMON_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/* A descriptor as it is copied; every command of the schema fits. */
struct ring_descriptor {
    _Alignas(64) uint8_t bytes[64];
};

/* Where one ring lies in a client's ring and status memory. */
struct ring {
    struct proto_ring_header *header;
    struct ring_descriptor *descriptors;
    uint8_t *arena;
    struct proto_stream_status *status; /* read-only in a client */
};

/* Bytes of the ring and status memory of a client with this many streams, and of the server's own
 * twins of its timelines, a 64-bit word each. */
size_t ring_memory_bytes(uint32_t streams);
size_t ring_status_bytes(uint32_t streams);
size_t ring_twin_bytes(uint32_t streams);

/* Finds ring `stream` in the two memories. The caller has checked stream < streams. */
struct ring ring_at(void *ring_memory, void *status_memory, uint32_t stream);
struct proto_client_header *ring_client_header(void *ring_memory);
struct proto_status_header *ring_status_header(void *status_memory);

/* ---- producer: one thread at a time ---- */

struct ring_producer {
    struct ring ring;
    uint32_t tail;         /* next index */
    uint32_t head;         /* the consumer's, as last seen */
    uint64_t value;        /* timeline value of the last descriptor pushed */
    uint32_t arena_tail;   /* free-running */
    uint32_t *arena_marks; /* arena_tail after descriptor i, PROTO_RING_ENTRIES of them; caller's
                              memory */
};

/* marks: PROTO_RING_ENTRIES words that live as long as the producer. value: from stream_created. */
void ring_producer_open(struct ring_producer *producer, struct ring ring, uint32_t *marks,
                        uint64_t value);

enum { RING_FULL = 1 };

/* Room for one more descriptor? Reads the shared head only when the seen one says no. 0 or
 * RING_FULL. */
int ring_room(struct ring_producer *producer);

/*
 * Room in the arena for bytes (at most PROTO_PARAMETERS_MAX), contiguous, 16-aligned.
 * 0 and the offset, or RING_FULL. The space belongs to the next ring_publish.
 */
int ring_arena_room(struct ring_producer *producer, uint32_t bytes, uint32_t *offset);

/*
 * Publishes a descriptor into the room that ring_room() promised. Returns true if
 * the ring was empty before: then the caller must ring the doorbell.
 */
bool ring_publish(struct ring_producer *producer, const struct ring_descriptor *descriptor);

/*
 * Sleeps until the head moves past what ring_room() last saw, the fault word is
 * set, or about 100 ms have passed. Returns 0 or the fault word.
 */
uint32_t ring_wait_room(struct ring_producer *producer, struct proto_status_header *status);

/* ---- consumer: one thread ---- */

struct ring_consumer {
    struct ring ring;
    uint32_t head;  /* next index to read; the truth, whatever shared memory says */
    uint32_t tail;  /* as last believed */
    uint64_t value; /* timeline value of the last descriptor taken */
};

/* Starts at the ring's beginning: everything so far is forgotten, tail and head agree. */
void ring_consumer_open(struct ring_consumer *consumer, struct ring ring, uint64_t value);

/* Descriptors ready, at most PROTO_RING_ENTRIES; -EPROTO if the tail lies. Reads the shared tail.
 */
int ring_ready(struct ring_consumer *consumer);

/* Copies the descriptor at the head, without consuming it. Only after ring_ready() > 0. */
void ring_peek(const struct ring_consumer *consumer, struct ring_descriptor *descriptor);

/* Copies parameters out of the arena. False if offset and bytes leave it. */
bool ring_arena_copy(const struct ring_consumer *consumer, uint32_t offset, uint32_t bytes,
                     void *to);

/* Counts the descriptor at the head as consumed, privately. */
void ring_advance(struct ring_consumer *consumer);

/* Value of the last descriptor that the producer has pushed, as far as a tail can be believed:
 * one that lies is ring_ready's to find, and counts for nothing here. */
uint64_t ring_pushed(const struct ring_consumer *consumer);

/*
 * Publishes the head, wakes a producer that waits for room, and looks at the tail
 * again. Returns what ring_ready() would. Once a batch, not once a descriptor.
 */
int ring_consume(struct ring_consumer *consumer);

#endif
