/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Compiled code that outlives a worker: two stores on one memory stand for one worker and the next.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"
#include "server/worker/code/cache/code_store.h"
#include "tests/support/halted.h"

enum { BYTES = 64 << 10 };

static struct shm memory;

static int setup(void **state)
{
    (void)state;
    return shm_create(&memory, "store", BYTES);
}

static int teardown(void **state)
{
    (void)state;
    shm_release(&memory);
    return 0;
}

static struct code_store open_store(void)
{
    struct code_store store;
    assert_int_equal(code_store_open(&store, dup(memory.fd)), 0);
    return store;
}

static struct code_name name_of(unsigned number)
{
    return (struct code_name){.length = 10 + number, .hashes = {number, ~number}};
}

/* Code that no other number has. */
static void fill(uint8_t *code, size_t bytes, unsigned number)
{
    for (size_t i = 0; i < bytes; i++)
        code[i] = (uint8_t)(((number + 1) * 2654435761u ^ ((unsigned)i + 7) * 40503u) >> 9);
}

static void add(struct code_store *store, unsigned number, size_t bytes)
{
    const struct code_name name = name_of(number);
    uint8_t *code = malloc(bytes + 1);
    assert_non_null(code);
    fill(code, bytes, number);
    code_store_add(store, &name, code, bytes);
    free(code);
}

static bool has(struct code_store *store, unsigned number, size_t bytes)
{
    const struct code_name name = name_of(number);
    size_t found = 0;
    uint8_t *want = malloc(bytes + 1), *code = code_store_copy(store, &name, &found);
    assert_non_null(want);
    fill(want, bytes, number);
    bool there = code != NULL;
    if (there) {
        assert_int_equal(found, bytes);
        assert_memory_equal(code, want, bytes);
    }
    free(code);
    free(want);
    return there;
}

static void the_next_worker_finds_what_was_added(void **state)
{
    (void)state;
    struct code_store first = open_store();
    add(&first, 1, 1000);
    add(&first, 2, 0);
    add(&first, 3, 777);
    struct hash_key keys[2];
    memcpy(keys, code_store_keys(&first), sizeof keys);
    code_store_close(&first);
    struct code_store next = open_store();
    assert_memory_equal(keys, code_store_keys(&next), sizeof keys);
    assert_true(has(&next, 1, 1000) && has(&next, 2, 0) && has(&next, 3, 777));
    assert_false(has(&next, 4, 1));
    code_store_close(&next);
}

static void one_that_stands_by_sees_what_is_added_later(void **state)
{
    (void)state;
    struct code_store serving = open_store(), standby = open_store();
    assert_false(has(&standby, 5, 100));
    add(&serving, 5, 100);
    assert_true(has(&standby, 5, 100));
    code_store_close(&serving);
    code_store_close(&standby);
}

/* Half of the memory holds seven pieces of 4 KiB. */
static void the_latest_code_stays_when_room_is_short(void **state)
{
    (void)state;
    struct code_store store = open_store();
    for (unsigned i = 0; i < 100; i++) {
        add(&store, i, 4096);
        for (unsigned k = 0; k < 7 && k <= i; k++)
            assert_true(has(&store, i - k, 4096));
        if (i >= 14)
            assert_false(has(&store, i - 14, 4096));
    }
    code_store_close(&store);
}

/* It has noted where the entries were, and then both halves are emptied and filled again. */
static void one_that_stands_by_sees_what_came_in_the_place_of_others(void **state)
{
    (void)state;
    struct code_store serving = open_store(), standby = open_store();
    for (unsigned i = 0; i < 5; i++)
        add(&serving, i, 4096);
    assert_true(has(&standby, 4, 4096));
    for (unsigned i = 100; i < 200; i++)
        add(&serving, i, 1000 + i);
    for (unsigned i = 0; i < 5; i++)
        assert_false(has(&standby, i, 4096));
    for (unsigned i = 195; i < 200; i++)
        assert_true(has(&standby, i, 1000 + i));
    code_store_close(&serving);
    code_store_close(&standby);
}

/* A memory each half of which holds one piece: each piece is added where the last but one was. */
enum { SMALL = 1024, PIECE = 200, NAMES = 5, HALTS = 20000 };

static void *add_in_turn(void *argument)
{
    struct code_store *store = argument;
    uint8_t codes[NAMES][PIECE];
    for (unsigned i = 0; i < NAMES; i++)
        fill(codes[i], PIECE, i);
    for (unsigned i = 0; halted_turn(); i = (i + 1) % NAMES) {
        const struct code_name name = name_of(i);
        code_store_add(store, &name, codes[i], PIECE);
    }
    return NULL;
}

static void no_name_has_code_that_came_in_the_place_of_its_own(void **state)
{
    (void)state;
    struct shm small;
    struct code_store serving, standby;
    pthread_t thread;
    unsigned found = 0, wrong = 0, at = 0;
    size_t bytes = 0;
    assert_int_equal(shm_create(&small, "store", SMALL), 0);
    assert_int_equal(code_store_open(&serving, dup(small.fd)), 0);
    assert_int_equal(code_store_open(&standby, dup(small.fd)), 0);
    halted_begin();
    assert_int_equal(pthread_create(&thread, NULL, add_in_turn, &serving), 0);
    const uint64_t end = clock_now() + UNITS_SECOND;
    while (!found || (halted_count() < HALTS && clock_now() < end)) {
        const struct code_name name = name_of(at++ % NAMES);
        uint8_t want[PIECE], *code = code_store_copy(&standby, &name, &bytes);
        fill(want, PIECE, (unsigned)(name.length - 10));
        found += code != NULL;
        /* An assertion would leave the other thread behind. */
        wrong += code && (bytes != PIECE || memcmp(code, want, PIECE) != 0);
        free(code);
    }
    halted_end(thread);
    assert_int_equal(wrong, 0);
    code_store_close(&serving);
    code_store_close(&standby);
    shm_release(&small);
}

static void code_that_is_too_large_drives_nothing_out(void **state)
{
    (void)state;
    struct code_store store = open_store();
    add(&store, 1, 4096);
    add(&store, 2, BYTES);
    add(&store, 3, BYTES / 2);
    assert_true(has(&store, 1, 4096));
    assert_false(has(&store, 2, BYTES) || has(&store, 3, BYTES / 2));
    code_store_close(&store);
}

/* A worker that went astray may have written anything. */
static void damaged_code_is_not_found(void **state)
{
    (void)state;
    struct code_store store = open_store();
    add(&store, 1, 4096);
    add(&store, 2, 4096);
    uint8_t *bytes = memory.base;
    size_t at = 0;
    uint8_t code[64];
    fill(code, sizeof code, 2);
    while (memcmp(bytes + at, code, sizeof code) != 0)
        at++;
    bytes[at + 1000] ^= 1;
    assert_true(has(&store, 1, 4096));
    assert_false(has(&store, 2, 4096));
    srand(7);
    for (int i = 0; i < 20000; i++) {
        /* Beyond the header, whose first word says that there is one. */
        bytes[8 + (size_t)rand() % 12000] = (uint8_t)rand();
        const struct code_name name = name_of(1);
        size_t count = 0;
        free(code_store_copy(&store, &name, &count));
        assert_true(count <= BYTES);
    }
    code_store_close(&store);
}

static void without_memory_nothing_is_kept(void **state)
{
    (void)state;
    struct code_store store;
    assert_int_equal(code_store_open(&store, -1), 0);
    assert_null(code_store_keys(&store));
    add(&store, 1, 10);
    assert_false(has(&store, 1, 10));
    code_store_close(&store);
    FILE *file = tmpfile();
    assert_int_equal(code_store_open(&store, dup(fileno(file))), -EINVAL);
    assert_int_equal(ftruncate(fileno(file), BYTES), 0);
    assert_int_equal(code_store_open(&store, dup(fileno(file))), -EBADF);
    assert_null(code_store_keys(&store));
    fclose(file);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_next_worker_finds_what_was_added),
        T(one_that_stands_by_sees_what_is_added_later),
        T(one_that_stands_by_sees_what_came_in_the_place_of_others),
        T(no_name_has_code_that_came_in_the_place_of_its_own),
        T(the_latest_code_stays_when_room_is_short),
        T(code_that_is_too_large_drives_nothing_out),
        T(damaged_code_is_not_found),
        T(without_memory_nothing_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
