/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * State that the next server has of a killed one: buffers that connections of one program share,
 * host memory that lost copies were writing, and users whose kernels have faulted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

/* hold sets the first of two words, and waits until the second is set; stray writes to address 16.
 */
static const char kernels[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry hold(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
    "ld.param.u64 %a, [words];\nmov.u32 %v, 1;\nst.volatile.global.u32 [%a], %v;\n"
    "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a+4];\n"
    "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n"
    ".visible .entry stray()\n{\n.reg .u64 %a;\nmov.u64 %a, 16;\nst.global.u32 [%a], 1;\nret;\n}\n";

#define MIB (UINT64_C(1) << 20)

enum { ROUNDS = 7, WORDS = 3 << 20 };

static const struct gpushare_dim one = {1, 1, 1};

/* The next server serves with the worker that the killed one had. */
static void kill_server(struct server *server)
{
    assert_int_equal(server_replace(server, SIGKILL), 128 + SIGKILL);
}

/* ---- two connections ---- */

struct side {
    gpushare_connection *gpu;
    gpushare_address memory;
};

static struct side side_open(const struct server *server, int device)
{
    struct gpushare_options options = {.size = sizeof options, .device = device};
    struct side side = {.gpu = arrival_connect_with(server, options)};
    OK(gpushare_memory_alloc(side.gpu, WORDS * 4, &side.memory));
    return side;
}

static void copy_there_and_back(const struct side *here, const struct side *there, uint32_t value)
{
    uint32_t *words = malloc(WORDS * 4);
    assert_non_null(words);
    OK(gpushare_fill(here->gpu, here->memory, value, 4, WORDS));
    OK(gpushare_copy_peer(there->gpu, there->memory, here->gpu, here->memory, WORDS * 4));
    OK(gpushare_fill(here->gpu, here->memory, 0, 4, WORDS));
    OK(gpushare_copy_peer(here->gpu, here->memory, there->gpu, there->memory, WORDS * 4));
    OK(gpushare_copy_from_device(here->gpu, words, here->memory, WORDS * 4));
    for (uint32_t i = 0; i < WORDS; i++)
        if (words[i] != value)
            fail_msg("word %u is %u", i, words[i]);
    free(words);
}

static uint64_t host_used(const struct side *side)
{
    struct gpushare_memory_info info = {.size = sizeof info};
    OK(gpushare_memory_info(side->gpu, &info));
    return info.host_used;
}

/* Copies between devices go through buffers of one connection that the other one uses too. */
static void connections_that_share_buffers_go_on(void **state)
{
    static const char *const env[] = {"SOFTGPU_DEVICES=2", NULL};
    (void)state;
    struct server *server = server_start_kept(NULL, env);
    struct side a = side_open(server, 0), b = side_open(server, 1);
    copy_there_and_back(&a, &b, 1);
    copy_there_and_back(&b, &a, 1);
    const uint64_t used = host_used(&a);
    for (uint32_t i = 2; i < 5; i++) {
        kill_server(server);
        copy_there_and_back(&a, &b, i);
        copy_there_and_back(&b, &a, i + 100);
        assert_int_equal(host_used(&a), used);
    }
    /* Buffers that a uses go with their owner, and so does the charge. */
    kill_server(server);
    gpushare_close(&b.gpu);
    for (int left = (int)(patience_seconds(20) * 200); left > 0 && host_used(&a) == used; left--)
        usleep(5000);
    assert_true(host_used(&a) < used);
    struct side other = side_open(server, 1);
    copy_there_and_back(&a, &other, 7);
    gpushare_close(&a.gpu);
    kill_server(server);
    gpushare_close(&other.gpu);
    assert_int_equal(server_stop(server), 0);
}

/* ---- what was lost ---- */

static void kill_worker(const struct server *server)
{
    pid_t worker;
    for (int left = (int)(patience_seconds(20) * 1000); left > 0; left--) {
        if (server_workers(server, &worker, 1) == 1) {
            kill(worker, SIGKILL);
            return;
        }
        usleep(1000);
    }
    fail_msg("there is no worker");
}

/* Returns whether the driver had the copy, which nothing else shows. */
static bool lose_a_copy(struct server *server, unsigned wait_us)
{
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_function *hold = arrival_load(gpu, kernels, "hold");
    gpushare_stream *stream;
    gpushare_address memory;
    void *host, *words;
    OK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    OK(gpushare_memory_alloc(gpu, MIB, &memory));
    OK(gpushare_host_alloc(gpu, MIB, &host));
    OK(gpushare_host_alloc(gpu, 4096, &words));
    volatile uint32_t *held = words;
    void *parameters[] = {&words};
    held[0] = held[1] = 0;
    OK(gpushare_launch(hold, one, one, 0, stream, parameters));
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !held[0]; left--)
        usleep(1000);
    OK(gpushare_copy_from_device_async(gpu, (uint8_t *)host + 512, memory, 1000, stream));
    usleep(wait_us);
    kill_worker(server);
    assert_int_equal(gpushare_stream_synchronize(gpu, stream), GPUSHARE_ERROR_INTERRUPTED);
    kill_server(server);
    struct gpushare_recovery report = {.size = sizeof report}, again = {.size = sizeof again};
    OK(gpushare_stream_recover(gpu, stream, &report));
    assert_int_equal(report.dropped, 2);
    assert_int_equal(report.more_ranges, 0);
    bool named = report.range_count == 1;
    if (named) {
        assert_ptr_equal(report.ranges[0].start, (uint8_t *)host + 512);
        assert_int_equal(report.ranges[0].bytes, 1000);
    }
    kill_server(server);
    OK(gpushare_stream_recover(gpu, stream, &again));
    assert_int_equal(again.range_count, 0);
    gpushare_close(&gpu);
    return named;
}

static void a_report_names_memory_of_a_loss_before_the_kill(void **state)
{
    (void)state;
    struct server *server = server_start_kept(NULL, NULL);
    bool named = false;
    for (int round = 0; round < ROUNDS && !named; round++)
        named = lose_a_copy(server, 20000u << round);
    assert_true(named);
    assert_int_equal(server_stop(server), 0);
}

/* ---- offenders ---- */

/* A worker that follows one that was lost is still starting. */
static gpushare_connection *connect_when_ready(const struct server *server)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu = NULL;
    gpushare_error error = GPUSHARE_ERROR_DEVICE_NOT_READY;
    for (int left = (int)(patience_seconds(20) * 100);
         left > 0 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; left--) {
        error = gpushare_connect(&options, &gpu);
        if (error == GPUSHARE_ERROR_DEVICE_NOT_READY)
            usleep(10000);
    }
    ok_check(error, "gpushare_connect", __FILE__, __LINE__);
    return gpu;
}

static void fault(const struct server *server)
{
    gpushare_connection *gpu = connect_when_ready(server);
    gpushare_function *stray = arrival_load(gpu, kernels, "stray");
    OK(gpushare_launch(stray, one, one, 0, NULL, NULL));
    assert_int_equal(gpushare_synchronize(gpu), GPUSHARE_ERROR_ILLEGAL_ADDRESS);
    gpushare_close(&gpu);
}

static void is_refused_as_offender(const struct server *server)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu = NULL;
    bool told = false;
    for (int left = (int)(patience_seconds(20) * 100); left > 0 && !told; left--) {
        assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_DEVICE_NOT_READY);
        told = strstr(gpushare_error_text(), "--offender-wait");
        if (!told)
            usleep(10000);
    }
    assert_true(told);
}

/* One fault before the kill and one behind it are two. */
static void a_repeat_offender_waits_at_the_next_server_too(void **state)
{
    static const char *const args[] = {"--offender-wait", "100s", NULL};
    (void)state;
    struct server *server = server_start_kept(args, NULL);
    fault(server);
    kill_server(server);
    fault(server);
    is_refused_as_offender(server);
    kill_server(server);
    is_refused_as_offender(server);
    assert_int_equal(server_stop(server), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_that_share_buffers_go_on),
        cmocka_unit_test(a_report_names_memory_of_a_loss_before_the_kill),
        cmocka_unit_test(a_repeat_offender_waits_at_the_next_server_too),
    };
    server_needs_softgpu();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
