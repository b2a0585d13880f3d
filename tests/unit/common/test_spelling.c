/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/spelling.h"

static void distances(void **state)
{
    (void)state;
    static const struct {
        const char *word, *known;
        size_t away;
    } pairs[] = {{"", "", 0},
                 {"", "set", 3},
                 {"kill", "", 4},
                 {"set", "set", 0},
                 {"stat", "status", 2},
                 {"clinets", "clients", 2},
                 {"relaod", "reload", 2},
                 {"kitten", "sitting", 3},
                 {"saturday", "sunday", 3}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_int_equal(spelling_distance(pairs[i].word, strlen(pairs[i].word), pairs[i].known),
                         pairs[i].away);
    assert_int_equal(spelling_distance("setting", 3, "set"), 0);
}

static void the_longest_known_word(void **state)
{
    (void)state;
    char known[SPELLING_MAX + 1];
    memset(known, 'a', SPELLING_MAX);
    known[SPELLING_MAX] = '\0';
    assert_int_equal(spelling_distance("b", 1, known), SPELLING_MAX);
    assert_int_equal(spelling_distance(known, SPELLING_MAX, known), 0);
}

static const char *guess(const char *word, size_t own)
{
    static const char *const known[] = {"status", "set", "get", "clients"};
    struct spelling_guess guess = spelling_guess_begin(word, strlen(word), own);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        spelling_guess_look(&guess, known[i]);
    return guess.found;
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    assert_string_equal(guess("statsu", 6), "status");
    assert_string_equal(guess("clinets", 7), "clients");
    /* As near as "get", which comes later. */
    assert_string_equal(guess("bet", 3), "set");
    /* Half of what tells it from others, and more than three letters. */
    assert_null(guess("bet", 2));
    assert_null(guess("sta", 3));
    assert_null(guess("clxxxxts", 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),
        cmocka_unit_test(the_longest_known_word),
        cmocka_unit_test(the_nearest_word_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
