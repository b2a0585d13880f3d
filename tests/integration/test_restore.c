/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A client that has nothing in flight when its worker is lost goes on with the next one, on the
 * same connection: same addresses, same handles, every byte that finished work had written, and
 * nothing carried out twice. test_interrupt has clients with work in flight.
 *
 * The oracle of "not twice" is a counter in device memory that a kernel raises by one: it has the
 * number of launches that the test made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

/* bump adds 1 to the word, and to the module's variable, which begins with 5; it has room for
 * dynamic shared memory. */
static const char bump_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 number = 5;\n"
    ".extern .shared .align 4 .b8 room[];\n"
    ".visible .entry bump(.param .u64 word)\n{\n.reg .u64 %a, %n;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [word];\n"
    "atom.global.add.u32 %v, [%a], 1;\n"
    "mov.u64 %n, number;\natom.global.add.u32 %v, [%n], 1;\nret;\n}\n";

enum { BIG = 8 << 20, HOST = 1 << 20, SHARED = 60 << 10 };

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;
static uint8_t pattern[BIG], back[BIG];
static unsigned random_state;

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *bump;
    gpushare_stream *stream;
    gpushare_event *event;
    gpushare_address word, big, number;
    uint8_t *host;
    uint32_t launches;
};

/* Everything of which a worker has to be told. */
static struct client client_open(void)
{
    struct client client = {.gpu = arrival_connect(server, 0)};
    uint64_t bytes;
    OK(gpushare_module_load(client.gpu, bump_ptx, 0, &client.module));
    OK(gpushare_module_function(client.module, "bump", &client.bump));
    OK(gpushare_function_set_shared(client.bump, SHARED));
    OK(gpushare_module_variable(client.module, "number", &client.number, &bytes));
    OK(gpushare_memory_alloc(client.gpu, 4, &client.word));
    OK(gpushare_memory_alloc(client.gpu, BIG, &client.big));
    OK(gpushare_host_alloc(client.gpu, HOST, (void **)&client.host));
    OK(gpushare_stream_create(client.gpu, 0, 0, &client.stream));
    OK(gpushare_event_create(client.gpu, 0, &client.event));
    OK(gpushare_fill(client.gpu, client.word, 0, 4, 1));
    OK(gpushare_copy_to_device(client.gpu, client.big, pattern, BIG));
    memcpy(client.host, pattern + 77, HOST);
    return client;
}

static void client_launch(struct client *client, gpushare_stream *stream)
{
    void *parameters[] = {&client->word};
    OK(gpushare_launch(client->bump, one, one, SHARED, stream, parameters));
    client->launches++;
}

static uint32_t word_at(const struct client *client, gpushare_address address)
{
    uint32_t value = 0;
    OK(gpushare_copy_from_device(client->gpu, &value, address, sizeof value));
    return value;
}

static void counts_are_right(const struct client *client)
{
    assert_int_equal(word_at(client, client->word), client->launches);
    assert_int_equal(word_at(client, client->number), 5 + client->launches);
}

/* Uses every object. */
static void client_is_whole(struct client *client)
{
    gpushare_address more;
    gpushare_stream *stream;
    client_launch(client, client->stream);
    OK(gpushare_event_record(client->event, client->stream));
    OK(gpushare_event_synchronize(client->event));
    client_launch(client, NULL);
    OK(gpushare_synchronize(client->gpu));
    counts_are_right(client);
    OK(gpushare_copy_from_device(client->gpu, back, client->big, BIG));
    assert_memory_equal(back, pattern, BIG);
    OK(gpushare_memory_alloc(client->gpu, HOST, &more));
    OK(gpushare_copy_to_device(client->gpu, more, client->host, HOST));
    OK(gpushare_copy_from_device(client->gpu, back, more, HOST));
    assert_memory_equal(back, pattern + 77, HOST);
    OK(gpushare_memory_free(client->gpu, more));
    OK(gpushare_stream_create(client->gpu, 0, 0, &stream));
    client_launch(client, stream);
    OK(gpushare_stream_synchronize(client->gpu, stream));
    OK(gpushare_stream_destroy(stream));
    counts_are_right(client);
}

static pid_t worker_of(void)
{
    pid_t worker = 0;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    return worker;
}

static void await_other_worker(pid_t before)
{
    pid_t now = before;
    for (int left = (int)(patience_seconds(20) * 500); left > 0; left--) {
        if (server_workers(server, &now, 1) == 1 && now != before)
            return;
        usleep(2000);
    }
    fail_msg("no other worker was started");
}

static pid_t kill_worker(void)
{
    pid_t worker = worker_of();
    kill(worker, SIGKILL);
    return worker;
}

static void an_idle_client_keeps_all_that_it_has(void **state)
{
    (void)state;
    struct client client = client_open();
    struct gpushare_memory_info before = {.size = sizeof before}, after = {.size = sizeof after};
    client_is_whole(&client);
    OK(gpushare_memory_info(client.gpu, &before));
    await_other_worker(kill_worker());
    OK(gpushare_memory_info(client.gpu, &after));
    assert_memory_equal(&before, &after, sizeof before);
    client_is_whole(&client);
    gpushare_close(&client.gpu);
}

/* The next worker reads their text once, and each has its variable where it was. */
static void clients_of_one_program_keep_their_own_variables(void **state)
{
    (void)state;
    struct client clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_open();
        for (int k = 0; k <= i; k++)
            client_is_whole(&clients[i]);
    }
    for (int round = 0; round < 3; round++) {
        await_other_worker(kill_worker());
        for (int i = 2; i >= 0; i--) {
            gpushare_address number;
            uint64_t bytes;
            client_is_whole(&clients[i]);
            OK(gpushare_module_variable(clients[i].module, "number", &number, &bytes));
            assert_int_equal(number, clients[i].number);
        }
    }
    for (int i = 0; i < 3; i++) {
        client_is_whole(&clients[i]);
        gpushare_close(&clients[i].gpu);
    }
}

/* Where in the log, after the loss, it stands that the client with this name goes on: 0 is first.
 */
static int turn_of(const char *log, const char *name)
{
    char words[64];
    int turn = 0;
    snprintf(words, sizeof words, "'%s' goes on", name);
    const char *found = strstr(log, words);
    if (!found)
        return -1;
    for (const char *at = log; (at = strstr(at, "' goes on")) && at < found; at++)
        turn++;
    return turn;
}

static int await_turn(const char *name)
{
    int turn = -1;
    for (int left = (int)(patience_seconds(20) * 50); left > 0 && turn < 0; left--) {
        char *log = server_log(server);
        turn = turn_of(log, name);
        free(log);
        if (turn < 0)
            usleep(20000);
    }
    return turn;
}

/* Until the device has work of the client. */
static void await_in_flight(gpushare_connection *gpu)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    json_int_t count = 0;
    OK(gpushare_limits(gpu, &limits));
    for (int left = (int)(patience_seconds(20) * 100); left > 0 && count <= 0; left--) {
        json_t *row = admin_answer_client(server, limits.client);
        count = json_integer_value(json_object_get(row, "in_flight"));
        json_decref(row);
        usleep(10000);
    }
    assert_true(count > 0);
}

/* It connected last, so without an order it would come last: only a few are told to the worker at a
 * time. */
static void a_client_that_works_goes_on_before_idle_ones(void **state)
{
    (void)state;
    enum { IDLE = 24 };
    struct server *others = server;
    static gpushare_connection *idle[IDLE];
    /* Under ThreadSanitizer the server's ranges of addresses hold 16 windows of the usual size. */
    struct gpushare_options options = {.memory_limit = 64 << 20, .host_memory_limit = 64 << 20};
    server = server_start(NULL, NULL);
    for (int i = 0; i < IDLE; i++) {
        char name[24];
        snprintf(name, sizeof name, "idle %d", i);
        options.name = name;
        idle[i] = arrival_connect_with(server, options);
        for (int k = 0; k < 4; k++) {
            gpushare_module *module;
            OK(gpushare_module_load(idle[i], bump_ptx, 0, &module));
        }
    }
    options.name = "busy";
    gpushare_connection *busy = arrival_connect_with(server, options);
    gpushare_function *endless = arrival_load(busy, kernels_ptx, "endless");
    OK(gpushare_launch(endless, one, one, 0, NULL, NULL));
    await_in_flight(busy);
    await_other_worker(kill_worker());
    int turn = await_turn("busy");
    printf("turn of the busy one among %d: %d\n", IDLE + 1, turn);
    /* Clients that are told at the same time are done in any order. */
    assert_true(turn >= 0 && turn < IDLE / 2);
    for (int i = 0; i < IDLE; i++) {
        char name[24];
        snprintf(name, sizeof name, "idle %d", i);
        assert_true(await_turn(name) >= 0);
        gpushare_close(&idle[i]);
    }
    gpushare_close(&busy);
    assert_int_equal(server_stop(server), 0);
    server = others;
}

/* The calls come while there is no worker, in whatever order the server learns of its end. */
static void work_and_requests_without_a_worker_wait_for_the_next(void **state)
{
    (void)state;
    struct client client = client_open();
    gpushare_module *module;
    gpushare_stream *stream;
    gpushare_event *event;
    gpushare_address memory;
    void *host;
    client_is_whole(&client);
    kill_worker();
    for (int i = 0; i < 100; i++)
        client_launch(&client, i % 2 ? client.stream : NULL);
    OK(gpushare_stream_create(client.gpu, 0, 0, &stream));
    client_launch(&client, stream);
    OK(gpushare_stream_destroy(stream));
    OK(gpushare_event_create(client.gpu, 0, &event));
    OK(gpushare_event_destroy(event));
    OK(gpushare_memory_alloc(client.gpu, BIG, &memory));
    OK(gpushare_memory_free(client.gpu, memory));
    OK(gpushare_host_alloc(client.gpu, HOST, &host));
    OK(gpushare_host_free(client.gpu, host));
    OK(gpushare_module_load(client.gpu, kernels_ptx, 0, &module));
    OK(gpushare_module_unload(module));
    client_is_whole(&client);
    gpushare_close(&client.gpu);
}

static void a_client_survives_many_workers(void **state)
{
    (void)state;
    struct client client = client_open();
    for (int i = 0; i < 6; i++) {
        client_is_whole(&client);
        pid_t worker = kill_worker();
        usleep((useconds_t)(rand_r(&random_state) % 20000));
        if (i % 2)
            await_other_worker(worker);
    }
    client_is_whole(&client);
    gpushare_close(&client.gpu);
}

/* Workers that die while they are being told of their clients. */
static void workers_that_die_early_cost_nothing(void **state)
{
    (void)state;
    struct client client = client_open();
    client_is_whole(&client);
    for (int i = 0; i < 4; i++) {
        await_other_worker(kill_worker());
        usleep((useconds_t)(rand_r(&random_state) % 6000));
    }
    client_is_whole(&client);
    gpushare_close(&client.gpu);
}

static void a_fault_ends_its_author_and_no_idle_client(void **state)
{
    (void)state;
    struct client idle = client_open();
    gpushare_connection *guilty = arrival_connect(server, 0);
    gpushare_function *trapped = arrival_load(guilty, kernels_ptx, "trapped");
    client_is_whole(&idle);
    OK(gpushare_launch(trapped, one, one, 0, NULL, NULL));
    assert_int_equal(gpushare_synchronize(guilty), GPUSHARE_ERROR_LAUNCH_FAILED);
    client_is_whole(&idle);
    gpushare_close(&guilty);
    gpushare_close(&idle.gpu);
}

/* The server's descriptors. Those of a client that has left are closed a moment later, by another
 * thread: the number must be the same for a while. */
static size_t settled_fd_count(void)
{
    size_t before, now = server_fd_count(server_pid(server));
    int left = (int)(patience_seconds(10) * 10);
    do {
        before = now;
        usleep(100000);
        now = server_fd_count(server_pid(server));
    } while (now != before && left-- > 0);
    return now;
}

static void a_client_that_leaves_without_a_worker_leaves_nothing(void **state)
{
    (void)state;
    struct client kept = client_open();
    struct client gone = client_open();
    client_is_whole(&gone);
    gpushare_close(&gone.gpu);
    client_is_whole(&kept);
    size_t before = settled_fd_count();
    for (int i = 0; i < 3; i++) {
        gone = client_open();
        client_is_whole(&gone);
        pid_t worker = kill_worker();
        gpushare_close(&gone.gpu);
        await_other_worker(worker);
        client_is_whole(&kept);
    }
    size_t after = before + 1;
    for (int left = (int)(patience_seconds(10) * 200); left > 0 && after > before; left--) {
        usleep(5000);
        after = server_fd_count(server_pid(server));
    }
    assert_true(after <= before);
    gpushare_close(&kept.gpu);
}

static int start(void **state)
{
    random_state = seed_draw();
    for (size_t i = 0; i < BIG; i++)
        pattern[i] = (uint8_t)(rand_r(&random_state) >> 8);
    *state = server = server_start(NULL, NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_client_keeps_all_that_it_has),
        cmocka_unit_test(clients_of_one_program_keep_their_own_variables),
        cmocka_unit_test(a_client_that_works_goes_on_before_idle_ones),
        cmocka_unit_test(work_and_requests_without_a_worker_wait_for_the_next),
        cmocka_unit_test(a_client_survives_many_workers),
        cmocka_unit_test(workers_that_die_early_cost_nothing),
        cmocka_unit_test(a_fault_ends_its_author_and_no_idle_client),
        cmocka_unit_test(a_client_that_leaves_without_a_worker_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
