/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Preloaded into a test program, this runs only the case that TEST_CASE names. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void only(void)
{
    cmocka_set_test_filter(getenv("TEST_CASE"));
    /* The programs that the test starts must not have it preloaded. */
    unsetenv("LD_PRELOAD");
}
