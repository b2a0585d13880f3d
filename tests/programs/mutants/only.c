/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Preloaded into a test program: of its cases it runs the one that TEST_CASE names. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <cmocka.h>

__attribute__((constructor)) static void only(void)
{
    cmocka_set_test_filter(getenv("TEST_CASE"));
    /* Not for the programs that the test starts. */
    unsetenv("LD_PRELOAD");
}
