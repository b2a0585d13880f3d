/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Members of a struct as bytes: what is put comes back, and the number of the layout tells tables
 * apart that mean different things by the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "server/supervisor/keep/pack.h"

struct thing {
    uint32_t first, second;
    const char *left_out;
    uint64_t third;
};

static const struct pack_member rows[] = {
    PACK_MEMBER(struct thing, first),
    PACK_MEMBER(struct thing, second),
    PACK_MEMBER(struct thing, third),
};
static const struct pack_table table = PACK_TABLE(rows);

static void what_is_put_comes_back(void **unused)
{
    struct pack pack = {0};
    const struct thing put = {.first = 1, .second = 2, .left_out = "here", .third = 3};
    struct thing got = {.left_out = "there"};
    (void)unused;
    pack_begin(&pack);
    pack_members(&pack, &table, &put);
    pack_number(&pack, 4);
    struct unpack unpack = unpack_begin(pack.data, pack.bytes);
    unpack_members(&unpack, &table, &got);
    assert_int_equal(unpack_number(&unpack), 4);
    assert_true(unpack_is_whole(&unpack));
    assert_int_equal(got.first, 1);
    assert_int_equal(got.second, 2);
    assert_int_equal(got.third, 3);
    assert_string_equal(got.left_out, "there");
    unpack = unpack_begin(pack.data, pack.bytes);
    unpack_skip_members(&unpack, &table);
    assert_int_equal(unpack_number(&unpack), 4);
    assert_true(unpack_is_whole(&unpack));
    pack_free(&pack);
}

static void members_that_end_too_early_are_a_failure(void **unused)
{
    const uint8_t bytes[15] = {0};
    struct thing got;
    (void)unused;
    struct unpack unpack = unpack_begin(bytes, sizeof bytes);
    unpack_members(&unpack, &table, &got);
    assert_true(unpack.failed);
    unpack = unpack_begin(bytes, sizeof bytes);
    unpack_skip_members(&unpack, &table);
    assert_true(unpack.failed);
}

static void members_of_one_size_that_change_places_are_another_layout(void **unused)
{
    const struct pack_member swapped[] = {rows[1], rows[0], rows[2]};
    const struct pack_table other = PACK_TABLE(swapped);
    (void)unused;
    assert_int_not_equal(pack_members_layout(&table, 1), pack_members_layout(&other, 1));
}

static void names_sizes_count_and_form_are_part_of_the_layout(void **unused)
{
    struct pack_member changed[] = {rows[0], rows[1], rows[2]};
    struct pack_table other = PACK_TABLE(changed);
    uint32_t layout = pack_members_layout(&table, 1);
    (void)unused;
    assert_int_equal(pack_members_layout(&other, 1), layout);
    assert_int_not_equal(pack_members_layout(&other, 2), layout);
    changed[1].name = "fourth";
    assert_int_not_equal(pack_members_layout(&other, 1), layout);
    changed[1] = rows[1];
    changed[2].bytes--;
    assert_int_not_equal(pack_members_layout(&other, 1), layout);
    changed[2] = rows[2];
    changed[0].at = 16; /* where it lies in memory is no matter */
    assert_int_equal(pack_members_layout(&other, 1), layout);
    other.count--;
    assert_int_not_equal(pack_members_layout(&other, 1), layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_comes_back),
        cmocka_unit_test(members_that_end_too_early_are_a_failure),
        cmocka_unit_test(members_of_one_size_that_change_places_are_another_layout),
        cmocka_unit_test(names_sizes_count_and_form_are_part_of_the_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
