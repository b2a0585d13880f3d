/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* log_limit: lines about one client and about all clients of one user have a limit, however many
 * clients there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/log_limit.h"
#include "common/units.h"

enum { USER = 1000, OTHER = 1001 };

static int forget(void **state)
{
    (void)state;
    log_limit_reset();
    return 0;
}

/* A user who connects again and again has a new number each time. */
static void a_users_limit_holds_for_any_number_of_clients(void **state)
{
    unsigned admitted = 0, left_out = 0;
    struct log_limit_over over;
    (void)state;
    for (uint32_t client = 1; client <= 20000; client++)
        admitted += log_limit_admits(client, USER, UNITS_SECOND + client * UINT64_C(1000));
    assert_int_equal(admitted, LOG_LIMIT_USER);
    assert_true(log_limit_admits(20001, OTHER, 2 * UNITS_SECOND));
    while (log_limit_over((LOG_LIMIT_SECONDS + 2) * UNITS_SECOND, &over)) {
        assert_int_equal(over.uid, USER);
        left_out += over.left_out;
    }
    assert_int_equal(left_out, 20000 - LOG_LIMIT_USER);
    assert_true(log_limit_admits(20002, USER, (LOG_LIMIT_SECONDS + 2) * UNITS_SECOND));
}

/* Lines of a client beyond its own limit do not count for its user's. */
static void a_client_has_a_limit_of_its_own(void **state)
{
    unsigned admitted = 0;
    struct log_limit_over over;
    (void)state;
    for (unsigned i = 0; i < 10 * LOG_LIMIT_USER; i++)
        admitted += log_limit_admits(7, USER, UNITS_SECOND);
    assert_int_equal(admitted, LOG_LIMIT_CLIENT);
    assert_true(log_limit_admits(8, USER, UNITS_SECOND));
    assert_true(log_limit_over((LOG_LIMIT_SECONDS + 1) * UNITS_SECOND, &over));
    assert_int_equal(over.client, 7);
    assert_int_equal(over.left_out, 10 * LOG_LIMIT_USER - LOG_LIMIT_CLIENT);
    assert_false(log_limit_over((LOG_LIMIT_SECONDS + 1) * UNITS_SECOND, &over));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_users_limit_holds_for_any_number_of_clients, forget),
        cmocka_unit_test_setup(a_client_has_a_limit_of_its_own, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
