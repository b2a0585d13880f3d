/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Freed device memory that stays with the client: who may have it, and when. */
#include "tests/unit/client/fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "common/ipc/shared_word.h"

enum { SIZE = 3 << 20 };

static void start(struct fixture *f, const struct fake_options *options)
{
    fixture_start(f, options);
    memory_keep_freed(f->gpu);
}

static gpushare_address take(const struct fixture *f, uint64_t count)
{
    gpushare_address address;
    OK(gpushare_memory_alloc(f->gpu, count, &address));
    return address;
}

static unsigned allocs(const struct fixture *f)
{
    return fake_count(f->server, PROTO_MEMORY_ALLOC);
}

static unsigned frees(const struct fixture *f)
{
    return fake_count(f->server, PROTO_MEMORY_FREE);
}

static uint64_t *word(const struct fixture *f, unsigned at)
{
    return &f->gpu->header->idle[at];
}

/* ---- what it serves ---- */

static void freed_memory_serves_the_next_allocation(void **state)
{
    (void)state;
    struct fixture f;
    uint8_t byte = 1;
    start(&f, NULL);
    gpushare_address address = take(&f, SIZE);
    OK(gpushare_memory_free(f.gpu, address));
    assert_int_equal(*word(&f, 0), address);
    /* It is no allocation meanwhile. */
    assert_int_equal(gpushare_memory_free(f.gpu, address), GPUSHARE_ERROR_INVALID_HANDLE);
    assert_int_equal(memory_classify(f.gpu, address, 1), MEMORY_ASTRAY);
    assert_int_equal(gpushare_copy_to_device(f.gpu, address, &byte, 1),
                     GPUSHARE_ERROR_INVALID_VALUE);
    assert_int_equal(take(&f, SIZE), address);
    assert_int_equal(*word(&f, 0), 0);
    OK(gpushare_copy_to_device(f.gpu, address + SIZE - 1, &byte, 1));
    assert_int_equal(allocs(&f), 1);
    assert_int_equal(frees(&f), 0);
    fixture_stop(&f);
}

static void a_connection_keeps_nothing_unless_it_is_told_to(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    OK(gpushare_memory_free(f.gpu, take(&f, SIZE)));
    assert_int_equal(frees(&f), 1);
    fixture_stop(&f);
}

static void a_server_that_cannot_take_it_back_gets_it_at_once(void **state)
{
    (void)state;
    struct fixture f;
    fixture_start(&f, NULL);
    f.gpu->server_minor = 2;
    memory_keep_freed(f.gpu);
    OK(gpushare_memory_free(f.gpu, take(&f, SIZE)));
    assert_int_equal(frees(&f), 1);
    fixture_stop(&f);
}

static void a_block_serves_what_it_does_not_exceed_by_much(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    gpushare_address large = take(&f, 64 << 20), small = take(&f, 4096);
    OK(gpushare_memory_free(f.gpu, large));
    OK(gpushare_memory_free(f.gpu, small));
    assert_int_not_equal(take(&f, 48 << 20), large);
    assert_int_not_equal(take(&f, 2048), small);
    assert_int_not_equal(take(&f, 4097), small);
    assert_int_equal(take(&f, 4000), small);
    assert_int_equal(take(&f, 60 << 20), large);
    /* It may be used for as many bytes as were asked for this time. */
    assert_int_equal(memory_classify(f.gpu, large, (60 << 20) + 1), MEMORY_ASTRAY);
    fixture_stop(&f);
}

static void memory_that_work_may_use_waits_for_that(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, &(struct fake_options){.manual = true});
    gpushare_address first = take(&f, SIZE);
    fixture_launch(&f, NULL);
    OK(gpushare_memory_free(f.gpu, first));
    assert_int_equal(*word(&f, 0), first);
    gpushare_address second = take(&f, SIZE);
    assert_int_not_equal(second, first);
    assert_int_equal(fake_run(f.server, 0, 0, 8), 1);
    assert_int_equal(take(&f, SIZE), first);
    fixture_stop(&f);
}

/* ---- what goes back ---- */

static void what_the_server_has_taken_is_not_used(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    gpushare_address first = take(&f, SIZE);
    OK(gpushare_memory_free(f.gpu, first));
    assert_int_equal(shared_word_take(word(&f, 0), UINT64_C(0)), first);
    gpushare_address second = take(&f, SIZE);
    assert_int_not_equal(second, first);
    assert_int_equal(allocs(&f), 2);
    OK(gpushare_memory_free(f.gpu, second));
    assert_int_equal(*word(&f, 0), second);
    assert_int_equal(frees(&f), 0);
    fixture_stop(&f);
}

static void the_oldest_gives_way(void **state)
{
    (void)state;
    struct fixture f;
    gpushare_address addresses[PROTO_IDLE_BLOCKS + 1];
    start(&f, NULL);
    for (unsigned i = 0; i <= PROTO_IDLE_BLOCKS; i++)
        addresses[i] = take(&f, 4096);
    for (unsigned i = 0; i <= PROTO_IDLE_BLOCKS; i++)
        OK(gpushare_memory_free(f.gpu, addresses[i]));
    assert_int_equal(frees(&f), 1);
    assert_int_equal(*word(&f, 0), addresses[PROTO_IDLE_BLOCKS]);
    fixture_stop(&f);
}

static void half_of_the_limit_is_kept_at_most(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    f.gpu->idle.most = 3 * SIZE;
    gpushare_address addresses[4];
    for (int i = 0; i < 4; i++)
        addresses[i] = take(&f, SIZE);
    for (int i = 0; i < 4; i++)
        OK(gpushare_memory_free(f.gpu, addresses[i]));
    assert_int_equal(frees(&f), 1);
    assert_int_equal(f.gpu->idle.bytes, 3 * SIZE);
    f.gpu->idle.most = SIZE - 1;
    gpushare_address large = take(&f, SIZE);
    OK(gpushare_memory_free(f.gpu, large)); /* more than may be kept at all: the others stay */
    assert_int_equal(frees(&f), 2);
    assert_int_equal(f.gpu->idle.bytes, 2 * SIZE);
    fixture_stop(&f);
}

static void a_trim_gives_all_of_it_back(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, NULL);
    gpushare_address first = take(&f, SIZE), second = take(&f, 4096);
    OK(gpushare_memory_free(f.gpu, first));
    OK(gpushare_memory_free(f.gpu, second));
    OK(memory_device_trim(f.gpu));
    assert_int_equal(frees(&f), 2);
    assert_int_equal(*word(&f, 0), 0);
    assert_int_equal(*word(&f, 1), 0);
    assert_int_equal(f.gpu->idle.bytes, 0);
    fixture_stop(&f);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 400 };

struct race {
    struct fixture f;
    atomic_bool over;
    atomic_uint holders[1024]; /* by the page of the window in which a block begins */
};

/* No block is two threads' at once, nor a thread's and the server's. */
static atomic_uint *holder_of(struct race *race, gpushare_address address)
{
    uint64_t page = (address - race->f.gpu->device_base) / 4096;
    assert_true(page < 1024);
    return &race->holders[page];
}

static void *allocate(void *opaque)
{
    struct race *race = opaque;
    for (int i = 0; i < ROUNDS; i++) {
        gpushare_address address = take(&race->f, 4096);
        assert_int_equal(atomic_fetch_add(holder_of(race, address), 1), 0);
        atomic_fetch_sub(holder_of(race, address), 1);
        OK(gpushare_memory_free(race->f.gpu, address));
    }
    return NULL;
}

/* The fake never gives an address twice, so a block that was taken must not come again. */
static void *take_now_and_then(void *opaque)
{
    struct race *race = opaque;
    for (unsigned taken = 0; taken < 100 && !atomic_load(&race->over);) {
        uint64_t address = shared_word_hint(word(&race->f, taken % THREADS));
        if (address && shared_word_exchange(word(&race->f, taken % THREADS), &address, UINT64_C(0)))
            atomic_fetch_add(holder_of(race, address), 1), taken++;
    }
    return NULL;
}

static void a_block_is_nobodys_twice(void **state)
{
    (void)state;
    static struct race race;
    pthread_t threads[THREADS], server;
    start(&race.f, NULL);
    assert_int_equal(pthread_create(&server, NULL, take_now_and_then, &race), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate, &race), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&race.over, true);
    pthread_join(server, NULL);
    fixture_stop(&race.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_memory_serves_the_next_allocation),
        cmocka_unit_test(a_connection_keeps_nothing_unless_it_is_told_to),
        cmocka_unit_test(a_server_that_cannot_take_it_back_gets_it_at_once),
        cmocka_unit_test(a_block_serves_what_it_does_not_exceed_by_much),
        cmocka_unit_test(memory_that_work_may_use_waits_for_that),
        cmocka_unit_test(what_the_server_has_taken_is_not_used),
        cmocka_unit_test(the_oldest_gives_way),
        cmocka_unit_test(half_of_the_limit_is_kept_at_most),
        cmocka_unit_test(a_trim_gives_all_of_it_back),
        cmocka_unit_test(a_block_is_nobodys_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
