/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* How a device is shared: what its workers are told, when, and what they refuse. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

static struct {
    unsigned calls;
    uint32_t device, error;
    char text[400];
} told;

static void take(void *context, uint32_t device, uint32_t error, const char *text)
{
    assert_ptr_equal(context, &told);
    told.calls++;
    told.device = device;
    told.error = error;
    snprintf(told.text, sizeof told.text, "%s", text);
}

static const struct schedule fair = {
    PROTO_MODE_FAIR, 1000,      50000000,   UINT64_C(2000000000),    250000000, 2048,
    3000000000,      700000000, 1400000000, SCHEDULE_STANDBY_DRIVER, {3700}};

static int set(uint32_t device, unsigned parts)
{
    return change_schedule(fake.supervisor, device, &fair, parts,
                           &(struct change_asker){"a test", take, &told});
}

static struct schedule in_force(uint32_t device)
{
    struct device_view view;
    view_device(fake.supervisor, device, &view);
    return view.schedule;
}

static void expect_in_force(uint32_t device, struct schedule want)
{
    struct schedule schedule = in_force(device);
    assert_int_equal(schedule_differs(&schedule, &want), 0);
}

static void begin(uint32_t devices)
{
    memset(&told, 0, sizeof told);
    fake_open(&fake, devices, 256 * MIB);
}

static void a_worker_is_told_before_any_client(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(fake.worker[0].schedules, 1);
    assert_int_equal(fake.worker[0].schedule.mode, 0);
    assert_int_equal(fake.worker[0].schedule.lease, 250000000);
    /* A client that waits for the next worker comes after the word to it. */
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, fake.supervisor->server.devices[0].state != DEVICE_READY);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    int fd = fake_greet(&fake);
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_ATTACH, &attach);
    for (int i = 0; i < 20; i++)
        fake_turn(&fake);
    fake_start_worker(&fake, 0, 256 * MIB);
    fake.worker[0].automatic = false;
    fake_worker_expect(&fake, 0, PROTO_WORKER_SCHEDULE);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    struct channel_message *message = fake_worker_expect(&fake, 0, PROTO_WORKER_ATTACH);
    fake_answer(&fake.worker[0], message);
    channel_close_fds(message);
    fake.worker[0].automatic = true;
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_change_is_told_the_worker_and_its_clients(void **state)
{
    (void)state;
    struct proto_attached attached;
    begin(2);
    int fd = fake_attach(&fake, 1, 16 * MIB, NULL, &attached);
    assert_int_equal(attached.grant.mode, PROTO_MODE_CONCURRENT);
    assert_int_equal(set(1, SCHEDULE_WHOLE), 0);
    assert_int_equal(told.calls, 0);
    /* Watchdog and standby are the supervisor's: the worker is not waited for. */
    struct schedule before = schedule_default();
    before.watchdog_warning_ns = 700000000;
    before.watchdog_limit_ns = 1400000000;
    before.standby = SCHEDULE_STANDBY_DRIVER;
    expect_in_force(1, before);
    FAKE_WAIT(&fake, told.calls == 1);
    assert_int_equal(told.error, 0);
    assert_int_equal(told.device, 1);
    expect_in_force(1, fair);
    expect_in_force(0, schedule_default());
    assert_int_equal(fake.worker[0].schedules, 1);
    assert_int_equal(fake.worker[1].schedule.mode, 2);
    assert_int_equal(fake.worker[1].schedule.precision, 1000);
    assert_int_equal(fake.worker[1].schedule.lease, 50000000);
    assert_int_equal(fake.worker[1].schedule.quantum, 2000000000);
    assert_int_equal(fake.worker[1].schedule.window_limit, 250000000);
    assert_int_equal(fake.worker[1].schedule.local_memory, 2048);
    assert_int_equal(fake.worker[1].schedule.departed_limit, 3000000000);
    fake_send(&fake, fd, PROTO_LIMITS_QUERY, NULL);
    const struct proto_limits *limits = fake_expect(&fake, fd, PROTO_LIMITS);
    assert_int_equal(limits->grant.mode, PROTO_MODE_FAIR);
    int other = fake_attach(&fake, 1, 16 * MIB, NULL, &attached);
    assert_int_equal(attached.grant.mode, PROTO_MODE_FAIR);
    assert_int_equal(set(2, SCHEDULE_WHOLE), -ENOENT);
    close(fd);
    close(other);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_schedule_refused_by_the_worker_changes_nothing(void **state)
{
    (void)state;
    static const char words[] = "60 % and 50 % of the time are 110 %";
    begin(1);
    assert_int_equal(set(0, SCHEDULE_LEASE), 0);
    FAKE_WAIT(&fake, told.calls == 1);
    struct schedule before = in_force(0);
    assert_int_equal(before.lease_ns, 50000000);
    assert_int_equal(before.mode, PROTO_MODE_CONCURRENT);
    fake.worker[0].refuse_schedule = words;
    assert_int_equal(set(0, SCHEDULE_MODE), 0);
    FAKE_WAIT(&fake, told.calls == 2);
    assert_int_equal(told.error, PROTO_ERROR_INVALID_VALUE);
    assert_string_equal(told.text, words);
    expect_in_force(0, before);
    fake_close(&fake);
}

static void the_watchdog_is_set_without_the_worker(void **state)
{
    (void)state;
    begin(1);
    fake.worker[0].automatic = false;
    /* A change on its way to a worker that does not answer, and the watchdog's after it. */
    assert_int_equal(set(0, SCHEDULE_LEASE), 0);
    assert_int_equal(set(0, SCHEDULE_WATCHDOG_LIMIT), 1);
    struct schedule want = schedule_default();
    want.watchdog_limit_ns = 1400000000;
    expect_in_force(0, want);
    /* The late answer changes what it is about, and nothing else. */
    fake_worker_expect(&fake, 0, PROTO_WORKER_SCHEDULE);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    want.lease_ns = 50000000;
    expect_in_force(0, want);
    fake.worker[0].automatic = true;
    fake_close(&fake);
}

static void changes_on_their_way_leave_each_other_alone(void **state)
{
    (void)state;
    begin(1);
    assert_int_equal(set(0, SCHEDULE_MODE), 0);
    assert_int_equal(set(0, SCHEDULE_QUANTUM), 0);
    FAKE_WAIT(&fake, told.calls == 2);
    struct schedule both = schedule_default();
    both.mode = PROTO_MODE_FAIR;
    both.quantum_ns = fair.quantum_ns;
    expect_in_force(0, both);
    assert_int_equal(fake.worker[0].schedule.mode, 2);
    assert_int_equal(fake.worker[0].schedule.quantum, fair.quantum_ns);
    fake_close(&fake);
}

static void without_a_worker_the_next_one_is_told(void **state)
{
    (void)state;
    begin(1);
    fake.worker[0].automatic = false;
    assert_int_equal(set(0, SCHEDULE_LEASE), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_SCHEDULE);
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    assert_int_equal(told.error, PROTO_ERROR_WORKER_LOST);
    expect_in_force(0, schedule_default());
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    assert_int_equal(set(0, SCHEDULE_WHOLE), 1);
    expect_in_force(0, fair);
    assert_int_equal(told.calls, 1);
    fake_start_worker(&fake, 0, 256 * MIB);
    FAKE_WAIT(&fake, fake.worker[0].schedules == 1);
    assert_int_equal(fake.worker[0].schedule.mode, 2);
    fake_settle(&fake);
    expect_in_force(0, fair);
    fake_close(&fake);
}

static void a_new_worker_that_refuses_is_shown_as_it_works(void **state)
{
    (void)state;
    begin(1);
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, fake.supervisor->server.devices[0].state != DEVICE_READY);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    assert_int_equal(set(0, SCHEDULE_WHOLE), 1);
    fake_start_worker(&fake, 0, 256 * MIB);
    fake.worker[0].refuse_schedule = "it knows no modes";
    FAKE_WAIT(&fake, fake.worker[0].schedules == 1);
    fake_settle(&fake);
    /* No worker knows of watchdog and standby. */
    struct schedule want = schedule_default();
    want.watchdog_warning_ns = fair.watchdog_warning_ns;
    want.watchdog_limit_ns = fair.watchdog_limit_ns;
    want.standby = fair.standby;
    expect_in_force(0, want);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_is_told_before_any_client),
        cmocka_unit_test(a_change_is_told_the_worker_and_its_clients),
        cmocka_unit_test(a_schedule_refused_by_the_worker_changes_nothing),
        cmocka_unit_test(the_watchdog_is_set_without_the_worker),
        cmocka_unit_test(changes_on_their_way_leave_each_other_alone),
        cmocka_unit_test(without_a_worker_the_next_one_is_told),
        cmocka_unit_test(a_new_worker_that_refuses_is_shown_as_it_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
