/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Results of which it is plain how they are judged, and which of two is shown. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "tests/programs/bench/row.h"

static struct bench_result result_of(double figure)
{
    return (struct bench_result){.value = figure, .ratio = figure};
}

static struct bench_result faulty(double figure)
{
    struct bench_result result = result_of(figure);
    strcpy(result.fault, "the machine is too busy");
    return result;
}

/* Each kind of row, and figures of it from the best to the worst. */
static const struct {
    struct row row;
    double figures[4];
    unsigned met; /* of these, the first ones */
} kinds[] = {
    {{.judged = RATIO_MAX, .high = 1.1}, {0.5, 1.1, 1.2, 9}, 2},
    {{.judged = RATIO_MIN, .low = 0.95}, {2, 0.95, 0.94, 0}, 2},
    {{.judged = RATIO_WITHIN, .low = 0.98, .high = 1.02}, {1, 1.01, 0.96, 1.2}, 2},
    {{.judged = VALUE_MAX, .high = 10}, {-3, 10, 10.1, 1e9}, 2},
    {{.judged = VALUE_MIN, .low = -1}, {3, -1, -1.1, -99}, 2},
    {{.judged = STATED}, {1, 2, 3, 4}, 4},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], FIGURES = 4 };

/* A row judges by its ratio or by its value. The other one says the opposite here. */
static struct bench_result judged_by(const struct row *row, double figure)
{
    struct bench_result result = result_of(figure);
    if (row->judged <= RATIO_WITHIN)
        result.value = -figure;
    else
        result.ratio = -figure;
    return result;
}

static void bounds_are_met_up_to_the_bound_itself(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < FIGURES; i++) {
            struct bench_result result = judged_by(&kinds[kind].row, kinds[kind].figures[i]);
            assert_int_equal(row_met(&kinds[kind].row, &result), i < kinds[kind].met);
        }
}

static void a_fault_and_no_number_meet_no_bound(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct bench_result fault = faulty(kinds[kind].figures[0]), none = result_of(NAN);
        assert_false(row_met(&kinds[kind].row, &fault));
        assert_int_equal(row_met(&kinds[kind].row, &none), kinds[kind].row.judged == STATED);
    }
}

static void the_figure_further_off_is_worse(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned i = 0; i < FIGURES; i++)
            for (unsigned k = 0; k < FIGURES; k++) {
                const struct row *row = &kinds[kind].row;
                struct bench_result one = judged_by(row, kinds[kind].figures[i]);
                struct bench_result other = judged_by(row, kinds[kind].figures[k]);
                assert_int_equal(row_worse(row, &one, &other), i > k);
            }
}

static void no_number_is_worse_than_a_number(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct bench_result none = result_of(NAN);
        struct bench_result number = judged_by(&kinds[kind].row, kinds[kind].figures[0]);
        assert_true(row_worse(&kinds[kind].row, &none, &number));
        assert_false(row_worse(&kinds[kind].row, &number, &none));
    }
}

static void a_fault_is_worse_than_a_figure_that_meets_the_bound(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct bench_result fault = faulty(kinds[kind].figures[0]);
        struct bench_result met = judged_by(&kinds[kind].row, kinds[kind].figures[1]);
        assert_true(row_worse(&kinds[kind].row, &fault, &met));
        assert_false(row_worse(&kinds[kind].row, &met, &fault));
    }
}

/* Otherwise a busy machine in one scene would excuse what the other one showed. */
static void a_fault_hides_no_figure_that_misses_the_bound(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const struct row *row = &kinds[kind].row;
        for (unsigned i = kinds[kind].met; i < FIGURES; i++)
            for (unsigned k = 0; k < FIGURES; k++) {
                struct bench_result missed = judged_by(row, kinds[kind].figures[i]);
                struct bench_result fault = faulty(kinds[kind].figures[k]);
                assert_true(row_worse(row, &missed, &fault));
                assert_false(row_worse(row, &fault, &missed));
            }
    }
}

static void every_row_is_found_and_has_a_bound_that_can_be_missed(void **state)
{
    (void)state;
    assert_null(row_find("no_such_row"));
    for (size_t i = 0; i < row_count; i++) {
        struct bench_result low = result_of(-1e12), high = result_of(1e12);
        assert_ptr_equal(row_find(rows[i].name), &rows[i]);
        assert_int_equal(row_met(&rows[i], &low) && row_met(&rows[i], &high),
                         rows[i].judged == STATED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_met_up_to_the_bound_itself),
        cmocka_unit_test(a_fault_and_no_number_meet_no_bound),
        cmocka_unit_test(the_figure_further_off_is_worse),
        cmocka_unit_test(no_number_is_worse_than_a_number),
        cmocka_unit_test(a_fault_is_worse_than_a_figure_that_meets_the_bound),
        cmocka_unit_test(a_fault_hides_no_figure_that_misses_the_bound),
        cmocka_unit_test(every_row_is_found_and_has_a_bound_that_can_be_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
