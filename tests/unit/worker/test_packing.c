/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Clients with limits of threads go where their requests of time fit, before one is refused. */
#include "tests/unit/worker/harness.h"

enum { HALF = 5000 };

static uint32_t ask_mode(enum proto_mode mode)
{
    struct proto_worker_schedule wanted = harness_schedule(mode, PROTO_LEASE_DEFAULT);
    harness_send(PROTO_WORKER_SCHEDULE, 0, &wanted, NULL, 0, NULL, 0);
    return harness_receive();
}

/* Returns the opcode of the answer. */
static uint32_t ask_time(uint32_t client, uint32_t request)
{
    struct proto_worker_limits limits = {.allowance = granted_threads(HALF), .accounts = {1}};
    limits.allowance.time.request = request;
    harness_send(PROTO_WORKER_LIMITS, client, &limits, NULL, 0, NULL, 0);
    return harness_receive();
}

static const struct sm_group_set *sm_groups_of(uint32_t number)
{
    return &worker_find_client(&harness.worker, number)->gate.scheduled.sm_groups;
}

static void half_and_half_and_most_of_a_half_fit_in_any_order(void **state)
{
    (void)state;
    static const uint32_t orders[3][3] = {
        {5000, 9000, 5000}, {5000, 5000, 9000}, {9000, 5000, 5000}};
    assert_int_equal(ask_mode(PROTO_MODE_STRICT), PROTO_DONE);
    for (int order = 0; order < 3; order++) {
        struct peer *peers[3];
        for (uint32_t i = 0; i < 3; i++) {
            peers[i] = peer_attach_with(i + 1, HALF, 0);
            assert_int_equal(ask_time(i + 1, orders[order][i]), PROTO_WORKER_ATTACHED);
        }
        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t j = 0; j < i; j++)
                assert_int_equal(sm_group_set_overlaps(sm_groups_of(i + 1), sm_groups_of(j + 1)),
                                 orders[order][i] + orders[order][j] <= PLAN_WHOLE);
        /* A request that fits nowhere is refused, and nobody moves for it. */
        struct sm_group_set before = *sm_groups_of(1);
        struct peer *fourth = peer_attach_with(4, HALF, 0);
        assert_int_equal(ask_time(4, 2000), PROTO_FAILED);
        assert_int_equal(harness_error(), PROTO_ERROR_NO_ROOM);
        assert_memory_equal(sm_groups_of(1), &before, sizeof before);
        peer_detach(fourth);
        for (int i = 0; i < 3; i++)
            peer_detach(peers[i]);
    }
}

static void a_mode_that_enforces_time_makes_room_for_it(void **state)
{
    (void)state;
    struct peer *peers[3];
    for (uint32_t i = 0; i < 3; i++) {
        peers[i] = peer_attach_with(i + 1, HALF, 0);
        assert_int_equal(ask_time(i + 1, i == 2 ? 9000 : 5000), PROTO_WORKER_ATTACHED);
    }
    assert_false(sm_group_set_overlaps(sm_groups_of(1), sm_groups_of(2)));
    assert_int_equal(ask_mode(PROTO_MODE_FAIR), PROTO_DONE);
    assert_true(sm_group_set_equals(sm_groups_of(1), sm_groups_of(2)));
    assert_false(sm_group_set_overlaps(sm_groups_of(1), sm_groups_of(3)));
    for (int i = 0; i < 3; i++)
        peer_detach(peers[i]);
}

/* The second client has no limit of threads. While the first, which has SM groups of its own, has
 * no work, the second is there on loan. */
static void requests_do_not_count_where_sm_groups_are_on_loan(void **state)
{
    (void)state;
    struct peer *owner = peer_attach_with(1, HALF, 0), *guest = peer_attach(2);
    assert_int_equal(ask_mode(PROTO_MODE_FAIR), PROTO_DONE);
    for (int twice = 0; twice < 2; twice++) {
        struct proto_worker_limits limits = {.allowance = granted_threads(HALF), .accounts = {1}};
        limits.allowance.threads.request = HALF;
        limits.allowance.time.request = 3000;
        harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
        limits = (struct proto_worker_limits){.allowance = granted_whole(), .accounts = {2}};
        limits.allowance.time.request = 8000;
        harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
        assert_int_equal(ask_mode(PROTO_MODE_CONCURRENT), PROTO_DONE);
        assert_int_equal(ask_mode(PROTO_MODE_FAIR), PROTO_DONE);
    }
    peer_detach(owner);
    /* Without an owner both are on the same SM groups. */
    owner = peer_attach_with(1, HALF, 0);
    assert_int_equal(ask_time(1, 3000), PROTO_FAILED);
    peer_detach(owner);
    peer_detach(guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(half_and_half_and_most_of_a_half_fit_in_any_order,
                                        harness_setup, harness_stop),
        cmocka_unit_test_setup_teardown(requests_do_not_count_where_sm_groups_are_on_loan,
                                        harness_setup, harness_stop),
        cmocka_unit_test_setup_teardown(a_mode_that_enforces_time_makes_room_for_it, harness_setup,
                                        harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
