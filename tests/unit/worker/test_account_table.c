/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Accounts at the worker: from the supervisor's messages to the scheduler. */
#include "tests/unit/worker/harness.h"

#include <string.h>

enum { USER = 100, OTHER = 200, GROUP = 300 };

static struct proto_worker_account account(uint64_t number, uint32_t request, uint32_t limit)
{
    return (struct proto_worker_account){.account = number,
                                         .time_request = request,
                                         .time_limit = limit,
                                         .threads_limit = PROTO_PERCENT_WHOLE,
                                         .name = "user 100"};
}

static void set_account(uint64_t number, uint32_t request, uint32_t limit)
{
    struct proto_worker_account wanted = account(number, request, limit);
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &wanted, PROTO_DONE);
}

/* Moves an attached client to these accounts. */
static void move(uint32_t client, uint64_t first, uint64_t second, uint32_t request,
                 uint16_t expected)
{
    struct proto_worker_limits limits = {.allowance = granted_whole(), .accounts = {first, second}};
    limits.allowance.time.request = request;
    harness_ask(PROTO_WORKER_LIMITS, client, &limits, expected);
}

static const struct scheduler_client *scheduled(uint32_t number)
{
    return &worker_find_client(&harness.worker, number)->gate.scheduled;
}

static size_t accounts_there(void)
{
    size_t count = 0;
    for (const struct account_entry *entry = harness.worker.accounts.first; entry;
         entry = entry->next)
        count++;
    return count;
}

static void an_account_is_there_for_its_clients(void **state)
{
    (void)state;
    set_account(USER, 2000, 5000);
    assert_int_equal(accounts_there(), 1);
    struct peer *one = peer_attach(1), *two = peer_attach(2);
    /* It waits for its first client, while others come and go. */
    peer_detach(two);
    assert_int_equal(accounts_there(), 2);
    move(1, USER, 0, 1000, PROTO_WORKER_ATTACHED);
    assert_int_equal(accounts_there(), 1);
    assert_int_equal(scheduled(1)->accounts.of[0]->number, USER);
    assert_int_equal(scheduled(1)->accounts.of[0]->time_request, 2000);
    assert_int_equal(scheduled(1)->accounts.of[0]->time_limit, 5000);
    move(1, OTHER, USER, 1000, PROTO_WORKER_ATTACHED);
    assert_int_equal(accounts_there(), 2);
    assert_int_equal(scheduled(1)->accounts.of[0]->number, OTHER);
    assert_int_equal(scheduled(1)->accounts.of[1]->number, USER);
    peer_detach(one);
    assert_int_equal(accounts_there(), 0);
}

static void requests_are_compared_by_account(void **state)
{
    (void)state;
    struct peer *one = peer_attach(1), *two = peer_attach(2), *three = peer_attach(3);
    harness_set_mode(PROTO_MODE_STRICT, PROTO_LEASE_DEFAULT);
    set_account(USER, 6000, PROTO_PERCENT_WHOLE);
    move(1, USER, 0, 1000, PROTO_WORKER_ATTACHED);
    move(2, USER, 0, 5000, PROTO_WORKER_ATTACHED);
    /* 10 % + 51 % are more than the account's. */
    move(2, USER, 0, 5100, PROTO_FAILED);
    assert_non_null(strstr(((const struct proto_failed *)harness.message.body)->text, "user 100"));
    assert_int_equal(scheduled(2)->limits.request, 5000);
    move(3, OTHER, 0, 4000, PROTO_WORKER_ATTACHED);
    struct proto_worker_account more = account(USER, 6100, PROTO_PERCENT_WHOLE);
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &more, PROTO_FAILED);
    assert_int_equal(scheduled(1)->accounts.of[0]->time_request, 6000);
    more = account(USER, 5000, 4000);
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &more, PROTO_FAILED);
    peer_detach(one);
    peer_detach(two);
    peer_detach(three);
}

/* A group's clients have no more than the group may, in whatever user's account they are. */
static void limits_of_further_accounts_cap_a_client(void **state)
{
    (void)state;
    struct proto_worker_account quarter = account(GROUP, 0, PROTO_PERCENT_WHOLE);
    quarter.threads_limit = 2500;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &quarter, PROTO_DONE);
    struct peer *one = peer_attach(1), *two = peer_attach(2);
    const struct sm_allocation_client *placed =
        &worker_find_client(&harness.worker, 1)->place.allocation;
    struct proto_worker_limits limits = {.allowance = granted_whole(), .accounts = {USER, GROUP}};
    limits.allowance.threads.request = 5000;
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    assert_int_equal(placed->max_sm_groups, 4); /* of 16 */
    assert_int_equal(sm_group_set_count(&placed->own), 4);
    /* The group's limit changes: its client follows, and nobody else. */
    move(2, USER, 0, 0, PROTO_WORKER_ATTACHED);
    quarter.threads_limit = 1250;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &quarter, PROTO_DONE);
    assert_int_equal(placed->max_sm_groups, 2);
    assert_int_equal(sm_group_set_count(&placed->own), 2);
    /* Client 2 owns so much that half of the device is not free any more. */
    limits.accounts[1] = 0;
    limits.allowance.threads.request = 8000;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    quarter.threads_limit = 6000;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &quarter, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_NO_ROOM);
    assert_int_equal(placed->max_sm_groups, 2);
    /* Without the group the client has what it asked for, as far as there is room. */
    limits.allowance.threads.request = 0;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    move(1, USER, 0, 0, PROTO_WORKER_ATTACHED);
    assert_true(placed->max_sm_groups >= 16);
    peer_detach(one);
    peer_detach(two);
}

static int setup_undivided(void **state)
{
    fake_reset();
    fake.sm_group = 0;
    harness.driver = fake_driver();
    return harness_start_with(state, &harness.driver);
}

/* Where the driver divides no multiprocessors, an account's limit of them is one part of the time.
 */
static void without_partitions_an_account_has_a_duty(void **state)
{
    (void)state;
    assert_false(harness.worker.partitions.supported);
    struct proto_worker_account quarter = account(USER, 0, PROTO_PERCENT_WHOLE);
    quarter.threads_limit = 2500;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &quarter, PROTO_DONE);
    struct peer *one = peer_attach(1);
    move(1, USER, 0, 0, PROTO_WORKER_ATTACHED);
    assert_true(scheduler_has_duty(scheduled(1)));
    assert_int_equal(scheduled(1)->accounts.of[0]->duty.rate, 2500);
    assert_int_equal(scheduled(1)->limits.duty, PROTO_PERCENT_WHOLE);
    assert_false(gate_is_open(&harness.worker.gate));
    peer_detach(one);
}

/* Half of the device for a user: its clients have no more together, and their requests are of it.
 */
static void threads_are_divided_by_account(void **state)
{
    (void)state;
    struct proto_worker_account half = account(USER, 0, PROTO_PERCENT_WHOLE);
    half.threads_limit = 5000;
    half.threads_request = 2500;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &half, PROTO_DONE);
    struct peer *one = peer_attach(1), *two = peer_attach(2), *three = peer_attach(3);
    move(1, USER, 0, 0, PROTO_WORKER_ATTACHED);
    const struct proto_worker_attached *attached = (const void *)harness.message.body;
    uint64_t first = attached->sm_groups[0];
    move(2, USER, 0, 0, PROTO_WORKER_ATTACHED);
    uint64_t both = first | attached->sm_groups[0];
    assert_in_range(__builtin_popcountll(both), 1, 8); /* of 16 SM groups */
    move(3, OTHER, 0, 0, PROTO_WORKER_ATTACHED);
    assert_in_range(__builtin_popcountll(attached->sm_groups[0]), 9, 17);
    /* A quarter is the user's: of its own clients none can have more, of others three quarters. */
    struct proto_worker_limits limits = {.allowance = granted_whole(), .accounts = {USER}};
    limits.allowance.threads.request = 4000;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_NO_ROOM);
    limits.accounts[0] = OTHER;
    limits.allowance.threads.request = 8000;
    harness_ask(PROTO_WORKER_LIMITS, 3, &limits, PROTO_FAILED);
    limits.allowance.threads.request = 7000;
    harness_ask(PROTO_WORKER_LIMITS, 3, &limits, PROTO_WORKER_ATTACHED);
    /* Limits that don't fit change neither time nor threads. */
    half.threads_request = 4000;
    half.time_limit = 3000;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &half, PROTO_FAILED);
    assert_int_equal(scheduled(1)->accounts.of[0]->time_limit, PROTO_PERCENT_WHOLE);
    half.threads_request = 2000;
    half.time_request = 4000;
    harness_ask(PROTO_WORKER_ACCOUNT, 0, &half, PROTO_FAILED); /* above the limit of time */
    assert_int_equal(worker_find_client(&harness.worker, 1)->place.allocation.account->request,
                     2500);
    peer_detach(one);
    peer_detach(two);
    peer_detach(three);
}

/* In concurrent mode the scheduler is asked where it has to choose between users. */
static void the_gate_is_open_for_one_user(void **state)
{
    (void)state;
    struct peer *one = peer_attach(1), *two = peer_attach(2);
    assert_true(gate_is_open(&harness.worker.gate));
    move(2, OTHER, GROUP, 0, PROTO_WORKER_ATTACHED);
    assert_false(gate_is_open(&harness.worker.gate));
    move(1, OTHER, 0, 0, PROTO_WORKER_ATTACHED);
    assert_true(gate_is_open(&harness.worker.gate));
    peer_detach(one);
    peer_detach(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_account_is_there_for_its_clients, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(requests_are_compared_by_account, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(without_partitions_an_account_has_a_duty, setup_undivided,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(limits_of_further_accounts_cap_a_client, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(threads_are_divided_by_account, harness_setup,
                                        harness_stop),
        cmocka_unit_test_setup_teardown(the_gate_is_open_for_one_user, harness_setup, harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
