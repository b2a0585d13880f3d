/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* doorbell: every ring is found, and no ring while falling asleep is lost. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/doorbell.h"
#include "common/ipc/timeline.h"

static struct proto_client_header header;
static int bell;

static int set_up(void **state)
{
    (void)state;
    memset(&header, 0, sizeof header);
    bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return bell < 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(bell);
    return 0;
}

static uint64_t writes_so_far(void)
{
    uint64_t count = 0;
    return read(bell, &count, sizeof count) == sizeof count ? count : 0;
}

static void every_stream_is_found_once(void **state)
{
    (void)state;
    for (uint32_t stream = 0; stream < PROTO_STREAMS_MAX; stream++) {
        uint64_t bits = 0;
        assert_false(doorbell_pending(&header));
        doorbell_ring(&header, stream, bell);
        assert_true(doorbell_pending(&header));
        assert_int_equal(doorbell_take(&header, PROTO_STREAMS_MAX, &bits), stream / 64);
        assert_true(bits == UINT64_C(1) << (stream % 64));
        assert_int_equal(doorbell_take(&header, PROTO_STREAMS_MAX, &bits), -1);
    }
    assert_int_equal(writes_so_far(), 0); /* awake: no system call */
}

static void many_streams_at_once(void **state)
{
    (void)state;
    static const uint32_t rung[] = {0, 1, 63, 64, 1000, 4095};
    for (unsigned i = 0; i < 6; i++)
        doorbell_ring(&header, rung[i], bell);
    doorbell_ring(&header, 1000, bell); /* twice is once */
    unsigned found = 0;
    uint64_t bits;
    int word;
    while ((word = doorbell_take(&header, PROTO_STREAMS_MAX, &bits)) >= 0)
        for (; bits; bits &= bits - 1)
            assert_int_equal((uint32_t)word * 64 + (uint32_t)__builtin_ctzll(bits), rung[found++]);
    assert_int_equal(found, 6);
}

static void bits_beyond_the_clients_streams_are_dropped(void **state)
{
    (void)state;
    static const uint32_t counts[] = {1, 63, 64, 65, 127, 128, 4095};
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint32_t streams = counts[i], seen = 0;
        uint64_t bits;
        int word;
        header.summary = UINT64_MAX;
        memset(header.words, 0xff, sizeof header.words);
        while ((word = doorbell_take(&header, streams, &bits)) >= 0)
            for (; bits; bits &= bits - 1, seen++)
                assert_true((uint32_t)word * 64 + (uint32_t)__builtin_ctzll(bits) < streams);
        assert_int_equal(seen, streams);
        assert_false(doorbell_pending(&header));
    }
}

static void a_summary_that_lies_finds_nothing(void **state)
{
    (void)state;
    uint64_t bits;
    header.summary = UINT64_MAX;
    assert_int_equal(doorbell_take(&header, PROTO_STREAMS_MAX, &bits), -1);
    assert_int_equal(header.summary, 0); /* each lie costs one look */
}

static void the_first_to_ring_wakes_the_sleeper(void **state)
{
    (void)state;
    assert_true(doorbell_prepare_sleep(&header));
    assert_int_equal(header.asleep, 1);
    doorbell_ring(&header, 5, bell);
    assert_int_equal(header.asleep, 0);
    doorbell_ring(&header, 6, bell);
    assert_int_equal(writes_so_far(), 1);
    /* Work is pending: no sleep. */
    assert_false(doorbell_prepare_sleep(&header));
    assert_int_equal(header.asleep, 0);
    uint64_t bits;
    doorbell_take(&header, 64, &bits);
    assert_true(doorbell_prepare_sleep(&header));
    doorbell_cancel_sleep(&header);
    doorbell_ring(&header, 5, bell);
    assert_int_equal(writes_so_far(), 0);
}

static void a_full_or_closed_eventfd_stops_no_ringer(void **state)
{
    (void)state;
    uint64_t most = UINT64_MAX - 1;
    assert_int_equal(write(bell, &most, sizeof most), sizeof most);
    header.asleep = 1;
    doorbell_ring(&header, 0, bell); /* EAGAIN inside */
    assert_true(doorbell_pending(&header));
    header.asleep = 1;
    doorbell_ring(&header, 1, -1);
    uint64_t bits;
    assert_int_equal(doorbell_take(&header, 64, &bits), 0);
    assert_int_equal(bits, 3);
}

/* ---- ringers against a submitter that falls asleep whenever it can ---- */

enum { RINGERS = 2, ROUNDS = 20000 };

static uint32_t rung_count[RINGERS], taken_count[RINGERS];

/* Rings its stream and waits until that was seen, so that every single ring counts. */
static void *ring_and_wait(void *context)
{
    uint32_t stream = (uint32_t)(uintptr_t)context;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        __atomic_store_n(&rung_count[stream], i, __ATOMIC_SEQ_CST);
        doorbell_ring(&header, stream * 70, bell);
        while (__atomic_load_n(&taken_count[stream], __ATOMIC_ACQUIRE) < i)
            sched_yield();
    }
    return NULL;
}

static void no_ring_is_lost_while_falling_asleep(void **state)
{
    (void)state;
    pthread_t threads[RINGERS];
    memset(rung_count, 0, sizeof rung_count);
    memset(taken_count, 0, sizeof taken_count);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, bell, &event), 0);
    for (uintptr_t i = 0; i < RINGERS; i++)
        pthread_create(&threads[i], NULL, ring_and_wait, (void *)i);
    uint32_t left = RINGERS;
    while (left) {
        uint64_t bits;
        int word;
        while ((word = doorbell_take(&header, PROTO_STREAMS_MAX, &bits)) >= 0) {
            for (; bits; bits &= bits - 1) {
                uint32_t stream = ((uint32_t)word * 64 + (uint32_t)__builtin_ctzll(bits)) / 70;
                uint32_t count = __atomic_load_n(&rung_count[stream], __ATOMIC_SEQ_CST);
                left -= count == ROUNDS && taken_count[stream] != ROUNDS;
                __atomic_store_n(&taken_count[stream], count, __ATOMIC_RELEASE);
            }
        }
        /* The counter is never read: only edges wake. */
        if (left && doorbell_prepare_sleep(&header) && epoll_wait(set, &event, 1, 60000) != 1)
            fail_msg("a ring was lost: %u and %u of %u", taken_count[0], taken_count[1], ROUNDS);
    }
    for (int i = 0; i < RINGERS; i++)
        pthread_join(threads[i], NULL);
    close(set);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(every_stream_is_found_once),
        CASE(many_streams_at_once),
        CASE(bits_beyond_the_clients_streams_are_dropped),
        CASE(a_summary_that_lies_finds_nothing),
        CASE(the_first_to_ring_wakes_the_sleeper),
        CASE(a_full_or_closed_eventfd_stops_no_ringer),
        CASE(no_ring_is_lost_while_falling_asleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
