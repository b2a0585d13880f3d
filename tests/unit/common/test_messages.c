/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/error.h"
#include "common/messages.h"

static void names_are_words_and_each_is_there_once(void **state)
{
    (void)state;
    const struct message *row, *other;
    for (size_t i = 0; (row = messages_at(i)); i++) {
        if (!row->name[0] ||
            strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(row->name))
            fail_msg("\"%s\" is no name", row->name);
        for (size_t k = 0; k < i && (other = messages_at(k)); k++)
            if (strcmp(row->name, other->name) == 0)
                fail_msg("two messages are named %s", row->name);
    }
    assert_null(messages_at(SIZE_MAX));
}

static void each_is_one_sentence_with_a_number_of_the_table(void **state)
{
    (void)state;
    const struct message *row;
    for (size_t i = 0; (row = messages_at(i)); i++) {
        size_t length = strlen(row->format);
        assert_string_not_equal(error_name(row->number), "unrecognized");
        if (!length || length >= ERROR_TEXT_BYTES || row->format[length - 1] == '.' ||
            strchr(row->format, '\n'))
            fail_msg("%s: \"%s\" is no sentence", row->name, row->format);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_words_and_each_is_there_once),
        cmocka_unit_test(each_is_one_sentence_with_a_number_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
