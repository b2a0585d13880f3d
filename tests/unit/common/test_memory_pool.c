/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* memory_pool over calls that the test watches: each has a limit of bytes, and marks that the test
 * lets its streams reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/cuda/memory_pool.h"

enum { LIMIT = 1000, MARKS = 32 };

/* The other side of the calls. */
struct fake {
    size_t in_use, sizes[MARKS]; /* by address */
    unsigned allocated, released, followed, marks, dropped, trimmed;
    bool reached[MARKS];
};

static struct fake fake;
#define FIRST  ((cuda_stream)0x10)
#define SECOND ((cuda_stream)0x20)

static cuda_result fake_alloc(void *place, cuda_device_ptr *ptr, size_t size)
{
    assert_ptr_equal(place, &fake);
    if (size > LIMIT - fake.in_use)
        return CUDA_ERR_OUT_OF_MEMORY;
    assert_in_range(++fake.allocated, 1, MARKS - 1);
    fake.in_use += size;
    fake.sizes[fake.allocated] = size;
    *ptr = fake.allocated;
    return CUDA_OK;
}

static cuda_result fake_release(void *place, cuda_device_ptr ptr)
{
    assert_ptr_equal(place, &fake);
    assert_true(fake.sizes[ptr] > 0);
    fake.in_use -= fake.sizes[ptr];
    fake.sizes[ptr] = 0;
    fake.released++;
    return CUDA_OK;
}

static cuda_result fake_measure(void *place, cuda_device_ptr ptr, size_t *size)
{
    assert_ptr_equal(place, &fake);
    *size = ptr < MARKS ? fake.sizes[ptr] : 0;
    return *size ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

static cuda_result fake_mark(void *place, cuda_stream stream, cuda_event *mark)
{
    assert_ptr_equal(place, &fake);
    assert_non_null(stream);
    assert_in_range(++fake.marks, 1, MARKS - 1);
    *mark = (cuda_event)(uintptr_t)fake.marks;
    return CUDA_OK;
}

static cuda_result fake_follow(void *place, cuda_stream stream, cuda_event mark)
{
    assert_ptr_equal(place, &fake);
    assert_true(stream && mark);
    fake.followed++;
    return CUDA_OK;
}

static cuda_result fake_query(cuda_event mark)
{
    return fake.reached[(uintptr_t)mark] ? CUDA_OK : CUDA_ERR_NOT_READY;
}

static cuda_result fake_await(cuda_event mark)
{
    fake.reached[(uintptr_t)mark] = true;
    return CUDA_OK;
}

static void fake_drop(cuda_event mark)
{
    assert_true(mark != NULL);
    fake.dropped++;
}

static void fake_trim(void *place)
{
    assert_ptr_equal(place, &fake);
    fake.trimmed = fake.released;
}

static const struct memory_pool_calls calls = {fake_alloc, fake_release, fake_measure,
                                               fake_mark,  fake_follow,  fake_query,
                                               fake_await, fake_drop,    fake_trim};
static struct memory_pools pools = MEMORY_POOLS_INIT(pools, &calls);

static int begin(void **state)
{
    fake = (struct fake){0};
    *state = memory_pool_first(&pools, &fake);
    return *state ? 0 : -1;
}

/* Each mark that was made is dropped, whatever became of its block. */
static int end(void **state)
{
    memory_pool_retire(*state);
    memory_pool_forget(&pools, &fake);
    return list_is_empty(&pools.pools) && !pools.tree && atomic_load(&pools.freed) == 0 &&
                   fake.dropped == fake.marks
               ? 0
               : -1;
}

static cuda_device_ptr take(struct memory_pool *pool, size_t size, cuda_stream stream)
{
    cuda_device_ptr ptr = 0;
    assert_int_equal(memory_pool_alloc(pool, &ptr, size, stream), CUDA_OK);
    assert_ptr_equal(memory_pool_of(&pools, ptr), pool);
    return ptr;
}

static void give(struct memory_pool *pool, cuda_device_ptr ptr, cuda_stream stream)
{
    assert_int_equal(memory_pool_free(pool, ptr, stream), CUDA_OK);
    assert_null(memory_pool_of(&pools, ptr));
}

static uint64_t value_of(struct memory_pool *pool, int attribute)
{
    uint64_t value = 77;
    assert_int_equal(memory_pool_get(pool, attribute, &value), CUDA_OK);
    return value;
}

static void the_same_stream_gets_a_block_that_is_not_idle(void **state)
{
    cuda_device_ptr ptr = take(*state, 100, FIRST);
    give(*state, ptr, FIRST);
    assert_int_equal(take(*state, 100, FIRST), ptr);
    assert_int_equal(fake.allocated, 1);
    assert_int_equal(fake.followed, 1);
}

static void another_stream_gets_it_when_it_is_idle(void **state)
{
    cuda_device_ptr ptr = take(*state, 100, FIRST);
    give(*state, ptr, FIRST);
    assert_int_not_equal(take(*state, 100, SECOND), ptr);
    fake.reached[1] = true;
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_REUSE_OPPORTUNISTIC, 0), CUDA_OK);
    assert_int_not_equal(take(*state, 100, SECOND), ptr);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_REUSE_OPPORTUNISTIC, 1), CUDA_OK);
    assert_int_equal(take(*state, 100, SECOND), ptr);
    assert_int_equal(fake.followed, 1);
}

/* At most an eighth is wasted, and the smallest block that fits is taken. */
static void a_block_of_about_the_size_is_taken(void **state)
{
    cuda_device_ptr large = take(*state, 113, FIRST), small = take(*state, 102, FIRST);
    give(*state, large, FIRST);
    give(*state, small, FIRST);
    assert_int_not_equal(take(*state, 90, FIRST), small);
    assert_int_equal(take(*state, 100, FIRST), small);
    assert_int_not_equal(take(*state, 100, FIRST), large);
    assert_int_not_equal(take(*state, 114, FIRST), large);
    assert_int_equal(take(*state, 101, FIRST), large);
}

static void an_idle_device_keeps_as_much_as_the_threshold_says(void **state)
{
    cuda_device_ptr ptr[3];
    for (int i = 0; i < 3; i++)
        ptr[i] = take(*state, 100, FIRST);
    for (int i = 0; i < 3; i++)
        give(*state, ptr[i], FIRST);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_RELEASE_THRESHOLD, 200), CUDA_OK);
    memory_pool_settle(&pools, &fake);
    assert_int_equal(fake.released, 0); /* no stream has come so far */
    for (int i = 1; i <= 3; i++)
        fake.reached[i] = true;
    memory_pool_settle(&pools, &fake);
    assert_int_equal(fake.released, 1);
    assert_int_equal(fake.sizes[ptr[0]], 0); /* the oldest */
    assert_int_equal(fake.trimmed, 0);
    memory_pool_trim(*state, 100);
    assert_int_equal(fake.released, 2);
    assert_int_equal(fake.trimmed, 2); /* the calls', behind the pool's */
    memory_pool_trim(*state, 0);
    assert_int_equal(fake.in_use, 0);
}

static void short_memory_takes_blocks_back(void **state)
{
    cuda_device_ptr ptr = take(*state, 600, FIRST), other;
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_RELEASE_THRESHOLD, LIMIT), CUDA_OK);
    give(*state, ptr, FIRST);
    (void)take(*state, 900, SECOND); /* waits for the first stream */
    assert_int_equal(fake.released, 1);
    assert_false(memory_pool_give_back(&pools, &fake));
    assert_int_equal(memory_pool_alloc(*state, &other, 900, SECOND), CUDA_ERR_OUT_OF_MEMORY);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 900);
}

static void where_memory_is_short_a_stream_waits_for_a_busy_block(void **state)
{
    cuda_device_ptr ptr = take(*state, 600, FIRST);
    give(*state, ptr, FIRST);
    assert_int_equal(take(*state, 600, SECOND), ptr);
    assert_int_equal(fake.followed, 1);
    assert_int_equal(fake.released, 0);
    assert_false(fake.reached[1]); /* the caller did not wait */
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 600);
    assert_int_equal(value_of(*state, MEMORY_POOL_USED_CURRENT), 600);
    /* Only if the program lets it. */
    give(*state, ptr, SECOND);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_REUSE_INTERNAL, 0), CUDA_OK);
    assert_int_not_equal(take(*state, 600, FIRST), ptr);
    assert_int_equal(fake.released, 1);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 600);
}

static void a_block_is_freed_once(void **state)
{
    cuda_device_ptr ptr = take(*state, 100, FIRST);
    give(*state, ptr, FIRST);
    assert_int_equal(memory_pool_free(*state, ptr, FIRST), CUDA_ERR_INVALID_VALUE);
    assert_false(memory_pool_disown(&pools, ptr));
    assert_int_equal(memory_pool_free(*state, MARKS - 1, FIRST), CUDA_ERR_INVALID_VALUE);
    /* One that is freed at once leaves the pool. */
    ptr = take(*state, 100, FIRST);
    assert_true(memory_pool_disown(&pools, ptr));
    assert_null(memory_pool_of(&pools, ptr));
    assert_int_equal(value_of(*state, MEMORY_POOL_USED_CURRENT), 0);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 0);
    assert_true(memory_pool_disown(&pools, MARKS - 1)); /* nobody's: not free */
}

static void an_allocation_of_no_pool_is_released_and_not_given_out(void **state)
{
    cuda_device_ptr ptr;
    assert_int_equal(fake_alloc(&fake, &ptr, 100), CUDA_OK);
    give(*state, ptr, FIRST);
    assert_int_not_equal(take(*state, 100, FIRST), ptr);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 100);
    fake.reached[1] = true;
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_RELEASE_THRESHOLD, LIMIT), CUDA_OK);
    memory_pool_settle(&pools, &fake);
    assert_int_equal(fake.sizes[ptr], 0);
}

static void numbers_have_current_values_and_the_highest(void **state)
{
    cuda_device_ptr one = take(*state, 300, FIRST), two = take(*state, 200, FIRST);
    uint64_t value;
    give(*state, one, FIRST);
    assert_int_equal(value_of(*state, MEMORY_POOL_USED_CURRENT), 200);
    assert_int_equal(value_of(*state, MEMORY_POOL_USED_HIGH), 500);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 500);
    give(*state, two, FIRST);
    assert_true(memory_pool_give_back(&pools, &fake));
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_CURRENT), 0);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_HIGH), 500);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_RESERVED_HIGH, 0), CUDA_OK);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_USED_HIGH, 0), CUDA_OK);
    assert_int_equal(value_of(*state, MEMORY_POOL_RESERVED_HIGH), 0);
    assert_int_equal(value_of(*state, MEMORY_POOL_USED_HIGH), 0);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_USED_HIGH, 1), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(memory_pool_set(*state, MEMORY_POOL_USED_CURRENT, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(memory_pool_get(*state, 0, &value), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(memory_pool_get(*state, 9, &value), CUDA_ERR_INVALID_VALUE);
}

static void a_pool_with_a_limit_trims_before_it_refuses(void **state)
{
    struct memory_pool *pool = memory_pool_new(&pools, &fake, 250);
    cuda_device_ptr ptr = take(pool, 200, FIRST), other;
    (void)state;
    assert_int_equal(memory_pool_alloc(pool, &other, 51, FIRST), CUDA_ERR_OUT_OF_MEMORY);
    give(pool, ptr, FIRST);
    fake.reached[1] = true;
    ptr = take(pool, 250, FIRST);
    /* A retired pool goes with its last block. */
    memory_pool_retire(pool);
    assert_false(memory_pool_is(&pools, pool));
    assert_true(memory_pool_is(&pools, *state));
    give(*state, ptr, FIRST);
    assert_true(memory_pool_give_back(&pools, &fake));
    assert_ptr_equal(pools.pools.ends.next, pools.pools.ends.previous);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(the_same_stream_gets_a_block_that_is_not_idle),
        CASE(another_stream_gets_it_when_it_is_idle),
        CASE(a_block_of_about_the_size_is_taken),
        CASE(an_idle_device_keeps_as_much_as_the_threshold_says),
        CASE(short_memory_takes_blocks_back),
        CASE(where_memory_is_short_a_stream_waits_for_a_busy_block),
        CASE(a_block_is_freed_once),
        CASE(an_allocation_of_no_pool_is_released_and_not_given_out),
        CASE(numbers_have_current_values_and_the_highest),
        CASE(a_pool_with_a_limit_trims_before_it_refuses),
    };
    return cmocka_run_group_tests_name("memory_pool", tests, NULL, NULL);
}
