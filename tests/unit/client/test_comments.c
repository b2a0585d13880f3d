/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Comments of a configuration are private: the doctor leaves none, and a quote in a word must not
 * keep one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/tools/doctor/hide.h"

struct row {
    const char *text, *shown;
};

static void check(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", rows[i].text);
        hide_comments(text);
        if (strcmp(text, rows[i].shown) != 0)
            fail_msg("%s became %s", rows[i].text, text);
    }
}

static void a_quote_in_a_word_keeps_no_comment(void **state)
{
    static const struct row rows[] = {
        {"name: rock 'n roll # s3cret\n", "name: rock 'n roll \n"},
        {"a: b 'c # s3cret\nd: e # s3cret", "a: b 'c \nd: e "},
        {"a: b 'c # bob's s3cret '\n", "a: b 'c \n"},
        {"a: b, 'c # s3cret'\n", "a: b, 'c \n"},
        {"a: b [ 'c # s3cret'\n", "a: b [ 'c \n"},
        {"a: b - 'c # s3cret'\n", "a: b - 'c \n"},
        {"a: b: 'c # s3cret'\n", "a: b: 'c \n"},
        {"k: {a: x, 'y: 1} # s3cret\n", "k: {a: x, 'y: 1} \n"},
        {"- \"a\" 'b # s3cret'\n", "- \"a\" 'b \n"},
        {"- it's # s3cret's\n", "- it's \n"},
        /* A word that goes on in a deeper line. */
        {"a: b\n  'c # s3cret'\n", "a: b\n  'c \n"},
        {"a: b\n  - 'c # s3cret'\n", "a: b\n  - 'c \n"},
        {"- a: b\n   \"c # s3cret\"\n", "- a: b\n   \"c \n"},
        {"k: {a: b\n  'c # s3cret'}\n", "k: {a: b\n  'c \n"},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

static void a_quote_without_an_end_keeps_no_comment(void **state)
{
    static const struct row rows[] = {
        {"a: 'b # s3cret\nc: 'd # s3cret'\n", "a: 'b \nc: 'd \n"},
        {"a: 'b # bob's s3cret\n", "a: 'b \n"},
        {"a: 'b # c', s3cret\n", "a: 'b \n"},
        {"a: \"b\n  c\" # s3cret\n", "a: \"b\n  c\" \n"},
        {"a: \"b\\", "a: \"b\\"},
        {"a: \"b # s3cret\\\"\n", "a: \"b \n"},
        {"a: {b: \"c\n , ' \", d: 1} # s3cret ' }\n", "a: {b: \"c\n , ' \", d: 1} \n"},
        {"a: [b\nc: d, 'e # s3cret'\n", "a: [b\nc: d, 'e \n"},
        {"&a 'b: }''\n' # s3cret'\n", "&a 'b: }''\n' \n"},
        {"# 'a\r'|\n\"b'#s3cret\"\n", "\n\"b'\n"},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

static void a_comment_needs_no_blank_behind_quotes_and_brackets(void **state)
{
    static const struct row rows[] = {
        {"a: 'b'#s3cret\n", "a: 'b'\n"},
        {"a: [b]#s3cret\nc: {d: e}#s3cret\n", "a: [b]\nc: {d: e}\n"},
        {"a: [b,#s3cret\n c]\n", "a: [b,\n c]\n"},
        {"a: b\r#s3cret\r\n", "a: b\r\n"},
        {"a: b\xc2\x85#s3cret\n", "a: b\xc2\x85\n"},
        {"{'a':#s3cret\n b}\n", "{'a':\n b}\n"},
        {"#s3cret", ""},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

static void texts_in_quotes_stay_whole(void **state)
{
    static const struct row rows[] = {
        {"a: 'b # c' # s3cret\n", "a: 'b # c' \n"},
        {"a:\t\"b # c\"\n", "a:\t\"b # c\"\n"},
        {"'a # b': \"c # d\"\n", "'a # b': \"c # d\"\n"},
        {"a: b\n'c # d': e\n", "a: b\n'c # d': e\n"},
        {"- 'a # b'\n- - \"c # d\" # s3cret\n", "- 'a # b'\n- - \"c # d\" \n"},
        {"? 'a # b'\n: 'c # d'\n", "? 'a # b'\n: 'c # d'\n"},
        {"- a: b\n  c: 'd # e'\n", "- a: b\n  c: 'd # e'\n"},
        {"a: {b: 'c # d', e: [\"f # g\", 'h # i']} # s3cret\n",
         "a: {b: 'c # d', e: [\"f # g\", 'h # i']} \n"},
        {"a: {b: c,\n  d: 'e # f'}\ng: 'h # i'\n", "a: {b: c,\n  d: 'e # f'}\ng: 'h # i'\n"},
        {"a: {\n  b: c\n}\nd: 'e # f'\n", "a: {\n  b: c\n}\nd: 'e # f'\n"},
        {"--- # s3cret\n- a: {b: c}\n  d: 'e # f'\n", "--- \n- a: {b: c}\n  d: 'e # f'\n"},
        {"a: 'b #''# c'\nd: \"e \\\" # f\"\n", "a: 'b #''# c'\nd: \"e \\\" # f\"\n"},
        {"a: |\n  [ 'b\nc: d, 'e # s3cret'\nf: 'g # h'\n", "a: |\n  [ 'b\nc: d, 'e \nf: 'g # h'\n"},
        {"a: b#c\n", "a: b#c\n"},
    };
    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quote_in_a_word_keeps_no_comment),
        cmocka_unit_test(a_quote_without_an_end_keeps_no_comment),
        cmocka_unit_test(a_comment_needs_no_blank_behind_quotes_and_brackets),
        cmocka_unit_test(texts_in_quotes_stay_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
