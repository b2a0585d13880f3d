/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory that is freed while somebody of this process will still read it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>

#include "client/engine/range/held_memory.h"

enum { FIRST = 0x10000, SECOND = 0x20000, BYTES = 0x1000 };

struct memory {
    struct held_memory held;
    struct allocations table;
};

static void start(struct memory *memory)
{
    held_memory_init(&memory->held);
    allocation_init(&memory->table);
    for (uint64_t at = FIRST; at <= SECOND; at += SECOND - FIRST)
        assert_int_equal(
            allocation_add(&memory->table, &(struct allocation){.address = at,
                                                                .bytes = BYTES,
                                                                .asked = BYTES,
                                                                .kind = ALLOCATION_DEVICE}),
            0);
}

static void stop(struct memory *memory)
{
    held_memory_destroy(&memory->held, true);
    allocation_destroy(&memory->table, true);
}

static int hold(struct memory *memory, struct memory_hold *hold, uint64_t address)
{
    struct allocation found;
    return held_memory_add(&memory->held, hold, address, &memory->table, &found);
}

/* As a program frees it: whether it goes to the server at once. */
static bool goes(struct memory *memory, uint64_t address)
{
    struct allocation taken;
    assert_true(allocation_take(&memory->table, address, ALLOCATION_DEVICE, &taken));
    return !held_memory_keep(&memory->held, &taken);
}

static void freed_memory_goes_with_its_last_hold(void **state)
{
    (void)state;
    struct memory memory;
    struct memory_hold holds[3];
    struct allocation freed = {0};
    start(&memory);
    assert_int_equal(hold(&memory, &holds[0], FIRST), 0);
    assert_int_equal(hold(&memory, &holds[1], FIRST + BYTES - 1), 0);
    assert_int_equal(hold(&memory, &holds[2], SECOND + 8), 0);
    assert_false(goes(&memory, FIRST));
    assert_false(held_memory_end(&memory.held, &holds[1], &freed));
    assert_true(held_memory_end(&memory.held, &holds[0], &freed));
    assert_int_equal(freed.address, FIRST);
    assert_int_equal(freed.bytes, BYTES);
    /* The program has the other one still. */
    assert_false(held_memory_end(&memory.held, &holds[2], &freed));
    assert_true(goes(&memory, SECOND));
    stop(&memory);
}

static void memory_that_is_gone_is_not_held(void **state)
{
    (void)state;
    struct memory memory;
    struct memory_hold holds[2];
    struct allocation freed;
    start(&memory);
    assert_int_equal(hold(&memory, &holds[0], FIRST + BYTES), -ENOENT);
    assert_int_equal(hold(&memory, &holds[0], FIRST - 1), -ENOENT);
    assert_int_equal(hold(&memory, &holds[0], FIRST), 0);
    assert_false(goes(&memory, FIRST));
    /* It is no allocation any more, though it is there. */
    assert_int_equal(hold(&memory, &holds[1], FIRST), -ENOENT);
    assert_true(held_memory_end(&memory.held, &holds[0], &freed));
    stop(&memory);
}

static void as_many_are_kept_as_are_held(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct memory memory;
    struct memory_hold holds[COUNT];
    struct allocation freed;
    start(&memory);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct allocation more = {.address = (i + 100) << 16, .bytes = BYTES, .asked = BYTES};
        assert_int_equal(allocation_add(&memory.table, &more), 0);
        assert_int_equal(hold(&memory, &holds[i], more.address + i), 0);
        assert_false(goes(&memory, more.address));
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t at = (i * 77) % COUNT;
        assert_true(held_memory_end(&memory.held, &holds[at], &freed));
        assert_int_equal(freed.address, (at + 100) << 16);
    }
    stop(&memory);
}

struct unloader {
    struct memory *memory;
    const void *module;
    atomic_bool done;
};

static void *unload(void *user)
{
    struct unloader *unloader = user;
    held_memory_await(&unloader->memory->held, unloader->module);
    atomic_store(&unloader->done, true);
    return NULL;
}

static void a_module_waits_for_holds_on_its_variables(void **state)
{
    (void)state;
    static const int module, other;
    struct memory memory;
    struct memory_hold one;
    struct allocation freed;
    struct unloader unloader = {.memory = &memory, .module = &module};
    pthread_t thread;
    start(&memory);
    struct allocation variable = {
        .address = 0x90000, .bytes = 8, .asked = 8, .kind = ALLOCATION_VARIABLE, .owner = &module};
    assert_int_equal(allocation_add(&memory.table, &variable), 0);
    assert_int_equal(hold(&memory, &one, variable.address), 0);
    allocation_disown(&memory.table, &module);
    held_memory_await(&memory.held, &other);
    assert_int_equal(pthread_create(&thread, NULL, unload, &unloader), 0);
    assert_false(atomic_load(&unloader.done));
    assert_false(held_memory_end(&memory.held, &one, &freed));
    pthread_join(thread, NULL);
    assert_true(atomic_load(&unloader.done));
    stop(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_goes_with_its_last_hold),
        cmocka_unit_test(memory_that_is_gone_is_not_held),
        cmocka_unit_test(as_many_are_kept_as_are_held),
        cmocka_unit_test(a_module_waits_for_holds_on_its_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
