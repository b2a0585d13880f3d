/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* SM groups are lent and taken back while work is in flight: who is put where, and when. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

enum { OWN_PERCENT = 5000, OWN = 64, ALL = 132, ROUNDS = 40, CLIENTS = 4 };

static struct peer *peers[CLIENTS + 1];
static uint32_t functions[CLIENTS + 1];

/* Each launch carries its client and its number. */
struct carried {
    uint32_t client, number;
};

static uint32_t ran[CLIENTS + 1];
static uint32_t wrong;

static void on_kernel(const struct cuda_stream_object *stream, const uint8_t parameters[16])
{
    struct carried carried;
    (void)stream;
    memcpy(&carried, parameters, sizeof carried);
    wrong += carried.number != ++ran[carried.client];
}

static void arrive(uint32_t number, uint32_t request, uint32_t limit)
{
    struct proto_worker_limits limits = {.allowance = granted_threads(limit)};
    limits.allowance.threads.request = request;
    peers[number] = peer_attach_with(number, limit, 0);
    harness_ask(PROTO_WORKER_LIMITS, number, &limits, PROTO_WORKER_ATTACHED);
    peer_load_text(peers[number], 1, harness_ptx, 0);
    functions[number] = peer_function(peers[number], 1, "kernel");
}

static int setup_with(void **state, unsigned multiprocessors)
{
    fake_reset();
    fake.multiprocessors = multiprocessors;
    harness.driver = fake_driver();
    memset(peers, 0, sizeof peers);
    memset(ran, 0, sizeof ran);
    wrong = 0;
    fake.on_kernel = on_kernel;
    return harness_start_with(state, &harness.driver);
}

static int setup(void **state)
{
    return setup_with(state, ALL);
}

/* Without a remainder that would be nobody's own. */
static int setup_even(void **state)
{
    return setup_with(state, 128);
}

static int teardown(void **state)
{
    fake_release();
    for (uint32_t i = 1; i <= CLIENTS; i++)
        if (peers[i])
            peer_detach(peers[i]);
    int result = harness_stop(state);
    assert_int_equal(fake.backwards, 0);
    assert_int_equal(fake.destroyed_busy, 0);
    return result;
}

static uint64_t push(uint32_t client, uint32_t number)
{
    struct proto_command_launch command = peer_launch(functions[client]);
    struct carried carried = {client, number};
    memcpy(command.inline_parameters, &carried, sizeof carried);
    return peer_push(peers[client], 0, &command);
}

/* The CUstream that the client's launch of this number was submitted to. */
static const struct cuda_stream_object *stream_of(uint32_t client, uint32_t number)
{
    const struct cuda_stream_object *found = NULL;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < fake.calls && i < FAKE_LOG && !found; i++) {
        struct carried carried;
        memcpy(&carried, fake.log[i].parameters, sizeof carried);
        if (fake.log[i].kind == FAKE_LAUNCH && carried.client == client && carried.number == number)
            found = fake.log[i].stream;
    }
    pthread_mutex_unlock(&fake.lock);
    assert_non_null(found);
    return found;
}

static const struct cuda_green_ctx_object *where(uint32_t client, uint32_t number)
{
    return stream_of(client, number)->green;
}

/* The launch is handed to the device; returns the multiprocessors that it was given. */
static unsigned launch(uint32_t client, uint32_t number)
{
    peer_wait_head(peers[client], 0, push(client, number));
    return where(client, number)->multiprocessors;
}

static bool overlap(const struct cuda_green_ctx_object *a, const struct cuda_green_ctx_object *b)
{
    for (unsigned i = 0; i < a->count; i++)
        for (unsigned j = 0; j < b->count; j++)
            if (a->resources[i].internal[0] == b->resources[j].internal[0])
                return true;
    return false;
}

static struct proto_worker_usage usage(uint32_t client)
{
    harness_ask(PROTO_WORKER_USAGE_QUERY, client, NULL, PROTO_WORKER_USAGE);
    return *(const struct proto_worker_usage *)harness.message.body;
}

static void wait_for_multiprocessors(uint32_t client, uint32_t count)
{
    uint64_t end = clock_now() + 10000000000u;
    while (usage(client).multiprocessors != count) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
}

/* Blocks that a borrower has on the device and that have not begun come after the owner's. */
static void at_home_work_is_more_urgent_than_that_of_who_borrows(void **state)
{
    (void)state;
    arrive(1, OWN_PERCENT, PROTO_PERCENT_WHOLE);
    arrive(2, OWN_PERCENT, PROTO_PERCENT_WHOLE);
    uint32_t launches[3] = {0};
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t borrows = 1 + round % 2, owns = 3 - borrows;
        fake_hold();
        launch(borrows, ++launches[borrows]);
        wait_for_multiprocessors(borrows, 128);
        fake_release();
        assert_int_equal(peer_wait(peers[borrows], 0, launches[borrows]), 0);
        fake_hold();
        assert_int_equal(launch(borrows, ++launches[borrows]), 128);
        assert_int_equal(stream_of(borrows, launches[borrows])->priority, 0);
        assert_int_equal(launch(owns, ++launches[owns]), OWN);
        assert_int_equal(stream_of(owns, launches[owns])->priority, -1);
        fake_release();
        assert_int_equal(peer_wait(peers[owns], 0, launches[owns]), 0);
        assert_int_equal(peer_wait(peers[borrows], 0, launches[borrows]), 0);
    }
}

static void own_sm_groups_are_lent_while_idle_and_taken_back(void **state)
{
    (void)state;
    harness_make_partition(8, 9);
    arrive(1, OWN_PERCENT, OWN_PERCENT);
    arrive(2, 0, PROTO_PERCENT_WHOLE);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        fake_hold();
        launch(2, 3 * round + 1);
        wait_for_multiprocessors(2, ALL);
        /* A borrower may always have two in flight, and no more when they take as long as this. */
        fake_release();
        assert_int_equal(peer_wait(peers[2], 0, 3 * round + 1), 0);
        fake_hold();
        assert_int_equal(launch(2, 3 * round + 2), ALL);
        assert_int_equal(launch(1, round + 1), OWN);
        /* The borrower's kernels are still there; the next goes elsewhere, behind them. */
        assert_int_equal(launch(2, 3 * round + 3), ALL - OWN);
        assert_false(overlap(where(1, round + 1), where(2, 3 * round + 3)));
        assert_int_equal(usage(2).multiprocessors, ALL - OWN);
        fake_release();
        assert_int_equal(peer_wait(peers[1], 0, round + 1), 0);
        assert_int_equal(peer_wait(peers[2], 0, 3 * round + 3), 0);
    }
    assert_int_equal(ran[1], ROUNDS);
    assert_int_equal(ran[2], 3 * ROUNDS);
    assert_int_equal(wrong, 0);
}

static void while_its_work_is_in_flight_an_owner_lends_nothing(void **state)
{
    (void)state;
    harness_make_partition(8, 9);
    arrive(1, OWN_PERCENT, OWN_PERCENT);
    arrive(2, 0, PROTO_PERCENT_WHOLE);
    fake_hold();
    assert_int_equal(launch(1, 1), OWN);
    assert_int_equal(launch(2, 1), ALL - OWN);
    /* Several times as long as a client without work keeps its SM groups. */
    usleep(30000);
    assert_int_equal(launch(2, 2), ALL - OWN);
    assert_int_equal(usage(1).multiprocessors, OWN);
}

static void a_client_without_an_sm_group_waits_until_there_is_one(void **state)
{
    (void)state;
    arrive(1, 5000, 5000);
    arrive(2, 5000, 5000);
    arrive(3, 0, 2500);
    fake_hold();
    launch(1, 1);
    launch(2, 1);
    uint64_t waits = push(3, 1);
    wait_for_multiprocessors(3, 0);
    for (int i = 0; i < 5000 && usage(3).throttled_threads <= 10000000; i++)
        usleep(1000);
    assert_true(usage(3).throttled_threads > 10000000);
    assert_int_equal(usage(3).launches, 0);
    fake_release();
    assert_int_equal(peer_wait(peers[3], 0, waits), 0);
    assert_int_equal(where(3, 1)->multiprocessors, 32);
    uint64_t held = usage(3).throttled_threads;
    usleep(2000);
    assert_int_equal(usage(3).throttled_threads, held);
}

static void a_client_that_waits_for_an_sm_group_can_leave(void **state)
{
    (void)state;
    arrive(1, PROTO_PERCENT_WHOLE, PROTO_PERCENT_WHOLE);
    fake_hold();
    launch(1, 1);
    /* There is no SM group for it from the start. */
    struct peer *late = peer_attach_with(2, 5000, 0);
    assert_int_equal(usage(2).multiprocessors, 0);
    peer_push_nop(late, 0);
    for (int i = 0; i < 5000 && !usage(2).throttled_threads; i++)
        usleep(1000);
    assert_true(usage(2).throttled_threads > 0);
    /* Its registered memory goes when nothing runs any more. */
    harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(peer_wait(peers[1], 0, 1), 0);
    assert_int_equal(peer_completed(late, 0), 0);
    peer_free(late);
}

static void an_owner_that_leaves_frees_the_clients_that_wait(void **state)
{
    (void)state;
    arrive(1, PROTO_PERCENT_WHOLE, PROTO_PERCENT_WHOLE);
    arrive(2, 0, 5000);
    fake_hold();
    launch(1, 1);
    push(2, 1);
    wait_for_multiprocessors(2, 0);
    fake_release();
    peer_detach(peers[1]);
    peers[1] = NULL;
    assert_int_equal(peer_wait(peers[2], 0, 1), 0);
    assert_int_equal(where(2, 1)->multiprocessors, 64);
}

static uint32_t drawn = 99;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (drawn >> 8) % below;
}

static void step_some(uint32_t count)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; count && fake.stream_count && i < 1000; i++)
        count -= fake_step(fake.streams[draw((uint32_t)fake.stream_count)]);
    pthread_mutex_unlock(&fake.lock);
}

/* Steps until each client has reached its value. As long as anything ends, it may take long. */
static void await_values(const uint64_t value[CLIENTS + 1])
{
    uint64_t wanted = 0, done = 0, end = 0;
    for (uint32_t client = 1; client <= CLIENTS; client++)
        wanted += value[client];
    while (done < wanted) {
        uint64_t before = done;
        done = 0;
        for (uint32_t client = 1; client <= CLIENTS; client++)
            done += min(peer_completed(peers[client], 0), value[client]);
        if (!end || done > before)
            end = clock_now() + 20000000000u;
        assert_true(clock_now() < end);
        step_some(1);
        sched_yield();
    }
}

/* Owners come and go, borrowers work on: nothing is lost or reordered, and everything ends. */
static void any_mix_loses_nothing(void **state)
{
    (void)state;
    uint32_t launched[CLIENTS + 1] = {0};
    uint64_t value[CLIENTS + 1] = {0};
    arrive(1, 2500, 5000);
    arrive(2, 3000, PROTO_PERCENT_WHOLE);
    arrive(3, 0, 4000);
    arrive(4, 0, PROTO_PERCENT_WHOLE);
    fake_hold();
    for (int i = 0; i < 4000; i++) {
        uint32_t client = 1 + draw(CLIENTS);
        if (client > 2 || (i / 64 + client) % 2)
            value[client] = push(client, ++launched[client]);
        step_some(draw(5));
        if (draw(16) == 0)
            usleep(draw(2000));
        if (draw(40) == 0) {
            struct proto_worker_limits limits = {.allowance = granted_threads(4000 + draw(6001))};
            limits.allowance.threads.request = draw(4001);
            harness_ask(PROTO_WORKER_LIMITS, 1 + draw(2), &limits, PROTO_WORKER_ATTACHED);
        }
    }
    await_values(value);
    fake_release();
    for (uint32_t client = 1; client <= CLIENTS; client++)
        assert_int_equal(ran[client], launched[client]);
    assert_int_equal(wrong, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(at_home_work_is_more_urgent_than_that_of_who_borrows,
                                        setup_even, teardown),
        T(own_sm_groups_are_lent_while_idle_and_taken_back),
        T(while_its_work_is_in_flight_an_owner_lends_nothing),
        cmocka_unit_test_setup_teardown(a_client_without_an_sm_group_waits_until_there_is_one,
                                        setup_even, teardown),
        cmocka_unit_test_setup_teardown(a_client_that_waits_for_an_sm_group_can_leave, setup_even,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_owner_that_leaves_frees_the_clients_that_wait,
                                        setup_even, teardown),
        T(any_mix_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
