/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a client on its own multiprocessors ends 10 rounds of 20 ms in 2 s, most of a crowd one */
/*
 * Drivers and devices that are not as one would like them, through the whole server: clients get
 * what they asked for, or a sentence that says what is in the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

enum { MIB = 1 << 20 };

static unsigned random_state;

static unsigned random_below(unsigned end)
{
    return (unsigned)rand_r(&random_state) % end;
}

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

static void start(const char *first, const char *second)
{
    const char *const env[] = {first, second, NULL};
    server = server_start(NULL, env);
}

static void sleep_on_device(gpushare_function *milliseconds, uint32_t count)
{
    void *parameters[] = {&count};
    OK(gpushare_launch(milliseconds, one, one, 0, NULL, parameters));
}

/* ---- buffers that are registered in pieces ---- */

static void copies_and_fills_over_registrations_arrive_whole(void **state)
{
    (void)state;
    const uint64_t bytes = 150 * (uint64_t)MIB;
    void *from, *to;
    gpushare_address device;
    start("SOFTGPU_WHOLE_REGISTRATIONS=1", NULL);
    gpushare_connection *gpu = arrival_connect(server, 0);
    OK(gpushare_host_alloc(gpu, bytes, &from));
    OK(gpushare_host_alloc(gpu, bytes, &to));
    OK(gpushare_memory_alloc(gpu, bytes, &device));
    for (uint64_t at = 0; at < bytes; at += 4096)
        memcpy((char *)from + at, &at, sizeof at);
    OK(gpushare_copy_to_device(gpu, device, from, bytes));
    OK(gpushare_copy_from_device(gpu, to, device, bytes));
    assert_memory_equal(from, to, bytes);
    OK(gpushare_fill(gpu, device + MIB, 7, 1, bytes - MIB));
    OK(gpushare_copy_from_device(gpu, to, device, bytes));
    assert_memory_equal(from, to, MIB);
    for (uint64_t at = MIB; at < bytes; at += 4096)
        assert_int_equal(((char *)to)[at], 7);
    assert_int_equal(((char *)to)[bytes - 1], 7);
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
}

/* ---- sub-contexts that run out ---- */

/* Each share has a partition of its own, and partitions that nobody uses are kept. */
static void kept_partitions_go_when_no_more_can_be_made(void **state)
{
    (void)state;
    start("SOFTGPU_SUBCONTEXTS=8", NULL);
    for (int groups = 1; groups <= 16; groups++) {
        struct gpushare_limits limits = {.size = sizeof limits};
        gpushare_connection *gpu = arrival_connect(server, groups * 6.1);
        OK(gpushare_limits(gpu, &limits));
        assert_int_equal(limits.partitioned, 1);
        sleep_on_device(arrival_load(gpu, kernels_ptx, "milliseconds"), 1);
        OK(gpushare_synchronize(gpu));
        gpushare_close(&gpu);
    }
    assert_int_equal(server_stop(server), 0);
}

/* ---- PTX that the driver can't compile ---- */

static void refused(const char *text, gpushare_error error, const char *words)
{
    gpushare_module *module;
    gpushare_connection *gpu = arrival_connect(server, 0);
    assert_int_equal(gpushare_module_load(gpu, text, 0, &module), error);
    if (!strstr(gpushare_error_text(), words))
        fail_msg("%s", gpushare_error_text());
    /* The connection is none the worse. */
    OK(gpushare_synchronize(gpu));
    gpushare_close(&gpu);
}

static void ptx_that_is_newer_than_the_driver_is_refused_as_such(void **state)
{
    (void)state;
    start("SOFTGPU_DRIVER_VERSION=12000", NULL);
    refused(".version 9.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n",
            GPUSHARE_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX version is newer than the driver");
    assert_int_equal(server_stop(server), 0);
}

static void a_missing_compiler_is_named(void **state)
{
    (void)state;
    start("SOFTGPU_NO_JIT=1", NULL);
    assert_true(server_log_wait(server, "libnvidia-ptxjitcompiler.so.1"));
    refused(kernels_ptx, GPUSHARE_ERROR_UNKNOWN, "the PTX compiler library was not found");
    assert_int_equal(server_stop(server), 0);
}

/* ---- more clients than hardware queues, and one that never ends ---- */

enum { DEPTH = 4, CROWD = 100 };

/* A client that launches kernels of 5 ms, waits for them and counts such rounds. */
struct rounds {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *function;
    atomic_uint done;
    atomic_bool stop;
};

static void *work_rounds(void *context)
{
    struct rounds *rounds = context;
    while (!rounds->stop) {
        for (unsigned i = 0; i < DEPTH; i++)
            sleep_on_device(rounds->function, 5);
        OK(gpushare_synchronize(rounds->gpu));
        rounds->done++;
    }
    return NULL;
}

static void rounds_begin(struct rounds *rounds, double request)
{
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .thread_request = request,
                                       .thread_percentage = request};
    OK(gpushare_connect(&options, &rounds->gpu));
    rounds->function = arrival_load(rounds->gpu, kernels_ptx, "milliseconds");
    assert_int_equal(pthread_create(&rounds->thread, NULL, work_rounds, rounds), 0);
}

static void rounds_end(struct rounds *rounds)
{
    rounds->stop = true;
    pthread_join(rounds->thread, NULL);
    gpushare_close(&rounds->gpu);
}

/* Returns the word that ends it. */
static _Atomic uint32_t *launch_endless(gpushare_connection *gpu)
{
    void *page;
    OK(gpushare_host_alloc(gpu, 4096, &page));
    _Atomic uint32_t *word = page;
    *word = 0;
    uint64_t address = (uint64_t)(uintptr_t)page;
    void *parameters[] = {&address};
    OK(gpushare_launch(arrival_load(gpu, kernels_ptx, "until"), one, one, 0, NULL, parameters));
    return word;
}

/* Clients without a queue of their own are several to a queue. Those on the queue of the endless
 * kernel wait for it. All others go on, and so does a client on multiprocessors of its own: the
 * submitter serves it. */
static void a_crowd_on_shared_streams_does_not_block_the_submitter(void **state)
{
    (void)state;
    static struct rounds crowd[CROWD], own;
    unsigned before[CROWD], stuck = 0;
    start("SOFTGPU_PRIVATE_QUEUES=1", "SOFTGPU_QUEUE_ENTRIES=1024");
    rounds_begin(&own, 25);
    for (unsigned i = 0; i < CROWD; i++)
        rounds_begin(&crowd[i], 0);
    _Atomic uint32_t *word = launch_endless(crowd[random_below(CROWD)].gpu);
    usleep(500000); /* what is going to stop has stopped */
    unsigned own_before = own.done;
    for (unsigned i = 0; i < CROWD; i++)
        before[i] = crowd[i].done;
    usleep(2000000);
    unsigned rounds = own.done - own_before;
    for (unsigned i = 0; i < CROWD; i++)
        stuck += crowd[i].done == before[i];
    print_message("%u rounds; %u of %u other clients wait\n", rounds, stuck, CROWD);
    *word = 1;
    for (unsigned i = 0; i < CROWD; i++)
        rounds_end(&crowd[i]);
    rounds_end(&own);
    assert_int_equal(server_stop(server), 0);
    assert_true(rounds >= 10);
    assert_true(stuck <= CROWD / 4);
}

int main(void)
{
    server_needs_softgpu();
    const char *seed = getenv("TEST_SEED");
    random_state = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    print_message("TEST_SEED=%u\n", random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_fills_over_registrations_arrive_whole),
        cmocka_unit_test(kept_partitions_go_when_no_more_can_be_made),
        cmocka_unit_test(ptx_that_is_newer_than_the_driver_is_refused_as_such),
        cmocka_unit_test(a_missing_compiler_is_named),
        cmocka_unit_test(a_crowd_on_shared_streams_does_not_block_the_submitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
