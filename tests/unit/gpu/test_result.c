/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A step's answer, however malformed, becomes a verdict that flatters nobody. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu/result.h"

static struct result result;

static void begin(const char *step)
{
    const struct step *found = step_find(step);
    assert_non_null(found);
    result_begin(&result, found);
}

static const char *judgement(const char *assumption)
{
    const json_t *rows = json_object_get(result.json, "assumptions");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!strcmp(json_string_value(json_object_get(row, "name")), assumption))
            return json_string_value(json_object_get(row, "verdict"));
    }
    return "none";
}

static void every_assumption_names_a_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < step_assumption_count; i++) {
        assert_non_null(step_find(step_assumptions[i].step));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(step_assumptions[i].name, step_assumptions[j].name);
    }
    for (size_t i = 0; i < step_count; i++) {
        assert_ptr_equal(step_find(step_table[i].name), &step_table[i]);
        if (step_table[i].set == STEP_FIRST)
            assert_in_range(step_table[i].limit_s, 1, 30);
    }
}

static void the_worst_counts(void **state)
{
    (void)state;
    begin("registration");
    assert_true(result_take_line(&result, "@held registered-memfd fine"));
    assert_true(result_take_line(&result, "@false one-pointer other address"));
    assert_true(result_take_line(&result, "@held copy-across-registrations fine"));
    assert_true(result_take_line(&result, "@held copy-within-registrations fine"));
    result_finish(&result, 1, NULL);
    assert_int_equal(result.outcome, OUTCOME_FALSE);
    assert_string_equal(result_verdict(&result), "other address");
}

static void a_question_without_an_answer_is_unknown(void **state)
{
    (void)state;
    begin("registration");
    result_take_line(&result, "@held registered-memfd fine");
    result_finish(&result, 1, NULL);
    assert_int_equal(result.outcome, OUTCOME_UNKNOWN);
    assert_string_equal(judgement("registered-memfd"), "held");
    assert_string_equal(judgement("one-pointer"), "unknown");
}

static void a_killed_step_keeps_its_output_and_names_the_call(void **state)
{
    (void)state;
    begin("registration");
    result_take_line(&result, "@held registered-memfd fine");
    result_take_line(&result, "@call cuMemcpyHtoDAsync");
    result_finish(&result, 30, "killed after 30 s");
    assert_int_equal(result.outcome, OUTCOME_UNKNOWN);
    assert_string_equal(judgement("registered-memfd"), "held");
    assert_non_null(
        strstr(result_verdict(&result), "killed after 30 s, in or after cuMemcpyHtoDAsync"));
}

static void a_killed_step_that_had_all_its_verdicts_is_not_held(void **state)
{
    (void)state;
    begin("jit");
    result_take_line(&result, "@held ptx-compiles fine");
    result_finish(&result, 30, "ended by signal 11 (Segmentation fault)");
    assert_int_equal(result.outcome, OUTCOME_UNKNOWN);
    assert_string_equal(judgement("ptx-compiles"), "held");
}

static void a_check_without_a_verdict_has_failed(void **state)
{
    (void)state;
    begin("gpushare-fault");
    result_finish(&result, 1, NULL);
    assert_int_equal(result.outcome, OUTCOME_FAILED);
    begin("gpushare-fault");
    result_take_line(&result, "@passed fine");
    result_finish(&result, 1, "exit status 1");
    assert_int_equal(result.outcome, OUTCOME_FAILED);
    begin("gpushare-fault");
    result_take_line(&result, "@cannot the server has 2 workers");
    result_finish(&result, 1, "exit status 1");
    assert_int_equal(result.outcome, OUTCOME_FAILED);
    assert_string_equal(result_verdict(&result), "the server has 2 workers");
}

static void malformed_lines_are_output(void **state)
{
    static const char *const lines[] = {"",
                                        "@",
                                        "@ ",
                                        "held one-pointer fine",
                                        "@held",
                                        "@held ",
                                        "@measure",
                                        "@measure name",
                                        "@measure name word us",
                                        "@measure  1 us",
                                        "@fact",
                                        "@nonsense"};
    char longest[3000];
    (void)state;
    begin("registration");
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '@';
    longest[sizeof longest - 1] = 0;
    for (size_t i = 0; i + 1 < sizeof lines / sizeof *lines; i++)
        assert_false(result_take_line(&result, lines[i]));
    result_take_line(&result, lines[sizeof lines / sizeof *lines - 1]);
    assert_false(result_take_line(&result, longest));
    assert_int_equal(json_array_size(json_object_get(result.json, "assumptions")), 0);
    assert_int_equal(json_object_size(json_object_get(result.json, "measures")), 0);
    /* Bytes that are not text must not make the JSON unwritable. */
    assert_true(result_take_line(&result, "@held one-pointer \xff\xfe\x01"));
    char *text = json_dumps(result.json, 0);
    assert_non_null(text);
    free(text);
}

static void the_exit_status_is_by_kind(void **state)
{
    unsigned counts[OUTCOMES] = {[OUTCOME_HELD] = 3, [OUTCOME_PASSED] = 1, [OUTCOME_MEASURED] = 2};
    (void)state;
    assert_int_equal(result_exit_status(counts), 0);
    counts[OUTCOME_NOT_RUN] = 1;
    assert_int_equal(result_exit_status(counts), 4);
    counts[OUTCOME_UNKNOWN] = 1;
    assert_int_equal(result_exit_status(counts), 3);
    static const enum outcome bad[] = {OUTCOME_FALSE, OUTCOME_FAILED, OUTCOME_NOT_MET};
    for (size_t i = 0; i < 3; i++) {
        counts[bad[i]] = 1;
        assert_int_equal(result_exit_status(counts), 1);
        counts[bad[i]] = 0;
    }
}

static int clear(void **state)
{
    (void)state;
    result_clear(&result);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_assumption_names_a_step),
        cmocka_unit_test_teardown(the_worst_counts, clear),
        cmocka_unit_test_teardown(a_question_without_an_answer_is_unknown, clear),
        cmocka_unit_test_teardown(a_killed_step_keeps_its_output_and_names_the_call, clear),
        cmocka_unit_test_teardown(a_killed_step_that_had_all_its_verdicts_is_not_held, clear),
        cmocka_unit_test_teardown(a_check_without_a_verdict_has_failed, clear),
        cmocka_unit_test_teardown(malformed_lines_are_output, clear),
        cmocka_unit_test(the_exit_status_is_by_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
