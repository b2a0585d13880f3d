/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* owner_turns against a list of every turn that was ever given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/worker/calls/owner_turns.h"

enum { PLACES = OWNER_TURNS_SETS * OWNER_TURNS_WAYS, ROUNDS = 100000 };

static uint64_t state_of_chance = 20261122;

static uint64_t draw(uint64_t below)
{
    state_of_chance = state_of_chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (state_of_chance >> 33) % below;
}

/* Eight owners whose numbers fall into one set, the worst that can be chosen. */
static void owners_are_served_in_the_order_of_their_last_turns(void **state)
{
    (void)state;
    struct owner_turns turns = {0};
    uint64_t last[OWNER_TURNS_WAYS] = {0};
    uint32_t base = (uint32_t)draw(1 << 20);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        uint32_t owner = (uint32_t)draw(OWNER_TURNS_WAYS), other = (uint32_t)draw(OWNER_TURNS_WAYS);
        owner_turns_take(&turns, base + owner * OWNER_TURNS_SETS);
        last[owner] = i;
        uint64_t one = owner_turns_last(&turns, base + owner * OWNER_TURNS_SETS);
        uint64_t two = owner_turns_last(&turns, base + other * OWNER_TURNS_SETS);
        assert_int_equal(one < two, last[owner] < last[other]);
        assert_int_equal(one == two, owner == other);
        assert_int_equal(two == 0, last[other] == 0);
    }
}

/* Of many users nobody is ever taken for another one: whoever has a turn was served. */
static void strangers_never_share_a_turn(void **state)
{
    (void)state;
    struct owner_turns turns = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t owner = (uint32_t)draw(1 << 16);
        owner_turns_take(&turns, owner);
        assert_true(owner_turns_last(&turns, owner) > 0);
        assert_int_equal(owner_turns_last(&turns, owner + (1 << 16)), 0);
    }
}

/* A table that is full gives up the oldest turn of the set. */
static void the_owner_served_longest_ago_is_forgotten(void **state)
{
    (void)state;
    struct owner_turns turns = {0};
    for (uint32_t owner = 0; owner < PLACES; owner++)
        owner_turns_take(&turns, owner);
    for (uint32_t owner = 0; owner < PLACES; owner++)
        assert_true(owner_turns_last(&turns, owner) > 0);
    owner_turns_take(&turns, PLACES);
    assert_int_equal(owner_turns_last(&turns, 0), 0);
    for (uint32_t owner = 1; owner <= PLACES; owner++)
        assert_true(owner_turns_last(&turns, owner) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_are_served_in_the_order_of_their_last_turns),
        cmocka_unit_test(strangers_never_share_a_turn),
        cmocka_unit_test(the_owner_served_longest_ago_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
