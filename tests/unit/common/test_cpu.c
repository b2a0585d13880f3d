/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The instructions of this processor run, and change nothing that a program can see. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/cpu.h"

static void a_pause_returns(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        cpu_pause();
}

static void a_prefetch_changes_nothing_wherever_it_points(void **state)
{
    (void)state;
    _Alignas(64) static char line[128] = "as it was";
    for (unsigned i = 0; i < sizeof line; i++)
        cpu_prefetch_write(line + i);
    assert_string_equal(line, "as it was");
    /* Volatile, so that the compiler does not see where these lead. */
    volatile uintptr_t nowhere[] = {1, UINT64_C(0x7ff000000000)};
    cpu_prefetch_write((const void *)nowhere[0]);
    cpu_prefetch_write((const void *)nowhere[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_returns),
        cmocka_unit_test(a_prefetch_changes_nothing_wherever_it_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
