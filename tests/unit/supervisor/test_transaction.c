/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* transaction: many changes, whole or not at all, whoever refuses and when. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "protocol.h"
#include "server/supervisor/transaction.h"

/* ---- clients and devices that do as they are told ---- */

enum { CLIENTS = 4, DEVICES = 2, ASKED_MAX = 32 };

static struct {
    struct allowance client[CLIENTS];
    struct schedule device[DEVICES];
    char order[256];  /* of what was asked: "+c1" forwards, "-d0" back */
    bool at_once;     /* a change is made when it is asked for; else when it is answered */
    int fails;        /* -errno with which this client refuses at once; 0: it does not */
    uint32_t failing; /* the client */
    struct {
        const struct transaction_move *move;
        bool back;
        change_done *done;
        void *of_done;
    } asked[ASKED_MAX];
    size_t asked_count, answered;
    unsigned ready, lost, commits;
    uint32_t commit_refuses;
} world;

static void put(const struct transaction_move *move, bool back)
{
    if (move->subject == TRANSACTION_DEVICE)
        schedule_merge(&world.device[move->number], back ? &move->device.back : &move->device.to,
                       move->device.parts);
    else
        allowance_change(&world.client[move->number], back ? &move->client.back : &move->client.to);
}

static int make(void *context, const struct transaction_move *move, bool back, change_done *done,
                void *of_done)
{
    size_t used = strlen(world.order);
    (void)context;
    snprintf(world.order + used, sizeof world.order - used, "%s%s%c%u", used ? " " : "",
             back ? "-" : "+", move->subject == TRANSACTION_DEVICE ? 'd' : 'c', move->number);
    if (world.fails && !back && move->subject == TRANSACTION_CLIENT &&
        move->number == world.failing)
        return world.fails;
    if (world.at_once) {
        put(move, back);
        return 1;
    }
    assert_true(world.asked_count < ASKED_MAX);
    world.asked[world.asked_count].move = move;
    world.asked[world.asked_count].back = back;
    world.asked[world.asked_count].done = done;
    world.asked[world.asked_count++].of_done = of_done;
    return 0;
}

static bool refuse(void *context, const struct transaction_move *move, int result, uint32_t error,
                   const char *text, struct error *why)
{
    (void)context;
    if (error == PROTO_ERROR_NOT_FOUND)
        return false;
    error_set(why, error ? error : PROTO_ERROR_SERVER_RESOURCES, "%u: %s", move->number,
              error ? text : strerror(-result));
    return true;
}

static void lose(void *context, const struct transaction_move *move, int result, uint32_t error,
                 const char *text)
{
    (void)context, (void)move, (void)result, (void)error, (void)text;
    world.lost++;
}

static uint32_t commit(void *context, struct error *why)
{
    (void)context;
    world.commits++;
    return world.commit_refuses ? error_set(why, world.commit_refuses, "no room") : 0;
}

static void ready(void *context)
{
    (void)context;
    world.ready++;
}

static const struct transaction_work work = {
    .make = make, .refuse = refuse, .lose = lose, .commit = commit, .ready = ready};

/* Answers what was asked first; error 0: it is made. */
static void answer(uint32_t error, const char *text)
{
    assert_true(world.answered < world.asked_count);
    size_t i = world.answered++;
    if (!error)
        put(world.asked[i].move, world.asked[i].back);
    world.asked[i].done(world.asked[i].of_done, world.asked[i].move->number, error, text);
}

static void expect_order(const char *order)
{
    assert_string_equal(world.order, order);
}

/* ---- the transactions of these tests ---- */

static struct allowance request(uint64_t share)
{
    struct allowance change = allowance_none;
    change.threads.request = share;
    return change;
}

/* Client 0 gives in rank 0, device 1 changes in rank 1, clients 1 and 2 take in rank 2. */
static struct transaction plan(void)
{
    struct transaction transaction;
    struct schedule fair = schedule_default();
    fair.mode = PROTO_MODE_FAIR;
    memset(&world, 0, sizeof world);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        world.client[i] = allowance_none;
        world.client[i].threads = (struct allowance_range){1000 * (i + 1), 9000};
        world.client[i].priority = i;
    }
    for (uint32_t i = 0; i < DEVICES; i++)
        world.device[i] = schedule_default();
    assert_int_equal(transaction_init(&transaction, 8, &work, NULL), 0);
    struct allowance takes = request(5000), gives = request(0);
    takes.priority = 7;
    transaction_add_client(&transaction, 2, 1, &takes, &world.client[1]);
    transaction_add_client(&transaction, 2, 2, &takes, &world.client[2]);
    transaction_add_client(&transaction, 0, 0, &gives, &world.client[0]);
    transaction_add_device(&transaction, 1, 1, &fair, &world.device[1], SCHEDULE_MODE);
    /* These change nothing. */
    transaction_add_client(&transaction, 0, 3, &allowance_none, &world.client[3]);
    transaction_add_device(&transaction, 1, 0, &fair, &world.device[0], 0);
    assert_int_equal(transaction.count, 4);
    return transaction;
}

static void expect_all_in_force(void)
{
    assert_int_equal(world.client[0].threads.request, 0);
    assert_int_equal(world.client[1].threads.request, 5000);
    assert_int_equal(world.client[2].threads.request, 5000);
    assert_int_equal(world.client[2].threads.limit, 9000);
    assert_int_equal(world.client[2].priority, 7);
    assert_int_equal(world.device[1].mode, PROTO_MODE_FAIR);
}

static void expect_nothing_in_force(void)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(world.client[i].threads.request, 1000 * (i + 1));
        assert_int_equal(world.client[i].threads.limit, 9000);
        assert_int_equal(world.client[i].priority, i);
        assert_true(world.client[i].time.request == ALLOWANCE_UNSET);
    }
    for (uint32_t i = 0; i < DEVICES; i++)
        assert_int_equal(world.device[i].mode, PROTO_MODE_CONCURRENT);
}

static void ranks_are_taken_in_order_and_wait_for_each_other(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    assert_false(transaction_advance(&transaction));
    expect_order("+c0");
    assert_false(transaction_advance(&transaction)); /* it waits */
    expect_order("+c0");
    answer(0, "");
    assert_int_equal(world.ready, 1);
    assert_false(transaction_advance(&transaction));
    expect_order("+c0 +d1");
    answer(0, "");
    assert_false(transaction_advance(&transaction));
    expect_order("+c0 +d1 +c1 +c2");
    answer(0, "");
    assert_int_equal(world.ready, 2); /* another answer is due */
    assert_int_equal(world.commits, 0);
    answer(0, "");
    assert_true(transaction_advance(&transaction));
    assert_int_equal(world.commits, 1);
    assert_int_equal(transaction.why.number, 0);
    expect_all_in_force();
    transaction_free(&transaction);
}

static void a_pipelined_one_asks_everybody_at_once(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    transaction.pipelined = true;
    assert_false(transaction_advance(&transaction));
    expect_order("+c0 +d1 +c1 +c2");
    for (int i = 0; i < 3; i++)
        answer(0, "");
    assert_int_equal(world.ready, 0);
    answer(PROTO_ERROR_INVALID_VALUE, "too much");
    assert_false(transaction_advance(&transaction));
    expect_order("+c0 +d1 +c1 +c2 -c1 -d1 -c0");
    for (int i = 0; i < 3; i++)
        answer(0, "");
    assert_true(transaction_advance(&transaction));
    expect_nothing_in_force();
    assert_string_equal(transaction.why.text, "2: too much");
    transaction_free(&transaction);
}

static void a_refusal_in_the_middle_leaves_nothing_in_force(void **state)
{
    (void)state;
    /* The first, the second, ... answer is the refusal. */
    static const char *const orders[] = {"+c0", "+c0 +d1 -c0", "+c0 +d1 +c1 +c2 -c2 -d1 -c0",
                                         "+c0 +d1 +c1 +c2 -c1 -d1 -c0"};
    for (size_t refused = 0; refused < sizeof orders / sizeof orders[0]; refused++) {
        struct transaction transaction = plan();
        for (size_t i = 0; !transaction_advance(&transaction); i++)
            answer(i == refused ? PROTO_ERROR_OUT_OF_MEMORY : 0, "not this");
        expect_order(orders[refused]);
        expect_nothing_in_force();
        assert_int_equal(world.commits, 0);
        assert_int_equal(world.lost, 0);
        assert_int_equal(transaction.why.number, PROTO_ERROR_OUT_OF_MEMORY);
        transaction_free(&transaction);
    }
}

static void a_move_without_memory_leaves_nothing_in_force(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    world.at_once = true;
    world.fails = -ENOMEM;
    world.failing = 1;
    assert_true(transaction_advance(&transaction));
    /* Client 2 is not asked any more. */
    expect_order("+c0 +d1 +c1 -d1 -c0");
    expect_nothing_in_force();
    assert_int_equal(transaction.why.number, PROTO_ERROR_SERVER_RESOURCES);
    transaction_free(&transaction);
    /* Without memory for the moves there is nothing to free, and a refusal is over at once. */
    assert_int_equal(transaction_init(&transaction, SIZE_MAX / 2, &work, NULL), -ENOMEM);
    error_set(&transaction.why, PROTO_ERROR_SERVER_RESOURCES, "no memory");
    assert_true(transaction_advance(&transaction));
    assert_int_equal(world.commits, 0);
}

static void what_cannot_be_committed_is_taken_back(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    world.at_once = true;
    world.commit_refuses = PROTO_ERROR_OUT_OF_MEMORY;
    assert_true(transaction_advance(&transaction));
    expect_order("+c0 +d1 +c1 +c2 -c2 -c1 -d1 -c0");
    expect_nothing_in_force();
    assert_string_equal(transaction.why.text, "no room");
    assert_false(transaction_made_any(&transaction));
    transaction_free(&transaction);
}

static void who_left_refuses_nothing(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    for (size_t i = 0; !transaction_advance(&transaction); i++)
        answer(i == 2 ? PROTO_ERROR_NOT_FOUND : 0, "it left");
    assert_int_equal(transaction.why.number, 0);
    assert_true(transaction_made_any(&transaction));
    assert_int_equal(world.client[1].threads.request, 2000);
    assert_int_equal(world.client[2].threads.request, 5000);
    transaction_free(&transaction);
}

static void what_is_not_taken_back_is_told(void **state)
{
    (void)state;
    struct transaction transaction = plan();
    transaction.pipelined = true;
    assert_false(transaction_advance(&transaction));
    for (int i = 0; i < 3; i++)
        answer(0, "");
    answer(PROTO_ERROR_INVALID_VALUE, "too much");
    assert_false(transaction_advance(&transaction));
    answer(PROTO_ERROR_INVALID_VALUE, "nor back");
    answer(0, "");
    answer(0, "");
    assert_true(transaction_advance(&transaction));
    assert_int_equal(world.lost, 1);
    assert_string_equal(transaction.why.text, "2: too much");
    assert_int_equal(world.client[1].threads.request, 5000);
    assert_int_equal(world.client[0].threads.request, 1000);
    transaction_free(&transaction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_taken_in_order_and_wait_for_each_other),
        cmocka_unit_test(a_pipelined_one_asks_everybody_at_once),
        cmocka_unit_test(a_refusal_in_the_middle_leaves_nothing_in_force),
        cmocka_unit_test(a_move_without_memory_leaves_nothing_in_force),
        cmocka_unit_test(what_cannot_be_committed_is_taken_back),
        cmocka_unit_test(who_left_refuses_nothing),
        cmocka_unit_test(what_is_not_taken_back_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
