/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The device's split, and partitions that are kept for the next time. */
#include "tests/unit/worker/fake.h"
#include "tests/unit/worker/got_partition.h"

#include "common/error.h"
#include "server/worker/sharing/partition.h"

static struct cuda_driver driver;
static struct gpu gpu;
static struct partition_table partitions;

static void open_partitions(unsigned multiprocessors, unsigned sm_group)
{
    struct error why = {0};
    fake.multiprocessors = multiprocessors;
    fake.sm_group = sm_group;
    driver = fake_driver();
    gpu = (struct gpu){.cuda = &driver, .info.multiprocessors = multiprocessors};
    assert_int_equal(partition_table_open(&partitions, &gpu, &why), 0);
}

/* Without the partition by which opening has tried the driver. */
static void start(unsigned multiprocessors, unsigned sm_group)
{
    fake_reset();
    open_partitions(multiprocessors, sm_group);
    struct partition *tried = partition_take_unused(&partitions, true);
    if (partitions.supported) {
        assert_true(tried->whole);
        partition_destroy(&partitions, tried);
    }
}

static int stop(void **state)
{
    (void)state;
    partition_table_close(&partitions);
    partition_table_close(&partitions);
    assert_int_equal(fake.live_green, 0);
    return 0;
}

/* `count` SM groups from `first` on. */
static struct sm_group_set sm_groups(uint32_t first, uint32_t count)
{
    struct sm_group_set set = {{0}};
    for (uint32_t i = 0; i < count; i++)
        sm_group_set_add(&set, first + i);
    return set;
}

static struct partition *get(uint32_t first, uint32_t count)
{
    struct sm_group_set set = sm_groups(first, count);
    struct partition *partition;
    assert_int_equal(got_partition(&partitions, &set, &partition), 0);
    return partition;
}

static void the_device_is_split_into_sm_groups_and_a_remainder(void **state)
{
    (void)state;
    start(132, 8);
    assert_true(partitions.supported);
    assert_int_equal(partitions.count, 17);
    assert_int_equal(partitions.sm_group_size, 8);
    assert_int_equal(partitions.rest, 4);
    assert_int_equal(partitions.total, 132);
    partition_table_close(&partitions);
    start(108, 2);
    assert_int_equal(partitions.count, 54);
    assert_int_equal(partitions.rest, 0);
}

static void a_set_becomes_a_context_of_its_multiprocessors(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *some = get(3, 4), *with_remainder = get(15, 2);
    assert_false(some->whole);
    assert_int_equal(some->multiprocessors, 32);
    assert_int_equal(some->green->count, 4);
    assert_int_equal(some->green->multiprocessors, 32);
    assert_int_equal(some->green->resources[0].internal[0], 3);
    assert_int_equal(with_remainder->multiprocessors, 12);
    assert_int_equal(with_remainder->green->multiprocessors, 12);
}

static void the_set_of_all_is_the_unsplit_device(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *a = get(0, 17), *b = get(0, 17);
    assert_ptr_equal(a, b);
    assert_true(a->whole);
    assert_int_equal(a->multiprocessors, 132);
    assert_int_equal(a->green->count, 1);
    assert_int_equal(a->green->multiprocessors, 132);
    assert_false(get(0, 16)->whole); /* the remainder is missing */
}

static void an_unused_partition_is_kept_for_the_next_client(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *a = get(0, 4);
    struct sm_group_set set = sm_groups(0, 4), other = sm_groups(4, 4);
    partition_put(&partitions, a);
    assert_int_equal(partitions.kept, 1);
    assert_null(partition_take_unused(&partitions, false));
    assert_null(partition_find(&partitions, &other));
    assert_ptr_equal(partition_find(&partitions, &set), a);
    assert_int_equal(partitions.kept, 0);
    assert_ptr_equal(get(0, 4), a);
    assert_int_equal(fake.live_green, 1);
}

static void the_longest_unused_goes_first(void **state)
{
    (void)state;
    start(132, 8);
    partitions.kept_max = 2;
    struct partition *had[4];
    for (uint32_t i = 0; i < 4; i++)
        had[i] = get(i, 1);
    assert_null(partition_take_unused(&partitions, false));
    partition_put(&partitions, had[2]);
    partition_put(&partitions, had[0]);
    partition_put(&partitions, had[1]);
    struct sm_group_set two = sm_groups(2, 1);
    assert_ptr_equal(partition_find(&partitions, &two), had[2]); /* used again */
    partition_put(&partitions, had[2]);
    struct partition *gone = partition_take_unused(&partitions, false);
    assert_ptr_equal(gone, had[0]);
    assert_null(partition_take_unused(&partitions, false));
    /* Its work is not done yet. */
    partition_return(&partitions, gone);
    assert_ptr_equal(partition_take_unused(&partitions, false), gone);
    partition_destroy(&partitions, gone);
    assert_int_equal(fake.live_green, 3);
}

static void sixteen_unused_ones_are_kept(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *had[17];
    for (uint32_t i = 0; i < 17; i++)
        had[i] = get(i, 1);
    for (uint32_t i = 0; i < 16; i++)
        partition_put(&partitions, had[i]);
    assert_null(partition_take_unused(&partitions, false));
    partition_put(&partitions, had[16]);
    struct partition *gone = partition_take_unused(&partitions, false);
    assert_ptr_equal(gone, had[0]);
    assert_null(partition_take_unused(&partitions, false));
    partition_destroy(&partitions, gone);
    assert_int_equal(fake.live_green, 16);
}

/* One SM group, without a green context. */
static void expect_undivided(void)
{
    assert_int_equal(partitions.count, 1);
    assert_int_equal(partitions.sm_group_size, 132);
    struct partition *a = get(0, 1);
    assert_null(a->green);
    assert_true(a->whole);
    assert_int_equal(a->multiprocessors, 132);
    assert_int_equal(fake.live_green, 0);
}

static void without_green_contexts_nothing_is_enforced(void **state)
{
    (void)state;
    start(132, 0);
    assert_false(partitions.supported);
    assert_non_null(strstr(partitions.unsupported, "green contexts"));
    expect_undivided();
}

static void a_driver_that_makes_no_green_context_leaves_the_device_whole(void **state)
{
    (void)state;
    fake_reset();
    fake.green_max = -1;
    open_partitions(132, 8);
    assert_false(partitions.supported);
    assert_string_equal(partitions.unsupported, "the driver failed making a green context with "
                                                "CUDA_ERROR_OUT_OF_MEMORY (2)");
    expect_undivided();
}

static void a_driver_that_splits_nothing_leaves_the_device_whole(void **state)
{
    (void)state;
    fake_reset();
    fake.split = CUDA_ERR_INVALID_RESOURCE_CONFIGURATION;
    open_partitions(132, 8);
    assert_false(partitions.supported);
    assert_non_null(strstr(partitions.unsupported, "dividing the multiprocessors"));
    expect_undivided();
}

static void an_error_that_ends_the_context_is_no_lack_of_support(void **state)
{
    (void)state;
    struct error why = {0};
    fake_reset();
    fake.split = CUDA_ERR_ILLEGAL_ADDRESS;
    driver = fake_driver();
    gpu = (struct gpu){.cuda = &driver, .info.multiprocessors = 132};
    assert_int_equal(partition_table_open(&partitions, &gpu, &why), PROTO_ERROR_ILLEGAL_ADDRESS);
}

static void the_whole_device_may_be_the_union_of_its_groups(void **state)
{
    (void)state;
    fake_reset();
    fake.refuse_whole = true;
    open_partitions(132, 8);
    assert_true(partitions.supported);
    assert_string_equal(partitions.unsupported, "");
    struct partition *all = get(0, 17);
    assert_true(all->whole);
    assert_int_equal(all->multiprocessors, 132);
    assert_int_equal(all->green->count, 17);
    assert_int_equal(all->green->multiprocessors, 132);
}

static void a_remainder_that_joins_no_group_is_left_out(void **state)
{
    (void)state;
    fake_reset();
    fake.refuse_remainder = true;
    open_partitions(132, 8);
    assert_true(partitions.supported);
    assert_int_equal(partitions.count, 16);
    assert_int_equal(partitions.rest, 0);
    assert_int_equal(get(0, 2)->green->multiprocessors, 16);
}

static void what_is_left_counts_as_a_group_if_it_is_as_large(void **state)
{
    (void)state;
    fake_reset();
    fake.split_loses = 1;
    open_partitions(132, 8);
    assert_int_equal(partitions.count, 16);
    assert_int_equal(partitions.rest, 12);
    struct partition *first = get(0, 8), *second = get(8, 8), *all = get(0, 16);
    assert_int_equal(first->multiprocessors, 64);
    assert_int_equal(first->green->multiprocessors, 64);
    assert_int_equal(second->multiprocessors, 68);
    assert_int_equal(second->green->multiprocessors, 68);
    assert_true(all->whole);
    assert_int_equal(all->multiprocessors, 132);
}

static const cuda_workqueue_resource *queues_of(const struct partition *partition)
{
    const cuda_dev_resource *last = &partition->green->resources[partition->green->count - 1];
    assert_int_equal(last->type, CUDA_RESOURCE_WORKQUEUE_CONFIG);
    return &last->workqueue;
}

static void partitions_ask_for_queues_of_their_own_where_there_are_some(void **state)
{
    (void)state;
    fake_reset();
    fake.work_queues = 16;
    open_partitions(132, 8);
    struct partition *all = get(0, 17), *half = get(0, 8), *least = get(0, 1);
    assert_int_equal(queues_of(all)->concurrency, 16);
    assert_int_equal(queues_of(half)->concurrency, 7);
    assert_int_equal(queues_of(least)->concurrency, 2);
    assert_int_equal(queues_of(half)->scope, CUDA_WORKQUEUE_SCOPE_GREEN_BALANCED);
    assert_int_equal(all->queue_count, 16);
    assert_int_equal(half->queue_count, 7);
    assert_int_equal(least->queue_count, 2);
}

static void queues_that_are_refused_are_shared(void **state)
{
    (void)state;
    fake_reset();
    fake.work_queues = 16;
    fake.refuse_work_queues = true;
    open_partitions(132, 8);
    assert_true(partitions.supported);
    struct partition *half = get(0, 8);
    assert_int_equal(half->queue_count, 0);
    assert_int_equal(half->green->count, 8);
    /* It is not asked again. */
    assert_int_equal(partitions.balanced.type, CUDA_RESOURCE_INVALID);
}

static void a_driver_without_room_is_asked_for_queues_again(void **state)
{
    (void)state;
    fake_reset();
    fake.work_queues = 16;
    open_partitions(132, 8);
    struct sm_group_set set = sm_groups(0, 8);
    struct partition *half;
    fake.green_max = fake.live_green;
    assert_int_not_equal(got_partition(&partitions, &set, &half), 0);
    fake.green_max = 0;
    assert_int_equal(get(0, 8)->queue_count, 7);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, stop)
    const struct CMUnitTest tests[] = {
        T(the_device_is_split_into_sm_groups_and_a_remainder),
        T(a_set_becomes_a_context_of_its_multiprocessors),
        T(the_set_of_all_is_the_unsplit_device),
        T(an_unused_partition_is_kept_for_the_next_client),
        T(the_longest_unused_goes_first),
        T(sixteen_unused_ones_are_kept),
        T(without_green_contexts_nothing_is_enforced),
        T(a_driver_that_makes_no_green_context_leaves_the_device_whole),
        T(a_driver_that_splits_nothing_leaves_the_device_whole),
        T(an_error_that_ends_the_context_is_no_lack_of_support),
        T(the_whole_device_may_be_the_union_of_its_groups),
        T(a_remainder_that_joins_no_group_is_left_out),
        T(what_is_left_counts_as_a_group_if_it_is_as_large),
        T(partitions_ask_for_queues_of_their_own_where_there_are_some),
        T(queues_that_are_refused_are_shared),
        T(a_driver_without_room_is_asked_for_queues_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
