/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "server/supervisor/account/heap.h"

#define BASE  UINT64_C(0x200000000000)
#define MIB   (UINT64_C(1) << 20)
#define GRAIN (2 * MIB)

static struct heap_region *slab(struct heap *heap, uint64_t bytes)
{
    struct heap_region *region;
    assert_int_equal(heap_region_add(heap, bytes, true, &region), 0);
    assert_null(heap_region_ready(region));
    return region;
}

static void drop(struct heap_region *region)
{
    heap_region_withdraw(region);
    heap_region_remove(region);
}

static void sizes_at_the_edges(void **state)
{
    (void)state;
    struct heap heap;
    struct heap_block *block;
    assert_int_equal(heap_open(&heap, BASE, 64 * MIB, GRAIN), 0);
    assert_int_equal(heap_round(UINT64_MAX), 0);
    assert_int_equal(heap_round(UINT64_MAX - 511), UINT64_MAX - 511);
    assert_int_equal(heap_round(0), 0);
    assert_int_equal(heap_round(513), 1024);
    assert_int_equal(heap_round_region(&heap, UINT64_MAX - 1), 0);
    assert_int_equal(heap_round_region(&heap, GRAIN + 1), 2 * GRAIN);
    struct heap_region *region = slab(&heap, GRAIN);
    assert_int_equal(heap_take(&heap, UINT64_MAX, &block), HEAP_FULL);
    assert_int_equal(heap_take(&heap, 0, &block), HEAP_FULL);
    assert_int_equal(heap_take(&heap, GRAIN + 1, &block), HEAP_FULL);
    assert_int_equal(heap_take(&heap, GRAIN, &block), 0);
    assert_int_equal(block->address, BASE);
    struct heap_block *more;
    assert_int_equal(heap_take(&heap, 1, &more), HEAP_FULL);
    heap_block_retire(block);
    assert_int_equal(heap_take(&heap, 1, &more), HEAP_FULL); /* retired is not free */
    assert_ptr_equal(heap_block_reclaim(block), region);
    drop(region);
    heap_close(&heap);
}

static void ranges_that_are_no_window_are_refused(void **state)
{
    (void)state;
    struct heap heap;
    assert_int_equal(heap_open(&heap, BASE + 1, 64 * MIB, GRAIN), -EINVAL);
    assert_int_equal(heap_open(&heap, BASE, 63 * MIB, GRAIN), -EINVAL);
    assert_int_equal(heap_open(&heap, BASE, 0, GRAIN), -EINVAL);
    assert_int_equal(heap_open(&heap, BASE, 64 * MIB, 0), -EINVAL);
    assert_int_equal(heap_open(&heap, BASE, 64 * MIB, 3 * MIB), -EINVAL);
}

static void a_region_fits_exactly_once(void **state)
{
    (void)state;
    struct heap heap;
    struct heap_region *one, *two, *three;
    struct heap_block *block;
    assert_int_equal(heap_open(&heap, BASE, 8 * MIB, GRAIN), 0);
    assert_int_equal(heap_region_add(&heap, 10 * MIB, false, &one), HEAP_FULL);
    assert_int_equal(heap_region_add(&heap, 3 * MIB, false, &one), HEAP_FULL); /* no whole grain */
    assert_int_equal(heap_region_add(&heap, 4 * MIB, false, &one), 0);
    assert_int_equal(heap_region_add(&heap, 4 * MIB, false, &two), 0);
    assert_int_equal(heap_region_add(&heap, 2 * MIB, false, &three), HEAP_FULL);
    block = heap_region_ready(one);
    assert_int_equal(block->address, BASE);
    assert_ptr_equal(heap_find(&heap, BASE), block);
    assert_null(heap_find(&heap, BASE + 512));
    assert_null(heap_find(&heap, BASE + 4 * MIB)); /* still mapping */
    heap_region_remove(two);
    assert_int_equal(heap_region_add(&heap, 2 * MIB, false, &three), 0);
    assert_int_equal(three->address, BASE + 4 * MIB);
    heap_block_retire(block);
    drop(one);
    heap_region_remove(three);
    heap_close(&heap);
}

/* Of an oracle with a byte for each grain of the window: where a region of so many grains goes. -1:
 * nowhere. */
static int place_of(const bool *taken, int grains, int count, bool from_end)
{
    for (int i = 0; i + count <= grains; i++) {
        int at = from_end ? grains - count - i : i, free_ones = 0;
        while (free_ones < count && !taken[at + free_ones])
            free_ones++;
        if (free_ones == count)
            return at;
    }
    return -1;
}

static void regions_fill_the_window_from_either_end(void **state)
{
    (void)state;
    enum { GRAINS = 32, STEPS = 2000 };
    for (int from_end = 0; from_end < 2; from_end++) {
        struct heap heap;
        struct heap_region *held[GRAINS] = {0};
        bool taken[GRAINS] = {false};
        unsigned seed = 20262;
        assert_int_equal(heap_open(&heap, BASE, GRAINS * GRAIN, GRAIN), 0);
        heap.from_end = from_end;
        for (int step = 0; step < STEPS + GRAINS; step++) {
            int i = step < STEPS ? rand_r(&seed) % GRAINS : step - STEPS;
            if (held[i]) {
                memset(taken + (held[i]->address - BASE) / GRAIN, false, held[i]->bytes / GRAIN);
                heap_region_remove(held[i]);
                held[i] = NULL;
            } else if (step < STEPS) {
                int count = 1 + rand_r(&seed) % 6, at = place_of(taken, GRAINS, count, from_end);
                int result = heap_region_add(&heap, (uint64_t)count * GRAIN, false, &held[i]);
                assert_int_equal(result, at < 0 ? HEAP_FULL : 0);
                if (at < 0)
                    continue;
                assert_int_equal(held[i]->address, BASE + (uint64_t)at * GRAIN);
                memset(taken + at, true, (size_t)count);
            }
        }
        heap_close(&heap);
    }
}

/* The oracle: one byte of state a unit of 512 bytes, filled and searched naively. */
struct oracle {
    uint8_t *units;
    size_t count;
};

static void oracle_fill(struct oracle *oracle, uint64_t address, uint64_t bytes, uint8_t from,
                        uint8_t to)
{
    size_t first = (address - BASE) / 512;
    assert_true(first + bytes / 512 <= oracle->count);
    for (size_t i = first; i < first + bytes / 512; i++) {
        assert_int_equal(oracle->units[i], from);
        oracle->units[i] = to;
    }
}

static uint64_t oracle_longest(const struct oracle *oracle)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < oracle->count; i++) {
        run = oracle->units[i] == 1 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest * 512;
}

enum { SLAB_MIB = 8, HELD = 400 };

static void random_work_agrees_with_an_oracle(void **state)
{
    (void)state;
    struct heap heap;
    struct oracle oracle = {.count = 64 * MIB / 512};
    oracle.units = calloc(oracle.count, 1); /* 0 nothing, 1 free, 2 used, 3 retired */
    assert_non_null(oracle.units);
    assert_int_equal(heap_open(&heap, BASE, 64 * MIB, GRAIN), 0);
    struct heap_region *region = slab(&heap, SLAB_MIB * MIB);
    oracle_fill(&oracle, region->address, region->bytes, 0, 1);
    struct heap_block *held[HELD] = {0};
    struct heap_block *retired[HELD] = {0};
    unsigned seed = 20261;
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand_r(&seed) % HELD;
        if (retired[i]) {
            oracle_fill(&oracle, retired[i]->address, retired[i]->bytes, 3, 1);
            struct heap_region *empty = heap_block_reclaim(retired[i]);
            retired[i] = NULL;
            assert_true(!empty || oracle_longest(&oracle) == SLAB_MIB * MIB);
        } else if (held[i]) {
            assert_ptr_equal(heap_find(&heap, held[i]->address), held[i]);
            oracle_fill(&oracle, held[i]->address, held[i]->bytes, 2, 3);
            heap_block_retire(held[i]);
            assert_null(heap_find(&heap, held[i]->address));
            retired[i] = held[i];
            held[i] = NULL;
        } else {
            uint64_t count = 1 + (uint64_t)rand_r(&seed) % (1u << (rand_r(&seed) % 18));
            int result = heap_take(&heap, count, &held[i]);
            if (result == HEAP_FULL) {
                assert_true(oracle_longest(&oracle) < heap_round(count));
                continue;
            }
            assert_int_equal(result, 0);
            assert_int_equal(held[i]->bytes, heap_round(count));
            assert_int_equal(held[i]->address % 512, 0);
            oracle_fill(&oracle, held[i]->address, held[i]->bytes, 1, 2);
        }
    }
    struct heap_region *empty = NULL;
    for (unsigned i = 0; i < HELD; i++) {
        if (held[i]) {
            heap_block_retire(held[i]);
            retired[i] = held[i];
        }
        if (retired[i]) {
            assert_null(empty);
            empty = heap_block_reclaim(retired[i]);
        }
    }
    assert_ptr_equal(empty, region);
    drop(region);
    heap_close(&heap);
    free(oracle.units);
}

static void retired_blocks_are_counted_until_they_are_free(void **state)
{
    (void)state;
    struct heap heap;
    struct heap_block *blocks[4];
    assert_int_equal(heap_open(&heap, BASE, 64 * MIB, GRAIN), 0);
    struct heap_region *region = slab(&heap, 2 * MIB);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(heap_take(&heap, 512, &blocks[i]), 0);
    for (unsigned i = 0; i < 3; i++)
        heap_block_retire(blocks[i]);
    assert_int_equal(heap.used_blocks, 1);
    assert_int_equal(heap.retired_blocks, 3);
    heap_block_reclaim(blocks[1]);
    assert_int_equal(heap.retired_blocks, 2);
    heap_region_clear(region);
    assert_int_equal(heap.used_blocks, 0);
    drop(region);
    assert_int_equal(heap.retired_blocks, 0);
    heap_close(&heap);
}

/* A client leaves very many holes that are a little too small, and asks for a little more. */
static void holes_of_the_wrong_size_are_not_all_looked_at(void **state)
{
    (void)state;
    struct heap heap;
    enum { HOLES = 48 * 1024, HOLE = 16 * 512, FEW = 512 };
    struct heap_block **held = calloc(HOLES, sizeof(struct heap_block *)), *block, *last = NULL;
    assert_non_null(held);
    assert_int_equal(heap_open(&heap, BASE, 1024 * MIB, GRAIN), 0);
    struct heap_region *region = slab(&heap, 512 * MIB);
    for (unsigned i = 0; i < HOLES; i++) {
        assert_int_equal(heap_take(&heap, HOLE, &held[i]), 0);
        assert_int_equal(heap_take(&heap, 512, &block), 0);
    }
    while (heap_take(&heap, 512 * 17, &block) == 0)
        last = block;
    assert_non_null(last);
    for (unsigned i = 0; i < HOLES; i++) {
        heap_block_retire(held[i]);
        heap_block_reclaim(held[i]);
    }
    clock_t began = clock();
    for (unsigned i = 0; i < FEW; i++)
        assert_int_equal(heap_take(&heap, 512 * 17, &block), HEAP_FULL);
    /* All of them each time would be 25 million steps through cold memory. */
    assert_true(clock() - began < CLOCKS_PER_SEC / 20);
    free(held);
    heap_region_clear(region);
    drop(region);
    heap_close(&heap);
}

static void slabs_grow_by_doubling(void **state)
{
    (void)state;
    struct heap heap;
    assert_int_equal(heap_open(&heap, BASE, 1024 * MIB, GRAIN), 0);
    struct heap_region *regions[8];
    static const unsigned expected[8] = {2, 4, 8, 16, 32, 64, 64, 64};
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(heap.next_slab, expected[i] * MIB);
        regions[i] = slab(&heap, heap.next_slab);
    }
    for (unsigned i = 0; i < 8; i++)
        drop(regions[i]);
    heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_at_the_edges),
        cmocka_unit_test(ranges_that_are_no_window_are_refused),
        cmocka_unit_test(a_region_fits_exactly_once),
        cmocka_unit_test(regions_fill_the_window_from_either_end),
        cmocka_unit_test(random_work_agrees_with_an_oracle),
        cmocka_unit_test(retired_blocks_are_counted_until_they_are_free),
        cmocka_unit_test(holes_of_the_wrong_size_are_not_all_looked_at),
        cmocka_unit_test(slabs_grow_by_doubling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
