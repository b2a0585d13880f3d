/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ring: the queue of one client stream, made of 64-byte descriptors in shared memory, with an arena
 * for long kernel parameters. One thread at a time produces: the client's thread that holds the
 * stream. One thread consumes: the worker's submitter. Layout ring_header of schemas/protocol.xml
 * says where everything lies. As in liburing, only the functions here touch indices.
 *
 * Trust: the producer may be hostile. The consumer takes the tail only as a distance from its own
 * head, of at most PROTO_RING_ENTRIES. It copies a descriptor before it looks at it. The head lies
 * in memory that the producer can't write.
 *
 * Order: the producer stores the tail, then loads the head. The consumer stores the head, then
 * loads the tail. All four accesses are sequentially consistent, so at least one side sees the
 * other's store. Either the producer sees that its own descriptor is the first that is not
 * consumed: the ring was empty, and it must ring the doorbell. Or the consumer sees the new tail
 * and goes on. No wake-up is lost; tests/model/doorbell.pml checks this.
 */
#ifndef GPUSHARE_COMMON_IPC_RING_H
#define GPUSHARE_COMMON_IPC_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/* One descriptor; every command of the schema fits. */
struct ring_descriptor {
    _Alignas(64) uint8_t bytes[64];
};

/* The places of one ring in a client's ring memory and status memory. */
struct ring {
    struct proto_ring_header *header;
    struct ring_descriptor *descriptors;
    uint8_t *arena;
    struct proto_stream_status *status; /* a client's mapping of it is read-only */
};

/* Bytes of memory that a client with this many streams needs: its rings, their status, and the
 * shadows. The shadow memory has four tables, one after the other, with a 64-bit word for each
 * stream: the timeline values that the device has reached, those that the worker has begun, and
 * the two ends of the latest interruption, as in struct proto_stream_status. No client can see
 * them, and they outlive the worker. */
size_t ring_memory_bytes(uint32_t streams);
size_t ring_status_bytes(uint32_t streams);
size_t ring_shadow_bytes(uint32_t streams);

/* Finds ring `stream` in the ring memory and the status memory. The caller has checked that
 * `stream` is below the number of streams. The two functions after it find the header of each
 * memory. */
struct ring ring_at(void *ring_memory, void *status_memory, uint32_t stream);
struct proto_client_header *ring_client_header(void *ring_memory);
struct proto_status_header *ring_status_header(void *status_memory);

/* The words of a stream in the shadow memory of a client with this many streams: the value that the
 * device has reached; and that of the last descriptor which the worker has begun to hand over to
 * the driver, written before it does. A stream whose words are equal has nothing in flight. */
uint64_t *ring_shadow_reached(void *shadow_memory, uint32_t stream);
uint64_t *ring_shadow_begun(void *shadow_memory, uint32_t streams, uint32_t stream);

/* The ends of the stream's latest interruption: the values after the first, up to the second, are
 * lost. */
uint64_t *ring_shadow_lost_from(void *shadow_memory, uint32_t streams, uint32_t stream);
uint64_t *ring_shadow_lost_to(void *shadow_memory, uint32_t streams, uint32_t stream);

/* The end of an interruption that goes on, of a stream that nobody has recovered yet. */
#define RING_INTERRUPTED UINT64_MAX

/* Whether an interruption with these ends has lost the work of a timeline value. */
static inline bool ring_has_lost(uint64_t lost_from, uint64_t lost_to, uint64_t value)
{
    return value > lost_from && value <= lost_to;
}

/* ---- producer: one thread at a time ---- */

struct ring_producer {
    struct ring ring;
    uint32_t tail;       /* index of the next descriptor */
    uint32_t head;       /* the consumer's head, when it was last loaded */
    uint64_t value;      /* timeline value of the last descriptor pushed */
    uint32_t arena_tail; /* bytes ever taken from the arena; runs over freely */
    uint32_t
        *arena_marks; /* PROTO_RING_ENTRIES words of the caller's: arena_tail after descriptor i */
};

/* Begins to produce. marks: PROTO_RING_ENTRIES words of the caller's, which live as long as the
 * producer. value: the timeline value that the ring begins with, from stream_created. */
void ring_producer_open(struct ring_producer *producer, struct ring ring, uint32_t *marks,
                        uint64_t value);

enum { RING_FULL = 1 };

/* Returns 0 if there is room for one more descriptor, else RING_FULL. Loads the shared head only
 * if the ring was full when it was last loaded. */
int ring_room(struct ring_producer *producer);

/*
 * Takes room for `bytes` of parameters in the arena, at most PROTO_PARAMETERS_MAX. The room is
 * contiguous and aligned to 16. Returns 0 and its *offset, or RING_FULL, which takes nothing. The
 * next ring_publish gives the room to its descriptor.
 */
int ring_arena_room(struct ring_producer *producer, uint32_t bytes, uint32_t *offset);

/*
 * Publishes a descriptor into the room that ring_room() found. Returns true if the ring was empty
 * before; then the caller must ring the doorbell.
 */
bool ring_publish(struct ring_producer *producer, const struct ring_descriptor *descriptor);

/*
 * Sleeps until the head differs from the head that ring_room() last loaded, the fault word is set,
 * or about 100 ms have passed. Returns the fault word, which is 0 while the connection lives.
 */
uint32_t ring_wait_room(struct ring_producer *producer, struct proto_status_header *status);

/* ---- consumer: one thread ---- */

struct ring_consumer {
    struct ring ring;
    uint32_t head;  /* index of the next descriptor to read; shared memory is not asked for it */
    uint32_t tail;  /* the producer's tail, when it was last loaded and plausible */
    uint64_t value; /* timeline value of the last descriptor taken */
};

/* Begins to consume at this timeline value. Sets tail, head and completed value in shared memory
 * to agree with it, so anything that the ring held is forgotten. */
void ring_consumer_open(struct ring_consumer *consumer, struct ring ring, uint64_t value);

/* Goes on at this timeline value with a ring that another consumer read up to there. Descriptors
 * that the producer has pushed behind it stay, and the completed value is left alone;
 * ring_wake_room wakes one that waits for room. */
void ring_consumer_resume(struct ring_consumer *consumer, struct ring ring, uint64_t value);

/* Publishes the head, and wakes a producer that sleeps until there is room. */
void ring_wake_room(const struct ring_consumer *consumer);

/* Loads the shared tail. Returns the number of descriptors that are ready, at most
 * PROTO_RING_ENTRIES; or -EPROTO if the tail is too far ahead or has gone back. */
int ring_ready(struct ring_consumer *consumer);

/* Copies the descriptor at the head and does not consume it. Only after ring_ready() returned
 * more than 0. */
void ring_peek(const struct ring_consumer *consumer, struct ring_descriptor *descriptor);

/* Copies parameters out of the arena. Returns false, and copies nothing, if offset and bytes
 * exceed the arena. offset and bytes may be a client's. */
bool ring_arena_copy(const struct ring_consumer *consumer, uint32_t offset, uint32_t bytes,
                     void *to);

/* Counts the descriptor at the head as consumed, in private memory only. ring_consume publishes
 * the count. */
void ring_advance(struct ring_consumer *consumer);

/* The timeline value of the last descriptor that the producer has pushed. A tail that is too far
 * ahead counts as none pushed; ring_ready will report it. */
uint64_t ring_pushed(const struct ring_consumer *consumer);

/*
 * Publishes the head, wakes a producer that waits for room, then loads the tail again. Call it once
 * for a batch of descriptors. Returns the same as ring_ready().
 */
int ring_consume(struct ring_consumer *consumer);

#endif
