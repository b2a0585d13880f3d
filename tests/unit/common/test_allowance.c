/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* allowance: one table of resources, and what blocks make of each other's values. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/limits/allowance.h"
#include "common/units.h"

static struct dialect_amount parsed(enum resource resource, enum allowance_bound bound,
                                    const char *text, int want)
{
    struct dialect_amount amount = {DIALECT_UNSET, 77};
    int result = allowance_parse(resource, bound, text, strlen(text), &amount);
    if (result != want)
        fail_msg("%s \"%s\": %d", allowance_resource(resource)->name, text, result);
    return amount;
}

static void every_resource_has_a_whole_row(void **state)
{
    (void)state;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *row = allowance_resource(i);
        assert_true(row->name && row->form && row->phrase && row->heading && row->parse);
        assert_true(row->unit == DIALECT_SHARE || row->unit == DIALECT_BYTES);
        assert_int_equal(allowance_find(row->name), i);
        char variable[64] = "GPUSHARE_";
        for (size_t c = 0; row->name[c]; c++)
            variable[9 + c] = row->name[c] == '_' ? '_' : (char)(row->name[c] - 'a' + 'A');
        size_t length = strlen(variable);
        strcpy(variable + length, "_REQUEST");
        assert_string_equal(row->request_variable, variable);
        strcpy(variable + length, "_LIMIT");
        assert_string_equal(row->limit_variable, variable);
    }
    assert_int_equal(allowance_find("speed"), RESOURCES);
}

static void the_resources_are_listed_within_a_sentence(void **state)
{
    (void)state;
    char text[ALLOWANCE_NAMES];
    assert_string_equal(allowance_names(false, "", "", " and ", text),
                        "threads, time, memory and host_memory");
    assert_string_equal(allowance_names(true, "<", ">", " or ", text),
                        "<threads>, <time>, <memory> or <host_memory>");
}

static void scalars_are_read_and_written_within_their_bounds(void **state)
{
    (void)state;
    static const struct {
        enum scalar scalar;
        const char *text;
        int result;
        uint64_t value;
    } rows[] = {
        {SCALAR_PRIORITY, "0", 0, 0},
        {SCALAR_PRIORITY, "1000", 0, 1000},
        {SCALAR_PRIORITY, "1001", -ERANGE, 7},
        {SCALAR_PRIORITY, "high", -EINVAL, 7},
        {SCALAR_PRIORITY, "3s", -EINVAL, 7},
        {SCALAR_KERNEL_TIME, "100ms", 0, 100000000},
        {SCALAR_KERNEL_TIME, "24h", 0, UINT64_C(86400000000000)},
        {SCALAR_KERNEL_TIME, "99ms", -ERANGE, 7},
        {SCALAR_KERNEL_TIME, "25h", -ERANGE, 7},
        {SCALAR_KERNEL_TIME, "3", -EINVAL, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[UNITS_TEXT];
        uint64_t value = 7;
        assert_int_equal(
            allowance_parse_scalar(rows[i].scalar, rows[i].text, strlen(rows[i].text), &value),
            rows[i].result);
        assert_true(value == rows[i].value);
        if (!rows[i].result && strcmp(rows[i].text, "24h") != 0)
            assert_string_equal(allowance_format_scalar(rows[i].scalar, value, text), rows[i].text);
    }
    /* A priority of 0 is a wish, a time of 0 is none; a shorter time than the least becomes it. */
    assert_true(allowance_scalar_said(SCALAR_PRIORITY, 0) == 0);
    assert_true(allowance_scalar_said(SCALAR_KERNEL_TIME, 0) == ALLOWANCE_UNSET);
    assert_true(allowance_scalar_said(SCALAR_KERNEL_TIME, 1) == 100000000);
    assert_true(allowance_scalar_said(SCALAR_KERNEL_TIME, 100000001) == 100000001);
}

static void a_scalars_source_is_the_variable_that_said_it(void **state)
{
    (void)state;
    char text[ALLOWANCE_NAMES];
    struct allowance allowance = allowance_none;
    assert_string_equal(allowance_scalar_names("<", ">", " or ", text),
                        "<priority> or <kernel_time_limit>");
    assert_int_equal(allowance_find_scalar("kernel_time_limit"), SCALAR_KERNEL_TIME);
    assert_int_equal(allowance_find_scalar("memory"), SCALARS);
    allowance_attribute(&allowance,
                        (struct allowance_source){ALLOWANCE_BY_SELF, PROTO_SOURCE_VARIABLE});
    assert_null(allowance_scalar_variable(&allowance, SCALAR_PRIORITY));
    allowance.priority = 0;
    allowance_attribute(&allowance,
                        (struct allowance_source){ALLOWANCE_BY_SELF, PROTO_SOURCE_NAMESAKE});
    assert_string_equal(allowance_scalar_variable(&allowance, SCALAR_PRIORITY),
                        "CUDA_MPS_CLIENT_PRIORITY");
    assert_null(allowance_scalar_variable(&allowance, SCALAR_KERNEL_TIME));
    allowance_attribute(&allowance, (struct allowance_source){ALLOWANCE_BY_FILE, 3});
    assert_null(allowance_scalar_variable(&allowance, SCALAR_PRIORITY));
}

static void sources_reach_the_wire_and_come_back(void **state)
{
    (void)state;
    struct allowance allowance = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        allowance.of[i] = (struct allowance_range){10 + i, 20 + i};
        allowance.of_from[i].request =
            (struct allowance_source){ALLOWANCE_BY_SELF, 1 + i % PROTO_SOURCE_FRACTION};
        allowance.of_from[i].limit = (struct allowance_source){
            ALLOWANCE_BY_SELF, i % 2 ? PROTO_SOURCE_OPTIONS : PROTO_SOURCE_FRACTION};
    }
    struct proto_allowance values = allowance_to_wire(&allowance);
    struct proto_allowance_sources sources = allowance_sources_to_wire(&allowance);
    assert_int_equal(sources.threads.request, 1);
    assert_int_equal(sources.threads.limit, PROTO_SOURCE_FRACTION);
    assert_int_equal(sources.time.request, 2);
    assert_int_equal(sources.time.limit, PROTO_SOURCE_OPTIONS);
    struct allowance back = allowance_from_wire(&values, &sources);
    for (enum resource i = 0; i < RESOURCES; i++) {
        assert_int_equal(back.of[i].request, 10 + i);
        assert_int_equal(back.of[i].limit, 20 + i);
        assert_int_equal(back.of_from[i].request.detail, allowance.of_from[i].request.detail);
        assert_int_equal(back.of_from[i].limit.detail, allowance.of_from[i].limit.detail);
    }
}

static void an_empty_allowance_limits_nothing(void **state)
{
    (void)state;
    struct allowance_excess excess;
    assert_false(allowance_exceeds(&allowance_none, &excess));
    for (enum resource i = 0; i < RESOURCES; i++) {
        assert_false(allowance_has(&allowance_none, i, ALLOWANCE_REQUEST));
        assert_false(allowance_has(&allowance_none, i, ALLOWANCE_LIMIT));
    }
    struct allowance to = {.threads = {0, 5}, .priority = 3}, before = to;
    allowance_tighten(&to, &allowance_none);
    assert_true(allowance_equal(&to, &before));
    allowance_change(&to, &allowance_none);
    assert_true(allowance_equal(&to, &before));
}

static void a_value_is_put_where_its_unit_belongs(void **state)
{
    (void)state;
    struct allowance to = allowance_none;
    allowance_put(&to, RESOURCE_THREADS, ALLOWANCE_REQUEST,
                  parsed(RESOURCE_THREADS, ALLOWANCE_REQUEST, "25%", 0));
    assert_int_equal(to.threads.request, 2500);
    assert_true(to.threads.limit == ALLOWANCE_UNSET);
    allowance_put(&to, RESOURCE_MEMORY, ALLOWANCE_LIMIT,
                  parsed(RESOURCE_MEMORY, ALLOWANCE_LIMIT, "0.5", 0));
    assert_true(to.memory.limit == ALLOWANCE_UNSET);
    assert_int_equal(to.part[RESOURCE_MEMORY].limit, 5000);
    allowance_put(&to, RESOURCE_MEMORY, ALLOWANCE_REQUEST,
                  parsed(RESOURCE_MEMORY, ALLOWANCE_REQUEST, "4G", 0));
    assert_true(to.memory.request == UINT64_C(4) << 30);
    struct allowance before = to;
    allowance_put(&to, RESOURCE_MEMORY, ALLOWANCE_REQUEST, (struct dialect_amount){0});
    assert_true(allowance_equal(&to, &before));
}

static void nothing_may_be_requested_but_not_be_the_limit(void **state)
{
    (void)state;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const char *const zeros[] = {"0", "0%"};
        for (size_t z = 0; z < 2; z++) {
            struct dialect_amount amount = parsed(i, ALLOWANCE_REQUEST, zeros[z], 0);
            assert_int_equal(amount.unit, allowance_resource(i)->unit);
            assert_int_equal(amount.value, 0);
        }
    }
    parsed(RESOURCE_THREADS, ALLOWANCE_LIMIT, "0%", -ERANGE);
    parsed(RESOURCE_TIME, ALLOWANCE_LIMIT, "0", -EINVAL);
    parsed(RESOURCE_MEMORY, ALLOWANCE_LIMIT, "0", -ERANGE);
    parsed(RESOURCE_HOST_MEMORY, ALLOWANCE_REQUEST, "25%", -EINVAL);
}

static void fill(struct allowance *allowance, uint64_t value)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        allowance->of[i] = (struct allowance_range){value, value + 100};
        allowance->part[i] = (struct allowance_range){value + 200, value + 300};
    }
}

static void the_stricter_holds_in_each_respect(void **state)
{
    (void)state;
    struct allowance strict, loose, strictest;
    fill(&strict, 1000);
    fill(&loose, 1001);
    strict.priority = 5;
    loose.priority = 4;
    strict.kernel_time = 6;
    loose.kernel_time = 7;
    strict.scalar_from[SCALAR_KERNEL_TIME] = (struct allowance_source){ALLOWANCE_BY_FILE, 12};
    strictest = loose;
    allowance_tighten(&strictest, &strict);
    assert_true(allowance_equal(&strictest, &strict));
    assert_int_equal(strictest.scalar_from[SCALAR_KERNEL_TIME].detail, 12);
    allowance_tighten(&strictest, &loose);
    assert_true(allowance_equal(&strictest, &strict));
    strictest = allowance_none;
    allowance_tighten(&strictest, &strict);
    assert_true(allowance_equal(&strictest, &strict));
    loose.kernel_time = 0; /* any time */
    allowance_tighten(&strictest, &loose);
    assert_int_equal(strictest.kernel_time, 6);
    allowance_tighten(&loose, &strict);
    assert_int_equal(loose.kernel_time, 6);
}

static void a_change_replaces_either_form(void **state)
{
    (void)state;
    struct allowance to, by = allowance_none;
    fill(&to, 1000);
    to.priority = 5;
    by.part[RESOURCE_MEMORY].limit = 7;
    by.time.request = 0;
    by.priority = 0;
    allowance_change(&to, &by);
    assert_true(to.memory.limit == ALLOWANCE_UNSET);
    assert_int_equal(to.part[RESOURCE_MEMORY].limit, 7);
    assert_int_equal(to.memory.request, 1000);
    assert_int_equal(to.time.request, 0);
    assert_int_equal(to.time.limit, 1100);
    assert_int_equal(to.priority, 0);
}

static void a_request_above_its_limit_is_found(void **state)
{
    (void)state;
    struct allowance_excess excess;
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance allowance = allowance_none;
        allowance.of[i] = (struct allowance_range){200, 200};
        allowance.part[i] = (struct allowance_range){400, 300};
        allowance.of[i].request = 200;
        assert_true(allowance_exceeds(&allowance, &excess));
        assert_int_equal(excess.resource, i);
        assert_int_equal(excess.request.unit, DIALECT_SHARE);
        assert_int_equal(excess.request.value, 400);
        assert_int_equal(excess.limit.value, 300);
        allowance.part[i].request = 300;
        assert_false(allowance_exceeds(&allowance, &excess));
        allowance.of[i].request = 201;
        assert_true(allowance_exceeds(&allowance, &excess));
        assert_int_equal(excess.request.unit, allowance_resource(i)->unit);
        allowance.of[i].limit = ALLOWANCE_UNSET;
        assert_false(allowance_exceeds(&allowance, &excess));
    }
}

static void a_part_becomes_bytes_and_the_lower_holds(void **state)
{
    (void)state;
    struct allowance allowance = allowance_none;
    allowance.memory = (struct allowance_range){10, 5000};
    allowance.part[RESOURCE_MEMORY] = (struct allowance_range){1000, 3333};
    allowance_resolve(&allowance, RESOURCE_MEMORY, 10001);
    assert_int_equal(allowance.memory.request, 10);
    assert_int_equal(allowance.memory.limit, 3333); /* and 3333 ten thousandths */
    assert_true(allowance.part[RESOURCE_MEMORY].request == ALLOWANCE_UNSET);
    allowance_resolve(&allowance, RESOURCE_MEMORY, 1);
    assert_int_equal(allowance.memory.limit, 3333);
    assert_true(allowance_part(UINT64_C(1) << 60, ALLOWANCE_WHOLE) == UINT64_C(1) << 60);
}

static void a_value_is_written_as_people_write_it(void **state)
{
    (void)state;
    char text[UNITS_TEXT];
    assert_string_equal(allowance_format(RESOURCE_TIME, 1250, text), "12.5%");
    assert_string_equal(allowance_format(RESOURCE_HOST_MEMORY, 1 << 30, text), "1 GiB");
    assert_string_equal(allowance_format(RESOURCE_MEMORY, UINT64_C(1542756) << 10, text),
                        "1.5 GiB");
    assert_string_equal(allowance_format_scalar(SCALAR_KERNEL_TIME, 0, text), "none");
    assert_string_equal(allowance_format_scalar(SCALAR_KERNEL_TIME, UINT64_C(3000000000), text),
                        "3s");
    assert_string_equal(allowance_format_scalar(SCALAR_PRIORITY, 0, text), "0");
}

static void a_message_says_the_same(void **state)
{
    (void)state;
    struct allowance allowance = allowance_none;
    struct proto_allowance wire = allowance_to_wire(&allowance);
    assert_true(wire.threads.request == PROTO_UNSET && wire.host_memory.limit == PROTO_UNSET);
    assert_int_equal(wire.priority, 0);
    fill(&allowance, 1000);
    allowance.time.limit = 77;
    allowance.priority = 9;
    wire = allowance_to_wire(&allowance);
    assert_int_equal(wire.threads.request, 1000);
    assert_int_equal(wire.time.limit, 77);
    assert_int_equal(wire.memory.limit, 1100);
    assert_int_equal(wire.host_memory.request, 1000);
    assert_int_equal(wire.priority, 9);
    assert_int_equal(wire.pad0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_resource_has_a_whole_row),
        cmocka_unit_test(the_resources_are_listed_within_a_sentence),
        cmocka_unit_test(scalars_are_read_and_written_within_their_bounds),
        cmocka_unit_test(a_scalars_source_is_the_variable_that_said_it),
        cmocka_unit_test(sources_reach_the_wire_and_come_back),
        cmocka_unit_test(an_empty_allowance_limits_nothing),
        cmocka_unit_test(a_value_is_put_where_its_unit_belongs),
        cmocka_unit_test(nothing_may_be_requested_but_not_be_the_limit),
        cmocka_unit_test(the_stricter_holds_in_each_respect),
        cmocka_unit_test(a_change_replaces_either_form),
        cmocka_unit_test(a_request_above_its_limit_is_found),
        cmocka_unit_test(a_part_becomes_bytes_and_the_lower_holds),
        cmocka_unit_test(a_value_is_written_as_people_write_it),
        cmocka_unit_test(a_message_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
