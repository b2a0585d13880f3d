/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: launches go on within 0.5 s beside an endless kernel, loads within 5 s beside others */
/* light: it waits for loads and windows */
/* draining: without locks, for if mapping waited, nobody could connect beside the endless kernel */
/*
 * Calls that wait for the device, on a driver that keeps the context's lock meanwhile: one
 * client's kernel that does not end costs the others none of their launches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/kernels.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/scene.h"
#include "tests/support/server.h"

#define MS        UINT64_C(1000000)
#define STALL_NS  (500 * MS)
#define LOAD_NS   (3000 * MS)
#define UNKIND_NS (5000 * MS)

enum { UNKIND_LOADS = 3, LOADS_MAX = 20 };

static struct server *server;

static int setup_with(void **state, const char *const args[])
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", NULL};
    *state = server = server_start(args, env);
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_for_scene(void **state)
{
    return setup_with(state, scene_server_args);
}

static int setup_with_draining_locks(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100",
                                      "SOFTGPU_LOCKING_DRAINS=1", NULL};
    *state = server = server_start(NULL, env);
    return 0;
}

/* ---- a client that comes, and loads a module ---- */

struct newcomer {
    pthread_t thread;
    int asked, loaded; /* atomic */
    char notice[400];
};

static void take_notice(void *context, const char *text)
{
    struct newcomer *newcomer = context;
    snprintf(newcomer->notice, sizeof newcomer->notice, "%s", text);
}

static void *come_and_load(void *context)
{
    struct newcomer *newcomer = context;
    static char bytes[1 << 20];
    gpushare_address memory;
    gpushare_connection *gpu = arrival_connect_with(
        server, (struct gpushare_options){.notice = take_notice, .notice_context = newcomer});
    OK(gpushare_memory_alloc(gpu, sizeof bytes, &memory));
    OK(gpushare_copy_to_device(gpu, memory, bytes, sizeof bytes));
    OK(gpushare_memory_free(gpu, memory));
    __atomic_store_n(&newcomer->asked, 1, __ATOMIC_SEQ_CST);
    arrival_load(gpu, kernels_ptx, "milliseconds");
    __atomic_store_n(&newcomer->loaded, 1, __ATOMIC_SEQ_CST);
    gpushare_close(&gpu);
    return NULL;
}

static bool happens(int *word, uint64_t within)
{
    uint64_t end = clock_now() + within;
    while (!__atomic_load_n(word, __ATOMIC_SEQ_CST) && clock_now() < end)
        usleep(1000);
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* The client for which this one waits, as gpusharectl says it; -1: for none. */
static long waits_for(unsigned number)
{
    json_t *client = admin_answer_client(server, number);
    json_t *other = json_object_get(client, "waits_for");
    long found = json_is_null(other) ? -1 : (long)json_integer_value(other);
    json_decref(client);
    return found;
}

/* Writes what `gpushare info` says. */
static void read_info(const char *words, char *text, size_t size)
{
    char program[PATH_MAX], command[2 * PATH_MAX];
    snprintf(command, sizeof command, "GPUSHARE_SOCKET=%s %s info %s", server_socket(server),
             server_build_path("bin/gpushare", program, sizeof program), words);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    text[fread(text, 1, size - 1, pipe)] = 0;
    assert_int_equal(pclose(pipe), 0);
}

/* It says for whom loads wait: in words, and as a member of its JSON. */
static void expect_info(unsigned number)
{
    static char text[16384], words[64];
    read_info("", text, sizeof text);
    snprintf(words, sizeof words, "kernels of client %u (", number);
    if (!strstr(text, words))
        fail_msg("info: %s", text);
    read_info("--json", text, sizeof text);
    json_t *answer = json_loads(text, 0, NULL), *wait = json_object_get(answer, "loads_wait_for");
    assert_int_equal(json_integer_value(json_object_get(wait, "client")), number);
    assert_non_null(strstr(json_string_value(json_object_get(wait, "text")), words));
    json_decref(answer);
}

struct windows {
    long count;
    double seconds;
};

static struct windows read_windows(void)
{
    json_t *device = admin_answer_device(server);
    struct windows windows = {
        .count = (long)json_integer_value(json_object_get(device, "quiet_windows")),
        .seconds = json_number_value(json_object_get(device, "quiet_seconds"))};
    json_decref(device);
    return windows;
}

static void an_endless_kernel_stops_nobodys_launches(void **state)
{
    (void)state;
    struct endless endless;
    struct launcher other;
    struct newcomer newcomer = {0};
    launcher_prepare(&other, arrival_connect(server, 0), 0, 2, 1);
    endless_prepare(&endless, arrival_connect(server, 0));
    endless_start(&endless, 1, 1);
    launcher_start(&other);
    /* One that leaves is nobody's concern either. */
    void *buffer;
    gpushare_connection *visitor = arrival_connect(server, 0);
    OK(gpushare_host_alloc(visitor, 1 << 20, &buffer));
    OK(gpushare_host_free(visitor, buffer));
    gpushare_close(&visitor);
    assert_int_equal(pthread_create(&newcomer.thread, NULL, come_and_load, &newcomer), 0);
    /* Coming, allocating and copying wait for nobody; the load waits for the kernel. */
    assert_true(happens(&newcomer.asked, 5000 * MS));
    assert_false(happens(&newcomer.loaded, 2000 * MS));
    /* The endless one came second, the newcomer last. */
    assert_int_equal(waits_for(4), 2);
    expect_info(2);
    struct gpushare_load_wait wait = {.size = sizeof wait};
    OK(gpushare_load_wait(endless.gpu, &wait));
    assert_int_equal(wait.client, 2);
    assert_int_equal(wait.own, 1);
    launcher_stop(&other);
    print_message("longest gap %.1f ms\n", (double)other.longest / 1e6);
    assert_true(other.longest < STALL_NS);
    endless_end(&endless);
    assert_true(happens(&newcomer.loaded, 5000 * MS));
    pthread_join(newcomer.thread, NULL);
    assert_non_null(strstr(newcomer.notice, "kernels of client 2 ("));
    OK(gpushare_load_wait(other.gpu, &wait));
    assert_int_equal(wait.client, 0);
    assert_string_equal(wait.text, "");
    launcher_close(&other);
}

static void growing_local_memory_stops_nobody_else(void **state)
{
    (void)state;
    struct endless endless;
    struct launcher other;
    struct gpushare_dim one = {1, 1, 1};
    void *word;
    launcher_prepare(&other, arrival_connect(server, 0), 0, 2, 1);
    gpushare_connection *deep = arrival_connect(server, 0);
    gpushare_function *function = arrival_load(deep, kernels_ptx, "deep");
    OK(gpushare_host_alloc(deep, 4096, &word));
    endless_prepare(&endless, arrival_connect(server, 0));
    endless_start(&endless, 1, 1);
    launcher_start(&other);
    usleep(300000);
    uint64_t address = (uint64_t)(uintptr_t)word;
    void *parameters[] = {&address};
    OK(gpushare_launch(function, one, one, 0, NULL, parameters));
    usleep(2000000);
    /* The endless one came last. */
    assert_int_equal(*(volatile uint32_t *)word, 0);
    assert_int_equal(waits_for(2), 3);
    launcher_stop(&other);
    print_message("longest gap %.1f ms\n", (double)other.longest / 1e6);
    assert_true(other.longest < STALL_NS);
    endless_end(&endless);
    OK(gpushare_synchronize(deep));
    assert_int_equal(*(volatile uint32_t *)word, 7);
    gpushare_close(&deep);
    launcher_close(&other);
}

/* On a driver that waits for the device when an attribute of a function is set. */
static void allowing_more_shared_memory_waits_for_nobody(void **state)
{
    (void)state;
    struct endless endless;
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_function *function = arrival_load(gpu, kernels_ptx, "milliseconds");
    uint32_t milliseconds = 1;
    void *parameters[] = {&milliseconds};
    endless_prepare(&endless, arrival_connect(server, 0));
    endless_start(&endless, 1, 1);
    uint64_t begun = clock_now();
    OK(gpushare_function_set_shared(function, 100 << 10));
    OK(gpushare_launch(function, one, one, 100 << 10, NULL, parameters));
    OK(gpushare_synchronize(gpu));
    assert_true(clock_now() - begun < STALL_NS);
    endless_end(&endless);
    gpushare_close(&gpu);
}

static void load_once(void)
{
    struct newcomer newcomer = {0};
    assert_int_equal(pthread_create(&newcomer.thread, NULL, come_and_load, &newcomer), 0);
    assert_true(happens(&newcomer.asked, 5000 * MS));
    uint64_t asked = clock_now();
    assert_true(happens(&newcomer.loaded, LOAD_NS));
    print_message("loaded after %.1f ms\n", (double)(clock_now() - asked) / 1e6);
    pthread_join(newcomer.thread, NULL);
}

/* A window costs nothing if no client wants to submit meanwhile, as on a machine that keeps the
 * clients from running: so there may be several. */
static void a_load_is_served_beside_kernels_that_end(void **state)
{
    (void)state;
    struct launcher launchers[3];
    for (int i = 0; i < 3; i++)
        launcher_prepare(&launchers[i], arrival_connect(server, 0), 0, 2, 20);
    for (int i = 0; i < 3; i++)
        launcher_start(&launchers[i]);
    usleep(300000);
    struct windows before = read_windows(), after = before;
    uint64_t begun = clock_now();
    for (int loads = 0; loads < LOADS_MAX && after.seconds <= before.seconds; loads++) {
        load_once();
        after = read_windows();
        assert_true(after.count > before.count);
    }
    assert_true(after.seconds > before.seconds);
    assert_true(after.seconds - before.seconds < (double)(clock_now() - begun) / 1e9 + 1);
    for (int i = 0; i < 3; i++)
        launcher_stop(&launchers[i]);
    for (int i = 0; i < 3; i++)
        launcher_close(&launchers[i]);
}

/* Neighbours whose kernels all end, some at a time that nobody can foresee. */
static void loads_are_served_beside_unkind_neighbours(void **state)
{
    (void)state;
    struct scene *scene = scene_begin(server, SCENE_LOOPS | SCENE_PAUSES | SCENE_VISITS |
                                                  SCENE_STREAMS | SCENE_GREEDY);
    for (int i = 0; i < UNKIND_LOADS; i++) {
        uint64_t begun = clock_now();
        gpushare_connection *gpu = arrival_connect(server, 0);
        arrival_load(gpu, kernels_ptx, "milliseconds");
        gpushare_close(&gpu);
        print_message("served after %.1f ms\n", (double)(clock_now() - begun) / 1e6);
        assert_true(clock_now() - begun < UNKIND_NS);
    }
    assert_int_equal(scene_end(scene), 0);
}

/* New memory is cleared, and that needs no room on multiprocessors that nobody will leave. */
static void memory_comes_beside_kernels_that_fill_the_device(void **state)
{
    (void)state;
    struct endless endless;
    static char bytes[4096], zeros[sizeof bytes];
    gpushare_address memory;
    endless_prepare(&endless, arrival_connect(server, 0));
    endless_start(&endless, 132 * 2, 1024);
    gpushare_connection *gpu = arrival_connect(server, 0);
    uint64_t before = clock_now();
    OK(gpushare_memory_alloc(gpu, UINT64_C(96) << 20, &memory));
    memset(bytes, 1, sizeof bytes);
    OK(gpushare_copy_from_device(gpu, bytes, memory + (UINT64_C(80) << 20), sizeof bytes));
    assert_memory_equal(bytes, zeros, sizeof bytes);
    print_message("an allocation took %.1f ms\n", (double)(clock_now() - before) / 1e6);
    assert_true(clock_now() - before < LOAD_NS);
    endless_end(&endless);
    gpushare_close(&gpu);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, server_teardown)
    const struct CMUnitTest tests[] = {
        T(an_endless_kernel_stops_nobodys_launches),
        T(growing_local_memory_stops_nobody_else),
        T(a_load_is_served_beside_kernels_that_end),
        cmocka_unit_test_setup_teardown(loads_are_served_beside_unkind_neighbours, setup_for_scene,
                                        server_teardown),
        T(memory_comes_beside_kernels_that_fill_the_device),
        cmocka_unit_test_setup_teardown(allowing_more_shared_memory_waits_for_nobody,
                                        setup_with_draining_locks, server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
