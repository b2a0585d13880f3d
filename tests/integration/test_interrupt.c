/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A stream with work in flight when its worker is lost is interrupted: the work is not begun again,
 * what was queued behind it and what waits for it does not run, and the client is told. After
 * gpushare_stream_recover it goes on, on the same connection.
 *
 * The oracle is a counter in device memory for each stream, which a kernel raises by one: it has
 * the launches that were finished, and at most those that were in flight besides. In rounds of
 * kills each launch has a counter of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/crash_signal.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

/* bump takes 20 us and adds 1 to the word. hold sets the first of two words, and waits until the
 * second is set. */
static const char interrupt_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry bump(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [word];\nnanosleep.u32 20000;\natom.global.add.u32 %v, [%a], 1;\nret;\n}\n"
    ".visible .entry hold(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
    "ld.param.u64 %a, [words];\nmov.u32 %v, 1;\nst.volatile.global.u32 [%a], %v;\n"
    "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a+4];\n"
    "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n";

enum { STREAMS = 4, WORDS = 4096, ROUND_LAUNCHES = 400 };

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;
static unsigned random_state;

struct client {
    gpushare_connection *gpu;
    gpushare_function *bump, *hold;
    gpushare_stream *streams[STREAMS]; /* none waits for another by itself */
    gpushare_address counters;         /* STREAMS + 1 words; the last one for the default stream */
    gpushare_address marks;            /* a word for each launch of a round, stream after stream */
    volatile uint32_t *words;          /* host memory, for hold */
};

static struct client client_open(struct server *of, int device)
{
    const struct gpushare_options options = {.device = device};
    struct client client = {.gpu = arrival_connect_with(of, options)};
    gpushare_module *module;
    void *words;
    OK(gpushare_module_load(client.gpu, interrupt_ptx, 0, &module));
    OK(gpushare_module_function(module, "bump", &client.bump));
    OK(gpushare_module_function(module, "hold", &client.hold));
    OK(gpushare_memory_alloc(client.gpu, 4 * (STREAMS + 1), &client.counters));
    OK(gpushare_fill(client.gpu, client.counters, 0, 4, STREAMS + 1));
    OK(gpushare_memory_alloc(client.gpu, 4 * STREAMS * ROUND_LAUNCHES, &client.marks));
    OK(gpushare_host_alloc(client.gpu, WORDS, &words));
    client.words = words;
    for (int i = 0; i < STREAMS; i++)
        OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &client.streams[i]));
    return client;
}

static gpushare_error try_bump_word(const struct client *client, int at, gpushare_address word)
{
    void *parameters[] = {&word};
    return gpushare_launch(client->bump, one, one, 0, at < STREAMS ? client->streams[at] : NULL,
                           parameters);
}

static gpushare_error try_bump(const struct client *client, int at)
{
    return try_bump_word(client, at, client->counters + 4 * (gpushare_address)at);
}

static void launch_bumps(const struct client *client, int at, int count)
{
    for (int i = 0; i < count; i++)
        OK(try_bump(client, at));
}

/* Returns when the kernel runs. */
static void launch_hold(const struct client *client, gpushare_stream *stream)
{
    volatile uint32_t *words = client->words;
    void *parameters[] = {&words};
    words[0] = words[1] = 0;
    OK(gpushare_launch(client->hold, one, one, 0, stream, parameters));
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !words[0]; left--)
        usleep(1000);
    assert_int_equal(words[0], 1);
}

static uint32_t count_at(const struct client *client, int at)
{
    uint32_t count;
    OK(gpushare_copy_from_device(client->gpu, &count, client->counters + 4 * (gpushare_address)at,
                                 4));
    return count;
}

/* The worker may be between two lives. */
static pid_t find_worker(struct server *of, size_t which)
{
    pid_t workers[2];
    for (int left = (int)(patience_seconds(20) * 1000); left > 0; left--) {
        if (server_workers(of, workers, 2) > which)
            return workers[which];
        usleep(1000);
    }
    fail_msg("there is no worker");
    return -1;
}

static void end_worker(struct server *of, size_t which, int how)
{
    kill(find_worker(of, which), how);
}

static void kill_worker(struct server *of, size_t which)
{
    end_worker(of, which, SIGKILL);
}

/* As a crash of any kind would. *found: the worker; 0 afterwards, and if it has to be found, which
 * takes longer than the device needs for the launches of a round. */
static void crash_worker(pid_t *found)
{
    static const int how[] = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT};
    kill(*found ? *found : find_worker(server, 0),
         crash_signal(how[(unsigned)rand_r(&random_state) % 4]));
    *found = 0;
}

static struct gpushare_recovery recover(const struct client *client, gpushare_stream *stream)
{
    struct gpushare_recovery recovery = {.size = sizeof recovery};
    OK(gpushare_stream_recover(client->gpu, stream, &recovery));
    return recovery;
}

#define INTERRUPTED(call) assert_int_equal((call), GPUSHARE_ERROR_INTERRUPTED)

static void a_stream_in_flight_is_interrupted_and_no_other(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    gpushare_stream *held = client.streams[0];
    gpushare_event *before, *behind;
    OK(gpushare_event_create(client.gpu, 0, &before));
    OK(gpushare_event_create(client.gpu, 0, &behind));
    launch_bumps(&client, 0, 3);
    launch_bumps(&client, 1, 5);
    OK(gpushare_event_record(before, held));
    OK(gpushare_synchronize(client.gpu));
    uint64_t finished = recover(&client, held).finished;
    launch_hold(&client, held);
    launch_bumps(&client, 0, 7);
    OK(gpushare_event_record(behind, held));
    assert_int_equal(gpushare_event_query(behind), GPUSHARE_ERROR_NOT_READY);
    kill_worker(server, 0);

    INTERRUPTED(gpushare_stream_synchronize(client.gpu, held));
    INTERRUPTED(gpushare_stream_query(client.gpu, held));
    INTERRUPTED(try_bump(&client, 0));
    INTERRUPTED(try_bump(&client, 0));
    INTERRUPTED(gpushare_event_synchronize(behind));
    INTERRUPTED(gpushare_event_query(behind));
    INTERRUPTED(gpushare_stream_wait_event(client.gpu, client.streams[1], behind));
    INTERRUPTED(gpushare_synchronize(client.gpu));
    OK(gpushare_event_synchronize(before));
    launch_bumps(&client, 1, 1);
    OK(gpushare_stream_synchronize(client.gpu, client.streams[1]));

    struct gpushare_recovery recovery = recover(&client, held);
    assert_int_equal(recovery.finished, finished);
    assert_int_equal(recovery.dropped, 8);
    OK(gpushare_stream_synchronize(client.gpu, held));
    OK(gpushare_synchronize(client.gpu));
    INTERRUPTED(gpushare_event_query(behind));
    launch_bumps(&client, 0, 2);
    OK(gpushare_event_record(behind, held));
    OK(gpushare_event_synchronize(behind));
    assert_int_equal(count_at(&client, 0), 3 + 2);
    assert_int_equal(count_at(&client, 1), 5 + 1);
    gpushare_close(&client.gpu);
}

static void streams_that_wait_for_a_loss_are_interrupted_too(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    gpushare_event *first, *second;
    OK(gpushare_event_create(client.gpu, 0, &first));
    OK(gpushare_event_create(client.gpu, 0, &second));
    launch_bumps(&client, 1, 2);
    OK(gpushare_synchronize(client.gpu));
    launch_hold(&client, client.streams[0]);
    OK(gpushare_event_record(first, client.streams[0]));
    OK(gpushare_stream_wait_event(client.gpu, client.streams[1], first));
    launch_bumps(&client, 1, 3);
    OK(gpushare_event_record(second, client.streams[1]));
    OK(gpushare_stream_wait_event(client.gpu, client.streams[2], second));
    launch_bumps(&client, 2, 4);
    kill_worker(server, 0);
    for (int i = 0; i < 3; i++)
        INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.streams[i]));
    OK(gpushare_stream_synchronize(client.gpu, client.streams[3]));
    for (int i = 2; i >= 0; i--)
        (void)recover(&client, client.streams[i]);
    for (int i = 0; i < 3; i++)
        launch_bumps(&client, i, 1);
    OK(gpushare_synchronize(client.gpu));
    assert_int_equal(count_at(&client, 0), 1);
    assert_int_equal(count_at(&client, 1), 2 + 1);
    assert_int_equal(count_at(&client, 2), 1);
    gpushare_close(&client.gpu);
}

/* The waits are asked for while there is no worker, before or after it is known what was lost. */
static void waits_pushed_after_the_loss_end_too(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        struct client client = client_open(server, 0);
        gpushare_event *event;
        OK(gpushare_event_create(client.gpu, 0, &event));
        launch_hold(&client, client.streams[0]);
        OK(gpushare_event_record(event, client.streams[0]));
        kill_worker(server, 0);
        usleep((useconds_t)(rand_r(&random_state) % 30000));
        gpushare_error waits = gpushare_stream_wait_event(client.gpu, client.streams[1], event);
        if (waits == GPUSHARE_SUCCESS)
            waits = gpushare_stream_synchronize(client.gpu, client.streams[1]);
        INTERRUPTED(waits);
        INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.streams[0]));
        (void)recover(&client, client.streams[0]);
        (void)recover(&client, client.streams[1]);
        launch_bumps(&client, 1, 1);
        assert_int_equal(count_at(&client, 1), 1);
        gpushare_close(&client.gpu);
    }
}

/* The second stream has nothing in flight when its client recovers it, at once: its ring has the
 * wait for what was lost. */
static void recovering_waits_for_a_loss_that_is_on_its_way(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    gpushare_event *event;
    OK(gpushare_event_create(client.gpu, 0, &event));
    for (int round = 0; round < 20; round++) {
        launch_hold(&client, client.streams[0]);
        OK(gpushare_event_record(event, client.streams[0]));
        OK(gpushare_stream_wait_event(client.gpu, client.streams[1], event));
        launch_bumps(&client, 1, 3);
        kill_worker(server, 0);
        INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.streams[0]));
        assert_int_equal(recover(&client, client.streams[1]).dropped, 4);
        OK(gpushare_stream_query(client.gpu, client.streams[1]));
        assert_int_equal(recover(&client, client.streams[0]).dropped, 1);
    }
    launch_bumps(&client, 2, 1);
    assert_int_equal(recover(&client, client.streams[2]).dropped, 0);
    assert_int_equal(count_at(&client, 2), 1);
    assert_int_equal(count_at(&client, 1), 0);
    gpushare_close(&client.gpu);
}

static void the_default_streams_order_holds_back_what_would_follow_a_loss(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    gpushare_stream *blocking;
    OK(gpushare_stream_create(client.gpu, 0, 0, &blocking));
    client.streams[3] = blocking;
    launch_hold(&client, NULL);
    kill_worker(server, 0);
    INTERRUPTED(gpushare_stream_synchronize(client.gpu, NULL));
    INTERRUPTED(try_bump(&client, 3));
    launch_bumps(&client, 1, 1);
    assert_int_equal(recover(&client, NULL).dropped, 1);
    launch_bumps(&client, 3, 1);
    OK(gpushare_synchronize(client.gpu));

    launch_hold(&client, blocking);
    kill_worker(server, 0);
    INTERRUPTED(gpushare_stream_synchronize(client.gpu, blocking));
    INTERRUPTED(try_bump(&client, STREAMS));
    assert_int_equal(recover(&client, blocking).dropped, 1);
    launch_bumps(&client, STREAMS, 1);
    OK(gpushare_synchronize(client.gpu));
    assert_int_equal(count_at(&client, 3), 1);
    assert_int_equal(count_at(&client, STREAMS), 1);
    gpushare_close(&client.gpu);
}

static void recovering_asks_for_a_fit_report_and_is_harmless_otherwise(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    struct gpushare_recovery unfit = {.size = 1};
    launch_bumps(&client, 0, 1);
    OK(gpushare_synchronize(client.gpu));
    assert_int_equal(recover(&client, client.streams[0]).dropped, 0);
    assert_int_equal(recover(&client, NULL).dropped, 0);
    launch_hold(&client, client.streams[0]);
    kill_worker(server, 0);
    INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.streams[0]));
    assert_int_equal(gpushare_stream_recover(client.gpu, client.streams[0], &unfit),
                     GPUSHARE_ERROR_INVALID_VALUE);
    INTERRUPTED(try_bump(&client, 0));
    OK(gpushare_stream_recover(client.gpu, client.streams[0], NULL));
    launch_bumps(&client, 0, 1);
    assert_int_equal(count_at(&client, 0), 2);
    assert_int_equal(recover(&client, client.streams[0]).dropped, 0);
    gpushare_close(&client.gpu);
}

/* Nobody can recover such a stream. Its number goes to another one. */
static void a_destroyed_stream_ends_with_its_work(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    gpushare_stream *held;
    OK(gpushare_stream_create(client.gpu, 0, 0, &held));
    launch_hold(&client, held);
    OK(gpushare_stream_destroy(held));
    kill_worker(server, 0);
    launch_bumps(&client, 0, 1);
    OK(gpushare_stream_synchronize(client.gpu, client.streams[0]));
    for (int i = 0; i < 20; i++) {
        gpushare_stream *stream;
        OK(gpushare_stream_create(client.gpu, 0, 0, &stream));
        client.streams[3] = stream;
        launch_bumps(&client, 3, 1);
        OK(gpushare_stream_synchronize(client.gpu, stream));
        OK(gpushare_stream_destroy(stream));
    }
    launch_bumps(&client, STREAMS, 1);
    OK(gpushare_stream_synchronize(client.gpu, NULL));
    assert_int_equal(count_at(&client, 3), 20);
    gpushare_close(&client.gpu);
}

struct sleeper {
    gpushare_connection *gpu;
    gpushare_stream *stream;
    gpushare_error result;
    pthread_t thread;
};

static void *sleep_for_stream(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->result = gpushare_stream_synchronize(sleeper->gpu, sleeper->stream);
    return NULL;
}

/* Fills the ring, and is stopped by that until the commands are dropped. */
static void *fill_ring(void *argument)
{
    const struct client *client = argument;
    gpushare_error error = GPUSHARE_SUCCESS;
    for (int i = 0; i < 5000 && !error; i++)
        error = try_bump(client, 1);
    return (void *)(uintptr_t)error;
}

static void threads_that_sleep_are_told(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    struct sleeper sleepers[3];
    pthread_t filler;
    void *filled;
    gpushare_event *event;
    OK(gpushare_event_create(client.gpu, 0, &event));
    launch_hold(&client, client.streams[0]);
    OK(gpushare_event_record(event, client.streams[0]));
    OK(gpushare_stream_wait_event(client.gpu, client.streams[1], event));
    OK(gpushare_stream_wait_event(client.gpu, client.streams[2], event));
    for (int i = 0; i < 3; i++) {
        sleepers[i] = (struct sleeper){.gpu = client.gpu, .stream = client.streams[i ? 2 : 0]};
        assert_int_equal(pthread_create(&sleepers[i].thread, NULL, sleep_for_stream, &sleepers[i]),
                         0);
    }
    assert_int_equal(pthread_create(&filler, NULL, fill_ring, &client), 0);
    usleep((useconds_t)(rand_r(&random_state) % 50000));
    kill_worker(server, 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(sleepers[i].thread, NULL);
        INTERRUPTED(sleepers[i].result);
    }
    pthread_join(filler, &filled);
    INTERRUPTED((gpushare_error)(uintptr_t)filled);
    for (int i = 0; i < 3; i++)
        (void)recover(&client, client.streams[i]);
    launch_bumps(&client, 1, 1);
    OK(gpushare_synchronize(client.gpu));
    assert_int_equal(count_at(&client, 1), 1);
    gpushare_close(&client.gpu);
}

/* A stream in a round. */
struct turn {
    uint32_t launches;
    uint64_t value; /* of its timeline when the round begins, with nothing in flight */
};

/* Of a stream's launches the finished ones ran once, and of the others only some that follow
 * them without a gap, once at most. */
static void check_marks(const uint32_t *marks, uint32_t finished, uint32_t launches)
{
    for (uint32_t i = 0; i < ROUND_LAUNCHES; i++) {
        if (i < finished)
            assert_int_equal(marks[i], 1);
        else
            assert_in_range(marks[i], 0, i < launches && (i == 0 || marks[i - 1]) ? 1 : 0);
    }
}

/* One or two workers die at any moment. */
static void run_round(const struct client *client, uint64_t *lost)
{
    static uint32_t marks[STREAMS][ROUND_LAUNCHES];
    struct turn turns[STREAMS];
    OK(gpushare_fill(client->gpu, client->marks, 0, 4, STREAMS * ROUND_LAUNCHES));
    OK(gpushare_synchronize(client->gpu));
    for (int i = 0; i < STREAMS; i++)
        turns[i] = (struct turn){.value = recover(client, client->streams[i]).finished};
    int first = rand_r(&random_state) % ROUND_LAUNCHES;
    pid_t worker = find_worker(server, 0);
    for (int n = 100 + rand_r(&random_state) % (ROUND_LAUNCHES - 100); n > 0; n--) {
        int at = rand_r(&random_state) % STREAMS;
        gpushare_address number = (gpushare_address)at * ROUND_LAUNCHES + turns[at].launches;
        gpushare_error error = try_bump_word(client, at, client->marks + 4 * number);
        turns[at].launches += error == GPUSHARE_SUCCESS;
        assert_true(!error || error == GPUSHARE_ERROR_INTERRUPTED);
        if (n == first)
            crash_worker(&worker);
    }
    usleep((useconds_t)(rand_r(&random_state) % 1000)); /* of 0.5 to 2 ms that they take */
    crash_worker(&worker);
    usleep((useconds_t)(rand_r(&random_state) % 20000));
    gpushare_error error = gpushare_synchronize(client->gpu);
    assert_true(!error || error == GPUSHARE_ERROR_INTERRUPTED);
    for (int i = 0; i < STREAMS; i++) {
        struct gpushare_recovery recovery = recover(client, client->streams[i]);
        uint32_t finished = (uint32_t)(recovery.finished - turns[i].value);
        assert_int_equal(finished + recovery.dropped, turns[i].launches);
        turns[i].value = finished;
        *lost += recovery.dropped;
    }
    OK(gpushare_copy_from_device(client->gpu, marks, client->marks, sizeof marks));
    for (int i = 0; i < STREAMS; i++)
        check_marks(marks[i], (uint32_t)turns[i].value, turns[i].launches);
}

/* make chaos asks for a thousand rounds. */
static int rounds_wanted(void)
{
    const char *rounds = getenv("TEST_ROUNDS");
    return rounds ? atoi(rounds) : 12;
}

static void nothing_finished_is_lost_and_nothing_runs_twice(void **state)
{
    (void)state;
    struct client client = client_open(server, 0);
    uint64_t lost = 0;
    int rounds = 0, wanted = rounds_wanted(), hit = 0;
    /* Few rounds are enough, unless the device was always faster. */
    while (rounds < wanted || (!lost && rounds < 100)) {
        uint64_t before = lost;
        run_round(&client, &lost);
        hit += lost > before;
        rounds++;
    }
    assert_true(lost > 0);
    if (wanted >= 100 && hit * 10 < rounds * 7)
        fail_msg("only %d of %d rounds had work in flight", hit, rounds);
    for (int i = 0; i < STREAMS; i++) {
        uint32_t count = count_at(&client, i);
        launch_bumps(&client, i, 10);
        OK(gpushare_synchronize(client.gpu));
        assert_int_equal(count_at(&client, i), count + 10);
    }
    print_message("%d rounds, %d of them with work in flight; %llu commands were lost\n", rounds,
                  hit, (unsigned long long)lost);
    gpushare_close(&client.gpu);
}

/* Each device's client waits for the other's. One worker dies: what waits for it is interrupted,
 * and the other direction goes on. */
static void a_loss_reaches_streams_on_another_device(void **state)
{
    static const char *const env[] = {"SOFTGPU_DEVICES=2", NULL};
    (void)state;
    struct server *two = server_start(NULL, env);
    struct client clients[2];
    gpushare_event *events[2];
    for (int i = 0; i < 2; i++) {
        clients[i] = client_open(two, i);
        OK(gpushare_event_create(clients[i].gpu, 0, &events[i]));
        launch_hold(&clients[i], clients[i].streams[0]);
        OK(gpushare_event_record(events[i], clients[i].streams[0]));
    }
    for (int i = 0; i < 2; i++) {
        OK(gpushare_stream_wait_event(clients[i].gpu, clients[i].streams[1], events[1 - i]));
        launch_bumps(&clients[i], 1, 3);
    }
    kill_worker(two, 0);
    struct client *lost = NULL, *other = NULL;
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !lost; left--) {
        for (int i = 0; i < 2; i++)
            if (gpushare_stream_query(clients[i].gpu, clients[i].streams[0]) ==
                GPUSHARE_ERROR_INTERRUPTED) {
                lost = &clients[i];
                other = &clients[1 - i];
            }
        usleep(1000);
    }
    if (!lost) {
        fail_msg("no stream was interrupted");
        return;
    }
    other->words[1] = 1;
    INTERRUPTED(gpushare_stream_synchronize(other->gpu, other->streams[1]));
    OK(gpushare_stream_synchronize(lost->gpu, lost->streams[1]));
    OK(gpushare_stream_synchronize(other->gpu, other->streams[0]));
    assert_int_equal(count_at(lost, 1), 3);
    (void)recover(other, other->streams[1]);
    launch_bumps(other, 1, 1);
    assert_int_equal(count_at(other, 1), 1);
    for (int i = 0; i < 2; i++)
        gpushare_close(&clients[i].gpu);
    assert_int_equal(server_stop(two), 0);
}

static int start(void **state)
{
    random_state = seed_draw();
    *state = server = server_start(NULL, NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_in_flight_is_interrupted_and_no_other),
        cmocka_unit_test(streams_that_wait_for_a_loss_are_interrupted_too),
        cmocka_unit_test(waits_pushed_after_the_loss_end_too),
        cmocka_unit_test(recovering_waits_for_a_loss_that_is_on_its_way),
        cmocka_unit_test(the_default_streams_order_holds_back_what_would_follow_a_loss),
        cmocka_unit_test(recovering_asks_for_a_fit_report_and_is_harmless_otherwise),
        cmocka_unit_test(a_destroyed_stream_ends_with_its_work),
        cmocka_unit_test(threads_that_sleep_are_told),
        cmocka_unit_test(nothing_finished_is_lost_and_nothing_runs_twice),
        cmocka_unit_test(a_loss_reaches_streams_on_another_device),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
