/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: 20,000 wake-ups, of which each lost one would cost 100 ms, take 20 s at most */
/* timeline: waiters wake by value, by fault and by a dead peer, over 32 bits. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/ring.h"
#include "common/ipc/shm.h"
#include "common/ipc/timeline.h"

enum { STREAMS = 4 };

/* Both memories, and the status memory once more as a client has it: read-only. */
static struct shm rings, status, readonly;
static struct timeline timeline;
static struct proto_stream_status *streams;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(shm_create(&rings, "test", ring_memory_bytes(STREAMS)), 0);
    assert_int_equal(shm_create(&status, "test", ring_status_bytes(STREAMS)), 0);
    int fd = shm_readonly_fd(&status);
    assert_true(fd >= 0);
    assert_int_equal(shm_adopt(&readonly, fd, status.bytes, false), 0);
    streams = ring_at(rings.base, status.base, 0).status;
    struct ring seen = ring_at(rings.base, readonly.base, 2);
    timeline = (struct timeline){.stream = seen.status,
                                 .status = ring_status_header(readonly.base),
                                 .ring = seen.header,
                                 .header = ring_client_header(rings.base),
                                 .index = 2,
                                 .eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(timeline.eventfd);
    shm_release(&readonly);
    shm_release(&status);
    shm_release(&rings);
    return 0;
}

static void reach(uint64_t value)
{
    __atomic_store_n(&streams[2].completed, value, __ATOMIC_SEQ_CST);
}

static uint32_t waiters(void)
{
    return __atomic_load_n(&timeline.ring->waiter, __ATOMIC_SEQ_CST);
}

static void a_value_already_reached_needs_no_wait(void **state)
{
    (void)state;
    reach(10);
    assert_int_equal(timeline_reached(&timeline), 10);
    assert_int_equal(timeline_wait(&timeline, 0, NULL, NULL, NULL), 0);
    assert_int_equal(timeline_wait(&timeline, 10, NULL, NULL, NULL), 0);
    assert_false(doorbell_pending(timeline.header)); /* nobody was troubled */
    /* Work that was done counts, whatever ended the connection since. */
    ring_status_header(status.base)->fault = PROTO_ERROR_KILLED;
    assert_int_equal(timeline_wait(&timeline, 10, NULL, NULL, NULL), 0);
    assert_int_equal(timeline_wait(&timeline, 11, NULL, NULL, NULL), PROTO_ERROR_KILLED);
    assert_int_equal(waiters(), 0);
}

static void prepare_looks_again(void **state)
{
    (void)state;
    assert_false(timeline_is_watched(timeline.ring));
    assert_false(timeline_wait_prepare(&timeline, 1));
    assert_true(timeline_is_watched(timeline.ring));
    assert_int_equal(waiters(), 1);
    reach(1);
    assert_true(timeline_wait_prepare(&timeline, 1));
    assert_int_equal(waiters(), 2);
    timeline_wait_done(&timeline);
    timeline_wait_done(&timeline);
    assert_int_equal(waiters(), 0);
    ring_status_header(status.base)->fault = PROTO_ERROR_KILLED;
    assert_true(timeline_wait_prepare(&timeline, 99));
    timeline_wait_done(&timeline);
}

struct waiter {
    pthread_t thread;
    uint64_t value;
    struct timeline_spin *spin;
    uint32_t result;
};

static void *wait_for(void *context)
{
    struct waiter *waiter = context;
    waiter->result = timeline_wait(&timeline, waiter->value, waiter->spin, NULL, NULL);
    return NULL;
}

static void start(struct waiter *waiter, uint64_t value, struct timeline_spin *spin)
{
    waiter->value = value;
    waiter->spin = spin;
    waiter->result = 12345;
    pthread_create(&waiter->thread, NULL, wait_for, waiter);
}

/* Until this many have announced themselves: no sleep that hopes. */
static void await_announced(uint32_t count)
{
    while (waiters() != count)
        sched_yield();
}

static void sleepers_wake_at_their_values(void **state)
{
    (void)state;
    struct waiter some[4];
    struct timeline_spin spin = {.spin_ns = 1000, .yield_ns = 1000};
    /* Across the edge of the 32 bits that futexes compare. */
    uint64_t base = UINT64_C(0x1fffffffe);
    reach(base);
    for (unsigned i = 0; i < 4; i++)
        start(&some[i], base + i + 1, i % 2 ? &spin : NULL);
    await_announced(4);
    uint64_t bits = 0;
    assert_int_equal(doorbell_take(timeline.header, STREAMS, &bits), 0);
    assert_int_equal(bits, 1 << 2); /* they rang, so that the completer knows of them */
    for (unsigned i = 0; i < 4; i++) {
        reach(base + i + 1);
        timeline_wake(timeline_word(&streams[2]));
        pthread_join(some[i].thread, NULL);
        assert_int_equal(some[i].result, 0);
        assert_int_equal(waiters(), 3 - i);
    }
}

/* Until a thread that does not sleep has used 2 ms of a processor. */
static void await_busy(const struct waiter *waiter)
{
    clockid_t clock;
    struct timespec used;
    assert_int_equal(pthread_getcpuclockid(waiter->thread, &clock), 0);
    do {
        sched_yield();
        assert_int_equal(clock_gettime(clock, &used), 0);
    } while (used.tv_sec == 0 && used.tv_nsec < 2000000);
}

static void finish(const struct waiter *waiter)
{
    reach(waiter->value);
    timeline_wake(timeline_word(&streams[2]));
    pthread_join(waiter->thread, NULL);
    assert_int_equal(waiter->result, 0);
    assert_int_equal(waiters(), 0);
}

static void a_wait_behind_a_short_one_yields_before_it_sleeps(void **state)
{
    (void)state;
    struct timeline_spin spin = {.spin_ns = 1000, .yield_ns = 300 * UNITS_SECOND};
    struct waiter waiter;
    uint64_t bits = 0;
    reach(10);
    start(&waiter, 11, &spin);
    await_announced(1);
    finish(&waiter);
    assert_int_equal(doorbell_take(timeline.header, STREAMS, &bits), 0);
    assert_int_equal(bits, 1 << 2);
    start(&waiter, 12, &spin);
    await_busy(&waiter);
    assert_int_equal(waiters(), 0);
    finish(&waiter);
    assert_true(doorbell_take(timeline.header, STREAMS, &bits) < 0);
    /* One that takes longer than both ends that. */
    spin.yield_ns = 1;
    start(&waiter, 13, &spin);
    await_announced(1);
    finish(&waiter);
    assert_false(spin.yields);
    start(&waiter, 14, &spin);
    await_announced(1);
    finish(&waiter);
    assert_false(spin.yields);
    /* So does one that sleeps after its yields. */
    spin.yield_ns = UNITS_SECOND;
    spin.yields = true;
    start(&waiter, 15, &spin);
    await_announced(1);
    finish(&waiter);
    assert_false(spin.yields);
}

static void a_wait_that_yields_sees_a_fault(void **state)
{
    (void)state;
    struct timeline_spin spin = {.spin_ns = 1000, .yield_ns = 300 * UNITS_SECOND, .yields = true};
    struct waiter waiter;
    start(&waiter, 100, &spin);
    await_busy(&waiter);
    timeline_fail(ring_status_header(status.base), streams, STREAMS, PROTO_ERROR_WORKER_LOST);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, PROTO_ERROR_WORKER_LOST);
    assert_int_equal(waiters(), 0);
}

static void values_that_only_differ_above_32_bits(void **state)
{
    (void)state;
    struct waiter waiter;
    reach(5);
    start(&waiter, (UINT64_C(1) << 32) + 5, NULL);
    await_announced(1);
    /* The word that is slept on stays the same; the bounded sleep finds it nevertheless. */
    reach((UINT64_C(1) << 32) + 5);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, 0);
}

static void a_fault_wakes_every_stream_and_the_first_stays(void **state)
{
    (void)state;
    struct waiter some[3];
    for (unsigned i = 0; i < 3; i++)
        start(&some[i], 100 + i, NULL);
    await_announced(3);
    timeline_fail(ring_status_header(status.base), streams, STREAMS, PROTO_ERROR_WORKER_LOST);
    timeline_fail(ring_status_header(status.base), streams, STREAMS, PROTO_ERROR_KILLED);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(some[i].thread, NULL);
        assert_int_equal(some[i].result, PROTO_ERROR_WORKER_LOST);
    }
    assert_int_equal(timeline_wait(&timeline, 200, NULL, NULL, NULL), PROTO_ERROR_WORKER_LOST);
    assert_int_equal(waiters(), 0);
}

struct sleeper {
    pthread_t thread;
    const uint32_t *word;
    uint32_t awake;
};

/* Far longer than a test may take: only a wake-up ends it in time. */
static void *sleep_long(void *context)
{
    struct sleeper *sleeper = context;
    timeline_sleep(sleeper->word, 0, 60 * 1000000000L);
    __atomic_store_n(&sleeper->awake, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void a_fault_wakes_a_producer_that_waits_for_room(void **state)
{
    (void)state;
    struct sleeper sleepers[2] = {{.word = timeline_word(timeline.stream)},
                                  {.word = &streams[STREAMS - 1].head}};
    for (int i = 0; i < 2; i++)
        pthread_create(&sleepers[i].thread, NULL, sleep_long, &sleepers[i]);
    uint64_t end = clock_now() + UINT64_C(30) * 1000000000u;
    for (int i = 0; i < 2; i++) {
        /* Again and again, for nobody can see from here whether it sleeps already. */
        while (!__atomic_load_n(&sleepers[i].awake, __ATOMIC_SEQ_CST) && clock_now() < end) {
            timeline_fail(ring_status_header(status.base), streams, STREAMS, PROTO_ERROR_KILLED);
            sched_yield();
        }
        pthread_join(sleepers[i].thread, NULL);
    }
    assert_true(clock_now() < end);
}

static bool alive_for_a_while(void *context)
{
    int *left = context;
    return (*left)-- > 0;
}

static void a_dead_peer_ends_the_wait(void **state)
{
    (void)state;
    int left = 2;
    uint64_t before = clock_now();
    assert_int_equal(timeline_wait(&timeline, 1, NULL, alive_for_a_while, &left),
                     PROTO_ERROR_CONNECTION_LOST);
    uint64_t took = clock_now() - before;
    assert_int_equal(left, -1);
    assert_true(took > 200 * 1000000u); /* about ten questions a second */
    assert_int_equal(waiters(), 0);
}

static void a_false_waiter_count_harms_no_thread_of_ours(void **state)
{
    (void)state;
    struct waiter waiter;
    timeline.ring->waiter = UINT32_MAX;
    start(&waiter, 1, 0);
    await_announced(0);
    reach(1);
    timeline_wake(timeline_word(&streams[2]));
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.result, 0);
}

/* ---- a device that writes, a completer that wakes only who is announced ---- */

enum { STEPS = 20000 };

static void *step_by_step(void *context)
{
    uint32_t *failed = context;
    for (uint64_t i = 1; i <= STEPS && !*failed; i++)
        *failed = timeline_wait(&timeline, i, NULL, NULL, NULL);
    return NULL;
}

static void no_wakeup_is_lost(void **state)
{
    (void)state;
    pthread_t threads[2];
    uint32_t failed[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, step_by_step, &failed[i]);
    uint64_t begin = clock_now();
    for (uint64_t i = 1; i <= STEPS; i++) {
        reach(i);
        if (waiters())
            timeline_wake(timeline_word(&streams[2]));
        sched_yield();
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failed[i], 0);
    }
    /* A lost wake-up costs the 100 ms of the bounded sleep; one in a hundred would show. */
    assert_true(clock_now() - begin < UINT64_C(20) * 1000000000u);
    assert_int_equal(waiters(), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_value_already_reached_needs_no_wait),
        CASE(prepare_looks_again),
        CASE(sleepers_wake_at_their_values),
        CASE(values_that_only_differ_above_32_bits),
        CASE(a_wait_behind_a_short_one_yields_before_it_sleeps),
        CASE(a_wait_that_yields_sees_a_fault),
        CASE(a_fault_wakes_every_stream_and_the_first_stays),
        CASE(a_fault_wakes_a_producer_that_waits_for_room),
        CASE(a_dead_peer_ends_the_wait),
        CASE(a_false_waiter_count_harms_no_thread_of_ours),
        CASE(no_wakeup_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
