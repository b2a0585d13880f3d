/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The public error table against the protocol's, both ways; texts and versions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/gpushare.h"
#include "protocol.h"

static const struct {
    uint32_t number;
    const char *name, *sentence;
} table[] = {
#define ROW(number, name, sentence) {number, #name, sentence},
    PROTO_ERRORS(ROW)
#undef ROW
};
enum { ROWS = sizeof table / sizeof table[0] };

/* Each error of the protocol is an enumerator of gpushare.h with the same number... */
#define GPUSHARE_ERROR_SUCCESS GPUSHARE_SUCCESS
#define SAME(name, number)                                                                         \
    _Static_assert(GPUSHARE_ERROR_##name == (number), "gpushare.h: GPUSHARE_ERROR_" #name);
PROTO_ERROR_NUMBERS(SAME)
#undef SAME

/* ...and each enumerator is an error of the protocol: the compiler names the one that is not. */
#pragma GCC diagnostic error "-Wswitch"
static bool in_protocol(gpushare_error error)
{
    switch (error) {
#define CASE(name, number) case GPUSHARE_ERROR_##name:
        PROTO_ERROR_NUMBERS(CASE)
#undef CASE
        return true;
    }
    return false;
}

static void every_row_is_an_error_of_the_header(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        assert_true(in_protocol((gpushare_error)table[i].number));
    assert_false(in_protocol((gpushare_error)4242));
}

static void names_and_sentences(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        assert_string_equal(gpushare_error_name((gpushare_error)table[i].number), table[i].name);
        assert_string_equal(gpushare_error_string((gpushare_error)table[i].number),
                            table[i].sentence);
    }
    assert_string_equal(gpushare_error_name((gpushare_error)4242), "unrecognized");
}

static void *other_thread(void *context)
{
    *(bool *)context = *gpushare_error_text() == '\0';
    return NULL;
}

static void text_is_of_the_thread_that_failed(void **state)
{
    (void)state;
    bool empty = false;
    assert_int_equal(gpushare_synchronize(NULL), GPUSHARE_ERROR_NOT_INITIALIZED);
    assert_non_null(strstr(gpushare_error_text(), "gpushare_connect"));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &empty), 0);
    pthread_join(thread, NULL);
    assert_true(empty);
}

static void version_of_library_and_header_agree(void **state)
{
    (void)state;
    unsigned major, minor, patch;
    assert_int_equal(gpushare_version(), GPUSHARE_VERSION_NUMBER);
    assert_int_equal(sscanf(gpushare_version_text(), "%u.%u.%u", &major, &minor, &patch), 3);
    assert_int_equal(major * 10000 + minor * 100 + patch, GPUSHARE_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_an_error_of_the_header),
        cmocka_unit_test(names_and_sentences),
        cmocka_unit_test(text_is_of_the_thread_that_failed),
        cmocka_unit_test(version_of_library_and_header_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
