/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Commands of a stream that wait for others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/worker/client/stream_waits.h"

static struct stream_waits waits;

static int reset(void **state)
{
    (void)state;
    memset(&waits, 0, sizeof waits);
    return 0;
}

static void add(uint64_t value)
{
    struct stream_wait wait = {
        .value = value, .count = 1, .sources[0] = {.stream = 7, .value = value + 100}};
    stream_waits_add(&waits, &wait);
}

static void only_the_command_itself_is_found(void **state)
{
    (void)state;
    assert_null(stream_waits_find(&waits, 0));
    add(5);
    add(9);
    assert_null(stream_waits_find(&waits, 4));
    assert_null(stream_waits_find(&waits, 6));
    assert_null(stream_waits_find(&waits, 10));
    assert_int_equal(stream_waits_find(&waits, 5)->sources[0].value, 105);
    assert_int_equal(stream_waits_find(&waits, 9)->sources[0].value, 109);
}

static void what_was_reached_makes_room(void **state)
{
    (void)state;
    for (uint64_t i = 1; i < STREAM_WAITS_MAX; i++)
        add(2 * i);
    assert_true(stream_waits_reach(&waits, 1));
    add(2 * STREAM_WAITS_MAX);
    assert_false(stream_waits_reach(&waits, 1));
    add(2 * STREAM_WAITS_MAX + 2);
    assert_null(stream_waits_find(&waits, 2 * STREAM_WAITS_MAX + 2));
    assert_true(stream_waits_reach(&waits, 5));
    assert_null(stream_waits_find(&waits, 4));
    assert_non_null(stream_waits_find(&waits, 6));
    assert_non_null(stream_waits_find(&waits, 2 * STREAM_WAITS_MAX));
    assert_true(stream_waits_reach(&waits, UINT64_MAX));
    assert_int_equal(waits.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_the_command_itself_is_found, reset),
        cmocka_unit_test_setup(what_was_reached_makes_room, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
