/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a suspect recovers, runs a short kernel and is proven within 0.95 s of its worker's loss
 */
/*
 * After a fault with several suspects the device serves one client and one kernel at a time: until
 * each suspect that is left has run alone what was interrupted, and a second fault names one
 * kernel. A worker that crashes again and again beside one client isolates that one.
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
#include "tests/support/crash_signal.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

/* hold sets the first of two words, and waits until the second is set. */
static const char probation_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fine(.param .u64 words)\n{\nret;\n}\n"
    ".visible .entry also_fine(.param .u64 words)\n{\nret;\n}\n"
    ".visible .entry stray(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "mov.u64 %a, 64;\nld.global.u32 %v, [%a];\nst.global.u32 [%a], %v;\nret;\n}\n"
    ".visible .entry hold(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
    "ld.param.u64 %a, [words];\nmov.u32 %v, 1;\nst.volatile.global.u32 [%a], %v;\n"
    "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a+4];\n"
    "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n";

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
    volatile uint32_t *words; /* host memory, for hold */
    unsigned number;
};

static struct client client_open(void)
{
    struct client client = {.gpu = arrival_connect(server, 0)};
    struct gpushare_limits limits = {.size = sizeof limits};
    void *words;
    OK(gpushare_module_load(client.gpu, probation_ptx, 0, &client.module));
    OK(gpushare_host_alloc(client.gpu, 4096, &words));
    OK(gpushare_limits(client.gpu, &limits));
    client.words = words;
    client.number = limits.client;
    return client;
}

static gpushare_error launch(const struct client *client, const char *name)
{
    gpushare_function *function;
    volatile uint32_t *words = client->words;
    void *parameters[] = {&words};
    gpushare_error error = gpushare_module_function(client->module, name, &function);
    return error ? error : gpushare_launch(function, one, one, 0, NULL, parameters);
}

/* Returns when the kernel runs. */
static void hold(const struct client *client)
{
    client->words[0] = client->words[1] = 0;
    OK(launch(client, "hold"));
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !client->words[0]; left--)
        usleep(1000);
    assert_int_equal(client->words[0], 1);
}

static json_t *device_row(void)
{
    return admin_answer_device(server);
}

static bool serves_singly(double *seconds)
{
    json_t *row = device_row();
    bool singly = json_is_true(json_object_get(row, "one_client_at_a_time"));
    *seconds = json_number_value(json_object_get(row, "one_client_at_a_time_seconds"));
    json_decref(row);
    return singly;
}

static double await_together(void)
{
    double seconds = 0;
    for (int left = (int)(patience_seconds(20) * 100); left > 0; left--) {
        if (!serves_singly(&seconds))
            return seconds;
        usleep(5000);
    }
    fail_msg("one client is served at a time for ever");
    return 0;
}

static void blame_is(const struct client *client, const char *blame)
{
    json_t *row = admin_answer_client(server, client->number);
    assert_string_equal(json_string_value(json_object_get(row, "blame")), blame);
    json_decref(row);
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

/* The author leaves, as a program does that knows of no recovery. */
static void a_suspect_that_runs_alone_ends_the_probation(void **state)
{
    (void)state;
    struct client innocent = client_open(), author = client_open();
    hold(&innocent);
    OK(launch(&author, "stray"));
    assert_int_equal(gpushare_synchronize(author.gpu), GPUSHARE_ERROR_INTERRUPTED);
    gpushare_close(&author.gpu);
    assert_int_equal(gpushare_synchronize(innocent.gpu), GPUSHARE_ERROR_INTERRUPTED);
    OK(gpushare_stream_recover(innocent.gpu, NULL, NULL));
    /* Another kernel proves nothing of the one that was interrupted. */
    OK(launch(&innocent, "fine"));
    OK(gpushare_synchronize(innocent.gpu));
    blame_is(&innocent, "suspect");
    innocent.words[1] = 1;
    OK(launch(&innocent, "hold"));
    OK(gpushare_synchronize(innocent.gpu));
    double seconds = await_together();
    print_message("one client at a time for %.3f s\n", seconds);
    assert_true(seconds > 0 && seconds < 0.95);
    blame_is(&innocent, "none");
    json_t *row = admin_answer_client(server, innocent.number);
    double its = json_number_value(json_object_get(row, "one_client_at_a_time_seconds"));
    json_decref(row);
    assert_true(its > 0 && its <= seconds + 0.001);
    gpushare_close(&innocent.gpu);
}

/* Side by side all of them would be in flight. */
static void a_second_fault_names_one_kernel(void **state)
{
    (void)state;
    static const char *const names[] = {"fine", "also_fine", "stray", "fine", "also_fine"};
    struct client innocent = client_open(), author = client_open();
    hold(&innocent);
    for (int round = 0; round < 2; round++) {
        /* In flight together, in one ring. */
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            gpushare_error error = launch(&author, names[i]);
            assert_true(!error || round || error == GPUSHARE_ERROR_INTERRUPTED);
        }
        gpushare_error error = gpushare_synchronize(author.gpu);
        if (round)
            assert_int_equal(error, GPUSHARE_ERROR_ILLEGAL_ADDRESS);
        else
            assert_int_equal(error, GPUSHARE_ERROR_INTERRUPTED);
        if (round == 0)
            OK(gpushare_stream_recover(author.gpu, NULL, NULL));
    }
    const char *text = gpushare_error_text();
    if (!strstr(text, "unfinished: stray<<<(1,1,1),(1,1,1),0>>>)"))
        fail_msg("%s", text);
    gpushare_close(&author.gpu);
    gpushare_close(&innocent.gpu);
}

static void crash_worker(void)
{
    pid_t worker, now;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    kill(worker, crash_signal(SIGSEGV));
    for (int left = (int)(patience_seconds(20) * 500); left > 0; left--) {
        if (server_workers(server, &now, 1) == 1 && now != worker)
            return;
        usleep(2000);
    }
    fail_msg("no other worker was started");
}

static void three_crashes_beside_one_client_isolate_it(void **state)
{
    (void)state;
    double seconds;
    struct client idle = client_open(), busy = client_open();
    for (int i = 0; i < 3; i++) {
        hold(&busy);
        crash_worker();
        assert_int_equal(gpushare_synchronize(busy.gpu), GPUSHARE_ERROR_INTERRUPTED);
        OK(gpushare_stream_recover(busy.gpu, NULL, NULL));
        blame_is(&busy, i < 2 ? "none" : "isolated");
        assert_int_equal(serves_singly(&seconds), i == 2);
    }
    blame_is(&idle, "none");
    /* From now on it is alone on the device, so that its crash interrupts it and nobody else. */
    hold(&busy);
    OK(launch(&idle, "fine"));
    crash_worker();
    assert_int_equal(gpushare_synchronize(busy.gpu), GPUSHARE_ERROR_INTERRUPTED);
    OK(gpushare_stream_recover(busy.gpu, NULL, NULL));
    OK(gpushare_synchronize(idle.gpu));
    blame_is(&busy, "isolated");
    blame_is(&idle, "none");
    OK(launch(&busy, "fine"));
    OK(gpushare_synchronize(busy.gpu));
    gpushare_close(&busy.gpu);
    await_together();
    OK(launch(&idle, "fine"));
    OK(gpushare_synchronize(idle.gpu));
    gpushare_close(&idle.gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_suspect_that_runs_alone_ends_the_probation, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(a_second_fault_names_one_kernel, start, server_teardown),
        cmocka_unit_test_setup_teardown(three_crashes_beside_one_client_isolate_it, start,
                                        server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
