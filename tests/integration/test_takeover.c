/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A worker is killed, and the next one goes on with what its clients had used and what they owe: a
 * client that overran its share gains nothing by it, and no number that was shown falls.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

/* bump adds 1 to the word. hold waits until the second of two words is set. */
static const char takeover_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry bump(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [word];\natom.global.add.u32 %v, [%a], 1;\nret;\n}\n"
    ".visible .entry hold(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
    "ld.param.u64 %a, [words];\nmov.u32 %v, 1;\nst.volatile.global.u32 [%a], %v;\n"
    "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a+4];\n"
    "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n";

enum { ROUNDS = 6 };

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;
static unsigned random_state;

struct client {
    gpushare_connection *gpu;
    gpushare_function *bump, *hold;
    gpushare_address word;
    volatile uint32_t *words; /* host memory, for hold */
    unsigned number;
};

static int control(const char *words)
{
    char command[1200];
    const char *build = getenv("BUILD");
    snprintf(command, sizeof command, "%s/bin/gpusharectl --socket %s %s >/dev/null",
             build ? build : "build", server_admin_socket(server), words);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static struct client client_open(const char *request)
{
    struct client client;
    if (request)
        setenv("GPUSHARE_TIME_REQUEST", request, 1);
    client = (struct client){.gpu = arrival_connect(server, 0)};
    unsetenv("GPUSHARE_TIME_REQUEST");
    struct gpushare_limits limits = {.size = sizeof limits};
    gpushare_module *module;
    void *words;
    OK(gpushare_module_load(client.gpu, takeover_ptx, 0, &module));
    OK(gpushare_module_function(module, "bump", &client.bump));
    OK(gpushare_module_function(module, "hold", &client.hold));
    OK(gpushare_memory_alloc(client.gpu, 4, &client.word));
    OK(gpushare_host_alloc(client.gpu, 4096, &words));
    client.words = words;
    OK(gpushare_limits(client.gpu, &limits));
    client.number = limits.client;
    return client;
}

static gpushare_error bump(const struct client *client)
{
    void *parameters[] = {(void *)&client->word};
    return gpushare_launch(client->bump, one, one, 0, NULL, parameters);
}

static double number_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : -1;
}

/* Of a client whose worker does not serve yet, nothing is shown. */
static double shown(const struct client *client, const char *key)
{
    double value = -1;
    for (int left = (int)(patience_seconds(20) * 100); left > 0 && value < 0; left--) {
        json_t *row = admin_answer_client(server, client->number);
        value = number_of(row, key);
        json_decref(row);
        if (value < 0)
            usleep(10000);
    }
    return value;
}

/* Runs a kernel until the server says that it was charged for so long, in a lease of 20 ms. */
static void overrun(struct client *client, double seconds)
{
    volatile uint32_t *words = client->words;
    void *parameters[] = {&words};
    words[0] = words[1] = 0;
    OK(gpushare_launch(client->hold, one, one, 0, NULL, parameters));
    for (int left = (int)(patience_seconds(20) * 100); left > 0; left--) {
        if (shown(client, "charged_seconds") >= seconds)
            return;
        usleep(10000);
    }
    fail_msg("the kernel was never charged");
}

static void replace(pid_t worker)
{
    pid_t now;
    kill(worker, SIGKILL);
    for (int left = (int)(patience_seconds(20) * 500); left > 0; left--) {
        if (server_workers(server, &now, 1) == 1 && now != worker)
            return;
        usleep(2000);
    }
    fail_msg("no other worker was started");
}

static void kill_worker(void)
{
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    replace(worker);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_until_a_launch_is_done(const struct client *client, double from)
{
    OK(bump(client));
    OK(gpushare_synchronize(client->gpu));
    return seconds_now() - from;
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return control("set gpu 0 mode=strict lease=20ms precision=10%");
}

/* 0.4 s of a request of 10 % are 4 s, of which the kernel itself took 0.4. */
static void a_killed_worker_forgives_no_overrun(void **state)
{
    (void)state;
    struct client client = client_open("10%");
    overrun(&client, 0.4);
    /* The debt falls from the end of the kernel on, however long the next worker takes to start. */
    double from = seconds_now();
    kill_worker();
    assert_int_equal(gpushare_synchronize(client.gpu), GPUSHARE_ERROR_INTERRUPTED);
    OK(gpushare_stream_recover(client.gpu, NULL, NULL));
    double waited = seconds_until_a_launch_is_done(&client, from);
    print_message("served after %.2f s\n", waited);
    assert_true(waited > 2.5);
    gpushare_close(&client.gpu);
}

/* Its user's next client has the debt, though no worker has ever seen it leave. */
static void a_client_that_ends_with_its_worker_leaves_its_debt(void **state)
{
    (void)state;
    struct client client = client_open("10%");
    overrun(&client, 0.4);
    double from = seconds_now();
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    kill(worker, SIGSTOP);
    gpushare_close(&client.gpu);
    replace(worker);
    struct client next = client_open("10%");
    double waited = seconds_until_a_launch_is_done(&next, from);
    print_message("served after %.2f s\n", waited);
    assert_true(waited > 2.5);
    gpushare_close(&next.gpu);
}

static void an_idle_clients_counters_go_on_exactly(void **state)
{
    uint8_t bytes[1000] = {0};
    gpushare_address memory;
    (void)state;
    struct client client = client_open(NULL);
    OK(gpushare_memory_alloc(client.gpu, sizeof bytes, &memory));
    double copies = shown(&client, "copies"), copied = shown(&client, "copied_bytes");
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 5; i++)
            OK(bump(&client));
        OK(gpushare_copy_to_device(client.gpu, memory, bytes, sizeof bytes));
        OK(gpushare_synchronize(client.gpu));
        assert_int_equal(shown(&client, "launches"), 5 * round);
        assert_int_equal(shown(&client, "copies") - copies, round);
        assert_int_equal(shown(&client, "copied_bytes") - copied, round * (int)sizeof bytes);
        double gpu = shown(&client, "gpu_time_seconds"), leases = shown(&client, "leases");
        kill_worker();
        assert_true(shown(&client, "gpu_time_seconds") >= gpu);
        assert_true(shown(&client, "leases") >= leases);
        assert_int_equal(shown(&client, "launches"), 5 * round);
    }
    gpushare_close(&client.gpu);
}

static const char *const counters[] = {"launches", "gpu_time_seconds", "charged_seconds", "leases"};

static void never_less(const struct client *client, double before[4])
{
    json_t *row = admin_answer_client(server, client->number);
    for (int i = 0; i < 4; i++) {
        double now = number_of(row, counters[i]);
        /* A worker that has not answered says nothing. */
        if (now >= 0 && now < before[i])
            fail_msg("%s fell from %.9f to %.9f", counters[i], before[i], now);
        before[i] = now > before[i] ? now : before[i];
    }
    json_decref(row);
}

static void shown_numbers_never_fall(void **state)
{
    (void)state;
    struct client client = client_open("50%");
    double before[4] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned steps = 1 + (unsigned)rand_r(&random_state) % 8;
        for (unsigned step = 0; step < steps; step++) {
            for (int i = 0; i < 20; i++)
                OK(bump(&client));
            never_less(&client, before);
        }
        kill_worker();
        never_less(&client, before);
        gpushare_error error = gpushare_synchronize(client.gpu);
        assert_true(error == GPUSHARE_SUCCESS || error == GPUSHARE_ERROR_INTERRUPTED);
        OK(gpushare_stream_recover(client.gpu, NULL, NULL));
        never_less(&client, before);
    }
    assert_true(before[0] > 0 && before[1] > 0 && before[2] > 0);
    gpushare_close(&client.gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_killed_worker_forgives_no_overrun, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(a_client_that_ends_with_its_worker_leaves_its_debt, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(an_idle_clients_counters_go_on_exactly, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(shown_numbers_never_fall, start, server_teardown),
    };
    random_state = seed_draw();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
