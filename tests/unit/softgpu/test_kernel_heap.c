/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The heap of kernels against a judge that has one byte for each 16 bytes of the heap, and shares
 * nothing with it: what the heap gives must lie in it, apart from all other blocks, and it may only
 * refuse where nothing fits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/memory/kernel_heap.h"
#include "tests/support/seed.h"

enum { UNIT = 16, GAP = 1 };

/* Knuth's linear congruential generator (MMIX), whose high bits are the better ones. */
static uint64_t draw(uint64_t *state)
{
    uint64_t drawn = 0;

    for (int i = 0; i < 2; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        drawn = drawn << 32 | *state >> 32;
    }
    return drawn;
}

struct fixture {
    struct kernel_heap *heap;
    void *blocks, *records;
    uint64_t base, bytes;
};

static void begin(struct fixture *f, uint64_t bytes)
{
    const uint64_t record_bytes = kernel_heap_record_bytes(bytes);

    f->blocks = aligned_alloc(4096, kernel_heap_block_bytes(bytes));
    f->records = aligned_alloc(4096, record_bytes);
    assert_non_null(f->blocks);
    assert_non_null(f->records);
    memset(f->records, 0, record_bytes);
    f->base = (uint64_t)(uintptr_t)f->blocks;
    f->bytes = bytes;
    f->heap = kernel_heap_make(f->records, f->base, bytes, true);
    assert_ptr_equal(f->heap, f->records);
}

static void end(struct fixture *f)
{
    free(f->blocks);
    free(f->records);
}

static uint64_t take_aligned(struct fixture *f, uint64_t size, uint64_t alignment)
{
    kernel_heap_lock(f->heap);
    const uint64_t address = kernel_heap_alloc(f->heap, size, alignment);
    kernel_heap_unlock(f->heap);
    return address;
}

static uint64_t take(struct fixture *f, uint64_t size)
{
    return take_aligned(f, size, 16);
}

static enum kernel_heap_freed give(struct fixture *f, uint64_t address)
{
    kernel_heap_lock(f->heap);
    const enum kernel_heap_freed result = kernel_heap_free(f->heap, address);
    kernel_heap_unlock(f->heap);
    return result;
}

/* ---- the judge ------------------------------------------------------------------------------ */

enum { JUDGED = 16 << 10, UNITS = JUDGED / UNIT + 1, BLOCKS = 400 };

struct block {
    uint64_t address;
    uint32_t units; /* 0: of size 0 */
    bool there;
};

static uint8_t owned[UNITS + 2]; /* 1: a block's; 2: a gap's */
static struct block blocks[BLOCKS];

static uint32_t unit_of(const struct fixture *f, uint64_t address)
{
    return (uint32_t)((address - f->base) / UNIT);
}

/* A block of size 0 has one unit that nobody may use. */
static uint32_t span_of(uint32_t units)
{
    return (units ? units : 1) + GAP;
}

static bool has_room(uint32_t units)
{
    uint32_t run = 0;

    for (uint32_t at = 0; at < UNITS; at++) {
        run = owned[at] ? 0 : run + 1;
        if (run >= units)
            return true;
    }
    return false;
}

/* A unit alone is never a span, so one may be lost on each side of a block; and a block that is to
 * be aligned may have to begin a whole step later. */
static uint32_t slack(uint64_t alignment)
{
    return alignment > UNIT ? (uint32_t)(alignment / UNIT) + 2 : 1;
}

static void judge_taken(struct fixture *f, struct block *block, uint64_t size, uint64_t alignment)
{
    const uint32_t units = (uint32_t)((size + UNIT - 1) / UNIT), all = span_of(units);
    const uint64_t address = take_aligned(f, size, alignment);

    if (!address) {
        assert_false(has_room(all + slack(alignment)));
        return;
    }
    const uint32_t at = unit_of(f, address);
    assert_true(address >= f->base && at + all <= UNITS);
    assert_int_equal(address % alignment, 0);
    assert_int_equal(address % UNIT, 0);
    for (uint32_t i = 0; i < all; i++) {
        assert_int_equal(owned[at + i], 0);
        owned[at + i] = i < units ? 1 : 2;
    }
    *block = (struct block){.address = address, .units = units, .there = true};
    memset((void *)(uintptr_t)address, (int)(block - blocks), (size_t)units * UNIT);
}

static void judge_given(struct fixture *f, struct block *block)
{
    const uint32_t at = unit_of(f, block->address), all = span_of(block->units);
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)block->address;

    /* No block was given out twice, and no record lies in one. */
    for (size_t i = 0; i < (size_t)block->units * UNIT; i++)
        assert_int_equal(bytes[i], (uint8_t)(block - blocks));
    assert_int_equal(give(f, block->address), KERNEL_HEAP_FREED);
    memset(&owned[at], 0, all);
    block->there = false;
    assert_int_equal(give(f, block->address), KERNEL_HEAP_FREED_BEFORE);
}

static void judge_access(const struct fixture *f, uint64_t random)
{
    const uint32_t at = (uint32_t)(random % JUDGED), bytes = 1 + (uint32_t)(random >> 32) % UNIT;
    bool good = true;

    for (uint32_t i = at / UNIT; i <= (at + bytes - 1) / UNIT; i++)
        good = good && owned[i] == 1;
    assert_int_equal(kernel_heap_allows(f->heap, f->base + at, bytes), good);
}

static void judge_round(struct fixture *f, uint64_t *state)
{
    struct block *block = &blocks[draw(state) % BLOCKS];
    const uint64_t kind = draw(state) % 16;
    uint64_t size = draw(state) % 200, alignment = 16;

    if (block->there) {
        judge_given(f, block);
        return;
    }
    if (kind == 0)
        size = draw(state) % 4096;
    else if (kind == 1)
        size = draw(state) % (2 * (uint64_t)JUDGED);
    else if (kind < 5)
        alignment = UINT64_C(1) << (draw(state) % 12);
    judge_taken(f, block, size, alignment);
    judge_access(f, draw(state));
}

/* Once all is freed, the heap is whole again. */
static void judge_empty(struct fixture *f)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].there)
            judge_given(f, &blocks[i]);
    assert_int_equal(take(f, JUDGED), f->base);
    assert_int_equal(give(f, f->base), KERNEL_HEAP_FREED);
}

static void any_order_of_calls_keeps_blocks_apart_and_finds_room_that_is_there(void **unused)
{
    struct fixture f;
    uint64_t state = seed_draw();

    (void)unused;
    begin(&f, JUDGED);
    for (int i = 0; i < 40000; i++) {
        judge_round(&f, &state);
        if (i % 5000 == 4999)
            judge_empty(&f);
    }
    end(&f);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void a_heap_gives_all_of_its_bytes_and_no_more(void **state)
{
    static const uint64_t sizes[] = {1, 15, 16, 17, 4096, 8 << 20};
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        begin(&f, sizes[i]);
        assert_int_equal(take(&f, (sizes[i] + 15) / 16 * 16 + 1), 0);
        assert_int_equal(take(&f, sizes[i]), f.base);
        assert_int_equal(take(&f, 1), 0);
        assert_int_equal(give(&f, f.base), KERNEL_HEAP_FREED);
        assert_int_equal(take(&f, sizes[i]), f.base);
        end(&f);
    }
}

static void sizes_beyond_the_heap_are_refused(void **state)
{
    static const uint64_t sizes[] = {4097,           UINT32_MAX,      UINT64_C(1) << 32,
                                     INT64_MAX,      UINT64_MAX - 15, UINT64_MAX - 16,
                                     UINT64_MAX - 1, UINT64_MAX};
    struct fixture f;

    (void)state;
    begin(&f, 4096);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned log = 4; log < 64; log++)
            assert_int_equal(take_aligned(&f, sizes[i], UINT64_C(1) << log), 0);
    for (unsigned log = 13; log < 64; log++) {
        const uint64_t address = take_aligned(&f, 16, UINT64_C(1) << log);

        if (!address)
            continue;
        assert_int_equal(address % (UINT64_C(1) << log), 0);
        assert_int_equal(give(&f, address), KERNEL_HEAP_FREED);
    }
    assert_int_equal(take(&f, 4096), f.base);
    end(&f);
}

static void an_empty_heap_has_room_for_nothing(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 0);
    assert_int_equal(take(&f, 17), 0);
    assert_int_equal(give(&f, f.base), KERNEL_HEAP_NO_BLOCK);
    end(&f);
}

static void a_block_of_size_0_has_an_address_and_no_byte(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 4096);
    const uint64_t one = take(&f, 0), other = take(&f, 0);
    assert_true(one && other && one != other);
    assert_false(kernel_heap_allows(f.heap, one, 1));
    assert_int_equal(give(&f, one), KERNEL_HEAP_FREED);
    assert_int_equal(give(&f, one), KERNEL_HEAP_FREED_BEFORE);
    assert_int_equal(give(&f, other), KERNEL_HEAP_FREED);
    end(&f);
}

static void what_is_no_block_is_not_freed_and_told_apart(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f, 4096);
    const uint64_t block = take(&f, 64);
    assert_int_equal(give(&f, block + 16), KERNEL_HEAP_INSIDE);
    assert_int_equal(give(&f, block + 1), KERNEL_HEAP_INSIDE);
    assert_int_equal(give(&f, block + 64), KERNEL_HEAP_NO_BLOCK); /* the gap */
    assert_int_equal(give(&f, block + 1024), KERNEL_HEAP_NO_BLOCK);
    assert_int_equal(give(&f, f.base - 16), KERNEL_HEAP_NO_BLOCK);
    assert_int_equal(give(&f, f.base + 65536), KERNEL_HEAP_NO_BLOCK);
    assert_int_equal(give(&f, 16), KERNEL_HEAP_NO_BLOCK);
    assert_int_equal(give(&f, UINT64_MAX), KERNEL_HEAP_NO_BLOCK);
    assert_int_equal(give(&f, block), KERNEL_HEAP_FREED);
    assert_int_equal(give(&f, block), KERNEL_HEAP_FREED_BEFORE);
    assert_int_equal(give(&f, block + 16), KERNEL_HEAP_NO_BLOCK);
    end(&f);
}

static void a_freed_block_rests_before_it_is_used_again(void **state)
{
    enum { SIZE = 1008, BYTES = 64 << 10, ROUNDS = BYTES / 4 / (SIZE + UNIT) - 1 };
    struct fixture f;

    (void)state;
    begin(&f, BYTES);
    const uint64_t first = take(&f, SIZE);
    assert_int_equal(give(&f, first), KERNEL_HEAP_FREED);
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t next = take(&f, SIZE);

        assert_true(next && next != first);
        assert_false(kernel_heap_allows(f.heap, first, 1));
        assert_int_equal(give(&f, next), KERNEL_HEAP_FREED);
    }
    /* Where nothing else is left it does not rest. */
    assert_int_equal(take(&f, BYTES), f.base);
    end(&f);
}

static void a_new_block_has_no_zeros_at_its_ends(void **state)
{
    struct fixture f;
    uint64_t word;

    (void)state;
    begin(&f, 4096);
    const uint64_t block = take(&f, 100);
    memcpy(&word, (void *)(uintptr_t)block, sizeof(word));
    assert_int_not_equal(word, 0);
    memcpy(&word, (void *)(uintptr_t)(block + 104), sizeof(word));
    assert_int_not_equal(word, 0);
    end(&f);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, OWN = 64, ROUNDS = 20000 };

struct worker {
    struct fixture *f;
    uint64_t state;
    uint8_t name;
    pthread_t thread;
};

static bool has_name(uint64_t address, size_t size, uint8_t name)
{
    const uint8_t *bytes = (const uint8_t *)(uintptr_t)address;

    for (size_t i = 0; i < size; i++)
        if (bytes[i] != name)
            return false;
    return true;
}

/* Returns NULL, or a text that says what went wrong: only the first thread may end the test. */
static void *work(void *argument)
{
    struct worker *w = argument;
    uint64_t own[OWN] = {0};
    size_t sizes[OWN];

    for (int i = 0; i < ROUNDS; i++) {
        const size_t k = draw(&w->state) % OWN;

        if (!own[k]) {
            sizes[k] = 1 + draw(&w->state) % 100;
            own[k] = take(w->f, sizes[k]);
            if (!own[k])
                continue;
            if (!kernel_heap_allows(w->f->heap, own[k], (uint32_t)sizes[k]))
                return "a new block is no block";
            memset((void *)(uintptr_t)own[k], w->name, sizes[k]);
            continue;
        }
        if (!has_name(own[k], sizes[k], w->name))
            return "another thread has the same block";
        if (give(w->f, own[k]) != KERNEL_HEAP_FREED)
            return "a block could not be freed";
        own[k] = 0;
    }
    for (size_t k = 0; k < OWN; k++)
        if (own[k] && give(w->f, own[k]) != KERNEL_HEAP_FREED)
            return "a block could not be freed in the end";
    return NULL;
}

static void threads_never_have_the_same_block(void **unused)
{
    struct worker workers[THREADS];
    struct fixture f;
    uint64_t state = seed_draw();

    (void)unused;
    begin(&f, 16 << 10); /* too little for all, so it is full at times */
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = &f, .state = draw(&state), .name = (uint8_t)(i + 1)};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *said;

        assert_int_equal(pthread_join(workers[i].thread, &said), 0);
        if (said)
            fail_msg("%s", (const char *)said);
    }
    assert_int_equal(take(&f, 16 << 10), f.base);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_calls_keeps_blocks_apart_and_finds_room_that_is_there),
        cmocka_unit_test(a_heap_gives_all_of_its_bytes_and_no_more),
        cmocka_unit_test(sizes_beyond_the_heap_are_refused),
        cmocka_unit_test(an_empty_heap_has_room_for_nothing),
        cmocka_unit_test(a_block_of_size_0_has_an_address_and_no_byte),
        cmocka_unit_test(what_is_no_block_is_not_freed_and_told_apart),
        cmocka_unit_test(a_freed_block_rests_before_it_is_used_again),
        cmocka_unit_test(a_new_block_has_no_zeros_at_its_ends),
        cmocka_unit_test(threads_never_have_the_same_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
