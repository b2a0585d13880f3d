/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: launches beside an endless kernel must go on within half a second */
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
#include "tests/support/admin_answer.h"
#include "tests/support/server.h"

#define MS       UINT64_C(1000000)
#define STALL_NS (500 * MS)
#define LOAD_NS  (3000 * MS)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          /* Until the word is not 0. */
                          ".visible .entry until(.param .u64 word)\n"
                          "{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
                          "ld.param.u64 %a, [word];\n"
                          "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a];\n"
                          "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n"
                          ".visible .entry milliseconds(.param .u32 count)\n"
                          "{\n.reg .u32 %n;\n.reg .pred %q;\n"
                          "ld.param.u32 %n, [count];\n"
                          "again:\nnanosleep.u32 1000000;\nsub.u32 %n, %n, 1;\n"
                          "setp.ne.u32 %q, %n, 0;\n@%q bra again;\nret;\n}\n"
                          /* With 16 KiB a thread of its own, through which the 7 goes. */
                          ".visible .entry deep(.param .u64 word)\n"
                          "{\n.local .align 16 .b8 own[16384];\n"
                          ".reg .u64 %a, %l;\n.reg .u32 %v;\n"
                          "ld.param.u64 %a, [word];\nmov.u64 %l, own;\nmov.u32 %v, 7;\n"
                          "st.local.u32 [%l+16380], %v;\nld.local.u32 %v, [%l+16380];\n"
                          "st.global.u32 [%a], %v;\nret;\n}\n";

#define OK(call) assert_ok((call), #call)

static void assert_ok(gpushare_error error, const char *call)
{
    if (error != GPUSHARE_SUCCESS)
        fail_msg("%s: %s: %s", call, gpushare_error_name(error), gpushare_error_text());
}

static struct server *server;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static int setup(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", NULL};
    (void)state;
    server = server_start(NULL, env);
    return 0;
}

static int setup_with_draining_locks(void **state)
{
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100",
                                      "SOFTGPU_LOCKING_DRAINS=1", NULL};
    (void)state;
    server = server_start(NULL, env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return server_stop(server);
}

static gpushare_connection *arrive(void)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu;
    OK(gpushare_connect(&options, &gpu));
    return gpu;
}

static gpushare_function *load(gpushare_connection *gpu, const char *name)
{
    gpushare_module *module;
    gpushare_function *function;
    OK(gpushare_module_load(gpu, ptx, 0, &module));
    OK(gpushare_module_function(module, name, &function));
    return function;
}

/* ---- a client whose kernel ends when it is told ---- */

struct endless {
    gpushare_connection *gpu;
    uint32_t *word;
};

static void endless_start(struct endless *endless, uint32_t blocks, uint32_t threads)
{
    struct gpushare_dim grid = {blocks, 1, 1}, block = {threads, 1, 1};
    void *word;
    endless->gpu = arrive();
    OK(gpushare_host_alloc(endless->gpu, 4096, &word));
    endless->word = word;
    *endless->word = 0;
    uint64_t address = (uint64_t)(uintptr_t)word;
    void *parameters[] = {&address};
    OK(gpushare_launch(load(endless->gpu, "until"), grid, block, 0, NULL, parameters));
}

static void endless_stop(struct endless *endless)
{
    __atomic_store_n(endless->word, 1, __ATOMIC_SEQ_CST);
    OK(gpushare_synchronize(endless->gpu));
    gpushare_close(&endless->gpu);
}

/* ---- a client that launches on and on ---- */

struct worker {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *function;
    uint32_t milliseconds;
    int stop;         /* atomic */
    uint64_t longest; /* ns between two ends of its launches; of the thread */
};

static void *work(void *context)
{
    struct worker *worker = context;
    struct gpushare_dim one = {1, 1, 1};
    uint64_t last = now_ns();
    while (!__atomic_load_n(&worker->stop, __ATOMIC_SEQ_CST)) {
        void *parameters[] = {&worker->milliseconds};
        OK(gpushare_launch(worker->function, one, one, 0, NULL, parameters));
        OK(gpushare_launch(worker->function, one, one, 0, NULL, parameters));
        OK(gpushare_synchronize(worker->gpu));
        uint64_t now = now_ns();
        if (now - last > worker->longest)
            worker->longest = now - last;
        last = now;
    }
    return NULL;
}

static void worker_arrive(struct worker *worker, uint32_t milliseconds)
{
    *worker = (struct worker){.gpu = arrive(), .milliseconds = milliseconds};
    worker->function = load(worker->gpu, "milliseconds");
}

static void worker_start(struct worker *worker)
{
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void worker_stop(struct worker *worker)
{
    __atomic_store_n(&worker->stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(worker->thread, NULL);
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
    gpushare_connection *gpu;
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .notice = take_notice,
                                       .notice_context = newcomer};
    OK(gpushare_connect(&options, &gpu));
    OK(gpushare_memory_alloc(gpu, sizeof bytes, &memory));
    OK(gpushare_copy_to_device(gpu, memory, bytes, sizeof bytes));
    OK(gpushare_memory_free(gpu, memory));
    __atomic_store_n(&newcomer->asked, 1, __ATOMIC_SEQ_CST);
    load(gpu, "milliseconds");
    __atomic_store_n(&newcomer->loaded, 1, __ATOMIC_SEQ_CST);
    gpushare_close(&gpu);
    return NULL;
}

static bool happens(int *word, uint64_t within)
{
    uint64_t end = now_ns() + within;
    while (!__atomic_load_n(word, __ATOMIC_SEQ_CST) && now_ns() < end)
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
    struct worker other;
    struct newcomer newcomer = {0};
    worker_arrive(&other, 1);
    endless_start(&endless, 1, 1);
    worker_start(&other);
    /* One that leaves is nobody's concern either. */
    void *buffer;
    gpushare_connection *visitor = arrive();
    OK(gpushare_host_alloc(visitor, 1 << 20, &buffer));
    OK(gpushare_host_free(visitor, buffer));
    gpushare_close(&visitor);
    assert_int_equal(pthread_create(&newcomer.thread, NULL, come_and_load, &newcomer), 0);
    /* Coming, allocating and copying wait for nobody; the load waits for the kernel. */
    assert_true(happens(&newcomer.asked, 5000 * MS));
    assert_false(happens(&newcomer.loaded, 2000 * MS));
    /* The endless one came second, the newcomer last. */
    assert_int_equal(waits_for(4), 2);
    struct gpushare_load_wait wait = {.size = sizeof wait};
    OK(gpushare_load_wait(endless.gpu, &wait));
    assert_int_equal(wait.client, 2);
    assert_int_equal(wait.own, 1);
    worker_stop(&other);
    print_message("longest gap %.1f ms\n", (double)other.longest / 1e6);
    assert_true(other.longest < STALL_NS);
    endless_stop(&endless);
    assert_true(happens(&newcomer.loaded, 5000 * MS));
    pthread_join(newcomer.thread, NULL);
    assert_non_null(strstr(newcomer.notice, "kernels of client 2 ("));
    OK(gpushare_load_wait(other.gpu, &wait));
    assert_int_equal(wait.client, 0);
    assert_string_equal(wait.text, "");
    gpushare_close(&other.gpu);
}

static void growing_local_memory_stops_nobody_else(void **state)
{
    (void)state;
    struct endless endless;
    struct worker other;
    struct gpushare_dim one = {1, 1, 1};
    void *word;
    worker_arrive(&other, 1);
    gpushare_connection *deep = arrive();
    gpushare_function *function = load(deep, "deep");
    OK(gpushare_host_alloc(deep, 4096, &word));
    endless_start(&endless, 1, 1);
    worker_start(&other);
    usleep(300000);
    uint64_t address = (uint64_t)(uintptr_t)word;
    void *parameters[] = {&address};
    OK(gpushare_launch(function, one, one, 0, NULL, parameters));
    usleep(2000000);
    /* The endless one came last. */
    assert_int_equal(*(volatile uint32_t *)word, 0);
    assert_int_equal(waits_for(2), 3);
    worker_stop(&other);
    print_message("longest gap %.1f ms\n", (double)other.longest / 1e6);
    assert_true(other.longest < STALL_NS);
    endless_stop(&endless);
    OK(gpushare_synchronize(deep));
    assert_int_equal(*(volatile uint32_t *)word, 7);
    gpushare_close(&deep);
    gpushare_close(&other.gpu);
}

/* On a driver that waits for the device when an attribute of a function is set. */
static void allowing_more_shared_memory_waits_for_nobody(void **state)
{
    (void)state;
    struct endless endless;
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu = arrive();
    gpushare_function *function = load(gpu, "milliseconds");
    uint32_t milliseconds = 1;
    void *parameters[] = {&milliseconds};
    endless_start(&endless, 1, 1);
    uint64_t begun = now_ns();
    OK(gpushare_function_set_shared(function, 100 << 10));
    OK(gpushare_launch(function, one, one, 100 << 10, NULL, parameters));
    OK(gpushare_synchronize(gpu));
    assert_true(now_ns() - begun < STALL_NS);
    endless_stop(&endless);
    gpushare_close(&gpu);
}

static void a_load_is_served_beside_kernels_that_end(void **state)
{
    (void)state;
    struct worker workers[3];
    struct newcomer newcomer = {0};
    for (int i = 0; i < 3; i++)
        worker_arrive(&workers[i], 20);
    for (int i = 0; i < 3; i++)
        worker_start(&workers[i]);
    usleep(300000);
    struct windows before = read_windows();
    assert_int_equal(pthread_create(&newcomer.thread, NULL, come_and_load, &newcomer), 0);
    assert_true(happens(&newcomer.asked, 5000 * MS));
    uint64_t asked = now_ns();
    assert_true(happens(&newcomer.loaded, LOAD_NS));
    print_message("loaded after %.1f ms\n", (double)(now_ns() - asked) / 1e6);
    /* Kernels run all the time, so a window opened, and kept the device idle for a while. */
    struct windows after = read_windows();
    assert_true(after.count > before.count);
    assert_true(after.seconds > before.seconds);
    assert_true(after.seconds - before.seconds < (double)(now_ns() - asked) / 1e9 + 1);
    for (int i = 0; i < 3; i++)
        worker_stop(&workers[i]);
    pthread_join(newcomer.thread, NULL);
    for (int i = 0; i < 3; i++)
        gpushare_close(&workers[i].gpu);
}

/* New memory is cleared, and that needs no room on multiprocessors that nobody will leave. */
static void memory_comes_beside_kernels_that_fill_the_device(void **state)
{
    (void)state;
    struct endless endless;
    static char bytes[4096], zeros[sizeof bytes];
    gpushare_address memory;
    endless_start(&endless, 132 * 2, 1024);
    gpushare_connection *gpu = arrive();
    uint64_t before = now_ns();
    OK(gpushare_memory_alloc(gpu, UINT64_C(96) << 20, &memory));
    memset(bytes, 1, sizeof bytes);
    OK(gpushare_copy_from_device(gpu, bytes, memory + (UINT64_C(80) << 20), sizeof bytes));
    assert_memory_equal(bytes, zeros, sizeof bytes);
    print_message("an allocation took %.1f ms\n", (double)(now_ns() - before) / 1e6);
    assert_true(now_ns() - before < LOAD_NS);
    endless_stop(&endless);
    gpushare_close(&gpu);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_endless_kernel_stops_nobodys_launches),
        T(growing_local_memory_stops_nobody_else),
        T(a_load_is_served_beside_kernels_that_end),
        T(memory_comes_beside_kernels_that_fill_the_device),
        cmocka_unit_test_setup_teardown(allowing_more_shared_memory_waits_for_nobody,
                                        setup_with_draining_locks, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
