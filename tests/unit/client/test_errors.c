/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The public error table against the protocol's, both ways; texts and versions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* gpushare.h from the source tree that the test was built from. */
static char *read_header(void)
{
    static const char path[] = "client/gpushare.h";
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("%s: tests run in the root of the tree", path);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* Every "GPUSHARE_ERROR_X = n" of the header is a row, and every row is there. */
static void test_header_and_protocol_have_the_same_errors(void **state)
{
    (void)state;
    char *text = read_header();
    char *list = strstr(text, "enum gpushare_error {");
    assert_non_null(list);
    *strstr(list, "};") = '\0';
    assert_non_null(strstr(list, "GPUSHARE_SUCCESS = 0,"));
    unsigned found = 1;
    for (char *at = list; (at = strstr(at, "GPUSHARE_ERROR_")); found++) {
        char name[64] = "";
        unsigned number;
        at += strlen("GPUSHARE_ERROR_");
        assert_int_equal(sscanf(at, "%63[A-Z_] = %u", name, &number), 2);
        for (char *c = name; *c; c++)
            *c = (char)tolower(*c);
        int row = 0;
        while (row < ROWS && strcmp(table[row].name, name) != 0)
            row++;
        if (row == ROWS)
            fail_msg("the protocol has no error %s", name);
        assert_int_equal(table[row].number, number);
    }
    assert_int_equal(found, ROWS);
    free(text);
}

static void test_names_and_sentences(void **state)
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

static void test_text_is_of_the_thread_that_failed(void **state)
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

static void test_version_of_library_and_header_agree(void **state)
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
        cmocka_unit_test(test_header_and_protocol_have_the_same_errors),
        cmocka_unit_test(test_names_and_sentences),
        cmocka_unit_test(test_text_is_of_the_thread_that_failed),
        cmocka_unit_test(test_version_of_library_and_header_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
