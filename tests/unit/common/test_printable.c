/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/printable.h"

static void control_characters_are_replaced_and_nothing_else(void **state)
{
    (void)state;
    char all[256], text[] = "a\x1b[31m\r\n\x7f \xc3\xa9~";
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = 0;
    printable_replace(all);
    for (int i = 1; i < 256; i++)
        assert_int_equal(all[i - 1], i < 32 || i == 127 ? '?' : (char)i);
    assert_int_equal(all[255], 0);
    printable_replace(text);
    assert_string_equal(text, "a?[31m??? \xc3\xa9~");
}

static void an_empty_text_stays_empty(void **state)
{
    (void)state;
    char text[2] = {0, '\n'};
    printable_replace(text);
    assert_int_equal(text[1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_replaced_and_nothing_else),
        cmocka_unit_test(an_empty_text_stays_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
