/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a client on its own multiprocessors ends 10 rounds of 20 ms in 2 s, most of a crowd one */
/* light: its kernels sleep */
/*
 * Drivers and devices that are not as one would like them, through the whole server: clients get
 * what they asked for, or a sentence that says what is in the way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/kernels.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/seed.h"
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
    /* The server's own words: the driver names the library, too. */
    assert_true(server_log_wait(server, "so modules of PTX will be refused"));
    refused(kernels_ptx, GPUSHARE_ERROR_UNKNOWN, "the PTX compiler library was not found");
    assert_int_equal(server_stop(server), 0);
}

/* ---- more clients than hardware queues, and one that never ends ---- */

enum { DEPTH = 4, CROWD = 50 };

/* A client that launches rounds of kernels of 5 ms. request: of multiprocessors, which is the limit
 * too; 0: none. */
static void crowd_join(struct launcher *launcher, double request)
{
    /* With limits, so that all find addresses: a server under ThreadSanitizer has only 128 GiB. */
    struct gpushare_options options = {.thread_request = request,
                                       .thread_percentage = request,
                                       .memory_limit = UINT64_C(1) << 28,
                                       .host_memory_limit = UINT64_C(1) << 28};
    launcher_prepare(launcher, arrival_connect_with(server, options), 0, DEPTH, 5);
    launcher_start(launcher);
}

/* Clients without a queue of their own are several to a queue. Those on the queue of the endless
 * kernel wait for it. All others go on, and so does a client on multiprocessors of its own: the
 * submitter serves it. */
static void a_crowd_on_shared_streams_does_not_block_the_submitter(void **state)
{
    (void)state;
    static struct launcher crowd[CROWD], own;
    struct endless endless;
    unsigned before[CROWD], stuck = 0;
    start("SOFTGPU_PRIVATE_QUEUES=1", "SOFTGPU_QUEUE_ENTRIES=1024");
    crowd_join(&own, 25);
    for (unsigned i = 0; i < CROWD; i++)
        crowd_join(&crowd[i], 0);
    endless_prepare(&endless, crowd[random_below(CROWD)].gpu);
    endless_start(&endless, 1, 1);
    usleep(500000); /* what is going to stop has stopped */
    unsigned own_before = own.done;
    for (unsigned i = 0; i < CROWD; i++)
        before[i] = crowd[i].done;
    usleep(2000000);
    unsigned rounds = (own.done - own_before) / DEPTH;
    for (unsigned i = 0; i < CROWD; i++)
        stuck += crowd[i].done == before[i];
    print_message("%u rounds; %u of %u other clients wait\n", rounds, stuck, CROWD);
    atomic_store(endless.word, 1); /* its connection is one of the crowd's */
    for (unsigned i = 0; i < CROWD; i++)
        atomic_store(&crowd[i].stop, true);
    launcher_stop(&own);
    launcher_close(&own);
    for (unsigned i = 0; i < CROWD; i++) {
        launcher_stop(&crowd[i]);
        launcher_close(&crowd[i]);
    }
    assert_int_equal(server_stop(server), 0);
    assert_true(rounds >= 10);
    assert_true(stuck <= CROWD / 4);
}

int main(void)
{
    server_needs_softgpu();
    random_state = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_fills_over_registrations_arrive_whole),
        cmocka_unit_test(kept_partitions_go_when_no_more_can_be_made),
        cmocka_unit_test(ptx_that_is_newer_than_the_driver_is_refused_as_such),
        cmocka_unit_test(a_missing_compiler_is_named),
        cmocka_unit_test(a_crowd_on_shared_streams_does_not_block_the_submitter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
