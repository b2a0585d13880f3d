/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* objects: which numbers are given, and what is known of each. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "protocol.h"
#include "server/supervisor/client/objects.h"

static struct hash_key key;
static struct objects objects;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(hash_key_make(&key), 0);
    objects_open(&objects, 4, &key, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    objects_close(&objects);
    objects_close(&objects);
    return 0;
}

static uint32_t take(enum object_kind kind)
{
    uint32_t number = 0;
    assert_int_equal(objects_new(&objects, kind, &number), 0);
    assert_int_equal(objects_find(&objects, kind, number)->state, OBJECT_MAKING);
    return number;
}

static void the_lowest_free_number_is_given(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 100; number++)
        assert_int_equal(take(OBJECT_EVENT), number);
    objects_free(&objects, OBJECT_EVENT, 70);
    objects_free(&objects, OBJECT_EVENT, 3);
    objects_free(&objects, OBJECT_EVENT, 40);
    assert_null(objects_find(&objects, OBJECT_EVENT, 3));
    assert_int_equal(objects.tables[OBJECT_EVENT].used, 97);
    assert_int_equal(take(OBJECT_EVENT), 3);
    assert_int_equal(take(OBJECT_EVENT), 40);
    assert_int_equal(take(OBJECT_EVENT), 70);
    assert_int_equal(take(OBJECT_EVENT), 101);
    assert_null(objects_find(&objects, OBJECT_EVENT, 0));
    assert_null(objects_find(&objects, OBJECT_EVENT, 102));
    assert_null(objects_find(&objects, OBJECT_EVENT, UINT32_MAX));
    assert_null(objects_find(&objects, OBJECT_STREAM, 1)); /* each kind has numbers of its own */
}

static void each_kind_ends_at_its_limit(void **state)
{
    (void)state;
    const uint32_t most[OBJECT_KINDS] = {[OBJECT_STREAM] = 3,
                                         [OBJECT_EVENT] = PROTO_EVENTS_MAX,
                                         [OBJECT_FUNCTION] = PROTO_FUNCTIONS_MAX,
                                         [OBJECT_LINK] = PROTO_LINKS_MAX};
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        uint32_t number = 0;
        if (kind == OBJECT_FUNCTION)
            continue;
        for (uint32_t i = 1; i <= most[kind]; i++)
            assert_int_equal(take((enum object_kind)kind), i);
        assert_int_equal(objects_new(&objects, (enum object_kind)kind, &number), -ENOSPC);
        objects_free(&objects, (enum object_kind)kind, 2);
        assert_int_equal(take((enum object_kind)kind), 2);
        assert_int_equal(objects_new(&objects, (enum object_kind)kind, &number), -ENOSPC);
    }
}

static uint32_t take_kernel(uint32_t module, const char *name)
{
    uint32_t number = 0;
    assert_int_equal(objects_function_new(&objects, module, name, strlen(name), &number), 0);
    return number;
}

static uint32_t find_kernel(uint32_t module, const char *name)
{
    return objects_function_find(&objects, module, name, strlen(name));
}

static void kernels_are_found_by_module_and_name(void **state)
{
    (void)state;
    assert_int_equal(find_kernel(1, "add"), 0);
    assert_int_equal(take_kernel(1, "add"), 1);
    assert_int_equal(take_kernel(2, "add"), 2);
    assert_int_equal(take_kernel(1, "ad"), 3);
    assert_int_equal(find_kernel(1, "add"), 1);
    assert_int_equal(find_kernel(2, "add"), 2);
    assert_int_equal(find_kernel(1, "ad"), 3);
    assert_int_equal(find_kernel(1, "addd"), 0);
    assert_int_equal(find_kernel(3, "add"), 0);
    const struct object_function *kernel = &objects_find(&objects, OBJECT_FUNCTION, 2)->function;
    assert_int_equal(kernel->module, 2);
    assert_int_equal(kernel->name_bytes, 3);
    assert_memory_equal(kernel->name, "add", 3);
    assert_false(kernel->shared_set);
}

static void an_unloaded_module_takes_its_kernels_along(void **state)
{
    (void)state;
    enum { KERNELS = 3000 };
    char name[32];
    for (uint32_t i = 0; i < KERNELS; i++) {
        snprintf(name, sizeof name, "kernel%u", i);
        assert_int_equal(take_kernel(1 + i % 2, name), i + 1);
    }
    objects_unload(&objects, 2);
    assert_int_equal(objects.tables[OBJECT_FUNCTION].used, KERNELS / 2);
    for (uint32_t i = 0; i < KERNELS; i++) {
        snprintf(name, sizeof name, "kernel%u", i);
        assert_int_equal(find_kernel(1 + i % 2, name), i % 2 ? 0 : i + 1);
    }
    assert_int_equal(take_kernel(3, "later"), 2);
}

static void kernels_end_at_their_limit(void **state)
{
    (void)state;
    char name[32];
    for (uint32_t i = 0; i < PROTO_FUNCTIONS_MAX; i++) {
        snprintf(name, sizeof name, "k%u", i);
        assert_int_equal(take_kernel(1, name), i + 1);
    }
    uint32_t number = 0;
    assert_int_equal(objects_function_new(&objects, 1, "more", 4, &number), -ENOSPC);
    assert_int_equal(find_kernel(1, "more"), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_lowest_free_number_is_given),
        CASE(each_kind_ends_at_its_limit),
        CASE(kernels_are_found_by_module_and_name),
        CASE(an_unloaded_module_takes_its_kernels_along),
        CASE(kernels_end_at_their_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
