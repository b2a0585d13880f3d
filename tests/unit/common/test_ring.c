/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* ring: order and content under wrap, full rings and a producer that lies. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/ipc/ring.h"
#include "common/ipc/timeline.h"

enum { STREAMS = 3 };

struct both {
    void *rings, *status;
    struct ring ring;
    struct ring_producer producer;
    struct ring_consumer consumer;
    uint32_t marks[PROTO_RING_ENTRIES];
};

static void both_open(struct both *both, uint32_t stream, uint64_t value)
{
    both->rings = aligned_alloc(4096, (ring_memory_bytes(STREAMS) + 4095) & ~(size_t)4095);
    both->status = aligned_alloc(4096, ring_status_bytes(STREAMS));
    memset(both->rings, 0, ring_memory_bytes(STREAMS));
    memset(both->status, 0, ring_status_bytes(STREAMS));
    both->ring = ring_at(both->rings, both->status, stream);
    ring_consumer_open(&both->consumer, both->ring, value);
    ring_producer_open(&both->producer, both->ring, both->marks, value);
}

static void both_close(struct both *both)
{
    free(both->rings);
    free(both->status);
}

static struct ring_descriptor numbered(uint64_t number)
{
    struct ring_descriptor descriptor;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t word = number * 8 + i;
        memcpy(descriptor.bytes + i * 8, &word, 8);
    }
    return descriptor;
}

static void push(struct both *both, uint64_t number)
{
    struct ring_descriptor descriptor = numbered(number);
    assert_int_equal(ring_room(&both->producer), 0);
    ring_publish(&both->producer, &descriptor);
}

static void take(struct both *both, uint64_t number)
{
    struct ring_descriptor got, want = numbered(number);
    assert_true(ring_ready(&both->consumer) > 0);
    ring_peek(&both->consumer, &got);
    assert_memory_equal(&got, &want, sizeof got);
    ring_advance(&both->consumer);
}

static void places_do_not_overlap(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    uint8_t *rings = both.rings, *status = both.status;
    uint8_t *end = rings + PROTO_RING_FIRST;
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct ring ring = ring_at(both.rings, both.status, i);
        assert_true((uint8_t *)ring.header >= end);
        assert_true((uint8_t *)(ring.header + 1) <= (uint8_t *)ring.descriptors);
        assert_true((uint8_t *)(ring.descriptors + PROTO_RING_ENTRIES) <= ring.arena);
        end = ring.arena + PROTO_RING_ARENA_BYTES;
        assert_true(end <= rings + ring_memory_bytes(STREAMS));
        assert_true((uint8_t *)(ring.status + 1) <= status + ring_status_bytes(STREAMS));
        assert_int_equal((uintptr_t)ring.descriptors % 64, 0);
    }
    assert_true((uint8_t *)(ring_client_header(both.rings) + 1) <= rings + PROTO_RING_FIRST);
    assert_int_equal(ring_memory_bytes(PROTO_STREAMS_MAX),
                     PROTO_RING_FIRST + (size_t)PROTO_STREAMS_MAX * PROTO_RING_STRIDE);
    both_close(&both);
}

static void a_ring_holds_exactly_its_entries(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 1, 0);
    for (uint64_t i = 0; i < PROTO_RING_ENTRIES; i++)
        push(&both, i);
    assert_int_equal(ring_room(&both.producer), RING_FULL);
    assert_int_equal(ring_ready(&both.consumer), PROTO_RING_ENTRIES);
    take(&both, 0);
    /* Consumed privately: the producer learns it with the batch. */
    assert_int_equal(ring_room(&both.producer), RING_FULL);
    assert_int_equal(ring_consume(&both.consumer), PROTO_RING_ENTRIES - 1);
    assert_int_equal(ring_room(&both.producer), 0);
    push(&both, PROTO_RING_ENTRIES);
    assert_int_equal(ring_room(&both.producer), RING_FULL);
    for (uint64_t i = 1; i <= PROTO_RING_ENTRIES; i++)
        take(&both, i);
    assert_int_equal(ring_consume(&both.consumer), 0);
    both_close(&both);
}

static void indices_and_values_pass_32_bits(void **state)
{
    (void)state;
    struct both both;
    uint64_t start = UINT64_C(0x1fffffff0);
    both_open(&both, 2, start);
    for (uint64_t i = 0; i < 5000; i++) {
        push(&both, i);
        assert_int_equal(both.producer.value, start + i + 1);
        /* The schema's promise: the low half of a value is its index plus one. */
        assert_int_equal((uint32_t)both.producer.value, both.producer.tail);
        if (i % 3 == 0)
            continue;
        while (ring_ready(&both.consumer) > (int)(i % 5)) {
            take(&both, both.consumer.value - start);
            ring_consume(&both.consumer);
        }
    }
    assert_true(both.producer.tail < 0x10000);
    both_close(&both);
}

static void publish_tells_an_empty_ring(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    struct ring_descriptor descriptor = numbered(0);
    assert_true(ring_publish(&both.producer, &descriptor));
    assert_false(ring_publish(&both.producer, &descriptor));
    take(&both, 0);
    ring_consume(&both.consumer);
    assert_false(ring_publish(&both.producer, &descriptor));
    take(&both, 0);
    take(&both, 0);
    ring_consume(&both.consumer);
    assert_true(ring_publish(&both.producer, &descriptor));
    both_close(&both);
}

static void a_tail_that_lies_is_refused(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 100);
    push(&both, 0);
    push(&both, 1);
    assert_int_equal(ring_ready(&both.consumer), 2);
    assert_int_equal(ring_pushed(&both.consumer), 102);
    static const uint32_t bad[] = {100 + PROTO_RING_ENTRIES + 1,
                                   99,
                                   0,
                                   UINT32_MAX,
                                   0x80000000u,
                                   101 /* back, over what was seen */};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        both.ring.header->tail = bad[i];
        assert_int_equal(ring_ready(&both.consumer), -EPROTO);
        assert_true(ring_pushed(&both.consumer) <= 101); /* nobody waits for what is not there */
    }
    both.ring.header->tail = 100 + PROTO_RING_ENTRIES;
    assert_int_equal(ring_pushed(&both.consumer), 100 + PROTO_RING_ENTRIES);
    assert_int_equal(ring_ready(&both.consumer), PROTO_RING_ENTRIES);
    /* ring_consume reports a lie as well. */
    both.ring.header->tail = 50;
    assert_int_equal(ring_consume(&both.consumer), -EPROTO);
    both_close(&both);
}

static void the_consumer_does_not_believe_the_shared_head(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    push(&both, 7);
    both.ring.status->head = 555; /* a worker's own memory, but the private index is the truth */
    take(&both, 7);
    ring_consume(&both.consumer);
    assert_int_equal(both.ring.status->head, 1);
    both_close(&both);
}

static void arena_ranges_are_checked(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    static uint8_t to[PROTO_RING_ARENA_BYTES];
    memset(both.ring.arena, 0x5a, PROTO_RING_ARENA_BYTES);
    assert_true(ring_arena_copy(&both.consumer, 0, PROTO_RING_ARENA_BYTES, to));
    assert_int_equal(to[PROTO_RING_ARENA_BYTES - 1], 0x5a);
    assert_true(ring_arena_copy(&both.consumer, PROTO_RING_ARENA_BYTES, 0, to));
    assert_true(ring_arena_copy(&both.consumer, PROTO_RING_ARENA_BYTES - 1, 1, to));
    assert_false(ring_arena_copy(&both.consumer, PROTO_RING_ARENA_BYTES - 1, 2, to));
    assert_false(ring_arena_copy(&both.consumer, PROTO_RING_ARENA_BYTES + 1, 0, to));
    assert_false(ring_arena_copy(&both.consumer, 0, PROTO_RING_ARENA_BYTES + 1, to));
    assert_false(ring_arena_copy(&both.consumer, UINT32_MAX, 16, to));
    assert_false(ring_arena_copy(&both.consumer, 16, UINT32_MAX, to));
    both_close(&both);
}

/* A launch's steps with its parameters: room in both, write, publish. */
static bool push_parameters(struct both *both, uint32_t bytes, uint8_t fill)
{
    uint32_t offset;
    if (ring_room(&both->producer) != 0 || ring_arena_room(&both->producer, bytes, &offset) != 0)
        return false;
    assert_int_equal(offset % 16, 0);
    assert_true(offset <= PROTO_RING_ARENA_BYTES && bytes <= PROTO_RING_ARENA_BYTES - offset);
    memset(both->ring.arena + offset, fill, bytes);
    struct ring_descriptor descriptor = {{0}};
    memcpy(descriptor.bytes, &offset, 4);
    memcpy(descriptor.bytes + 4, &bytes, 4);
    descriptor.bytes[8] = fill;
    ring_publish(&both->producer, &descriptor);
    return true;
}

static void take_parameters(struct both *both)
{
    static uint8_t copy[PROTO_RING_ARENA_BYTES];
    struct ring_descriptor descriptor;
    uint32_t offset, bytes;
    assert_true(ring_ready(&both->consumer) > 0);
    ring_peek(&both->consumer, &descriptor);
    memcpy(&offset, descriptor.bytes, 4);
    memcpy(&bytes, descriptor.bytes + 4, 4);
    assert_true(ring_arena_copy(&both->consumer, offset, bytes, copy));
    for (uint32_t i = 0; i < bytes; i++)
        if (copy[i] != descriptor.bytes[8])
            fail_msg("byte %u of %u at %u was overwritten", i, bytes, offset);
    ring_advance(&both->consumer);
    ring_consume(&both->consumer);
}

static void the_arena_wraps_without_overwriting(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    unsigned seed = 7;
    uint64_t pushed = 0, taken = 0, full = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        uint32_t bytes = (seed >> 8) % 5 == 0 ? PROTO_PARAMETERS_MAX : (seed >> 12) % 3000;
        if (push_parameters(&both, bytes, (uint8_t)(seed >> 20)))
            pushed++;
        else
            full++;
        for (unsigned n = (seed >> 16) % 3; n > 0 && taken < pushed; n--, taken++)
            take_parameters(&both);
    }
    for (; taken < pushed; taken++)
        take_parameters(&both);
    assert_true(full > 100 && pushed > 5000); /* it was full often, and went on */
    both_close(&both);
}

static void the_arena_is_free_again_when_the_ring_is_empty(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    for (int i = 0; i < 50; i++) {
        unsigned fitted = 0;
        while (push_parameters(&both, PROTO_PARAMETERS_MAX, (uint8_t)i))
            fitted++;
        /* 131072 bytes hold four, or three where the end was skipped. */
        assert_true(fitted == 3 || fitted == 4);
        while (fitted--)
            take_parameters(&both);
    }
    both_close(&both);
}

/* Room asked for and not used: its space belongs to the next descriptor, and comes back with it. */
static void arena_room_that_is_not_used_comes_back(void **state)
{
    (void)state;
    struct both both;
    uint32_t offset;
    both_open(&both, 0, 0);
    assert_int_equal(ring_arena_room(&both.producer, 32000, &offset), 0);
    push(&both, 1);
    take(&both, 1);
    ring_consume(&both.consumer);
    for (int i = 0; i < 3; i++)
        assert_true(push_parameters(&both, 32000, 1));
    for (int i = 0; i < 3; i++)
        take_parameters(&both);
    both_close(&both);
}

static void waiting_for_room_ends_by_fault_and_by_time(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, 0);
    struct proto_status_header *status = ring_status_header(both.status);
    for (uint64_t i = 0; i < PROTO_RING_ENTRIES; i++)
        push(&both, i);
    assert_int_equal(ring_room(&both.producer), RING_FULL);
    uint64_t start = clock_now();
    assert_int_equal(ring_wait_room(&both.producer, status), 0);
    uint64_t waited = clock_now() - start;
    assert_true(waited > 50 * 1000000u);
    assert_int_equal(both.ring.header->room_waiter, 0);
    status->fault = PROTO_ERROR_KILLED;
    start = clock_now();
    assert_int_equal(ring_wait_room(&both.producer, status), PROTO_ERROR_KILLED);
    assert_true(clock_now() - start < UINT64_C(10) * 1000000000u);
    both_close(&both);
}

static void *sleep_for_room(void *context)
{
    struct both *both = context;
    uint32_t head = both->producer.head;
    __atomic_store_n(&both->ring.header->room_waiter, 1, __ATOMIC_SEQ_CST);
    /* Far longer than ring_wait_room sleeps: only a wake-up ends it in time. */
    timeline_sleep(&both->ring.status->head, head, 60 * 1000000000L);
    return NULL;
}

static void a_producer_that_waits_for_room_is_woken(void **state)
{
    (void)state;
    struct both both;
    pthread_t thread;
    both_open(&both, 0, 0);
    for (uint64_t i = 0; i < PROTO_RING_ENTRIES; i++)
        push(&both, i);
    uint64_t start = clock_now();
    pthread_create(&thread, NULL, sleep_for_room, &both);
    while (!__atomic_load_n(&both.ring.header->room_waiter, __ATOMIC_SEQ_CST))
        sched_yield();
    usleep(50000); /* most likely asleep by now; if it is not, it will find the head moved */
    take(&both, 0);
    assert_true(ring_consume(&both.consumer) >= 0);
    pthread_join(thread, NULL);
    assert_true(clock_now() - start < UINT64_C(30) * 1000000000u);
    both_close(&both);
}

/* ---- two threads ---- */

enum { MANY = 300000 };

static void *produce(void *context)
{
    struct both *both = context;
    struct proto_status_header *status = ring_status_header(both->status);
    for (uint64_t i = 0; i < MANY; i++) {
        while (ring_room(&both->producer) == RING_FULL)
            ring_wait_room(&both->producer, status);
        struct ring_descriptor descriptor = numbered(i);
        ring_publish(&both->producer, &descriptor);
    }
    return NULL;
}

static void two_threads_lose_nothing(void **state)
{
    (void)state;
    struct both both;
    both_open(&both, 0, UINT32_MAX - 1000);
    pthread_t thread;
    pthread_create(&thread, NULL, produce, &both);
    uint64_t taken = 0;
    while (taken < MANY) {
        int ready = ring_ready(&both.consumer);
        assert_true(ready >= 0);
        if (ready == 0)
            sched_yield();
        for (int i = 0; i < ready; i++)
            take(&both, taken++);
        assert_true(ring_consume(&both.consumer) >= 0);
    }
    pthread_join(thread, NULL);
    assert_int_equal(ring_ready(&both.consumer), 0);
    both_close(&both);
}

/* The handshake: either the producer is told that the ring was empty, or the consumer sees the
 * new tail. Otherwise a descriptor would stay behind with nobody to look. */
struct handshake {
    struct both both;
    uint32_t bell; /* rung by the producer */
    uint32_t taken;
};

static void *produce_one_by_one(void *context)
{
    struct handshake *handshake = context;
    struct ring_descriptor descriptor = {{0}};
    for (uint32_t i = 0; i < MANY / 3; i++) {
        if (ring_publish(&handshake->both.producer, &descriptor))
            __atomic_fetch_add(&handshake->bell, 1, __ATOMIC_SEQ_CST);
        for (uint64_t spins = 0;
             i % 7 == 0 && __atomic_load_n(&handshake->taken, __ATOMIC_ACQUIRE) <= i; spins++) {
            if (spins % 256 == 255)
                sched_yield();
        }
        while (ring_room(&handshake->both.producer) == RING_FULL)
            sched_yield();
    }
    return NULL;
}

static void an_empty_ring_is_never_left_unseen(void **state)
{
    (void)state;
    struct handshake handshake = {0};
    both_open(&handshake.both, 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, produce_one_by_one, &handshake);
    uint64_t end = clock_now() + UINT64_C(120) * 1000000000u;
    while (handshake.taken < MANY / 3) {
        /* Asleep until the bell rings; only then look, and go on until the ring is empty. */
        while (!__atomic_exchange_n(&handshake.bell, 0, __ATOMIC_SEQ_CST)) {
            if (clock_now() > end)
                fail_msg("a descriptor was left behind after %u", handshake.taken);
            sched_yield();
        }
        int ready = ring_ready(&handshake.both.consumer);
        while (ready > 0) {
            for (int i = 0; i < ready; i++)
                ring_advance(&handshake.both.consumer);
            __atomic_store_n(&handshake.taken, handshake.taken + (uint32_t)ready, __ATOMIC_RELEASE);
            ready = ring_consume(&handshake.both.consumer);
        }
        assert_true(ready == 0);
    }
    pthread_join(thread, NULL);
    both_close(&handshake.both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_do_not_overlap),
        cmocka_unit_test(a_ring_holds_exactly_its_entries),
        cmocka_unit_test(indices_and_values_pass_32_bits),
        cmocka_unit_test(publish_tells_an_empty_ring),
        cmocka_unit_test(a_tail_that_lies_is_refused),
        cmocka_unit_test(the_consumer_does_not_believe_the_shared_head),
        cmocka_unit_test(arena_ranges_are_checked),
        cmocka_unit_test(the_arena_wraps_without_overwriting),
        cmocka_unit_test(the_arena_is_free_again_when_the_ring_is_empty),
        cmocka_unit_test(arena_room_that_is_not_used_comes_back),
        cmocka_unit_test(waiting_for_room_ends_by_fault_and_by_time),
        cmocka_unit_test(a_producer_that_waits_for_room_is_woken),
        cmocka_unit_test(two_threads_lose_nothing),
        cmocka_unit_test(an_empty_ring_is_never_left_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
