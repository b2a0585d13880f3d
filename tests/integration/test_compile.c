/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: launches beside a text that is compiled for half a second must go on within a third of it
 */
/* light: it waits for compilers that hang */
/*
 * PTX that was made to harm its compiler costs others neither their loads nor their launches, and
 * PTX that was compiled once is compiled for everybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

#define MS     UINT64_C(1000000)
#define GAP_NS (330 * MS)

#define TEXT(comment)                                                                              \
    "// " comment "\n.version 7.0\n.target sm_80\n.address_size 64\n"                              \
    ".visible .global .u32 counter = 7;\n"                                                         \
    ".visible .entry bump()\n{\n.reg .u32 %v;\n"                                                   \
    "ld.global.u32 %v, [counter];\nadd.u32 %v, %v, 1;\nst.global.u32 [counter], %v;\nret;\n}\n"    \
    ".visible .entry sleeps()\n{\nnanosleep.u32 1000000;\nret;\n}\n"

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_LINK_OBEYS=1", "SOFTGPU_CONTEXT_LOCK=1",
                                      "SOFTGPU_DRAIN_PERCENT=100", NULL};
    static const char *const args[] = {"--compile-time", "2", "--compile-memory", "64M", NULL};
    *state = server = server_start(args, env);
    return 0;
}

static uint32_t bumped(gpushare_connection *gpu, const char *text)
{
    gpushare_module *module;
    gpushare_function *function;
    gpushare_address counter;
    uint32_t value = 0;
    OK(gpushare_module_load(gpu, text, 0, &module));
    OK(gpushare_module_function(module, "bump", &function));
    OK(gpushare_launch(function, one, one, 0, NULL, NULL));
    OK(gpushare_module_variable(module, "counter", &counter, NULL));
    OK(gpushare_copy_from_device(gpu, &value, counter, sizeof value));
    return value;
}

static unsigned compilations(void)
{
    unsigned count = 0;
    char *log = server_log(server);
    for (const char *at = log; (at = strstr(at, "were compiled in")); at++)
        count++;
    free(log);
    return count;
}

static void one_compilation_serves_all_clients(void **state)
{
    (void)state;
    gpushare_connection *clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = arrival_connect(server, 0);
        /* With variables of its own. */
        assert_int_equal(bumped(clients[i], TEXT("the same")), 8);
        assert_int_equal(bumped(clients[i], TEXT("the same")), 8);
    }
    assert_int_equal(compilations(), 1);
    assert_int_equal(bumped(clients[0], TEXT("another")), 8);
    assert_int_equal(compilations(), 2);
    for (int i = 0; i < 3; i++)
        gpushare_close(&clients[i]);
}

static void refused(const char *text, const char *option)
{
    gpushare_module *module;
    gpushare_connection *gpu = arrival_connect(server, 0);
    assert_int_equal(gpushare_module_load(gpu, text, 0, &module), GPUSHARE_ERROR_SERVER_RESOURCES);
    if (!strstr(gpushare_error_text(), "module 1: ") || !strstr(gpushare_error_text(), option))
        fail_msg("%s", gpushare_error_text());
    /* Only this text is to blame, not its client. */
    assert_int_equal(bumped(gpu, TEXT("after it")), 8);
    gpushare_close(&gpu);
}

static void a_text_that_takes_memory_or_crashes_is_refused(void **state)
{
    (void)state;
    refused(TEXT("softgpu: grow"), "--compile-memory");
    refused(TEXT("softgpu: crash"), "--compile-memory");
}

static atomic_bool hung;

static void *load_what_hangs(void *unused)
{
    (void)unused;
    refused(TEXT("softgpu: hang"), "--compile-time");
    atomic_store(&hung, true);
    return NULL;
}

/* All clients are of one user here: a new text waits for the one that hangs, a known one does not.
 */
static void a_text_that_hangs_delays_no_text_that_is_known(void **state)
{
    (void)state;
    pthread_t thread;
    gpushare_connection *gpu = arrival_connect(server, 0);
    assert_int_equal(bumped(gpu, TEXT("known")), 8);
    assert_int_equal(pthread_create(&thread, NULL, load_what_hangs, NULL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 300 * (long)MS}, NULL);
    gpushare_connection *other = arrival_connect(server, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(bumped(other, TEXT("known")), 8);
    assert_false(atomic_load(&hung));
    assert_int_equal(bumped(gpu, TEXT("new")), 8);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&hung));
    gpushare_close(&other);
    gpushare_close(&gpu);
}

static json_int_t counted(const struct server *on, const char *what)
{
    json_t *device = admin_answer_device(on);
    json_t *count = json_object_get(json_object_get(device, "compilations"), what);
    assert_true(json_is_integer(count));
    json_int_t value = json_integer_value(count);
    json_decref(device);
    return value;
}

static void await_running(const struct server *on, json_int_t count)
{
    uint64_t end = clock_now() + 20000 * MS;
    while (counted(on, "running") != count) {
        assert_true(clock_now() < end);
        nanosleep(&(struct timespec){.tv_nsec = 20 * (long)MS}, NULL);
    }
}

/* On a server of its own, where the text could be at work for much longer than is waited. */
static void a_client_that_leaves_takes_its_compilation_with_it(void **state)
{
    static const char *const env[] = {"SOFTGPU_LINK_OBEYS=1", NULL};
    static const char *const args[] = {"--compile-time", "600", NULL};
    (void)state;
    struct server *own = server_start(args, env);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gpushare_options options = {.size = sizeof options, .socket = server_socket(own)};
        gpushare_connection *gpu;
        gpushare_module *module;
        if (!gpushare_connect(&options, &gpu))
            gpushare_module_load(gpu, TEXT("softgpu: hang"), 0, &module);
        _exit(1);
    }
    await_running(own, 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    await_running(own, 0);
    assert_int_equal(counted(own, "finished"), 0);
    assert_int_equal(counted(own, "over_time"), 0);
    assert_int_equal(server_stop(own), 0);
}

static atomic_bool loaded;

static void *load_what_is_slow(void *context)
{
    gpushare_connection *gpu = context;
    assert_int_equal(bumped(gpu, TEXT("softgpu: slow 1")), 8);
    assert_int_equal(bumped(gpu, TEXT("softgpu: slow 2")), 8);
    atomic_store(&loaded, true);
    return NULL;
}

static void a_slow_compiler_is_in_no_quiet_window(void **state)
{
    (void)state;
    pthread_t thread;
    gpushare_connection *gpu = arrival_connect(server, 0), *slow = arrival_connect(server, 0);
    gpushare_module *module;
    gpushare_function *sleeps;
    OK(gpushare_module_load(gpu, TEXT("quick"), 0, &module));
    OK(gpushare_module_function(module, "sleeps", &sleeps));
    assert_int_equal(pthread_create(&thread, NULL, load_what_is_slow, slow), 0);
    uint64_t longest = 0, begun = clock_now(), last = begun;
    while (!atomic_load(&loaded)) {
        OK(gpushare_launch(sleeps, one, one, 0, NULL, NULL));
        OK(gpushare_synchronize(gpu));
        uint64_t now = clock_now();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    pthread_join(thread, NULL);
    print_message("two loads in %.0f ms, longest gap %.1f ms\n", (double)(last - begun) / 1e6,
                  (double)longest / 1e6);
    assert_true(last - begun > 1000 * MS);
    assert_true(longest < GAP_NS);
    gpushare_close(&slow);
    gpushare_close(&gpu);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, server_teardown)
    const struct CMUnitTest tests[] = {
        T(one_compilation_serves_all_clients),
        T(a_text_that_takes_memory_or_crashes_is_refused),
        T(a_text_that_hangs_delays_no_text_that_is_known),
        T(a_slow_compiler_is_in_no_quiet_window),
        cmocka_unit_test(a_client_that_leaves_takes_its_compilation_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
