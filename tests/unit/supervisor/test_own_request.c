/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Requests that clients make for themselves give way to other users' clients, and rise again. */
#include "fake.h"

#define MEMORY (128 * MIB)

static struct fake fake;
static struct fake_reload reload;

/* A greeted client of this user. */
static int greeted(uid_t uid)
{
    int fd = fake_greet(&fake);
    fake_session(&fake, fake.supervisor->server.sessions - 1)->uid = uid;
    return fd;
}

static void ask(int fd, uint64_t time, uint64_t threads, uint64_t memory)
{
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET};
    body.allowance.time.request = time;
    body.allowance.threads.request = threads;
    body.allowance.memory.request = memory;
    fake_send(&fake, fd, PROTO_ATTACH, &body);
}

static struct proto_allowance attached(int fd)
{
    const struct proto_attached *got = fake_expect(&fake, fd, PROTO_ATTACHED);
    const struct proto_allowance allowance = got->grant.allowance;
    channel_close_fds(&fake.message);
    return allowance;
}

static struct proto_allowance granted(int fd)
{
    fake_send(&fake, fd, PROTO_LIMITS_QUERY, NULL);
    const struct proto_limits *got = fake_expect(&fake, fd, PROTO_LIMITS);
    return got->grant.allowance;
}

/* As the worker was told of the session that so many came before. */
static const struct proto_allowance *at_worker(unsigned index)
{
    return &fake.worker[0]
                .client_limits[fake_session(&fake, index)->number % FAKE_CLIENTS]
                .allowance;
}

static void expect_notice(int fd, const char *word)
{
    const struct proto_notice *notice = fake_expect(&fake, fd, PROTO_NOTICE);
    if (!strstr(notice->text, word))
        fail_msg("no \"%s\" in: %s", word, notice->text);
}

static void begin(void)
{
    fake_open(&fake, 1, MEMORY);
    fake.worker[0].sums = true;
    fake.worker[0].schedule.mode = PROTO_MODE_FAIR;
}

static void end(void)
{
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void another_user_finds_room_and_what_it_took_comes_back(void **state)
{
    (void)state;
    begin();
    int first = greeted(5001);
    ask(first, 8000, 9000, PROTO_UNSET);
    assert_int_equal(attached(first).time.request, 8000);
    assert_int_equal(at_worker(0)->threads.request, 9000);
    int second = greeted(5002);
    ask(second, 6000, PROTO_UNSET, PROTO_UNSET);
    assert_int_equal(attached(second).time.request, 5000);
    expect_notice(second, "the request of time is 50% now, of 60%");
    assert_int_equal(at_worker(0)->time.request, 5000);
    assert_int_equal(at_worker(0)->threads.request, 5000);
    expect_notice(first, "is 50%");
    expect_notice(first, "is 50%");
    assert_int_equal(granted(first).time.request, 5000);
    /* A third user, who asks for nothing, takes a part too. */
    int third = greeted(5003);
    ask(third, PROTO_UNSET, PROTO_UNSET, PROTO_UNSET);
    attached(third);
    FAKE_WAIT(&fake, at_worker(0)->time.request == 3333 && at_worker(1)->time.request == 3333);
    close(third);
    FAKE_WAIT(&fake, at_worker(0)->time.request == 5000 && at_worker(1)->time.request == 5000);
    close(second);
    FAKE_WAIT(&fake, at_worker(0)->time.request == 8000);
    FAKE_WAIT(&fake, at_worker(0)->threads.request == 9000);
    close(first);
    end();
}

static void a_user_with_more_clients_has_no_more(void **state)
{
    (void)state;
    begin();
    int other = greeted(5001), fds[3];
    ask(other, 7000, PROTO_UNSET, PROTO_UNSET);
    attached(other);
    for (int i = 0; i < 3; i++) {
        fds[i] = greeted(5002);
        ask(fds[i], 4000, PROTO_UNSET, PROTO_UNSET);
        attached(fds[i]);
    }
    FAKE_WAIT(&fake, at_worker(1)->time.request == 1666 && at_worker(2)->time.request == 1666);
    assert_int_equal(at_worker(0)->time.request, 5000);
    assert_int_equal(at_worker(3)->time.request, 1666);
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    close(other);
    end();
}

static void change_over(void *context, uint32_t number, uint32_t error, const char *text)
{
    (void)number;
    fake_reloaded(context, error, text);
}

static void a_request_of_a_rule_or_an_administrator_stays(void **state)
{
    (void)state;
    struct allowance change = allowance_none;
    begin();
    assert_int_equal(fake_configure(&fake,
                                    "rules:\n"
                                    "  - {match: {uid: 5001}, time: {request: 40%}}\n",
                                    &reload),
                     0);
    fake.worker[0].schedule.mode = PROTO_MODE_FAIR;
    int ruled = greeted(5001), set = greeted(5002);
    ask(ruled, 9000, PROTO_UNSET, PROTO_UNSET);
    assert_int_equal(attached(ruled).time.request, 4000);
    ask(set, 1000, PROTO_UNSET, PROTO_UNSET);
    attached(set);
    change.time.request = 3500;
    allowance_attribute(&change, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    struct fake_reload done = {0};
    assert_int_equal(change_set(fake.supervisor, fake_session(&fake, 1)->number, &change,
                                &(struct change_asker){"a test", change_over, &done}),
                     0);
    FAKE_WAIT(&fake, done.over);
    int third = greeted(5003);
    ask(third, 9000, PROTO_UNSET, PROTO_UNSET);
    /* Those two come to 75 %. */
    assert_int_equal(attached(third).time.request, 2500);
    assert_int_equal(at_worker(0)->time.request, 4000);
    assert_int_equal(at_worker(1)->time.request, 3500);
    close(ruled);
    close(set);
    close(third);
    end();
}

static void memory_in_use_stays_where_a_request_falls_below_it(void **state)
{
    (void)state;
    begin();
    int first = greeted(5001);
    ask(first, PROTO_UNSET, PROTO_UNSET, 96 * MIB);
    attached(first);
    fake_alloc(&fake, first, 80 * MIB);
    int second = greeted(5002);
    ask(second, PROTO_UNSET, PROTO_UNSET, 40 * MIB);
    /* 48 MiB are free: the second has what it asks for, and the first what it uses. */
    assert_int_equal(attached(second).memory.request, 40 * MIB);
    expect_notice(first, "device memory is 64 MiB now, of 96 MiB");
    assert_int_equal(granted(first).memory.request, 64 * MIB);
    assert_int_equal(fake_session(&fake, 0)->quotas[RESOURCE_MEMORY].used, 80 * MIB);
    fake_alloc(&fake, second, 40 * MIB);
    close(second);
    FAKE_WAIT(&fake, fake_session(&fake, 0)->grant.allowance.memory.request == 96 * MIB);
    /* A request that is refused whatever others have lowers theirs to an equal part, and no more.
     */
    int third = greeted(5003);
    ask(third, PROTO_UNSET, PROTO_UNSET, 2 * MEMORY);
    fake_expect_failed(&fake, third, PROTO_ERROR_NO_ROOM, "does not fit");
    assert_int_equal(fake_session(&fake, 0)->grant.allowance.memory.request, 64 * MIB);
    close(third);
    close(first);
    end();
}

/* The worker does not know a client that is being attached, so it can't lower its request. */
static void a_client_that_is_being_attached_gives_way_before_the_next_comes(void **state)
{
    (void)state;
    begin();
    int first = greeted(5001), second = greeted(5002);
    fake.worker[0].automatic = false;
    ask(first, 8000, PROTO_UNSET, PROTO_UNSET);
    fake_settle(&fake);
    ask(second, 8000, PROTO_UNSET, PROTO_UNSET);
    fake_settle(&fake);
    assert_true(fake_session(&fake, 1)->parked.present);
    fake.worker[0].automatic = true;
    assert_int_equal(attached(first).time.request, 8000);
    assert_int_equal(attached(second).time.request, 5000);
    assert_int_equal(at_worker(0)->time.request, 5000);
    close(first);
    close(second);
    end();
}

static void a_new_rule_is_no_reason_to_refuse_a_file(void **state)
{
    (void)state;
    begin();
    int first = greeted(5001), second = greeted(5002);
    ask(first, 8000, PROTO_UNSET, PROTO_UNSET);
    attached(first);
    ask(second, 8000, PROTO_UNSET, PROTO_UNSET);
    attached(second);
    assert_int_equal(fake_configure(&fake,
                                    "rules:\n"
                                    "  - {match: {uid: 5001}, time: {request: 70%}}\n",
                                    &reload),
                     0);
    assert_int_equal(at_worker(0)->time.request, 7000);
    assert_int_equal(at_worker(1)->time.request, 3000);
    /* Without the rule both have their own again, in equal parts. */
    assert_int_equal(fake_configure(&fake, "{}\n", &reload), 0);
    assert_int_equal(at_worker(0)->time.request, 5000);
    assert_int_equal(at_worker(1)->time.request, 5000);
    close(first);
    close(second);
    end();
}

static void less_than_an_sm_group_is_no_request(void **state)
{
    (void)state;
    int fds[18];
    begin();
    for (int i = 0; i < 18; i++) {
        fds[i] = greeted((uid_t)(5001 + i));
        ask(fds[i], PROTO_UNSET, 10000, PROTO_UNSET);
        attached(fds[i]);
        const uint64_t part = (uint64_t)10000 / ((uint64_t)i + 1);
        for (unsigned k = 0; k <= (unsigned)i; k++)
            FAKE_WAIT(&fake, at_worker(k)->threads.request == (i < 16 ? part : 0));
    }
    for (int i = 0; i < 18; i++)
        close(fds[i]);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_user_finds_room_and_what_it_took_comes_back),
        cmocka_unit_test(a_user_with_more_clients_has_no_more),
        cmocka_unit_test(a_request_of_a_rule_or_an_administrator_stays),
        cmocka_unit_test(memory_in_use_stays_where_a_request_falls_below_it),
        cmocka_unit_test(a_client_that_is_being_attached_gives_way_before_the_next_comes),
        cmocka_unit_test(a_new_rule_is_no_reason_to_refuse_a_file),
        cmocka_unit_test(less_than_an_sm_group_is_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
