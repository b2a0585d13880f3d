/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The sum of what the users that a configuration names request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "server/supervisor/config/sums.h"
#include "tests/unit/supervisor/accepted_config.h"

static void requests_of_named_users_are_added_up(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t users;
        uint64_t request;
    } rows[] = {
        {"{}\n", 0, 0},
        {"users:\n  - {uid: 1, time: {request: 70%}}\n  - {uid: 2, time: {request: 30%}}\n", 2,
         10000},
        {"users:\n  - {uid: [1, 2], time: {request: 70%}}\n", 2, 14000},
        /* A user that is named twice counts once, with the smallest request. */
        {"users:\n  - {uid: [1, 2, 1], time: {request: 70%}}\n"
         "  - {uid: 1, time: {request: 20%}}\n",
         2, 9000},
        /* The limit of another entry, and one for everybody. */
        {"users:\n  - {uid: [1, 2], time: {request: 70%}}\n  - {uid: 2, time: {limit: 40%}}\n", 2,
         11000},
        {"users:\n  - {uid: [1, 2], time: {request: 70%}}\n  - {time: {request: 10%}}\n", 2, 2000},
        {"users:\n  - {uid: [1, 2], time: {request: 70%}}\n  - {uid: 2, time: {request: 0}}\n", 1,
         7000},
        /* A range counts for nobody, but its values hold for those who are named. */
        {"users:\n  - {uid: 1-9, time: {request: 70%}}\n  - {time: {request: 60%}}\n", 0, 0},
        {"users:\n  - {uid: 1-9, time: {request: 5%}}\n  - {uid: [1, 20], time: {request: 60%}}\n",
         2, 6500},
        {"users:\n  - {uid: [1, 2], threads: {request: 70%}}\n", 0, 0},
        {"groups:\n  - {gid: [1, 2], time: {request: 70%}}\n", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config *config = accepted_config(rows[i].text);
        const struct config_sum sum = config_sums_of_users(config, RESOURCE_TIME);
        assert_int_equal(sum.users, rows[i].users);
        assert_int_equal(sum.request, rows[i].request);
        config_free(config);
    }
}

static void only_more_than_the_whole_is_told(void **state)
{
    (void)state;
    struct error why;
    struct config *fits = accepted_config("users:\n  - {uid: 1, time: {request: 75%}}\n"
                                          "  - {uid: 2, time: {request: 25%}}\n");
    assert_false(config_sums_exceed(fits, RESOURCE_TIME, &why));
    assert_false(config_sums_exceed(fits, RESOURCE_THREADS, &why));
    config_free(fits);
    struct config *exceeds =
        accepted_config("users:\n  - {uid: 1, time: {request: 75%}, threads: {request: 100%}}\n"
                        "  - {uid: 2, time: {request: 25.01%}, threads: {request: 12.5%}}\n");
    assert_true(config_sums_exceed(exceeds, RESOURCE_TIME, &why));
    assert_non_null(strstr(why.text, "(2) request 100.01 % of the time together"));
    assert_true(config_sums_exceed(exceeds, RESOURCE_THREADS, &why));
    assert_non_null(strstr(why.text, "(2) request 112.5 % of the threads together"));
    config_free(exceeds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_named_users_are_added_up),
        cmocka_unit_test(only_more_than_the_whole_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
