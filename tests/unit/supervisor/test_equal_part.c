/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Equal parts, which clients may reserve for themselves: the arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/util.h"
#include "server/supervisor/account/equal_part.h"
#include "tests/support/seed.h"

enum { MOST = 24 };

static struct equal_part_client clients[MOST];

/* The grant of the client with this number of the caller's. */
static uint64_t granted(size_t count, size_t of)
{
    for (size_t i = 0; i < count; i++)
        if (clients[i].of == of)
            return clients[i].granted;
    fail_msg("there is no client %zu", of);
    return 0;
}

static void the_example_of_the_header_holds(void **state)
{
    (void)state;
    clients[0] = (struct equal_part_client){.account = 7, .asked = 6000, .of = 0};
    clients[1] = (struct equal_part_client){.account = 8, .asked = 3000, .of = 1};
    clients[2] = (struct equal_part_client){.account = 7, .asked = 2000, .of = 2};
    clients[3] = (struct equal_part_client){.account = 9, .of = 3};
    assert_int_equal(equal_part_divide(clients, 4, 10000), 3);
    assert_int_equal(granted(4, 0), 2499);
    assert_int_equal(granted(4, 1), 3000);
    assert_int_equal(granted(4, 2), 833);
    assert_int_equal(granted(4, 3), 0);
    for (size_t i = 0; i < 4; i++)
        clients[i].reserved = clients[i].account == 9 ? 7000 : 0;
    equal_part_divide(clients, 4, 10000);
    assert_int_equal(granted(4, 0) + granted(4, 2), 1125 + 375);
    assert_int_equal(granted(4, 1), 1500);
}

static void an_account_alone_has_all_that_it_asks_for(void **state)
{
    (void)state;
    clients[0] = (struct equal_part_client){.account = 7, .asked = 9000, .of = 0};
    clients[1] = (struct equal_part_client){.account = 7, .asked = 8000, .reserved = 1, .of = 1};
    assert_int_equal(equal_part_divide(clients, 2, 10000), 1);
    assert_int_equal(granted(2, 0), 9000);
    assert_int_equal(granted(2, 1), 8000);
}

static void a_request_of_an_account_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++)
        clients[i] = (struct equal_part_client){.account = 7, .of_account = 4000, .of = i};
    clients[2] = (struct equal_part_client){.account = 8, .asked = 10000, .of = 2};
    equal_part_divide(clients, 3, 10000);
    assert_int_equal(granted(3, 2), 5000);
    clients[0].of_account = clients[1].of_account = clients[2].of_account = 0;
    for (size_t i = 0; i < 3; i++)
        clients[i].of_account = clients[i].account == 7 ? 7000 : 0;
    equal_part_divide(clients, 3, 10000);
    assert_int_equal(granted(3, 2), 3000);
}

/* Amounts of memory are large: nothing overflows. */
static void bytes_are_divided_as_well(void **state)
{
    (void)state;
    const uint64_t whole = UINT64_C(1) << 47;
    clients[0] = (struct equal_part_client){.account = 1, .asked = whole, .of = 0};
    clients[1] = (struct equal_part_client){.account = 1, .asked = whole / 2, .of = 1};
    clients[2] = (struct equal_part_client){.account = 2, .asked = 4096, .of = 2};
    equal_part_divide(clients, 3, whole);
    assert_int_equal(granted(3, 0), whole / 3);
    assert_int_equal(granted(3, 1), whole / 6);
    assert_int_equal(granted(3, 2), 4096);
}

/* The sum of one account's members, in one pass over all of them. */
static uint64_t sum_of(size_t count, uint64_t account, size_t member)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (clients[i].account == account)
            sum += member == 0 ? clients[i].asked : clients[i].granted;
    return sum;
}

/* These hold whatever the formula is: everything fits, nobody has more than it asked for or its
 * account more than an equal part, and whoever asks for little has it. */
static void everything_fits_and_little_is_granted_whole(void **state)
{
    (void)state;
    srand(seed_draw());
    for (int round = 0; round < 3000; round++) {
        const size_t count = 1 + (size_t)rand() % MOST;
        const uint64_t kinds = 1 + (uint64_t)rand() % 6;
        uint64_t reserved = 0, all = 0;
        for (size_t i = 0; i < count; i++) {
            const uint64_t rule = rand() % 4 == 0 ? (uint64_t)rand() % 400 : 0;
            clients[i] = (struct equal_part_client){.account = (uint64_t)rand() % kinds,
                                                    .reserved = rule,
                                                    .asked = (uint64_t)rand() % 3 * 1700,
                                                    .of = i};
            reserved += rule;
        }
        const size_t accounts = equal_part_divide(clients, count, 10000);
        for (size_t i = 0; i < count; i++) {
            const uint64_t account = clients[i].account;
            assert_true(clients[i].granted <= clients[i].asked);
            all += clients[i].granted;
            if (accounts == 1)
                assert_int_equal(clients[i].granted, clients[i].asked);
            else
                assert_true(sum_of(count, account, 1) <= 10000 / accounts);
            const uint64_t sure = saturating_sub(10000, reserved) / accounts;
            if (sum_of(count, account, 0) <= sure)
                assert_int_equal(clients[i].granted, clients[i].asked);
        }
        if (accounts > 1)
            assert_true(all + reserved <= 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_header_holds),
        cmocka_unit_test(an_account_alone_has_all_that_it_asks_for),
        cmocka_unit_test(a_request_of_an_account_counts_once),
        cmocka_unit_test(bytes_are_divided_as_well),
        cmocka_unit_test(everything_fits_and_little_is_granted_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
