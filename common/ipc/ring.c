/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/ring.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/cpu.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/timeline.h"

_Static_assert((PROTO_RING_ENTRIES & (PROTO_RING_ENTRIES - 1)) == 0, "indices wrap by masking");
_Static_assert(PROTO_RING_DESCRIPTORS + PROTO_RING_ENTRIES * 64 == PROTO_RING_ARENA,
               "arena follows");
_Static_assert(PROTO_RING_ARENA + PROTO_RING_ARENA_BYTES == PROTO_RING_STRIDE,
               "rings follow each other");
_Static_assert(sizeof(struct ring_descriptor) == 64, "descriptor");
_Static_assert(sizeof(struct proto_client_header) <= PROTO_RING_FIRST, "client header");
_Static_assert(sizeof(struct proto_status_header) <= PROTO_STATUS_FIRST, "status header");

#define MASK (PROTO_RING_ENTRIES - 1)

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

size_t ring_memory_bytes(uint32_t streams)
{
    return PROTO_RING_FIRST + (size_t)streams * PROTO_RING_STRIDE;
}

size_t ring_status_bytes(uint32_t streams)
{
    return whole_pages(PROTO_STATUS_FIRST + (size_t)streams * sizeof(struct proto_stream_status));
}

size_t ring_shadow_bytes(uint32_t streams)
{
    return whole_pages(4 * (size_t)streams * sizeof(uint64_t));
}

uint64_t *ring_shadow_reached(void *shadow_memory, uint32_t stream)
{
    return (uint64_t *)shadow_memory + stream;
}

uint64_t *ring_shadow_begun(void *shadow_memory, uint32_t streams, uint32_t stream)
{
    return (uint64_t *)shadow_memory + streams + stream;
}

uint64_t *ring_shadow_lost_from(void *shadow_memory, uint32_t streams, uint32_t stream)
{
    return (uint64_t *)shadow_memory + 2 * (size_t)streams + stream;
}

uint64_t *ring_shadow_lost_to(void *shadow_memory, uint32_t streams, uint32_t stream)
{
    return (uint64_t *)shadow_memory + 3 * (size_t)streams + stream;
}

struct ring ring_at(void *ring_memory, void *status_memory, uint32_t stream)
{
    uint8_t *start = (uint8_t *)ring_memory + PROTO_RING_FIRST + (size_t)stream * PROTO_RING_STRIDE;
    uint8_t *status = (uint8_t *)status_memory + PROTO_STATUS_FIRST;
    return (struct ring){
        .header = (struct proto_ring_header *)start,
        .descriptors = (struct ring_descriptor *)(start + PROTO_RING_DESCRIPTORS),
        .arena = start + PROTO_RING_ARENA,
        .status = (struct proto_stream_status *)status + stream,
    };
}

struct proto_client_header *ring_client_header(void *ring_memory)
{
    return ring_memory;
}

struct proto_status_header *ring_status_header(void *status_memory)
{
    return status_memory;
}

/* ---- named accesses ---- */

static uint32_t load_head(const struct ring *ring)
{
    return shared_word_look(&ring->status->head);
}

static uint32_t load_tail(const struct ring *ring)
{
    return shared_word_look(&ring->header->tail);
}

/* ---- producer ---- */

/*
 * How many launches ahead a cache line is fetched. The consumer has read every line of the ring, so
 * each line must come back from the consumer's core before it can be written. Without the fetch,
 * the exchange in ring_publish would wait for that in every launch. One transfer takes as long as a
 * few launches; lines that are fetched ahead come side by side.
 */
#define AHEAD 8

void ring_producer_open(struct ring_producer *producer, struct ring ring, uint32_t *marks,
                        uint64_t value)
{
    memset(marks, 0, PROTO_RING_ENTRIES * sizeof *marks);
    *producer = (struct ring_producer){.ring = ring,
                                       .tail = (uint32_t)value,
                                       .head = (uint32_t)value,
                                       .value = value,
                                       .arena_marks = marks};
}

int ring_room(struct ring_producer *producer)
{
    if (producer->tail - producer->head < PROTO_RING_ENTRIES)
        return 0;
    producer->head = load_head(&producer->ring);
    return producer->tail - producer->head < PROTO_RING_ENTRIES ? 0 : RING_FULL;
}

static uint32_t arena_head(const struct ring_producer *producer)
{
    /* The consumer has finished with everything before the head. The mark of the last consumed
     * descriptor says up to where that is in the arena. */
    if (producer->head == producer->tail)
        return producer->arena_tail;
    return producer->arena_marks[(producer->head - 1) & MASK];
}

static bool arena_fits(const struct ring_producer *producer, uint32_t need)
{
    return PROTO_RING_ARENA_BYTES - (producer->arena_tail - arena_head(producer)) >= need;
}

int ring_arena_room(struct ring_producer *producer, uint32_t bytes, uint32_t *offset)
{
    /* 16 is the strictest alignment that a parameter can have. The arena's size is a power of
     * two, so the remainder is still right after arena_tail has wrapped around. */
    uint32_t size = (bytes + 15) & ~15u;
    uint32_t at = producer->arena_tail % PROTO_RING_ARENA_BYTES;
    /* Parameters must be contiguous: a block that would cross the arena's end begins at its
     * start. */
    uint32_t skip = at + size > PROTO_RING_ARENA_BYTES ? PROTO_RING_ARENA_BYTES - at : 0;
    if (!arena_fits(producer, skip + size)) {
        producer->head = load_head(&producer->ring);
        if (!arena_fits(producer, skip + size))
            return RING_FULL;
    }
    *offset = skip ? 0 : at;
    producer->arena_tail += skip + size;
    cpu_prefetch_write(producer->ring.arena +
                       (producer->arena_tail + AHEAD * size) % PROTO_RING_ARENA_BYTES);
    return 0;
}

bool ring_publish(struct ring_producer *producer, const struct ring_descriptor *descriptor)
{
    uint32_t old = producer->tail;
    producer->ring.descriptors[old & MASK] = *descriptor;
    cpu_prefetch_write(&producer->ring.descriptors[(old + AHEAD) & MASK]);
    producer->arena_marks[old & MASK] = producer->arena_tail;
    producer->tail = old + 1;
    producer->value++;
    /* The exchange is a store and a full fence: the descriptor is visible before the new tail,
     * and the tail before the load of the head. */
    shared_word_announce(&producer->ring.header->tail, old + 1);
    producer->head = load_head(&producer->ring);
    return producer->head == old;
}

uint32_t ring_wait_room(struct ring_producer *producer, struct proto_status_header *status)
{
    uint32_t *waiter = &producer->ring.header->room_waiter;
    /* Announced before the look at the head: ring_consume sees the announcement, or this sees
     * the new head. */
    shared_word_announce(waiter, 1);
    uint32_t fault = shared_word_look(&status->fault);
    uint32_t head = load_head(&producer->ring);
    if (!fault && head == producer->head)
        timeline_sleep(&producer->ring.status->head, head, TIMELINE_SLEEP_NS);
    shared_word_set(waiter, 0);
    return shared_word_look(&status->fault);
}

/* ---- consumer ---- */

void ring_consumer_open(struct ring_consumer *consumer, struct ring ring, uint64_t value)
{
    *consumer = (struct ring_consumer){
        .ring = ring, .head = (uint32_t)value, .tail = (uint32_t)value, .value = value};
    /* The number of a destroyed stream is used again, and its ring still holds the old indices. */
    shared_word_set(&ring.header->tail, (uint32_t)value);
    shared_word_set(&ring.status->head, (uint32_t)value);
    shared_word_set(&ring.status->completed, value);
}

void ring_consumer_resume(struct ring_consumer *consumer, struct ring ring, uint64_t value)
{
    *consumer = (struct ring_consumer){
        .ring = ring, .head = (uint32_t)value, .tail = (uint32_t)value, .value = value};
}

int ring_ready(struct ring_consumer *consumer)
{
    uint32_t tail = load_tail(&consumer->ring);
    uint32_t ready = tail - consumer->head;
    if (ready > PROTO_RING_ENTRIES)
        return -EPROTO;
    /* A tail that went back would declare consumed descriptors new. */
    if (ready < consumer->tail - consumer->head)
        return -EPROTO;
    consumer->tail = tail;
    return (int)ready;
}

void ring_peek(const struct ring_consumer *consumer, struct ring_descriptor *descriptor)
{
    /* The producer may rewrite the descriptor at any time. volatile keeps the compiler from
     * reading it twice: this copy is the only look at it. */
    const volatile uint64_t *from =
        (const volatile uint64_t *)consumer->ring.descriptors[consumer->head & MASK].bytes;
    uint64_t *to = (uint64_t *)descriptor->bytes;
    for (int i = 0; i < 8; i++)
        to[i] = from[i];
}

bool ring_arena_copy(const struct ring_consumer *consumer, uint32_t offset, uint32_t bytes,
                     void *to)
{
    if (offset > PROTO_RING_ARENA_BYTES || bytes > PROTO_RING_ARENA_BYTES - offset)
        return false;
    /* The producer may write to the arena during the copy. The server never interprets
     * parameters, so only the producer's own kernel would see the mixture. */
    memcpy(to, consumer->ring.arena + offset, bytes);
    return true;
}

void ring_advance(struct ring_consumer *consumer)
{
    consumer->head++;
    consumer->value++;
}

uint64_t ring_pushed(const struct ring_consumer *consumer)
{
    uint32_t ahead = load_tail(&consumer->ring) - consumer->head;
    return consumer->value + (ahead <= PROTO_RING_ENTRIES ? ahead : 0);
}

void ring_wake_room(const struct ring_consumer *consumer)
{
    /* Announced before the look at room_waiter: ring_wait_room sees the new head, or this sees
     * its announcement. The same order lets ring_publish see an empty ring, or ring_ready the
     * new tail. */
    shared_word_announce(&consumer->ring.status->head, consumer->head);
    if (shared_word_look(&consumer->ring.header->room_waiter))
        timeline_wake(&consumer->ring.status->head);
}

int ring_consume(struct ring_consumer *consumer)
{
    ring_wake_room(consumer);
    return ring_ready(consumer);
}
