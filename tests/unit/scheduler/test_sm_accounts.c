/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* SM groups of accounts: what the clients of a user have together. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "server/scheduler/plan.h"
#include "tests/support/seed.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "tests/programs/simulate/device.h"
#include "tests/support/sm_group_sizes.h"

static struct error why;
static struct sm_allocation allocation;

static void start(uint32_t count)
{
    assert_int_equal(sm_allocation_open(&allocation, count, 8, 0), 0);
}

static void set(struct sm_allocation_account *account, uint32_t request, uint32_t limit)
{
    uint32_t error = sm_allocation_account_set(&allocation, account, request, limit, &why);
    if (error)
        fail_msg("%u: %s", error, why.text);
}

static void arrive(struct sm_allocation_client *client, struct sm_allocation_account *account,
                   uint32_t request, uint32_t limit)
{
    memset(client, 0, sizeof *client);
    uint32_t error = sm_allocation_add(&allocation, client, account, request, limit, &why);
    if (error)
        fail_msg("%u: %s", error, why.text);
}

static uint64_t bits(const struct sm_allocation_client *client)
{
    return client->now.bits[0];
}

static void drain_names(void)
{
    while (sm_allocation_next_changed(&allocation))
        continue;
}

/* The second picture of the contract. */
static void a_request_is_the_accounts(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1};
    struct sm_allocation_client a, b, c;
    start(8);
    set(&u, 5000, 5000);
    arrive(&a, &u, 2500, PLAN_WHOLE);
    arrive(&b, &u, 0, PLAN_WHOLE);
    arrive(&c, NULL, 0, PLAN_WHOLE);
    sm_allocation_wants(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    sm_allocation_wants(&allocation, &c);
    assert_int_equal(bits(&a), 0x0f); /* its own, and what nobody of the account owns */
    assert_int_equal(bits(&b), 0x0c);
    assert_int_equal(bits(&c), 0xf0);
    assert_true(sm_allocation_owns(&b, &b.now));
    assert_false(sm_allocation_borrows(&allocation, &b, &b.now));
    sm_allocation_idle(&allocation, &a);
    assert_int_equal(bits(&b), 0x0f);
    assert_int_equal(bits(&c), 0xf0);
    assert_true(sm_allocation_borrows(&allocation, &b, &b.now));
    assert_false(sm_allocation_owns(&b, &b.now));
    sm_allocation_idle(&allocation, &b);
    assert_int_equal(bits(&c), 0xff);
    drain_names();
    sm_allocation_wants(&allocation, &b);
    assert_int_equal(bits(&b), 0x0f);
    assert_int_equal(bits(&c), 0xf0);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &c);
    assert_null(sm_allocation_next_changed(&allocation));
    sm_allocation_wants(&allocation, &a);
    assert_ptr_equal(sm_allocation_next_changed(&allocation), &b);
    assert_int_equal(bits(&b), 0x0c);
    assert_null(sm_allocation_next_changed(&allocation));
}

static void ten_clients_have_no_more_than_one(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1};
    struct sm_allocation_client clients[10], other;
    start(8);
    set(&u, 0, 5000);
    struct sm_group_set all = {{0}};
    arrive(&other, NULL, 0, 2500);
    for (int i = 0; i < 10; i++) {
        arrive(&clients[i], &u, 0, i % 2 ? 2500 : PLAN_WHOLE);
        sm_allocation_wants(&allocation, &clients[i]);
        sm_group_set_join(&all, &clients[i].now);
        assert_int_equal(sm_allocation_max(&allocation, &clients[i]), i % 2 ? 16 : 32);
    }
    assert_int_equal(sm_group_set_count(&all), 4);
    assert_false(sm_group_set_overlaps(&all, &other.now));
}

/* Others may be on an account's SM groups while it is idle; its clients don't go elsewhere for
 * that. */
static void clients_go_to_their_accounts_sm_groups(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1};
    struct sm_allocation_client a, b, c, other;
    start(8);
    arrive(&other, NULL, 0, PLAN_WHOLE);
    set(&u, 5000, PLAN_WHOLE);
    arrive(&a, &u, 0, 2500);
    arrive(&b, &u, 0, 2500);
    arrive(&c, &u, 0, 2500);
    sm_allocation_wants(&allocation, &other);
    for (int turn = 0; turn < 3; turn++) {
        struct sm_allocation_client *only = (struct sm_allocation_client *[]){&a, &b, &c}[turn];
        sm_allocation_wants(&allocation, only);
        assert_true(sm_allocation_owns(only, &only->now));
        assert_int_equal(bits(&other), 0xf0);
        sm_allocation_idle(&allocation, only);
    }
    sm_allocation_wants(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    assert_int_equal(bits(&a) | bits(&b), 0x0f);
}

static void an_account_keeps_its_limit_when_sm_groups_are_taken_back(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1};
    struct sm_allocation_client owner, a, b;
    start(8);
    arrive(&owner, NULL, 2500, 2500);
    set(&u, 0, 5000);
    arrive(&a, &u, 0, PLAN_WHOLE);
    arrive(&b, &u, 0, 2500);
    sm_allocation_wants(&allocation, &a);
    sm_allocation_wants(&allocation, &b);
    assert_int_equal(sm_allocation_update(&allocation, &owner, 7500, 7500, &why), 0);
    drain_names();
    sm_allocation_wants(&allocation, &owner);
    assert_int_equal(sm_group_set_count(&owner.now), 6);
    assert_int_equal(bits(&a), ~bits(&owner) & 0xff);
    assert_int_equal(bits(&b), bits(&a));
    sm_allocation_idle(&allocation, &owner);
    assert_int_equal(sm_group_set_count(&a.now), 4);
    struct sm_group_set on = {{bits(&b) & ~bits(&a)}};
    assert_true(sm_group_set_is_empty(&on));
    /* SM groups that the account may have no more are no place for its clients, though nobody owns
     * them. */
    struct sm_group_set before = a.now;
    set(&u, 0, 2500);
    assert_false(sm_allocation_may_use(&allocation, &a, &before));
    assert_true(sm_allocation_may_use(&allocation, &a, &a.now));
}

static void sums_are_checked_by_account(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1}, v = {.number = 2}, w = {.number = 3};
    struct sm_allocation_client a, b, c = {0}, d = {0};
    start(16);
    set(&u, 5000, PLAN_WHOLE);
    arrive(&a, &u, 2500, PLAN_WHOLE);
    /* The account's request counts once, and its clients' come out of it. */
    assert_int_equal(sm_allocation_add(&allocation, &c, &u, 3000, 3000, &why), 0);
    assert_int_equal(sm_allocation_update(&allocation, &c, 3200, 3200, &why), PROTO_ERROR_NO_ROOM);
    assert_string_equal(
        why.text, "threads: other clients of the account (1) have 4 of its 8 SM groups of 8 "
                  "multiprocessors of their own; with the 5 of this request that makes 9: ask "
                  "for less, or an administrator can lower another request");
    assert_int_equal(sm_allocation_account_set(&allocation, &u, 4900, PLAN_WHOLE, &why),
                     PROTO_ERROR_NO_ROOM);
    assert_string_equal(why.text,
                        "threads: clients of the account (2) have SM groups of their own (8, of 8 "
                        "multiprocessors each); the account would have 7 in total: lower its "
                        "clients' requests first");
    assert_int_equal(u.request, 5000);
    arrive(&b, NULL, 2500, 2500);
    /* Its request counts when it has a client. */
    set(&v, 3000, PLAN_WHOLE);
    assert_int_equal(sm_allocation_add(&allocation, &d, &v, 0, PLAN_WHOLE, &why), 0);
    sm_allocation_remove(&allocation, &d);
    set(&v, 3200, PLAN_WHOLE);
    assert_int_equal(sm_allocation_add(&allocation, &d, &v, 0, PLAN_WHOLE, &why),
                     PROTO_ERROR_NO_ROOM);
    assert_string_equal(
        why.text,
        "threads: the requests of others (2) have 12 of the device's 16 SM groups of "
        "8 multiprocessors of their own; with the 5 of this request that makes 17: "
        "ask for 4 at most, which is 31.24 %, or an administrator can lower another request");
    /* Without a request of the account, its limit bounds what its clients own. */
    set(&w, 0, 1200);
    assert_int_equal(sm_allocation_add(&allocation, &d, &w, 1300, 1300, &why), PROTO_ERROR_NO_ROOM);
    assert_int_equal(sm_allocation_add(&allocation, &d, &w, 1200, 1300, &why), 0);
    assert_int_equal(sm_allocation_move(&allocation, &d, &u, &why), PROTO_ERROR_NO_ROOM);
    assert_ptr_equal(d.account, &w);
    assert_int_equal(sm_allocation_move(&allocation, &d, NULL, &why), 0);
}

static void an_account_without_limits_changes_nothing(void **state)
{
    (void)state;
    struct sm_allocation_account u = {.number = 1};
    struct sm_allocation_client with[4], without[4];
    struct sm_allocation copy;
    uint64_t random = 3;
    start(9);
    copy = allocation;
    for (int i = 0; i < 4; i++) {
        uint32_t limit = 1 + (uint32_t)(device_random(&random) % PLAN_WHOLE);
        arrive(&with[i], &u, limit / 5, limit);
        memset(&without[i], 0, sizeof without[i]);
        assert_int_equal(sm_allocation_add(&copy, &without[i], NULL, limit / 5, limit, &why), 0);
    }
    for (int step = 0; step < 1000; step++) {
        uint64_t i = device_random(&random) % 4;
        bool works = device_random(&random) % 2;
        (works ? sm_allocation_wants : sm_allocation_idle)(&allocation, &with[i]);
        (works ? sm_allocation_wants : sm_allocation_idle)(&copy, &without[i]);
        for (int at = 0; at < 4; at++)
            assert_memory_equal(&with[at].now, &without[at].now, sizeof with[at].now);
    }
}

/* ---- any mix, held against an oracle that knows requests, limits and who has work alone ---- */

enum { CLIENTS = 20, ACCOUNTS = 4 };

static struct sm_allocation_client clients[CLIENTS];
static struct sm_allocation_account accounts[ACCOUNTS];

static uint32_t groups_of(uint32_t percentage)
{
    uint32_t budget = allocation.total * percentage / PLAN_WHOLE;
    uint32_t groups = budget / 8 > allocation.count ? allocation.count : budget / 8;
    return percentage && !groups ? 1 : groups;
}

static uint32_t owned_groups(uint32_t request)
{
    return allocation.total <= 8 ? 0 : groups_of(request);
}

/* Whether the requests would fit, with these of one client and its account. */
static bool fits(const struct sm_allocation_client *client, const struct sm_allocation_account *in,
                 uint32_t request, const struct sm_allocation_account *changed, uint32_t of_changed,
                 uint32_t limit)
{
    uint32_t sum = 0, of[ACCOUNTS + 1] = {0};
    bool there[ACCOUNTS + 1] = {false};
    for (int i = 0; i < CLIENTS; i++) {
        bool it = &clients[i] == client;
        if (!clients[i].present && !it)
            continue;
        const struct sm_allocation_account *account = it ? in : clients[i].account;
        size_t at = account ? (size_t)(account - accounts) : ACCOUNTS;
        there[at] = true;
        of[at] += owned_groups(it ? request : clients[i].request);
    }
    for (size_t at = 0; at < ACCOUNTS; at++) {
        bool new = changed == &accounts[at];
        uint32_t asks = owned_groups(new ? of_changed : accounts[at].request);
        uint32_t most = new ? limit : accounts[at].limit;
        bool has = new ? of_changed : accounts[at].request;
        if (!there[at])
            continue;
        if (of[at] > (has ? asks : most ? groups_of(most) : allocation.count))
            return false;
        sum += has ? asks : of[at];
    }
    return sum + of[ACCOUNTS] <= allocation.count;
}

/* Whether the account reserves SM groups for its clients now. */
static bool reserves(const struct sm_allocation_account *account)
{
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].present && clients[i].wants && clients[i].account == account)
            return true;
    return false;
}

static void join_union(const struct sm_allocation_account *account,
                       const struct sm_group_set *of_clients, struct sm_group_set *all)
{
    *all = (struct sm_group_set){{0}};
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].present && clients[i].account == account)
            sm_group_set_join(all, &of_clients[i]);
}

static void check_unions(const struct sm_group_set *of_clients, int step)
{
    for (int at = 0; at < ACCOUNTS; at++) {
        struct sm_group_set all;
        join_union(&accounts[at], of_clients, &all);
        uint32_t has = sm_group_sizes_sum(&allocation, &all);
        if (accounts[at].limit && has > 8 &&
            has > allocation.total * accounts[at].limit / PLAN_WHOLE)
            fail_msg("step %d: account %d runs on %u multiprocessors of %u with a limit of %u",
                     step, at, has, allocation.total, accounts[at].limit);
    }
}

static void check_owned(int step)
{
    struct sm_group_set owned = {{0}};
    for (int at = 0; at < ACCOUNTS; at++) {
        bool there = false;
        for (int i = 0; i < CLIENTS; i++)
            there = there || (clients[i].present && clients[i].account == &accounts[at]);
        uint32_t needs = there ? owned_groups(accounts[at].request) : 0;
        if (sm_group_set_count(&accounts[at].own) != needs)
            fail_msg("step %d: account %d owns %u SM groups, not %u", step, at,
                     sm_group_set_count(&accounts[at].own), needs);
        if (sm_group_set_overlaps(&owned, &accounts[at].own))
            fail_msg("step %d: account %d owns what another one owns", step, at);
        sm_group_set_join(&owned, &accounts[at].own);
    }
    for (int i = 0; i < CLIENTS; i++) {
        const struct sm_allocation_client *client = &clients[i];
        if (!client->present)
            continue;
        if (sm_group_set_count(&client->own) != owned_groups(client->request))
            fail_msg("step %d: client %d owns too few or too many", step, i);
        struct sm_group_set beyond = client->own;
        if (client->account && client->account->request) {
            sm_group_set_cut(&beyond, &client->account->own);
            if (!sm_group_set_is_empty(&beyond))
                fail_msg("step %d: client %d owns what its account does not own", step, i);
        } else if (sm_group_set_overlaps(&owned, &client->own)) {
            fail_msg("step %d: client %d owns what an account owns", step, i);
        }
        for (int j = 0; j < i; j++)
            if (clients[j].present && sm_group_set_overlaps(&clients[j].own, &client->own))
                fail_msg("step %d: clients %d and %d own the same", step, i, j);
        beyond = client->own;
        sm_group_set_cut(&beyond, &client->now);
        if (!sm_group_set_is_empty(&beyond))
            fail_msg("step %d: client %d is not on its own SM groups", step, i);
    }
}

/* Where the client must not be: on what others, or accounts of others, own and use. */
static struct sm_group_set taken_from(int i)
{
    struct sm_group_set taken = {{0}};
    for (int j = 0; j < CLIENTS; j++)
        if (j != i && clients[j].present && clients[j].wants)
            sm_group_set_join(&taken, &clients[j].own);
    for (int at = 0; at < ACCOUNTS; at++)
        if (clients[i].account != &accounts[at] && reserves(&accounts[at]))
            sm_group_set_join(&taken, &accounts[at].own);
    return taken;
}

/* Nothing lies idle that a client with work could have. */
static void check_nothing_idle(int i, const struct sm_group_set *taken, int step)
{
    const struct sm_allocation_client *client = &clients[i];
    const struct sm_allocation_account *account = client->account;
    struct sm_group_set all, nows[CLIENTS];
    uint32_t most = groups_of(client->limit), whole = 0, together = 0;
    for (int j = 0; j < CLIENTS; j++)
        nows[j] = clients[j].now;
    join_union(account, nows, &all);
    uint32_t bound = account && account->limit ? groups_of(account->limit) : allocation.count;
    for (uint32_t group = 0; group < allocation.count; group++) {
        whole += sm_group_set_has(&client->now, group);
        together += sm_group_set_has(&all, group);
    }
    most = most < bound ? most : bound;
    for (uint32_t group = 0; group < allocation.count && whole < most; group++)
        if (!sm_group_set_has(taken, group) && !sm_group_set_has(&client->now, group) &&
            (together < bound || sm_group_set_has(&all, group)))
            fail_msg("step %d: client %d has %u of %u SM groups, and %u is free for it", step, i,
                     whole, most, group);
}

static void check_all(int step)
{
    struct sm_group_set nows[CLIENTS];
    check_owned(step);
    for (int i = 0; i < CLIENTS; i++) {
        nows[i] = clients[i].now;
        if (!clients[i].present)
            continue;
        struct sm_group_set taken = taken_from(i);
        if (sm_group_set_overlaps(&taken, &clients[i].now))
            fail_msg("step %d: client %d is on SM groups taken by their owner", step, i);
        if (!sm_allocation_may_use(&allocation, &clients[i], &clients[i].now))
            fail_msg("step %d: client %d may not use what it has", step, i);
        uint32_t granted = sm_group_sizes_sum(&allocation, &clients[i].now);
        if (granted > 8 && granted > allocation.total * clients[i].limit / PLAN_WHOLE)
            fail_msg("step %d: client %d has %u of %u", step, i, granted, clients[i].limit);
        if (clients[i].wants)
            check_nothing_idle(i, &taken, step);
    }
    check_unions(nows, step);
}

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(device_random(&seed) % below);
}

static void expect(uint32_t error, bool can, int step)
{
    if (!error != can)
        fail_msg("step %d: it %s: %s", step,
                 can ? "fits and is refused" : "does not fit, and is not", why.text);
}

static void take_step(int step)
{
    struct sm_allocation_client *client = &clients[draw(CLIENTS)];
    struct sm_allocation_account *account = draw(4) ? &accounts[draw(ACCOUNTS)] : NULL;
    uint32_t limit = draw(3) ? 1 + draw(PLAN_WHOLE) : PLAN_WHOLE;
    uint32_t request = draw(2) ? draw(limit / 3 + 1) : 0;
    uint32_t what = draw(16);
    why.text[0] = 0;
    if (what < 2 && account) {
        bool can = fits(NULL, NULL, 0, account, request, limit);
        expect(sm_allocation_account_set(&allocation, account, request, limit, &why), can, step);
    } else if (!client->present) {
        bool can = fits(client, account, request, NULL, 0, 0);
        expect(sm_allocation_add(&allocation, client, account, request, limit, &why), can, step);
    } else if (what == 3) {
        sm_allocation_remove(&allocation, client);
    } else if (what == 4) {
        bool can = fits(client, client->account, request, NULL, 0, 0);
        expect(sm_allocation_update(&allocation, client, request, limit, &why), can, step);
    } else if (what == 5) {
        bool can = fits(client, account, client->request, NULL, 0, 0);
        expect(sm_allocation_move(&allocation, client, account, &why), can, step);
    } else if (what < 12) {
        sm_allocation_wants(&allocation, client);
    } else {
        sm_allocation_idle(&allocation, client);
    }
}

/* Takes the named clients to where they belong, one after the other, as a caller does. */
static void follow_names(struct sm_group_set *known, int step)
{
    struct sm_allocation_client *named;
    while ((named = sm_allocation_next_changed(&allocation)))
        known[named - clients] = named->now;
    for (int i = 0; i < CLIENTS; i++) {
        if (!clients[i].present)
            memset(&known[i], 0, sizeof known[i]);
        else if (!sm_group_set_equals(&known[i], &clients[i].now))
            fail_msg("step %d: client %d moved and was not named", step, i);
    }
}

static void any_mix_keeps_the_promises(void **state)
{
    (void)state;
    static struct sm_group_set known[CLIENTS];
    uint64_t first = seed_number("TEST_SEED", 1);
    for (uint64_t mix = 0; mix < 300; mix++) {
        seed = first * 1000 + mix;
        memset(clients, 0, sizeof clients);
        memset(accounts, 0, sizeof accounts);
        memset(known, 0, sizeof known);
        assert_int_equal(sm_allocation_open(&allocation, 1 + draw(20), 8, draw(8)), 0);
        for (int step = 0; step < 200; step++) {
            take_step(step);
            check_all(step);
            follow_names(known, step);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_the_accounts),
        cmocka_unit_test(ten_clients_have_no_more_than_one),
        cmocka_unit_test(clients_go_to_their_accounts_sm_groups),
        cmocka_unit_test(an_account_keeps_its_limit_when_sm_groups_are_taken_back),
        cmocka_unit_test(sums_are_checked_by_account),
        cmocka_unit_test(an_account_without_limits_changes_nothing),
        cmocka_unit_test(any_mix_keeps_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
