/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A faulting kernel ends the worker, and the client whose kernel it was: none other, and none
 * hangs. A fresh worker serves the others and new connections. So does one after a worker that is
 * killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

#define HEAD ".version 6.3\n.target sm_75\n.address_size 64\n"

static const char faults_ptx[] =
    HEAD ".visible .entry stray()\n{\n.reg .b64 %a;\n.reg .b32 %v;\nmov.u64 %a, "
         "0x7000000000;\nmov.u32 %v, 1;\n"
         "st.global.u32 [%a], %v;\nret;\n}\n"
         ".visible .entry crooked(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b32 %v;\nld.param.u64 "
         "%a, [p];\n"
         "add.u64 %a, %a, 2;\nmov.u32 %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n"
         ".visible .entry trapped()\n{\ntrap;\nret;\n}\n"
         ".visible .entry slow(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b32 %n;\n.reg .b32 %t;\n"
         ".reg .pred %q;\nld.param.u64 %a, [p];\nmov.u32 %n, 1;\nst.volatile.global.u32 [%a], "
         "%n;\nmov.u32 %n, 0;\nmov.u32 %t, 500000;\n"
         "again:\nnanosleep.u32 %t;\nadd.u32 %n, %n, 1;\nsetp.lt.u32 %q, %n, 20000;\n@%q bra "
         "again;\nret;\n}\n"
         ".visible .entry fine(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b32 %v;\nld.param.u64 %a, "
         "[p];\nmov.u32 %v, 42;\n"
         "st.global.u32 [%a], %v;\nret;\n}\n";

struct client {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_address memory;
};

static struct server *server;

/* A new worker may still be starting: the server says so, and this client tries again for ten
 * seconds at most. */
static struct client open_client(void)
{
    struct client client = {0};
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_error error = GPUSHARE_ERROR_DEVICE_NOT_READY;
    for (int i = 0; i < 1000 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; i++) {
        error = gpushare_connect(&options, &client.gpu);
        if (error == GPUSHARE_ERROR_DEVICE_NOT_READY)
            usleep(10000);
    }
    ok_check(error, "gpushare_connect", __FILE__, __LINE__);
    OK(gpushare_module_load(client.gpu, faults_ptx, 0, &client.module));
    OK(gpushare_memory_alloc(client.gpu, 4096, &client.memory));
    return client;
}

static gpushare_error launch(struct client *client, const char *name)
{
    gpushare_function *function;
    struct gpushare_dim one = {1, 1, 1};
    void *parameters[] = {&client->memory};
    gpushare_error error = gpushare_module_function(client->module, name, &function);
    return error ? error : gpushare_launch(function, one, one, 0, NULL, parameters);
}

static void works(void)
{
    struct client client = open_client();
    uint32_t value = 0;
    OK(launch(&client, "fine"));
    OK(gpushare_copy_from_device(client.gpu, &value, client.memory, sizeof value));
    assert_int_equal(value, 42);
    gpushare_close(&client.gpu);
}

static void *wait_for_slow(void *context)
{
    struct client *client = context;
    return (void *)(uintptr_t)gpushare_synchronize(client->gpu);
}

/* Until `slow` runs. */
static void await_runs(volatile const uint32_t *runs)
{
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !*runs; left--)
        usleep(1000);
    assert_int_not_equal(*runs, 0);
}

static uint32_t number_of(const struct client *client)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    OK(gpushare_limits(client->gpu, &limits));
    return limits.client;
}

/* Each later call says the same, and none hangs. */
static void is_guilty(struct client *client, const char *kernel, gpushare_error expected)
{
    gpushare_address address;
    char words[64];
    assert_int_equal(gpushare_synchronize(client->gpu), expected);
    assert_non_null(strstr(gpushare_error_text(), "the kernel was this client's"));
    snprintf(words, sizeof words, "(unfinished: %s<<<(1,1,1),(1,1,1),0>>>)", kernel);
    if (!strstr(gpushare_error_text(), words))
        fail_msg("\"%s\" does not say \"%s\"", gpushare_error_text(), words);
    assert_int_equal(gpushare_memory_alloc(client->gpu, 4096, &address), expected);
    assert_int_equal(launch(client, "fine"), expected);
}

static void is_whole(struct client *client)
{
    uint32_t value = 0;
    OK(launch(client, "fine"));
    OK(gpushare_copy_from_device(client->gpu, &value, client->memory, sizeof value));
    assert_int_equal(value, 42);
}

static void log_says(const char *words)
{
    if (!server_log_wait(server, words))
        fail_msg("the log does not say \"%s\"", words);
}

/* The log's latest verdict is about this client. */
static void log_names(uint32_t client)
{
    char *log = server_log(server), *line = NULL, text[64];
    snprintf(text, sizeof text, ": client %u '", client);
    for (char *next, *at = log; at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        if (strstr(at, "made it fail: "))
            line = at;
    }
    if (!line || !strstr(line, text))
        fail_msg("the log does not name client %u: %s", client, line ? line : "nobody");
    free(log);
}

/* The log has the latest fault's sentence once: lines behind it say what is new. */
static void log_does_not_repeat_itself(void)
{
    const char *words = "the worker is lost: ";
    char *log = server_log(server), *line = NULL;
    for (char *at = log; (at = strstr(at, words)); at += strlen(words))
        line = at + strlen(words);
    char *sentence = line ? strstr(line, ": ") : NULL, *end = line ? strchr(line, '\n') : NULL;
    if (!sentence || !end || sentence + 2 >= end)
        fail_msg("no worker is lost: %s", log);
    else {
        *end = '\0';
        if (strstr(end + 1, sentence + 2))
            fail_msg("the log repeats \"%s\": %s", sentence + 2, end + 1);
    }
    free(log);
}

/* The only client with work on the device faults. The others go on, in the same connections. */
static void alone_is_guilty(const char *kernel, gpushare_error expected)
{
    struct client guilty = open_client(), idle = open_client();
    uint32_t culprit = number_of(&guilty);
    OK(launch(&guilty, kernel));
    is_guilty(&guilty, kernel, expected);
    log_names(culprit);
    log_does_not_repeat_itself();
    is_whole(&idle);
    gpushare_close(&guilty.gpu);
    gpushare_close(&idle.gpu);
    works();
}

static void is_interrupted(gpushare_connection *gpu, gpushare_stream *stream, const char *words)
{
    assert_int_equal(gpushare_stream_synchronize(gpu, stream), GPUSHARE_ERROR_INTERRUPTED);
    if (!strstr(gpushare_error_text(), words))
        fail_msg("\"%s\" does not say \"%s\"", gpushare_error_text(), words);
}

/* One client faults while another's kernel runs: both are suspects and go on. When the first one
 * faults again, it is alone on the device, and named. Each is told what it is. */
static void a_suspect_is_named_by_its_second_fault(void **state)
{
    (void)state;
    struct client guilty = open_client(), waiting = open_client(), idle = open_client();
    uint32_t culprit = number_of(&guilty);
    pthread_t thread;
    void *waited;
    volatile uint32_t *runs;
    struct gpushare_dim one = {1, 1, 1};
    uint32_t milliseconds = 50, long_time = 10000;
    void *parameters[] = {&milliseconds}, *longer[] = {&long_time};
    gpushare_stream *left;
    gpushare_function *brief = arrival_load(waiting.gpu, kernels_ptx, "milliseconds");
    OK(gpushare_host_alloc(waiting.gpu, 4096, (void **)(uintptr_t)&runs));
    gpushare_address memory = waiting.memory;
    waiting.memory = (uint64_t)(uintptr_t)runs;
    OK(gpushare_stream_create(waiting.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &left));
    OK(gpushare_launch(brief, one, one, 0, left, longer));
    OK(launch(&waiting, "slow"));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_slow, &waiting), 0);
    await_runs(runs);
    OK(launch(&guilty, "stray"));
    is_interrupted(guilty.gpu, NULL, "may have made it");
    /* A suspect that asks for nothing is no longer one a second after the next worker is ready; a
     * suspect that recovers has three seconds more for its next kernel. */
    OK(gpushare_stream_recover(guilty.gpu, NULL, NULL));
    pthread_join(thread, &waited);
    assert_int_equal((uintptr_t)waited, GPUSHARE_ERROR_INTERRUPTED);
    is_interrupted(waiting.gpu, left, "may have made it");
    OK(gpushare_stream_recover(waiting.gpu, NULL, NULL));
    /* Side by side they would both be suspects again. */
    for (int i = 0; i < 4; i++)
        OK(gpushare_launch(brief, one, one, 0, NULL, parameters));
    OK(launch(&guilty, "stray"));
    is_guilty(&guilty, "stray", GPUSHARE_ERROR_ILLEGAL_ADDRESS);
    log_names(culprit);
    log_says("one of them made it fail");
    log_says("one client is served at a time");
    is_interrupted(waiting.gpu, left, "another client made the device fail");
    OK(gpushare_stream_recover(waiting.gpu, left, NULL));
    OK(gpushare_synchronize(waiting.gpu));
    waiting.memory = memory;
    is_whole(&waiting);
    is_whole(&idle);
    log_says("served as its schedule says again");
    gpushare_close(&guilty.gpu);
    gpushare_close(&waiting.gpu);
    gpushare_close(&idle.gpu);
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

static void an_illegal_address_ends_its_author(void **state)
{
    (void)state;
    alone_is_guilty("stray", GPUSHARE_ERROR_ILLEGAL_ADDRESS);
}

static void a_misaligned_address_ends_its_author(void **state)
{
    (void)state;
    alone_is_guilty("crooked", GPUSHARE_ERROR_MISALIGNED_ADDRESS);
}

/* It waits for work whose error nobody asked for yet. */
static void a_synchronous_copy_tells_the_error_of_the_work_before_it(void **state)
{
    (void)state;
    struct client reader = open_client(), writer = open_client();
    struct gpushare_dim one = {1, 1, 1};
    uint32_t value = 7, milliseconds = 300;
    void *parameters[] = {&milliseconds};
    OK(gpushare_launch(arrival_load(reader.gpu, kernels_ptx, "milliseconds"), one, one, 0, NULL,
                       parameters));
    OK(launch(&reader, "stray"));
    assert_int_equal(gpushare_copy_from_device(reader.gpu, &value, reader.memory, sizeof value),
                     GPUSHARE_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(value, 7);
    assert_non_null(strstr(gpushare_error_text(), "device 0"));
    OK(gpushare_copy_to_device(writer.gpu, writer.memory, &value, sizeof value));
    gpushare_close(&reader.gpu);
    gpushare_close(&writer.gpu);
    works();
}

/* The worker finds the fault while it hands over other streams' work, of the same client too. */
static void the_kernel_is_named_whatever_else_waits(void **state)
{
    (void)state;
    static const char *const args[] = {"--offender-wait", "0", NULL};
    struct server *kept = server;
    server = server_start(args, NULL);
    for (int round = 0; round < 5; round++) {
        struct client guilty = open_client();
        struct gpushare_dim one = {1, 1, 1};
        gpushare_stream *streams[3];
        gpushare_function *fine, *stray;
        void *parameters[] = {&guilty.memory};
        gpushare_error error = GPUSHARE_SUCCESS;
        OK(gpushare_module_function(guilty.module, "fine", &fine));
        OK(gpushare_module_function(guilty.module, "stray", &stray));
        for (int i = 0; i < 3; i++)
            OK(gpushare_stream_create(guilty.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]));
        OK(gpushare_launch(stray, one, one, 0, streams[0], NULL));
        for (int i = 0; i < 10000 && !error; i++)
            error = gpushare_launch(fine, one, one, 0, streams[1 + i % 2], parameters);
        assert_int_equal(error ? error : gpushare_synchronize(guilty.gpu),
                         GPUSHARE_ERROR_ILLEGAL_ADDRESS);
        if (!strstr(gpushare_error_text(), "stray<<<(1,1,1),(1,1,1),0>>>"))
            fail_msg("\"%s\" does not name the kernel", gpushare_error_text());
        gpushare_close(&guilty.gpu);
    }
    assert_int_equal(server_stop(server), 0);
    server = kept;
}

static void a_trap_ends_its_author(void **state)
{
    (void)state;
    alone_is_guilty("trapped", GPUSHARE_ERROR_LAUNCH_FAILED);
}

static void a_killed_worker_interrupts_its_clients_and_is_replaced(void **state)
{
    (void)state;
    struct client waiting = open_client();
    pthread_t thread;
    void *waited;
    pid_t worker;
    volatile uint32_t *runs;
    OK(gpushare_host_alloc(waiting.gpu, 4096, (void **)(uintptr_t)&runs));
    waiting.memory = (uint64_t)(uintptr_t)runs;
    OK(launch(&waiting, "slow"));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_slow, &waiting), 0);
    await_runs(runs);
    assert_int_equal(server_workers(server, &worker, 1), 1);
    kill(worker, SIGKILL);
    pthread_join(thread, &waited);
    assert_int_equal((uintptr_t)waited, GPUSHARE_ERROR_INTERRUPTED);
    OK(gpushare_stream_recover(waiting.gpu, NULL, NULL));
    *runs = 0;
    OK(launch(&waiting, "fine"));
    OK(gpushare_synchronize(waiting.gpu));
    assert_int_equal(*runs, 42);
    gpushare_close(&waiting.gpu);
    works();
}

static void a_killed_server_ends_every_call_of_its_clients(void **state)
{
    (void)state;
    struct server *other = server_start(NULL, NULL), *kept = server;
    server = other;
    struct client waiting = open_client();
    pthread_t thread;
    void *waited;
    OK(launch(&waiting, "slow"));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_slow, &waiting), 0);
    server_kill(other);
    pthread_join(thread, &waited);
    assert_int_not_equal((uintptr_t)waited, GPUSHARE_SUCCESS);
    assert_int_not_equal(gpushare_synchronize(waiting.gpu), GPUSHARE_SUCCESS);
    gpushare_close(&waiting.gpu);
    server = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_illegal_address_ends_its_author),
        cmocka_unit_test(a_misaligned_address_ends_its_author),
        cmocka_unit_test(a_synchronous_copy_tells_the_error_of_the_work_before_it),
        cmocka_unit_test(a_trap_ends_its_author),
        cmocka_unit_test(the_kernel_is_named_whatever_else_waits),
        cmocka_unit_test(a_suspect_is_named_by_its_second_fault),
        cmocka_unit_test(a_killed_worker_interrupts_its_clients_and_is_replaced),
        cmocka_unit_test(a_killed_server_ends_every_call_of_its_clients),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
