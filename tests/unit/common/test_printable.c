/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/printable.h"

static void control_characters_are_replaced(void **state)
{
    (void)state;
    char all[128], text[] = "a\x1b[31m\r\n\x7f \xc3\xa9~";
    for (int i = 0; i < 127; i++)
        all[i] = (char)(i + 1);
    all[127] = 0;
    printable_replace(all);
    for (int i = 1; i < 128; i++)
        assert_int_equal(all[i - 1], i < 32 || i == 127 ? '?' : (char)i);
    assert_int_equal(all[127], 0);
    printable_replace(text);
    assert_string_equal(text, "a?[31m??? \xc3\xa9~");
    /* Terminals know 32 more, of two bytes each in UTF-8. */
    char more[] = "\xc2\x9b"
                  "31m\xc2\x80\xc2\x9f\xc2\xa0";
    printable_replace(more);
    assert_string_equal(more, "??31m????\xc2\xa0");
}

/* Texts, and what is left of them: by the tables of the Unicode standard, 3.9. */
static void what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    static const struct {
        const char *text, *left;
    } cases[] = {
        {"k\xf6rnel", "k?rnel"},                 /* Latin-1 */
        {"\xe2\x82\xac \xf0\x9f\x98\x80", NULL}, /* the euro sign, a face */
        {"cut \xe2\x82", "cut ??"},              /* the euro sign without its end */
        {"\xe2\x82"
         "A\xac",
         "??A?"},                                              /* with another byte in it */
        {"\x80\xbf", "??"},                                    /* ends without a beginning */
        {"\xc0\xaf\xe0\x9f\xbf\xf0\x8f\xbf\xbf", "?????????"}, /* longer than need be */
        {"\xed\xa0\x80\xed\xbf\xbf", "??????"},                /* surrogates */
        {"\xed\x9f\xbf\xee\x80\x80", NULL},                    /* those beside them */
        {"a\xe2\x80\xae"
         "b",
         "a???b"},                                             /* writes from right to left */
        {"\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf", "?????????"}, /* isolates, and is not seen */
        {"\xe2\x80\x90\xe2\x80\xa7\xe2\x80\xaf", NULL},        /* those beside them */
        {"\xf4\x8f\xbf\xbf", NULL},                            /* the last */
        {"\xf4\x90\x80\x80\xf5\xff\xfe", "???????"},           /* beyond it */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        strcpy(text, cases[i].text);
        printable_replace(text);
        assert_string_equal(text, cases[i].left ? cases[i].left : cases[i].text);
    }
}

static void characters_say_their_bytes(void **state)
{
    (void)state;
    assert_int_equal(printable_bytes("a"), 1);
    assert_int_equal(printable_bytes("\xc3\xa9"), 2);
    assert_int_equal(printable_bytes("\xe2\x82\xac"), 3);
    assert_int_equal(printable_bytes("\xf0\x9f\x98\x80"), 4);
    assert_int_equal(printable_bytes(""), 0);
    assert_int_equal(printable_bytes("\n"), 0);
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
        cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(what_is_no_utf8_is_replaced),
        cmocka_unit_test(characters_say_their_bytes),
        cmocka_unit_test(an_empty_text_stays_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
