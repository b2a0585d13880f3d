/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* bill: each use is in one line, and memory counts for as long as it was held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/ipc/usage_counts.h"
#include "server/supervisor/account/bill.h"
#include "server/supervisor/account/quota.h"

#define SECOND_US UINT64_C(1000000)

static void lines_add_up_to_the_whole(void **state)
{
    (void)state;
    struct bill bill = {0};
    struct bill_sums first, second;
    bill_begin(&bill, 10);
    bill_note(&bill, &(struct bill_counts){.launches = 3, .copied_bytes = 100, .gpu_ns = 1000});
    bill_take(&bill, &first);
    bill_note(&bill, &(struct bill_counts){.launches = 2, .copied_bytes = 90, .gpu_ns = 900});
    bill_note(&bill, &(struct bill_counts){.launches = 8, .copied_bytes = 100, .gpu_ns = 1500});
    bill_share(&bill, 4);
    bill_note(&bill, &(struct bill_counts){.launches = 8, .copied_bytes = 100, .gpu_ns = 1600});
    bill_take(&bill, &second);
    assert_int_equal(first.used.launches, 3);
    assert_int_equal(second.used.launches, 5);
    assert_int_equal(first.used.copied_bytes, 100);
    assert_int_equal(second.used.copied_bytes, 0);
    assert_int_equal(second.used.gpu_ns, 600);
    assert_int_equal(first.sm_ns, 10000);
    assert_int_equal(second.sm_ns, 500 * 10 + 100 * 4);
    assert_int_equal(second.begun_us, first.ended_us);
    assert_int_equal(bill.lines, 2);
}

/* The clock said a year later when the line began, five seconds ago. */
static void a_clock_that_is_set_back_moves_no_use_into_the_future(void **state)
{
    (void)state;
    struct bill bill = {0};
    struct bill_sums first, second;
    bill_begin(&bill, 1);
    const uint64_t began = bill.begun_us;
    bill.begun_us += 365 * 86400 * SECOND_US;
    bill.begun_at -= 5 * SECOND_US * 1000;
    bill_take(&bill, &first);
    assert_in_range(first.begun_us, began - 5 * SECOND_US - 1, first.ended_us - 5 * SECOND_US);
    bill_take(&bill, &second);
    assert_int_equal(second.begun_us, first.ended_us);
}

/* As if so much time had passed since the level was looked at. */
static void pass(struct bill_level *level, uint64_t us)
{
    level->at_us -= us;
}

/* The test itself takes less than a second. */
static void memory_counts_for_as_long_as_it_is_held(void **state)
{
    (void)state;
    struct bill bill = {0};
    struct bill_sums sums;
    struct quota quota;
    struct charge charge = CHARGE_NONE, other = CHARGE_NONE;
    quota_open(&quota, "memory", UINT64_MAX, NULL);
    quota.level = &bill.memory;
    assert_int_equal(quota_charge(&quota, &charge, 5000, NULL), 0);
    pass(&bill.memory, 7 * SECOND_US);
    bill_begin(&bill, 1); /* what was before is in no line */
    pass(&bill.memory, 3 * SECOND_US / 2);
    assert_int_equal(quota_charge(&quota, &other, 1 << 20, NULL), 0);
    pass(&bill.memory, 2 * SECOND_US);
    quota_return(&other);
    bill_take(&bill, &sums);
    assert_in_range(sums.memory_byte_seconds, 7500 + 2 * (5000 + (1 << 20)),
                    7500 + 3 * (5000 + (1 << 20)));
    assert_int_equal(sums.memory_peak, 5000 + (1 << 20));
    pass(&bill.memory, SECOND_US);
    bill_take(&bill, &sums);
    assert_in_range(sums.memory_byte_seconds, 5000, 10000);
    assert_int_equal(sums.memory_peak, 5000);
    quota_return(&charge);
    assert_int_equal(bill.memory.bytes, 0);
    quota_close(&quota);
}

/* A GPU's memory for a year, in microseconds, has more than 64 bits. */
static void a_year_of_a_whole_gpu_does_not_overflow(void **state)
{
    (void)state;
    struct bill_level level = {0};
    const uint64_t bytes = UINT64_C(288) << 30, seconds = 365 * 86400;
    bill_level_set(&level, bytes);
    /* The machine has not run for so long. */
    level.bytes = bytes;
    level.byte_seconds = bytes * (seconds - 10);
    pass(&level, 10 * SECOND_US);
    bill_level_set(&level, 0);
    assert_in_range(level.byte_seconds, bytes * seconds, bytes * (seconds + 1));
    bill_level_set(NULL, 1);
}

static void a_program_that_only_asked_has_no_line(void **state)
{
    (void)state;
    struct bill bill = {0};
    struct bill_sums sums;
    bill_begin(&bill, 1);
    bill_level_set(&bill.host_memory, 4096); /* as its rings take */
    bill_take(&bill, &sums);
    assert_true(bill_is_nothing(&bill, &sums));
    bill_note(&bill, &(struct bill_counts){.copies = 1});
    bill_take(&bill, &sums);
    assert_false(bill_is_nothing(&bill, &sums));
    bill = (struct bill){0};
    bill_begin(&bill, 1);
    bill.begun_at -= UINT64_C(11000000000);
    bill_take(&bill, &sums);
    assert_false(bill_is_nothing(&bill, &sums)); /* its share was nobody else's */
}

static void counts_are_found_by_client(void **state)
{
    (void)state;
    struct usage_counts_table *table = calloc(1, sizeof *table);
    struct usage_counts counts;
    assert_non_null(table);
    assert_false(usage_counts_read(table, 0, &counts));
    usage_counts_begin(table);
    assert_false(usage_counts_read(table, 5, &counts));
    for (uint64_t i = 1; i <= 3; i++)
        usage_counts_write(table, &(struct usage_counts){.client = 5, .launches = i, .gpu_ns = 7});
    usage_counts_write(table, &(struct usage_counts){.client = 6, .launches = 9});
    assert_true(usage_counts_read(table, 5, &counts));
    assert_int_equal(counts.launches, 3);
    assert_int_equal(counts.gpu_ns, 7);
    usage_counts_write(table, &(struct usage_counts){.client = 5 + USAGE_COUNTS_ROWS});
    assert_false(usage_counts_read(table, 5, &counts));
    table->form++;
    assert_false(usage_counts_read(table, 6, &counts));
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_add_up_to_the_whole),
        cmocka_unit_test(a_clock_that_is_set_back_moves_no_use_into_the_future),
        cmocka_unit_test(memory_counts_for_as_long_as_it_is_held),
        cmocka_unit_test(a_year_of_a_whole_gpu_does_not_overflow),
        cmocka_unit_test(a_program_that_only_asked_has_no_line),
        cmocka_unit_test(counts_are_found_by_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
