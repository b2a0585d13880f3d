/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* error: the table is whole, and nothing of a driver or an errno falls through it. */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/error.h"
#include "protocol.h"

#define NUMBER(number, name, sentence) number,
static const uint32_t numbers[] = {PROTO_ERRORS(NUMBER)};
#define COUNT (sizeof numbers / sizeof numbers[0])

static void every_number_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        const char *name = error_name(numbers[i]), *sentence = error_sentence(numbers[i]);
        assert_string_not_equal(name, "unrecognized");
        assert_true(strlen(sentence) > 5);
        assert_true(sentence[strlen(sentence) - 1] != '.');
        for (const char *c = name; *c; c++)
            assert_true(islower(*c) || isdigit(*c) || *c == '_');
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(name, error_name(numbers[j]));
    }
    assert_string_equal(error_name(2), "out_of_memory");
    assert_string_equal(error_name(10011), "killed");
    assert_string_equal(error_name(4242), "unrecognized");
    assert_string_equal(error_name(UINT32_MAX), "unrecognized");
    assert_non_null(error_sentence(UINT32_MAX));
}

static void a_drivers_results_keep_their_numbers(void **state)
{
    (void)state;
    assert_int_equal(error_from_cuda(0), 0);
    assert_int_equal(error_from_cuda(2), PROTO_ERROR_OUT_OF_MEMORY);
    assert_int_equal(error_from_cuda(700), PROTO_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(error_from_cuda(719), PROTO_ERROR_LAUNCH_FAILED);
    /* Numbers that the table lacks, and our own numbers from a driver. */
    assert_int_equal(error_from_cuda(4), PROTO_ERROR_UNKNOWN);
    assert_int_equal(error_from_cuda(-1), PROTO_ERROR_UNKNOWN);
    assert_int_equal(error_from_cuda(10011), PROTO_ERROR_UNKNOWN);
    assert_int_equal(error_from_cuda(INT32_MIN), PROTO_ERROR_UNKNOWN);
}

static void errnos_of_either_sign(void **state)
{
    (void)state;
    assert_int_equal(error_from_errno(0), PROTO_ERROR_SUCCESS);
    assert_int_equal(error_from_errno(-EINVAL), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(error_from_errno(EINVAL), PROTO_ERROR_INVALID_VALUE);
    assert_int_equal(error_from_errno(-EPROTO), PROTO_ERROR_PROTOCOL_VIOLATION);
    assert_int_equal(error_from_errno(-EMFILE), PROTO_ERROR_SERVER_RESOURCES);
    assert_int_equal(error_from_errno(-ENOMEM), PROTO_ERROR_SERVER_RESOURCES);
    for (int i = 1; i < 140; i++) {
        assert_int_equal(error_from_errno(i), error_from_errno(-i));
        assert_int_not_equal(error_from_errno(i), PROTO_ERROR_SUCCESS);
        assert_string_not_equal(error_name(error_from_errno(i)), "unrecognized");
    }
}

static void an_error_carries_its_number_and_sentence(void **state)
{
    (void)state;
    struct error why = {0};
    assert_int_equal(error_set(&why, PROTO_ERROR_NOT_FOUND, "no kernel %s", "f"),
                     PROTO_ERROR_NOT_FOUND);
    assert_int_equal(why.number, PROTO_ERROR_NOT_FOUND);
    assert_string_equal(why.text, "no kernel f");
    assert_int_equal(error_prefix(&why, "device %d: ", 3), PROTO_ERROR_NOT_FOUND);
    assert_string_equal(why.text, "device 3: no kernel f");
}

static void a_long_sentence_is_cut(void **state)
{
    (void)state;
    char words[2 * ERROR_TEXT_BYTES];
    memset(words, 'a', sizeof words);
    words[sizeof words - 1] = 0;
    struct error why;
    error_set(&why, PROTO_ERROR_UNKNOWN, "%s", words);
    assert_int_equal(strlen(why.text), ERROR_TEXT_BYTES - 1);
    error_prefix(&why, "b");
    assert_int_equal(strlen(why.text), ERROR_TEXT_BYTES - 1);
    assert_int_equal(why.text[0], 'b');
    error_prefix(&why, "%s", words);
    assert_int_equal(strlen(why.text), ERROR_TEXT_BYTES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_its_number_and_sentence),
        cmocka_unit_test(a_long_sentence_is_cut),
        cmocka_unit_test(every_number_has_a_name_and_a_sentence),
        cmocka_unit_test(a_drivers_results_keep_their_numbers),
        cmocka_unit_test(errnos_of_either_sign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
