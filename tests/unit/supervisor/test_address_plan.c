/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/account/address_plan.h"

#define MIB    (UINT64_C(1) << 20)
#define GIB    (UINT64_C(1) << 30)
#define DEVICE UINT64_C(0x200000000000)
#define HOST   UINT64_C(0x300000000000)

static void arenas_must_be_one_bit_apart(void **state)
{
    (void)state;
    struct address_plan plan;
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, 16384 * GIB), 0);
    assert_int_equal(address_plan_open(&plan, DEVICE, DEVICE, GIB), -EINVAL);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST | GIB, GIB), -EINVAL);
    assert_int_equal(address_plan_open(&plan, DEVICE | 4096, HOST | 4096, GIB), -EINVAL);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, 3 * GIB), -EINVAL);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, 0), -EINVAL);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, UINT64_C(1) << 48), -EINVAL);
}

static void windows_fill_the_arena_and_no_more(void **state)
{
    (void)state;
    struct address_plan plan;
    struct address_window windows[16], extra = {0};
    memset(windows, 0, sizeof windows);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, GIB), 0);
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(address_plan_take(&plan, &windows[i], 64 * MIB, 0), 0);
        assert_int_equal(address_plan_device(&plan, &windows[i]), DEVICE + i * 64 * MIB);
        assert_int_equal(address_plan_host(&plan, &windows[i]), HOST + i * 64 * MIB);
    }
    assert_int_equal(address_plan_take(&plan, &extra, 16 * MIB, 0), ADDRESS_PLAN_FULL);
    address_plan_return(&plan, &windows[5]);
    address_plan_return(&plan, &windows[5]);
    assert_int_equal(address_plan_take(&plan, &extra, 128 * MIB, 0), ADDRESS_PLAN_FULL);
    assert_int_equal(address_plan_take(&plan, &extra, 64 * MIB, 0), 0);
    assert_int_equal(extra.offset, 5 * 64 * MIB);
    assert_int_equal(address_plan_take(&plan, &extra, 64 * MIB, 0), -EINVAL); /* held already */
    address_plan_return(&plan, &extra);
    for (unsigned i = 0; i < 16; i++)
        address_plan_return(&plan, &windows[i]);
    address_plan_close(&plan);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    struct address_plan plan;
    struct address_window window = {0};
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, GIB), 0);
    assert_int_equal(address_plan_take(&plan, &window, 0, 0), -EINVAL);
    assert_int_equal(address_plan_take(&plan, &window, 3 * MIB, 0), -EINVAL);
    assert_int_equal(address_plan_take(&plan, &window, UINT64_MAX, 0), -EINVAL);
    assert_int_equal(address_plan_take(&plan, &window, 2 * GIB, 0), ADDRESS_PLAN_FULL);
    assert_int_equal(address_plan_take(&plan, &window, UINT64_C(1) << 63, 0), ADDRESS_PLAN_FULL);
    assert_int_equal(address_plan_take(&plan, &window, GIB, 1), ADDRESS_PLAN_FULL);
    assert_int_equal(address_plan_take(&plan, &window, MIB, UINT64_MAX), ADDRESS_PLAN_FULL);
    assert_int_equal(address_plan_take(&plan, &window, GIB, 0), 0);
    address_plan_return(&plan, &window);
    address_plan_close(&plan);
}

/* The oracle marks every MiB with its owner. */
static void random_windows_never_overlap(void **state)
{
    (void)state;
    enum { WINDOWS = 60, UNITS = 1024 };
    static int owner[UNITS];
    struct address_plan plan;
    struct address_window windows[WINDOWS];
    unsigned seed = 7, refused = 0;
    memset(windows, 0, sizeof windows);
    memset(owner, 0, sizeof owner);
    assert_int_equal(address_plan_open(&plan, DEVICE, HOST, GIB), 0);
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i = (unsigned)rand_r(&seed) % WINDOWS;
        struct address_window *window = &windows[i];
        if (window->bytes) {
            for (uint64_t u = 0; u < window->bytes / MIB; u++)
                owner[window->offset / MIB + u] = 0;
            address_plan_return(&plan, window);
            continue;
        }
        uint64_t units = UINT64_C(1) << (rand_r(&seed) % 8);
        uint64_t from = (uint64_t)rand_r(&seed) % UNITS * (rand_r(&seed) % 2);
        int result = address_plan_take(&plan, window, units * MIB, from * MIB);
        if (result == 0) {
            assert_int_equal(window->offset % window->bytes, 0);
            assert_true(window->offset >= from * MIB);
            for (uint64_t u = 0; u < units; u++) {
                assert_int_equal(owner[window->offset / MIB + u], 0);
                owner[window->offset / MIB + u] = (int)i + 1;
            }
            continue;
        }
        assert_int_equal(result, ADDRESS_PLAN_FULL);
        refused++;
        for (uint64_t at = (from + units - 1) / units * units; at + units <= UNITS; at += units) {
            bool free = true;
            for (uint64_t u = 0; u < units; u++)
                free &= owner[at + u] == 0;
            assert_false(free);
        }
    }
    assert_true(refused > 100);
    for (unsigned i = 0; i < WINDOWS; i++)
        address_plan_return(&plan, &windows[i]);
    address_plan_close(&plan);
}

static void a_window_is_twice_the_larger_limit(void **state)
{
    (void)state;
    assert_int_equal(address_plan_size(64 * MIB, 16 * MIB, GIB), 128 * MIB);
    assert_int_equal(address_plan_size(64 * MIB + 1, 16 * MIB, GIB), 256 * MIB);
    assert_int_equal(address_plan_size(16 * MIB, 65 * MIB, GIB), 256 * MIB);
    assert_int_equal(address_plan_size(GIB, 0, GIB), GIB);
    assert_int_equal(address_plan_size(UINT64_MAX, 0, GIB), GIB);
    assert_int_equal(address_plan_size(UINT64_MAX / 2, 0, GIB), GIB);
    assert_int_equal(address_plan_size(0, 0, GIB), ADDRESS_PLAN_SMALLEST);
    assert_int_equal(address_plan_round(0), 1);
    assert_int_equal(address_plan_round(1), 1);
    assert_int_equal(address_plan_round(3), 4);
    assert_int_equal(address_plan_round(UINT64_C(1) << 63), UINT64_C(1) << 63);
    assert_int_equal(address_plan_round((UINT64_C(1) << 63) + 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_must_be_one_bit_apart),
        cmocka_unit_test(windows_fill_the_arena_and_no_more),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(random_windows_never_overlap),
        cmocka_unit_test(a_window_is_twice_the_larger_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
