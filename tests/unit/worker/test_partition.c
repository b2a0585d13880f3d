/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* From percentages to multiprocessors, and where they are placed. */
#include "tests/unit/worker/fake.h"

#include "server/worker/partition.h"

static struct cuda_driver driver;
static struct device device;
static struct partitions partitions;

static void start(unsigned multiprocessors, unsigned atom)
{
    char why[256];
    fake_reset();
    fake.multiprocessors = multiprocessors;
    fake.atom = atom;
    driver = fake_driver();
    device = (struct device){.cuda = &driver, .info.multiprocessors = multiprocessors};
    assert_int_equal(partitions_open(&partitions, &device, why, sizeof why), 0);
}

static int stop(void **state)
{
    (void)state;
    partitions_close(&partitions);
    assert_int_equal(fake.live_green, 0);
    return 0;
}

static uint32_t share(uint32_t percentage)
{
    struct atom_set atoms;
    uint32_t said = partitions_choose(&partitions, percentage, &atoms), counted = 0;
    for (uint32_t i = 0; i < partitions.count; i++)
        if (atom_set_has(&atoms, i))
            counted += partitions.supported ? partitions.atoms[i].sm.sm_count : partitions.total;
    assert_int_equal(said, counted);
    return said;
}

static void test_percentages_round_down_to_atoms(void **state)
{
    (void)state;
    start(132, 8);
    assert_int_equal(partitions.count, 17);
    assert_int_equal(partitions.remainder, 4);
    assert_int_equal(share(10000), 132);
    assert_int_equal(share(5000), 64); /* 66 */
    assert_int_equal(share(2500), 32); /* 33 */
    assert_int_equal(share(1000), 12); /* 13: an atom and the remainder */
    assert_int_equal(share(607), 8);   /* 8.01 */
    assert_int_equal(share(9999), 128);
    for (uint32_t percentage = 607; percentage <= 10000; percentage++)
        assert_true(share(percentage) <= 132u * percentage / 10000);
}

static void test_below_one_atom_one_is_granted(void **state)
{
    (void)state;
    start(132, 8);
    assert_int_equal(share(1), 8);
    assert_int_equal(share(606), 8); /* 7.99 */
}

static void test_even_devices_have_no_remainder(void **state)
{
    (void)state;
    start(108, 2);
    assert_int_equal(partitions.count, 54);
    assert_int_equal(partitions.remainder, 0);
    assert_int_equal(share(10000), 108);
    assert_int_equal(share(9900), 106);
    assert_int_equal(share(100), 2);
}

static void test_clients_are_placed_apart_while_there_is_room(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *got[4];
    struct atom_set all = {{0}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(partition_get(&partitions, 2500, &got[i]), 0);
        assert_int_equal(got[i]->multiprocessors, 32);
        assert_int_equal(got[i]->green->multiprocessors, 32);
        for (int w = 0; w < 4; w++) {
            assert_int_equal(all.bits[w] & got[i]->atoms.bits[w], 0);
            all.bits[w] |= got[i]->atoms.bits[w];
        }
    }
    /* A fifth shares with somebody, on the first of the least loaded. */
    struct partition *fifth;
    assert_int_equal(partition_get(&partitions, 2500, &fifth), 0);
    assert_ptr_equal(fifth, got[0]);
    assert_false(partition_put(&partitions, fifth));
    for (int i = 0; i < 4; i++) {
        assert_true(partition_put(&partitions, got[i]));
        partition_destroy(&partitions, got[i]);
    }
}

static void test_room_is_used_again(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *a, *b, *c;
    assert_int_equal(partition_get(&partitions, 5000, &a), 0);
    assert_int_equal(partition_get(&partitions, 5000, &b), 0);
    struct atom_set atoms = a->atoms;
    assert_true(partition_put(&partitions, a));
    partition_destroy(&partitions, a);
    assert_int_equal(partition_get(&partitions, 5000, &c), 0);
    assert_memory_equal(&c->atoms, &atoms, sizeof atoms);
    partition_put(&partitions, b);
    partition_put(&partitions, c);
}

static void test_whole_clients_share_the_unsplit_device(void **state)
{
    (void)state;
    start(132, 8);
    struct partition *a, *b;
    assert_int_equal(partition_get(&partitions, 10000, &a), 0);
    assert_int_equal(partition_get(&partitions, 10000, &b), 0);
    assert_ptr_equal(a, b);
    assert_true(a->whole);
    assert_int_equal(a->green->count, 1);
    assert_int_equal(a->green->multiprocessors, 132);
    for (uint32_t i = 0; i < partitions.count; i++)
        assert_int_equal(partitions.load[i], 0);
    assert_false(partition_put(&partitions, a));
    assert_true(partition_put(&partitions, b));
}

static void test_without_green_contexts_nothing_is_enforced(void **state)
{
    (void)state;
    start(132, 0);
    assert_false(partitions.supported);
    assert_non_null(strstr(partitions.why, "green contexts"));
    assert_int_equal(share(2500), 132);
    struct partition *a;
    assert_int_equal(partition_get(&partitions, 2500, &a), 0);
    assert_null(a->green);
    assert_true(partition_put(&partitions, a));
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, stop)
    const struct CMUnitTest tests[] = {
        T(test_percentages_round_down_to_atoms),
        T(test_below_one_atom_one_is_granted),
        T(test_even_devices_have_no_remainder),
        T(test_clients_are_placed_apart_while_there_is_room),
        T(test_room_is_used_again),
        T(test_whole_clients_share_the_unsplit_device),
        T(test_without_green_contexts_nothing_is_enforced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
