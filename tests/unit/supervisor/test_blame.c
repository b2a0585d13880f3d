/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Faults: the client that ends, the suspects that go on, and how long a device serves one client at
 * a time for that. The fake worker's clients have in flight what the test writes down for them. */
#include "common/clock.h"
#include "tests/unit/supervisor/fake.h"
#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "server/supervisor/device/device_schedule.h"
#include "server/supervisor/device/device_singly.h"

static struct fake fake;
static int fds[3];

static struct session *client(unsigned index)
{
    return fake_session(&fake, index);
}

static struct device *the_device(void)
{
    return &fake.supervisor->server.devices[0];
}

static void begin(void)
{
    fake_open(&fake, 1, 256 * MIB);
    fake.settings.offender_wait_ns = 0;
    for (unsigned i = 0; i < 3; i++)
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_settle(&fake);
}

static void next_worker(void)
{
    FAKE_WAIT(&fake, !the_device()->link);
    uv_timer_stop(&the_device()->timer);
    if (fake.worker[0].fd >= 0)
        close(fake.worker[0].fd);
    fake_start_worker(&fake, 0, 256 * MIB);
    FAKE_WAIT(&fake, fake.worker[0].schedules == 1);
}

/* A fault while the clients of `busy` (bits) have work in flight; then the next worker. Nobody's
 * work goes over to that one. */
static void fault(uint32_t error, unsigned busy)
{
    for (unsigned i = 0; i < 3; i++)
        if (fds[i] >= 0)
            fake_put_in_flight(&fake, client(i), busy >> i & 1);
    fake_say_fault(&fake, 0, error);
    next_worker();
    struct session *session;
    LIST_FOR_EACH (session, &fake.supervisor->server.session_list, link)
        if (session->shadow.fd >= 0)
            fake_put_in_flight(&fake, session, 0);
    fake_settle(&fake);
}

/* This client has been told how it ended. Those behind it move up. */
static void forget(unsigned which)
{
    for (unsigned i = which; i < 2; i++)
        fds[i] = fds[i + 1];
    fds[2] = -1;
    fake_settle(&fake);
}

static void changed(void *context, uint32_t number, uint32_t error, const char *text)
{
    (void)context;
    (void)number;
    (void)text;
    assert_int_equal(error, 0);
}

static bool serves_singly(void)
{
    return fake.worker[0].schedule.mode == PROTO_MODE_TURNS;
}

/* A second has to pass by the clock: here it is over at once. */
static void look(void)
{
    uv_timer_start(&the_device()->absolve, the_device()->absolve.timer_cb, 0, 0);
    fake_settle(&fake);
}

/* Without a word of a client, too. */
static void let_a_second_pass(void)
{
    struct session *session;
    LIST_FOR_EACH (session, &fake.supervisor->server.session_list, link)
        session->heard_at -= UINT64_C(3000000000);
    look();
}

static void end(void)
{
    for (unsigned i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_lone_author_ends_and_nobody_else(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_LAUNCH_FAILED, 2);
    fake_expect_ended(&fake, fds[1], PROTO_ERROR_LAUNCH_FAILED, "kernel f used 0x0");
    forget(1);
    assert_false(serves_singly());
    assert_int_equal(fake.worker[0].resumed, 2);
    end();
}

static void suspects_go_on_one_at_a_time_for_a_second(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    assert_int_equal(fake.worker[0].resumed, 3);
    assert_true(serves_singly());
    assert_true(client(0)->blame.suspect);
    assert_true(client(1)->blame.suspect);
    assert_false(client(2)->blame.suspect);
    let_a_second_pass();
    assert_false(serves_singly());
    assert_int_equal(fake.worker[0].schedules, 2);
    assert_false(client(0)->blame.suspect);
    end();
}

static uint32_t lost_by(unsigned which)
{
    return shared_word_read(&ring_status_header(client(which)->status.base)->lost_by);
}

/* Clients are told what they are in memory that they read. */
static void a_suspect_that_faults_alone_is_guilty(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    assert_int_equal(lost_by(0), PROTO_LOST_BY_SUSPECTS);
    assert_int_equal(lost_by(1), PROTO_LOST_BY_SUSPECTS);
    assert_int_equal(lost_by(2), PROTO_LOST_BY_ANOTHER);
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 1);
    fake_expect_ended(&fake, fds[0], PROTO_ERROR_ILLEGAL_ADDRESS, "this client's");
    forget(0);
    assert_int_equal(lost_by(0), PROTO_LOST_BY_ANOTHER);
    assert_false(serves_singly());
    assert_false(client(0)->blame.suspect);
    end();
}

/* Two clients that work all the time beside one that faults now and then, but not within a second.
 */
static void the_author_of_common_faults_clears_the_others(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        fault(PROTO_ERROR_ILLEGAL_ADDRESS, 7);
        let_a_second_pass();
    }
    assert_true(serves_singly());
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 1);
    fake_expect_ended(&fake, fds[0], PROTO_ERROR_ILLEGAL_ADDRESS, "this client's");
    forget(0);
    assert_false(serves_singly());
    for (unsigned i = 0; i < 2; i++) {
        assert_false(client(i)->blame.isolated);
        assert_int_equal(client(i)->blame.common, 0);
    }
    end();
}

static void prove(unsigned which)
{
    struct channel_packet proven = {.opcode = PROTO_WORKER_PROVEN, .client = client(which)->number};
    assert_int_equal(channel_send(fake.worker[0].fd, &proven), 0);
    fake_settle(&fake);
}

static void suspects_that_have_all_run_alone_end_the_probation(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    prove(2); /* no suspect */
    prove(0);
    assert_true(serves_singly());
    assert_int_equal(fake.worker[0].schedule.singly, 1);
    prove(1);
    FAKE_WAIT(&fake, !serves_singly());
    assert_int_equal(fake.worker[0].schedule.singly, 0);
    assert_false(client(0)->blame.suspect);
    assert_true(device_singly_ns(the_device()) > 0);
    end();
}

/* It works all the time, beside authors that are never alone. */
static void who_has_run_alone_is_not_isolated_for_others_faults(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 6; i++) {
        fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
        prove(0);
        let_a_second_pass();
        assert_int_equal(client(0)->blame.common, 0);
        assert_false(client(0)->blame.isolated);
    }
    end();
}

/* Another one leaves at each fault. */
static void fault_beside_one_that_leaves(void)
{
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    prove(0);
    close(fds[1]);
    forget(1);
    let_a_second_pass();
    fds[2] = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_settle(&fake);
}

/* Either it faults in company only, or each of the others was an author. If these come back, they
 * are alone at the next fault. */
static void who_is_there_while_its_company_leaves_is_isolated(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        assert_false(client(0)->blame.isolated);
        assert_false(serves_singly());
        fault_beside_one_that_leaves();
    }
    assert_true(client(0)->blame.isolated);
    assert_true(serves_singly());
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 4);
    fake_expect_ended(&fake, fds[2], PROTO_ERROR_ILLEGAL_ADDRESS, "this client's");
    forget(2);
    assert_false(client(0)->blame.isolated);
    assert_false(serves_singly());
    end();
}

static void let_ten_minutes_pass(void)
{
    struct session *session;
    LIST_FOR_EACH (session, &fake.supervisor->server.session_list, link)
        session->blame.beside_left_at -= UINT64_C(600000000000);
    let_a_second_pass();
}

static void faults_beside_others_that_left_are_forgotten(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 4; i++) {
        fault_beside_one_that_leaves();
        let_ten_minutes_pass();
        assert_false(client(0)->blame.isolated);
    }
    for (int i = 0; i < 3; i++)
        fault_beside_one_that_leaves();
    assert_true(client(0)->blame.isolated);
    let_ten_minutes_pass();
    assert_false(client(0)->blame.isolated);
    assert_false(serves_singly());
    end();
}

/* A second is short for a program that loads its modules again, on a machine that is busy. */
static void suspects_that_are_at_it_have_ten_seconds(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    client(1)->heard_at -= UINT64_C(3000000000);
    for (int i = 0; i < 3; i++) {
        client(0)->heard_at = clock_now();
        look();
        assert_true(serves_singly());
        assert_true(client(0)->blame.suspect);
    }
    the_device()->ready_at -= UINT64_C(10000000000);
    client(0)->heard_at = clock_now();
    look();
    assert_false(serves_singly());
    assert_false(client(0)->blame.suspect);
    /* One that has run alone does not prolong it, nor does one that is no suspect. */
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    prove(0);
    client(0)->heard_at = client(2)->heard_at = clock_now();
    /* Its latest word was before the fault. */
    client(1)->heard_at = the_device()->ended_at - 1;
    look();
    assert_false(serves_singly());
    end();
}

/* The author may be any one of them. */
static void who_faults_in_company_only_is_isolated_with_its_company(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
        prove(0);
        prove(1);
        if (i < 2)
            FAKE_WAIT(&fake, !serves_singly());
    }
    FAKE_WAIT(&fake, client(0)->blame.isolated);
    assert_true(client(1)->blame.isolated);
    assert_false(client(2)->blame.isolated);
    assert_true(serves_singly());
    end();
}

/* As SIGSEGV ends a worker. */
static void crash(unsigned busy)
{
    for (unsigned i = 0; i < 3; i++)
        fake_put_in_flight(&fake, client(i), busy >> i & 1);
    the_device()->crashed = true;
    fake_lose_worker(&fake, 0);
    next_worker();
    for (unsigned i = 0; i < 3; i++)
        fake_put_in_flight(&fake, client(i), 0);
    fake_settle(&fake);
}

static void who_is_in_flight_at_three_crashes_is_isolated_and_not_guilty(void **state)
{
    (void)state;
    begin();
    crash(1);
    assert_false(serves_singly());
    crash(3);
    assert_true(serves_singly());
    prove(1);
    let_a_second_pass();
    assert_false(serves_singly());
    assert_int_equal(client(0)->blame.common, 2);
    assert_int_equal(client(1)->blame.common, 0);
    crash(1);
    assert_int_equal(fake.worker[0].resumed, 3);
    assert_true(client(0)->blame.isolated);
    assert_true(serves_singly());
    end();
}

static void errors_of_the_machine_and_ends_without_a_word_blame_nobody(void **state)
{
    (void)state;
    static const uint32_t errors[] = {PROTO_ERROR_ECC_UNCORRECTABLE, PROTO_ERROR_UNKNOWN,
                                      PROTO_ERROR_OUT_OF_MEMORY};
    begin();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        the_device()->ailment = (struct ailment){0}; /* each is the first of its machine */
        fault(errors[i], i % 2 ? 1 : 7);
        assert_int_equal(fake.worker[0].resumed, 3);
        assert_int_equal(lost_by(0), PROTO_LOST_BY_NOBODY);
        assert_false(serves_singly());
    }
    fake_put_in_flight(&fake, client(0), 1);
    fake_lose_worker(&fake, 0);
    next_worker();
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].resumed, 3);
    end();
}

/* For longer than clients wait for a worker. */
static void a_device_that_is_gone_ends_its_clients_with_the_reason(void **state)
{
    (void)state;
    begin();
    fake_say_fault(&fake, 0, PROTO_ERROR_NO_DEVICE);
    for (unsigned i = 0; i < 3; i++)
        fake_expect_ended(&fake, fds[i], PROTO_ERROR_WORKER_LOST, "kernel f used 0x0");
    for (unsigned i = 0; i < 3; i++)
        close(fds[i]);
    FAKE_WAIT(&fake, !the_device()->link);
    fake_close(&fake);
}

/* Client 1 faults only beside others, and each time beside another one. */
static void a_suspect_of_three_faults_is_isolated_until_it_leaves(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 2; i++) {
        fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
        let_a_second_pass();
        assert_false(serves_singly());
    }
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 6);
    assert_false(client(1)->blame.isolated);
    let_a_second_pass();
    assert_true(client(1)->blame.isolated);
    assert_false(client(0)->blame.isolated);
    assert_false(client(2)->blame.isolated);
    for (int i = 0; i < 3; i++) {
        let_a_second_pass();
        assert_true(serves_singly());
    }
    close(fds[1]);
    forget(1);
    let_a_second_pass();
    assert_false(serves_singly());
    end();
}

static void a_client_that_has_left_is_a_suspect_too(void **state)
{
    (void)state;
    begin();
    fake_put_in_flight(&fake, client(0), 1);
    fake_put_in_flight(&fake, client(1), 1);
    fake.worker[0].automatic = false;
    close(fds[0]);
    fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    fake_say_fault(&fake, 0, PROTO_ERROR_ILLEGAL_ADDRESS);
    next_worker();
    fake_settle(&fake);
    assert_int_equal(fake.worker[0].resumed, 2);
    assert_true(serves_singly());
    let_a_second_pass();
    forget(0);
    end();
}

/* The schedule that is in force again may be refused; the device then goes on as it does. */
static void a_schedule_that_is_refused_is_tried_again(void **state)
{
    (void)state;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    fake.worker[0].refuse_schedule = "the requests are too much";
    let_a_second_pass();
    assert_true(the_device()->singly);
    fake.worker[0].refuse_schedule = NULL;
    let_a_second_pass();
    assert_false(the_device()->singly);
    assert_false(serves_singly());
    end();
}

/* In whatever mode the device is meanwhile. */
static void a_change_of_the_schedule_waits_for_the_end_of_it(void **state)
{
    (void)state;
    struct schedule strict = schedule_default();
    strict.mode = PROTO_MODE_STRICT;
    begin();
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 3);
    assert_int_equal(device_schedule_set(the_device(), &strict, SCHEDULE_MODE,
                                         &(struct change_asker){"a test", changed, NULL}),
                     0);
    fake_settle(&fake);
    assert_int_equal(the_device()->schedule.mode, PROTO_MODE_STRICT);
    assert_true(serves_singly());
    let_a_second_pass();
    assert_int_equal(fake.worker[0].schedule.mode, PROTO_MODE_STRICT);
    end();
}

static void new_clients_of_a_repeat_offender_wait(void **state)
{
    (void)state;
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "again"};
    begin();
    fake.settings.offender_wait_ns = UINT64_C(3600000000000);
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 1);
    fake_expect_ended(&fake, fds[0], PROTO_ERROR_ILLEGAL_ADDRESS, "");
    forget(0);
    fds[2] = fake_attach(&fake, 0, 0, NULL, NULL);
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 4);
    fake_expect_ended(&fake, fds[2], PROTO_ERROR_ILLEGAL_ADDRESS, "");
    fds[2] = fake_greet(&fake);
    fake_send(&fake, fds[2], PROTO_ATTACH, &attach);
    fake_expect_failed(&fake, fds[2], PROTO_ERROR_DEVICE_NOT_READY, "--offender-wait");
    /* Others of the user are not made to pay. One that faults too waits as well. */
    assert_int_equal(fake.worker[0].resumed, 2);
    close(fds[2]);
    fds[2] = -1;
    fake_settle(&fake);
    fault(PROTO_ERROR_ILLEGAL_ADDRESS, 1);
    fake_expect_ended(&fake, fds[0], PROTO_ERROR_ILLEGAL_ADDRESS, "");
    forget(0);
    assert_int_equal(fake.worker[0].resumed, 1);
    assert_int_equal(fake.supervisor->server.offenders.rows[0].faults, 3);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_author_ends_and_nobody_else),
        cmocka_unit_test(suspects_go_on_one_at_a_time_for_a_second),
        cmocka_unit_test(a_suspect_that_faults_alone_is_guilty),
        cmocka_unit_test(the_author_of_common_faults_clears_the_others),
        cmocka_unit_test(suspects_that_have_all_run_alone_end_the_probation),
        cmocka_unit_test(who_has_run_alone_is_not_isolated_for_others_faults),
        cmocka_unit_test(who_is_there_while_its_company_leaves_is_isolated),
        cmocka_unit_test(faults_beside_others_that_left_are_forgotten),
        cmocka_unit_test(suspects_that_are_at_it_have_ten_seconds),
        cmocka_unit_test(who_faults_in_company_only_is_isolated_with_its_company),
        cmocka_unit_test(who_is_in_flight_at_three_crashes_is_isolated_and_not_guilty),
        cmocka_unit_test(a_device_that_is_gone_ends_its_clients_with_the_reason),
        cmocka_unit_test(errors_of_the_machine_and_ends_without_a_word_blame_nobody),
        cmocka_unit_test(a_suspect_of_three_faults_is_isolated_until_it_leaves),
        cmocka_unit_test(a_client_that_has_left_is_a_suspect_too),
        cmocka_unit_test(a_schedule_that_is_refused_is_tried_again),
        cmocka_unit_test(a_change_of_the_schedule_waits_for_the_end_of_it),
        cmocka_unit_test(new_clients_of_a_repeat_offender_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
