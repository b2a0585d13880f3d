/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* An administrator's changes of a client that runs. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;
#define nothing allowance_none

static struct {
    unsigned calls;
    uint32_t client, error;
    char text[400];
} told;

static void take(void *context, uint32_t client, uint32_t error, const char *text)
{
    assert_ptr_equal(context, &told);
    told.calls++;
    told.client = client;
    told.error = error;
    snprintf(told.text, sizeof told.text, "%s", text);
}

static int set(uint32_t client, struct allowance change)
{
    return change_set(fake.supervisor, client, &change,
                      &(struct change_asker){"a test", take, &told});
}

static void refused(uint32_t client, struct allowance change, uint32_t error, const char *word)
{
    struct error why = {0};
    assert_int_equal(change_check(fake.supervisor, client, &change, &why), error);
    assert_non_null(strstr(why.text, word));
}

static struct proto_limits limits_of(int fd)
{
    fake_send(&fake, fd, PROTO_LIMITS_QUERY, NULL);
    return *(const struct proto_limits *)fake_expect(&fake, fd, PROTO_LIMITS);
}

static void begin(void)
{
    memset(&told, 0, sizeof told);
    fake_open(&fake, 1, 256 * MIB);
}

static void a_memory_limit_rises_and_falls(void **state)
{
    (void)state;
    struct proto_attached attached;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    uint32_t client = attached.client;
    struct allowance change = nothing;
    uint64_t first = fake_alloc(&fake, fd, 16 * MIB);
    fake_alloc_refused(&fake, fd, 1, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    change.memory.limit = attached.window_bytes;
    assert_int_equal(set(client, change), 1);
    assert_int_equal(limits_of(fd).grant.allowance.memory.limit, attached.window_bytes);
    /* Lowered below what is in use: that stays, nothing is added. */
    change.memory.limit = 8 * MIB;
    assert_int_equal(set(client, change), 1);
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    assert_int_equal(fake_usage(&fake, fd).limit, 8 * MIB);
    fake_alloc_refused(&fake, fd, 1, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    fake_free(&fake, fd, first);
    fake_alloc(&fake, fd, 8 * MIB);
    fake_alloc_refused(&fake, fd, 1, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    /* A share is the device's. */
    change = nothing;
    change.part[RESOURCE_MEMORY].limit = 625;
    assert_int_equal(set(client, change), 1);
    assert_int_equal(limits_of(fd).grant.allowance.memory.limit, 16 * MIB);
    assert_int_equal(limits_of(fd).grant.allowance.host_memory.limit,
                     attached.grant.allowance.host_memory.limit);
    assert_int_equal(told.calls, 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_host_limit_applies_to_later_allocations(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    change.host_memory.limit = 1 * MIB;
    assert_int_equal(set(attached.client, change), 1);
    struct proto_host_alloc alloc = {.count = 1 * MIB + 1};
    fake_send(&fake, fd, PROTO_HOST_ALLOC, &alloc);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "pinned host memory limit");
    alloc.count = 1 * MIB;
    fake_send(&fake, fd, PROTO_HOST_ALLOC, &alloc);
    fake_expect(&fake, fd, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void more_than_the_window_or_the_device_is_refused_with_both_numbers(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    char number[32];
    change.memory.limit = 256 * MIB + 1;
    refused(attached.client, change, PROTO_ERROR_INVALID_VALUE, "what the device has");
    if (attached.window_bytes < 256 * MIB) {
        change.memory.limit = attached.window_bytes + 1;
        snprintf(number, sizeof number, "(%llu bytes)", (unsigned long long)change.memory.limit);
        refused(attached.client, change, PROTO_ERROR_INVALID_VALUE, number);
    }
    change = nothing;
    change.host_memory.limit = attached.window_bytes + 1;
    snprintf(number, sizeof number, "(%llu bytes)", (unsigned long long)attached.window_bytes);
    refused(attached.client, change, PROTO_ERROR_INVALID_VALUE, number);
    refused(attached.client, change, PROTO_ERROR_INVALID_VALUE, "window");
    refused(attached.client + 7, change, PROTO_ERROR_NOT_FOUND, "clients");
    assert_int_equal(set(attached.client + 7, nothing), -ENOENT);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void changes_on_their_way_leave_each_other_alone(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct proto_worker_limits asked[2];
    struct allowance threads = nothing, priority = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 0, NULL, &attached);
    fake.worker[0].automatic = false;
    threads.threads.limit = 2500;
    threads.memory.limit = 4 * MIB;
    priority.priority = 7;
    assert_int_equal(set(attached.client, threads), 0);
    assert_int_equal(set(attached.client, priority), 0);
    for (int i = 0; i < 2; i++) {
        struct proto_worker_attached granted = {.multiprocessors = 10 + (uint32_t)i};
        fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
        memcpy(&asked[i], fake.worker[0].message.body, sizeof asked[i]);
        assert_int_equal(told.calls, i);
        fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_WORKER_ATTACHED, &granted, NULL,
                   0);
        FAKE_WAIT(&fake, told.calls == (unsigned)i + 1);
        assert_int_equal(told.error, 0);
    }
    assert_int_equal(asked[0].allowance.threads.limit, 2500);
    assert_int_equal(asked[0].allowance.priority, 0);
    assert_int_equal(asked[1].allowance.threads.limit, 2500);
    assert_int_equal(asked[1].allowance.priority, 7);
    struct proto_limits limits = limits_of(fd);
    assert_int_equal(limits.grant.allowance.threads.limit, 2500);
    assert_int_equal(limits.grant.allowance.priority, 7);
    assert_int_equal(limits.grant.multiprocessors, 11);
    assert_int_equal(limits.grant.allowance.memory.limit, 4 * MIB);
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_change_refused_by_the_worker_changes_nothing(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    struct proto_failed failed = {.error = PROTO_ERROR_OUT_OF_MEMORY, .text = "no partition"};
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    fake.worker[0].automatic = false;
    change.threads.limit = 100;
    change.memory.limit = 4 * MIB;
    assert_int_equal(set(attached.client, change), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_FAILED, &failed, NULL, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    assert_int_equal(told.error, PROTO_ERROR_OUT_OF_MEMORY);
    assert_string_equal(told.text, "no partition");
    assert_int_equal(limits_of(fd).grant.allowance.memory.limit, 16 * MIB);
    assert_int_equal(limits_of(fd).grant.allowance.threads.limit,
                     attached.grant.allowance.threads.limit);
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void requests_and_time_reach_the_worker_and_stay_below_their_limits(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct proto_worker_limits asked;
    struct allowance change = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    uint32_t client = attached.client;
    change.threads.request = 3000;
    change.threads.limit = 5000;
    change.time.request = 2500;
    change.time.limit = 6000;
    fake.worker[0].automatic = false;
    assert_int_equal(set(client, change), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    memcpy(&asked, fake.worker[0].message.body, sizeof asked);
    assert_int_equal(asked.allowance.threads.request, 3000);
    assert_int_equal(asked.allowance.threads.limit, 5000);
    assert_int_equal(asked.allowance.time.request, 2500);
    assert_int_equal(asked.allowance.time.limit, 6000);
    assert_int_equal(asked.allowance.priority, 0);
    /* Held to what is on its way. */
    change = nothing;
    change.threads.limit = 2999;
    refused(client, change, PROTO_ERROR_INVALID_VALUE, "threads.request of 30%");
    refused(client, change, PROTO_ERROR_INVALID_VALUE, "threads.limit of 29.99%");
    change.threads.limit = 3000;
    struct error why;
    assert_int_equal(change_check(fake.supervisor, client, &change, &why), 0);
    fake_answer(&fake.worker[0], &fake.worker[0].message);
    FAKE_WAIT(&fake, told.calls == 1);
    fake.worker[0].automatic = true;
    struct proto_limits limits = limits_of(fd);
    assert_int_equal(limits.grant.allowance.threads.request, 3000);
    assert_int_equal(limits.grant.allowance.time.request, 2500);
    assert_int_equal(limits.grant.allowance.time.limit, 6000);
    change = nothing;
    change.time.request = 6001;
    refused(client, change, PROTO_ERROR_INVALID_VALUE, "time.request of 60.01%");
    change.time.limit = 7000;
    assert_int_equal(change_check(fake.supervisor, client, &change, &why), 0);
    /* A request can be taken away again; the rest stays. */
    change = nothing;
    change.time.request = 0;
    assert_int_equal(set(client, change), 0);
    FAKE_WAIT(&fake, told.calls == 2);
    limits = limits_of(fd);
    assert_int_equal(limits.grant.allowance.time.request, 0);
    assert_int_equal(limits.grant.allowance.time.limit, 6000);
    assert_int_equal(limits.grant.allowance.threads.request, 3000);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void guarantees_hold_and_come_back(void **state)
{
    (void)state;
    struct proto_attached a, b;
    struct allowance change = nothing;
    struct error why;
    begin();
    int first = fake_attach(&fake, 0, 64 * MIB, NULL, &a);
    int second = fake_attach(&fake, 0, 256 * MIB, NULL, &b);
    change.memory.request = 64 * MIB;
    assert_int_equal(set(a.client, change), 1);
    /* Nobody else can have guaranteed memory, be it used or not. */
    uint64_t block = fake_alloc(&fake, second, 192 * MIB);
    fake_alloc_refused(&fake, second, 1 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "");
    change.memory.request = 65 * MIB;
    refused(a.client, change, PROTO_ERROR_INVALID_VALUE, "memory.request of 65M");
    change = nothing;
    change.memory.limit = 63 * MIB;
    refused(a.client, change, PROTO_ERROR_INVALID_VALUE, "memory.limit of 63M");
    /* There is no more to promise, and trying took nothing. */
    change = nothing;
    change.memory.request = 200 * MIB;
    refused(b.client, change, PROTO_ERROR_NO_ROOM,
            "a request of 200 MiB of device memory does not fit: 64 MiB");
    assert_int_equal(set(b.client, change), -ENOSPC);
    change.part[RESOURCE_MEMORY].request = 5000; /* of 256 MiB: what b has already is enough */
    assert_int_equal(change_check(fake.supervisor, b.client, &change, &why), 0);
    /* Refused with the rest: the guarantee of before stands. */
    fake.worker[0].automatic = false;
    change = nothing;
    change.memory.request = 16 * MIB;
    change.threads.request = 9000;
    assert_int_equal(set(a.client, change), 0);
    /* Which of two would hold in the end? */
    change = nothing;
    change.memory.request = 32 * MIB;
    refused(a.client, change, PROTO_ERROR_NOT_READY, "another change of client");
    change = nothing;
    change.host_memory.request = 1 * MIB;
    refused(a.client, change, PROTO_ERROR_NOT_READY, "another change of client");
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    struct proto_failed failed = {.error = PROTO_ERROR_INVALID_VALUE, .text = "140%"};
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_FAILED, &failed, NULL, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    fake.worker[0].automatic = true;
    fake_alloc_refused(&fake, second, 1 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "");
    change = nothing;
    change.memory.request = 0;
    assert_int_equal(set(a.client, change), 1);
    fake_alloc(&fake, second, 64 * MIB);
    fake_free(&fake, second, block);
    close(first);
    close(second);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void reloaded(void *context, uint32_t error, const char *text)
{
    (void)text;
    assert_int_equal(error, 0);
    *(bool *)context = true;
}

static void changes_are_undone_before_a_reload_goes_on(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    struct error why;
    bool over = false;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    fake.worker[0].automatic = false;
    change.priority = 3;
    assert_int_equal(set(attached.client, change), 0);
    assert_int_equal(reload_file(fake.supervisor, false, reloaded, &over, &why), 0);
    FAKE_WAIT(&fake, fake.supervisor->reload);
    assert_int_equal(set(attached.client, change), -EBUSY);
    assert_int_equal(change_schedule(fake.supervisor, 0, &(struct schedule){0}, 1,
                                     &(struct change_asker){"a test", take, &told}),
                     -EBUSY);
    change.priority = 0;
    assert_int_equal(change_put_back(fake.supervisor, attached.client, &change,
                                     &(struct change_asker){"a test", take, &told}),
                     0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_answer(&fake.worker[0], &fake.worker[0].message);
    FAKE_WAIT(&fake, told.calls == 1);
    fake_settle(&fake);
    assert_false(over);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_answer(&fake.worker[0], &fake.worker[0].message);
    FAKE_WAIT(&fake, over);
    assert_int_equal(told.calls, 2);
    fake.worker[0].automatic = true;
    assert_int_equal(limits_of(fd).grant.allowance.priority, 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_refusals_arithmetic_comes_through_whole(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    struct proto_failed failed = {.error = PROTO_ERROR_INVALID_VALUE};
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    /* As long as a message can carry. */
    memset(failed.text, 'x', sizeof failed.text - 1);
    memcpy(failed.text + sizeof failed.text - 5, "140%", 4);
    fake.worker[0].automatic = false;
    change.threads.request = 9000;
    assert_int_equal(set(attached.client, change), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_FAILED, &failed, NULL, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    assert_string_equal(told.text, failed.text);
    assert_int_equal(limits_of(fd).grant.allowance.threads.request, 0);
    fake.worker[0].automatic = true;
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_client_that_leaves_during_a_change_is_reported_once(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    fake.worker[0].automatic = false;
    change.priority = 1;
    assert_int_equal(set(attached.client, change), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    close(fd);
    struct error why;
    FAKE_WAIT(&fake, change_check(fake.supervisor, attached.client, &change, &why));
    assert_int_equal(set(attached.client, change), -ENOENT);
    refused(attached.client, change, PROTO_ERROR_NOT_FOUND, "clients");
    fake_worker_expect(&fake, 0, PROTO_WORKER_DETACH);
    fake_reply(&fake.worker[0], &fake.worker[0].message, PROTO_DONE, NULL, NULL, 0);
    fake_expect_nothing_left(&fake);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.error, PROTO_ERROR_NOT_FOUND);
    fake_close(&fake);
}

static void a_worker_that_dies_ends_the_change(void **state)
{
    (void)state;
    struct proto_attached attached;
    struct allowance change = nothing;
    begin();
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, &attached);
    fake.worker[0].automatic = false;
    change.threads.limit = 5000;
    assert_int_equal(set(attached.client, change), 0);
    fake_worker_expect(&fake, 0, PROTO_WORKER_LIMITS);
    fake_kill_worker(&fake, 0);
    FAKE_WAIT(&fake, told.calls == 1);
    assert_int_equal(told.error, PROTO_ERROR_NOT_FOUND);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_limit_rises_and_falls),
        cmocka_unit_test(a_host_limit_applies_to_later_allocations),
        cmocka_unit_test(more_than_the_window_or_the_device_is_refused_with_both_numbers),
        cmocka_unit_test(changes_on_their_way_leave_each_other_alone),
        cmocka_unit_test(a_change_refused_by_the_worker_changes_nothing),
        cmocka_unit_test(requests_and_time_reach_the_worker_and_stay_below_their_limits),
        cmocka_unit_test(guarantees_hold_and_come_back),
        cmocka_unit_test(changes_are_undone_before_a_reload_goes_on),
        cmocka_unit_test(a_refusals_arithmetic_comes_through_whole),
        cmocka_unit_test(a_client_that_leaves_during_a_change_is_reported_once),
        cmocka_unit_test(a_worker_that_dies_ends_the_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
