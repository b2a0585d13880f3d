/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Partitions of the sizes that a schedule names are there before their clients are. The device has
 * 132 multiprocessors in 16 SM groups of 8, and a remainder of 4. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

#define WAIT_NS UINT64_C(10000000000)

static void name_sizes(const uint32_t *sizes, size_t count)
{
    struct proto_worker_schedule wanted =
        harness_schedule(PROTO_MODE_CONCURRENT, PROTO_LEASE_DEFAULT);
    memcpy(wanted.partition_sizes, sizes, count * sizeof *sizes);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
}

/* Whether there is the partition of these SM groups, the first of which is bit 0. */
static bool has_partition(uint64_t sm_groups)
{
    const struct sm_group_set set = {{sm_groups}};
    struct partition *found = partition_find(&harness.worker.partitions, &set);
    if (found)
        partition_put(&harness.worker.partitions, found);
    return found;
}

static void wait_for_partition(uint64_t sm_groups)
{
    uint64_t end = clock_now() + WAIT_NS;
    while (!has_partition(sm_groups)) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
}

static int count_green(void)
{
    pthread_mutex_lock(&fake.lock);
    int count = fake.live_green;
    pthread_mutex_unlock(&fake.lock);
    return count;
}

static void a_client_of_a_named_size_waits_for_no_kernel(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3700};
    name_sizes(sizes, 1);
    wait_for_partition(0x3f);
    struct peer *busy = peer_attach(1);
    struct proto_command_launch launch = peer_launch(peer_kernel(busy, "kernel"));
    fake_hold();
    peer_wait_head(busy, 0, peer_push(busy, 0, &launch));
    struct peer *peer = peer_attach_with(2, 3700, 0);
    /* One that is nowhere would have its command taken after the kernel. */
    peer_wait_head(peer, 0, peer_push_nop(peer, 0));
    fake_release();
    peer_detach(busy);
    peer_detach(peer);
}

static void two_clients_of_a_size_and_what_one_leaves_have_partitions(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3700};
    name_sizes(sizes, 1);
    wait_for_partition(0x3f);
    wait_for_partition(0x1ffc0);
    wait_for_partition(0xfc0);
}

static void sizes_of_a_later_schedule_are_made_too(void **state)
{
    (void)state;
    static const uint32_t first[] = {3700}, second[] = {6000};
    name_sizes(first, 1);
    wait_for_partition(0x3f);
    name_sizes(second, 1);
    wait_for_partition(0x101ff);
}

static void no_more_partitions_are_kept_than_may_be(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {700, 1300, 1900, 3100, 3700, 4300, 5600, 6200,
                                     0,   6800, 7400, 8100, 8700, 9300, 9900, 20000};
    uint64_t end = clock_now() + WAIT_NS;
    name_sizes(sizes, PROTO_PARTITION_SIZES_MAX);
    while (count_green() < PARTITIONS_KEPT) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
    name_sizes(sizes, PROTO_PARTITION_SIZES_MAX);
    /* Its module is loaded in a window, which others' calls would ride along in. */
    struct peer *peer = peer_attach(1);
    peer_kernel(peer, "kernel");
    peer_detach(peer);
    /* The partition that the client used is kept besides, until the next window. */
    end = clock_now() + WAIT_NS;
    while (count_green() > PARTITIONS_KEPT) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
    assert_int_equal(count_green(), PARTITIONS_KEPT);
}

static void a_driver_that_makes_no_more_leaves_clients_what_there_is(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {3700};
    pthread_mutex_lock(&fake.lock);
    fake.green_max = fake.live_green;
    pthread_mutex_unlock(&fake.lock);
    name_sizes(sizes, 1);
    struct peer *peer = peer_attach(1);
    peer_kernel(peer, "kernel");
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    peer_detach(peer);
    assert_false(has_partition(0x3f));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_stop)
    const struct CMUnitTest tests[] = {
        T(a_client_of_a_named_size_waits_for_no_kernel),
        T(two_clients_of_a_size_and_what_one_leaves_have_partitions),
        T(sizes_of_a_later_schedule_are_made_too),
        T(no_more_partitions_are_kept_than_may_be),
        T(a_driver_that_makes_no_more_leaves_clients_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
