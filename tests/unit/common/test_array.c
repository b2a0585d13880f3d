/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Growing arrays: contents kept, growth by doubling, and what happens where no more fits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>

#include "common/array.h"

static void room_grows_by_doubling(void **state)
{
    (void)state;
    assert_int_equal(array_room(0, 0), 0);
    assert_int_equal(array_room(0, 1), 1);
    assert_int_equal(array_room(5, 5), 5);
    assert_int_equal(array_room(16, 17), 32);
    assert_int_equal(array_room(20, 1000), 1000);
    assert_true(array_room(SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 2) == SIZE_MAX);
}

static void growing_keeps_the_entries(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    uint32_t count = 0, room = 0;
    unsigned moves = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t before = room;
        if (array_reserve(items, room, count + 1) < 0) {
            fail_msg("no memory");
            return;
        }
        moves += room != before;
        items[count++] = i * i;
    }
    assert_int_equal(room, 1024);
    assert_int_equal(moves, 7);
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(items[i] == i * i);
    free(items);
}

static void an_array_that_suffices_is_left_alone(void **state)
{
    (void)state;
    int *items = NULL;
    size_t room = 0;
    assert_int_equal(array_reserve(items, room, 0), 0);
    assert_non_null(items);
    int *before = items;
    assert_int_equal(array_reserve(items, room, room), 0);
    assert_ptr_equal(items, before);
    assert_int_equal(room, ARRAY_ROOM_MIN);
    free(items);
}

static void more_than_the_room_can_count_is_refused(void **state)
{
    (void)state;
    char *items = NULL;
    uint32_t room = 0;
    assert_int_equal(array_reserve(items, room, 200), 0);
    assert_int_equal(room, 200);
    char *before = items;
    assert_int_equal(array_reserve(items, room, (size_t)UINT32_MAX + 1), -ENOMEM);
    assert_ptr_equal(items, before);
    assert_int_equal(room, 200);
    /* Where the double is too much, the most is taken. */
    size_t most = 200;
    assert_int_equal(array_reserve_upto(&items, &most, 201, 1, 255), 0);
    assert_int_equal(most, 255);
    assert_int_equal(array_reserve_upto(&items, &most, 256, 1, 255), -ENOMEM);
    assert_int_equal(most, 255);
    free(items);
}

static void more_than_memory_holds_is_refused(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t room = 0;
    if (array_reserve(items, room, 3) < 0) {
        fail_msg("no memory");
        return;
    }
    items[2] = 5;
    /* Their bytes would wrap; volatile, for the compiler refuses such a number that it can see. */
    volatile size_t wanted = SIZE_MAX / 4;
    assert_int_equal(array_reserve(items, room, wanted), -ENOMEM);
    assert_true(items[2] == 5);
    assert_int_equal(room, ARRAY_ROOM_MIN);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_grows_by_doubling),
        cmocka_unit_test(growing_keeps_the_entries),
        cmocka_unit_test(an_array_that_suffices_is_left_alone),
        cmocka_unit_test(more_than_the_room_can_count_is_refused),
        cmocka_unit_test(more_than_memory_holds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
