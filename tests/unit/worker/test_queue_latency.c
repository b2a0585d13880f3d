/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: commands held back for 40 ms must be found to have waited so long, to a factor of two */
/* How long commands waited, against an oracle that knows when each was first seen. */
#include "tests/unit/worker/harness.h"

#include "common/clock.h"
#include "common/ipc/doorbell.h"
#include "server/worker/client/queue_latency.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static uint64_t sum(const uint64_t waits[LATENCY_BUCKETS])
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++)
        all += waits[i];
    return all;
}

static void buckets_are_powers_of_two_of_microseconds(void **state)
{
    (void)state;
    assert_int_equal(latency_bucket(0), 0);
    assert_int_equal(latency_bucket(1999), 0);
    assert_int_equal(latency_bucket(2 * US), 1);
    assert_int_equal(latency_bucket(4 * US - 1), 1);
    assert_int_equal(latency_bucket(4 * US), 2);
    assert_int_equal(latency_bucket(1024 * US), 10);
    assert_int_equal(latency_bucket((US << 31) - 1), 30);
    assert_int_equal(latency_bucket(US << 31), 31);
    assert_int_equal(latency_bucket(UINT64_MAX), 31);
}

static void a_command_served_when_found_has_no_latency(void **state)
{
    (void)state;
    struct queue_latency latency = {0};
    uint64_t waits[LATENCY_BUCKETS] = {0};
    queue_latency_rung(&latency, 7, 10 * MS);
    queue_latency_served(&latency, waits, 100, 5, 7,
                         90 * MS); /* the clock may be late: it was one visit */
    assert_int_equal(waits[0], 5);
    queue_latency_served(&latency, waits, 105, 3, 8,
                         95 * MS); /* came without a doorbell, at once served */
    assert_int_equal(waits[0], 8);
    assert_int_equal(sum(waits), 8);
}

static void a_command_left_behind_waits_from_then(void **state)
{
    (void)state;
    struct queue_latency latency = {0};
    uint64_t waits[LATENCY_BUCKETS] = {0};
    uint32_t base = UINT32_MAX - 4; /* values run over */
    queue_latency_rung(&latency, 1, 1 * MS);
    queue_latency_left(&latency, base + 10, 2 * MS);
    queue_latency_left(&latency, base + 10, 3 * MS); /* nothing new */
    queue_latency_left(&latency, base + 12, 4 * MS);
    queue_latency_served(&latency, waits, base, 4, 2, 6 * MS);
    assert_int_equal(waits[latency_bucket(5 * MS)], 4); /* since it rang */
    queue_latency_served(&latency, waits, base + 4, 8, 3, 70 * MS);
    assert_int_equal(waits[latency_bucket(69 * MS)], 6 + 2);
    assert_int_equal(sum(waits), 12);
    queue_latency_served(&latency, waits, base + 12, 1, 4, 80 * MS);
    assert_int_equal(waits[0], 1);
}

static void a_ring_not_visited_waits_from_its_doorbell(void **state)
{
    (void)state;
    struct queue_latency latency = {0};
    uint64_t waits[LATENCY_BUCKETS] = {0};
    queue_latency_rung(&latency, 1, 1 * MS);
    queue_latency_rung(&latency, 2, 30 * MS);
    queue_latency_served(&latency, waits, 0, 3, 3, 65 * MS);
    assert_int_equal(waits[latency_bucket(64 * MS)], 1);
    assert_int_equal(waits[latency_bucket(32 * MS)], 2);
    queue_latency_rung(&latency, 4, 70 * MS);
    queue_latency_restart(&latency, 5, 90 * MS); /* another ring had held it */
    queue_latency_served(&latency, waits, 3, 2, 5, 99 * MS);
    assert_int_equal(waits[0], 2);
}

/* A client with as much in flight as it may have is not visited: what it pushes is first seen when
 * there is room, after all that was seen before is served. */
static void commands_pushed_while_nobody_looked_waited_half_that_time(void **state)
{
    (void)state;
    struct queue_latency latency = {0};
    uint64_t waits[LATENCY_BUCKETS] = {0};
    queue_latency_rung(&latency, 1, 1 * MS);
    queue_latency_left(&latency, 10, 2 * MS);
    queue_latency_served(&latency, waits, 0, 10, 2, 42 * MS);
    queue_latency_left(&latency, 50, 42 * MS);
    assert_int_equal(waits[latency_bucket(41 * MS)], 10);
    queue_latency_served(&latency, waits, 10, 40, 3, 43 * MS);
    assert_int_equal(waits[latency_bucket(21 * MS)], 40);
    /* The ring was empty: of the next ones nothing is older than their doorbell. */
    queue_latency_rung(&latency, 4, 100 * MS);
    queue_latency_served(&latency, waits, 50, 5, 4, 100 * MS);
    queue_latency_left(&latency, 60, 100 * MS);
    queue_latency_served(&latency, waits, 55, 5, 5, 101 * MS);
    assert_int_equal(waits[0], 5);
    assert_int_equal(waits[latency_bucket(1 * MS)], 5);
    assert_int_equal(sum(waits), 60);
}

/* ---- random pushes and visits ---- */

static uint32_t seed;
static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
}

static int compare_rings(uint32_t visits, uint64_t longest, uint64_t *far, uint64_t *all)
{
    static uint64_t first_seen[1 << 16];
    struct queue_latency latency = {0};
    uint64_t waits[LATENCY_BUCKETS] = {0}, truth[LATENCY_BUCKETS] = {0};
    uint32_t head = 0, tail = 0;
    uint64_t now = MS;
    for (uint32_t visit = 1; visit <= visits; visit++) {
        now += chance((uint32_t)longest) + 1;
        bool empty = head == tail;
        uint32_t pushed = chance(4) ? chance(20) : 0;
        if (tail - head + pushed > 1024 || tail + pushed > sizeof first_seen / 8)
            pushed = 0;
        for (uint32_t i = 0; i < pushed; i++)
            first_seen[tail++] = now;
        if (empty && pushed)
            queue_latency_rung(&latency, visit, now);
        uint32_t done = chance(3) ? 0 : chance(40);
        done = done < tail - head ? done : tail - head;
        if (done)
            queue_latency_served(&latency, waits, head, done, visit, now);
        for (uint32_t i = 0; i < done; i++)
            truth[latency_bucket(now - first_seen[head++])]++;
        if (head != tail)
            queue_latency_left(&latency, tail, now);
    }
    assert_int_equal(sum(waits), head);
    /* How many would have to move to another bucket, and how far. */
    int64_t carried = 0;
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
        carried += (int64_t)waits[i] - (int64_t)truth[i];
        *far += (uint64_t)(carried < 0 ? -carried : carried);
    }
    *all += head;
    return 0;
}

static void the_histogram_is_right_but_for_few(void **state)
{
    (void)state;
    uint64_t far = 0, all = 0;
    for (seed = 1; seed < 60; seed++) {
        uint32_t kept = seed;
        compare_rings(4000, kept % 2 ? 300 * US : 20 * US, &far, &all);
        seed = kept;
    }
    print_message("%llu commands, %.3f buckets off each\n", (unsigned long long)all,
                  (double)far / (double)all);
    assert_true(all > 100000);
    assert_true(far * 10 < all);
}

/* ---- the submitter ---- */

static void commands_beyond_the_in_flight_limit_wait(void **state)
{
    (void)state;
    struct peer *peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch command = peer_launch(peer_function(peer, 1, "kernel"));
    const struct proto_worker_usage *usage;
    uint64_t value = 0, first = 0;
    /* A submitter that is put off the processor sees some of them late: not always so many. */
    uint64_t served = 0, at_once = 0;
    for (int tries = 0; at_once < 8; tries++) {
        assert_true(tries < 50);
        for (int i = 0; i < 10; i++, served++) {
            value = peer_push(peer, 0, &command);
            assert_int_equal(peer_wait(peer, 0, value), 0);
        }
        uint64_t before = first;
        usage = harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
        first = usage->waits[0];
        at_once = first - before;
        assert_int_equal(sum(usage->waits), served);
    }
    pthread_mutex_lock(&fake.lock);
    fake.hold = true;
    pthread_mutex_unlock(&fake.lock);
    for (int i = 0; i < 700; i++)
        value = peer_push(peer, 0, &command);
    /* Until the submitter has looked at the ring once, it can't know that anything waits. */
    while (doorbell_pending(ring_client_header(peer->rings.base)))
        usleep(100);
    harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    uint64_t since = clock_now();
    while (clock_now() - since < 40 * MS)
        usleep(1000);
    usage = harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    uint64_t early = sum(usage->waits);
    assert_true(early < served + 690);
    uint64_t least = clock_now() - since;
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    usage = harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(sum(usage->waits), served + 700);
    /* All that was held back waited for so long; half is what the last ones are taken to. */
    uint64_t late = 0;
    for (uint32_t i = latency_bucket(least / 2); i < LATENCY_BUCKETS; i++)
        late += usage->waits[i];
    assert_true(late >= served + 700 - early - 10);
    peer_detach(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_powers_of_two_of_microseconds),
        cmocka_unit_test(a_command_served_when_found_has_no_latency),
        cmocka_unit_test(a_command_left_behind_waits_from_then),
        cmocka_unit_test(a_ring_not_visited_waits_from_its_doorbell),
        cmocka_unit_test(commands_pushed_while_nobody_looked_waited_half_that_time),
        cmocka_unit_test(the_histogram_is_right_but_for_few),
        cmocka_unit_test_setup_teardown(commands_beyond_the_in_flight_limit_wait, harness_setup,
                                        harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
