/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The report of gpushare_stream_recover: which host memory copies were writing, what two losses in
 * a row cost, and what is known of events from before.
 *
 * Nothing outside of a worker shows when the driver has a command. So a round that counts copies in
 * flight is repeated until it had all of them there; each report must be right meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

/* hold sets the first of two words, and waits until the second is set. */
static const char hold_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry hold(.param .u64 words)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n.reg .pred %q;\n"
    "ld.param.u64 %a, [words];\nmov.u32 %v, 1;\nst.volatile.global.u32 [%a], %v;\n"
    "again:\nnanosleep.u32 100000;\nld.volatile.global.u32 %v, [%a+4];\n"
    "setp.eq.u32 %q, %v, 0;\n@%q bra again;\nret;\n}\n";

#define MIB (UINT64_C(1) << 20)

enum { ROUNDS = 7 };

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

struct client {
    gpushare_connection *gpu;
    gpushare_function *hold;
    gpushare_stream *stream;
    gpushare_address memory;
    uint8_t *host;
    volatile uint32_t *words;
};

static struct client client_open(void)
{
    struct client client = {.gpu = arrival_connect(server, 0)};
    void *words, *host;
    client.hold = arrival_load(client.gpu, hold_ptx, "hold");
    OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &client.stream));
    OK(gpushare_memory_alloc(client.gpu, 16 * MIB, &client.memory));
    OK(gpushare_host_alloc(client.gpu, 16 * MIB, &host));
    OK(gpushare_host_alloc(client.gpu, 4096, &words));
    client.host = host;
    client.words = words;
    return client;
}

static void launch_hold(const struct client *client)
{
    volatile uint32_t *words = client->words;
    void *parameters[] = {&words};
    words[0] = words[1] = 0;
    OK(gpushare_launch(client->hold, one, one, 0, client->stream, parameters));
    for (int left = (int)(patience_seconds(20) * 1000); left > 0 && !words[0]; left--)
        usleep(1000);
    assert_int_equal(words[0], 1);
}

static void kill_worker(void)
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

static struct gpushare_recovery recover(const struct client *client)
{
    struct gpushare_recovery recovery = {.size = sizeof recovery};
    OK(gpushare_stream_recover(client->gpu, client->stream, &recovery));
    return recovery;
}

#define INTERRUPTED(call) assert_int_equal((call), GPUSHARE_ERROR_INTERRUPTED)
#define LOST(call)        assert_int_equal((call), GPUSHARE_ERROR_STATE_LOST)

static void copy_out(const struct client *client, uint64_t offset, uint64_t bytes)
{
    OK(gpushare_copy_from_device_async(client->gpu, client->host + offset, client->memory + offset,
                                       bytes, client->stream));
}

static bool names(const struct gpushare_recovery *recovery, const uint8_t *start, uint64_t bytes)
{
    for (uint32_t i = 0; i < recovery->range_count; i++)
        if (recovery->ranges[i].start == start && recovery->ranges[i].bytes == bytes)
            return true;
    return false;
}

/*
 * A copy that crosses steps of the registration is one range, as the program asked for it. Nothing
 * tells when both copies are with the driver, so each round waits longer for that than the one
 * before; and each has a client of its own, since less of a client whose kernels were long is let
 * in behind the next one.
 */
static void copies_in_flight_name_the_memory_that_they_write(void **state)
{
    (void)state;
    bool whole = false;
    for (int round = 0; round < ROUNDS && !whole; round++) {
        struct client client = client_open();
        copy_out(&client, 15 * MIB, 1000);
        OK(gpushare_stream_synchronize(client.gpu, client.stream));
        launch_hold(&client);
        copy_out(&client, 1 * MIB, 6 * MIB);
        copy_out(&client, 9 * MIB, 100);
        /* To the device: it writes no host memory. */
        OK(gpushare_copy_to_device_async(client.gpu, client.memory + 12 * MIB,
                                         client.host + 12 * MIB, 100, client.stream));
        usleep(20000u << round);
        kill_worker();
        INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.stream));
        struct gpushare_recovery recovery = recover(&client);
        assert_int_equal(recovery.more_ranges, 0);
        for (uint32_t i = 0; i < recovery.range_count; i++) {
            const uint8_t *start = recovery.ranges[i].start;
            bool first = start >= client.host + MIB &&
                         start + recovery.ranges[i].bytes <= client.host + 7 * MIB;
            assert_true(first ||
                        (start == client.host + 9 * MIB && recovery.ranges[i].bytes == 100));
        }
        whole = recovery.range_count == 2 && names(&recovery, client.host + MIB, 6 * MIB) &&
                names(&recovery, client.host + 9 * MIB, 100);
        assert_int_equal(recover(&client).range_count, 0);
        gpushare_close(&client.gpu);
    }
    assert_true(whole);
}

static void *copy_to_ordinary_memory(void *argument)
{
    const struct client *client = argument;
    uint8_t *to = malloc(MIB);
    gpushare_error error =
        to ? gpushare_copy_from_device_async(client->gpu, to, client->memory, MIB, client->stream)
           : GPUSHARE_ERROR_OUT_OF_MEMORY;
    free(to);
    return (void *)(uintptr_t)error;
}

/* The buffers through which such a copy goes are no memory that the program knows. */
static void buffers_of_the_library_are_not_named(void **state)
{
    (void)state;
    struct client client = client_open();
    pthread_t thread;
    void *error;
    for (int round = 0; round < 3; round++) {
        launch_hold(&client);
        assert_int_equal(pthread_create(&thread, NULL, copy_to_ordinary_memory, &client), 0);
        usleep(50000);
        kill_worker();
        assert_int_equal(pthread_join(thread, &error), 0);
        assert_int_equal((uintptr_t)error, GPUSHARE_ERROR_INTERRUPTED);
        assert_int_equal(recover(&client).range_count, 0);
    }
    gpushare_close(&client.gpu);
}

/* A program that was built before the report had ranges. */
static void a_shorter_report_is_filled_as_far_as_it_goes(void **state)
{
    (void)state;
    struct client client = client_open();
    struct gpushare_recovery recovery;
    memset(&recovery, 0x5a, sizeof recovery);
    recovery.size = offsetof(struct gpushare_recovery, range_count);
    launch_hold(&client);
    copy_out(&client, 0, 100);
    kill_worker();
    INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.stream));
    OK(gpushare_stream_recover(client.gpu, client.stream, &recovery));
    assert_int_equal(recovery.dropped, 2);
    assert_int_equal(recovery.range_count, 0x5a5a5a5a);
    gpushare_close(&client.gpu);
}

/* The second worker dies before the program has let the stream go on. */
static void a_report_covers_two_losses(void **state)
{
    (void)state;
    struct client client = client_open();
    OK(gpushare_stream_synchronize(client.gpu, client.stream));
    uint64_t finished = recover(&client).finished;
    launch_hold(&client);
    for (uint64_t i = 0; i < 5; i++)
        copy_out(&client, 8192 * i, 4096);
    usleep(20000);
    for (int i = 0; i < 2; i++) {
        kill_worker();
        INTERRUPTED(gpushare_stream_synchronize(client.gpu, client.stream));
        /* Answered by the next worker. */
        struct gpushare_memory_info info = {.size = sizeof info};
        gpushare_stream *other;
        OK(gpushare_stream_create(client.gpu, 0, 0, &other));
        OK(gpushare_memory_info(client.gpu, &info));
    }
    struct gpushare_recovery recovery = recover(&client);
    assert_int_equal(recovery.finished, finished);
    assert_int_equal(recovery.dropped, 6);
    OK(gpushare_stream_synchronize(client.gpu, client.stream));
    gpushare_close(&client.gpu);
}

/* A later interruption takes the place of the first one in the stream's memory. */
static void events_of_an_earlier_loss_stay_lost(void **state)
{
    (void)state;
    struct client client = client_open();
    gpushare_event *events[3];
    gpushare_stream *other;
    OK(gpushare_stream_create(client.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &other));
    for (int i = 0; i < 3; i++) {
        OK(gpushare_event_create(client.gpu, 0, &events[i]));
        launch_hold(&client);
        OK(gpushare_event_record(events[i], client.stream));
        kill_worker();
        INTERRUPTED(gpushare_event_synchronize(events[i]));
        assert_int_equal(recover(&client).dropped, 1);
        for (int k = 0; k <= i; k++) {
            INTERRUPTED(gpushare_event_query(events[k]));
            INTERRUPTED(gpushare_event_synchronize(events[k]));
            INTERRUPTED(gpushare_stream_wait_event(client.gpu, other, events[k]));
        }
    }
    OK(gpushare_event_record(events[0], client.stream));
    OK(gpushare_event_synchronize(events[0]));
    INTERRUPTED(gpushare_event_query(events[1]));
    gpushare_close(&client.gpu);
}

static void times_from_before_are_refused_in_words(void **state)
{
    (void)state;
    struct client client = client_open();
    gpushare_event *start, *end, *never;
    double ms = 0;
    OK(gpushare_event_create(client.gpu, GPUSHARE_EVENT_TIMING, &start));
    OK(gpushare_event_create(client.gpu, GPUSHARE_EVENT_TIMING, &end));
    OK(gpushare_event_create(client.gpu, GPUSHARE_EVENT_TIMING, &never));
    OK(gpushare_event_record(start, client.stream));
    OK(gpushare_event_record(end, client.stream));
    OK(gpushare_stream_synchronize(client.gpu, client.stream));
    OK(gpushare_event_elapsed(start, end, &ms));
    kill_worker();
    LOST(gpushare_event_elapsed(start, end, &ms));
    assert_non_null(strstr(gpushare_error_text(), "record the event again"));
    OK(gpushare_event_record(end, client.stream));
    OK(gpushare_event_synchronize(end));
    LOST(gpushare_event_elapsed(start, end, &ms));
    LOST(gpushare_event_elapsed(end, start, &ms));
    assert_int_equal(gpushare_event_elapsed(never, end, &ms), GPUSHARE_ERROR_INVALID_HANDLE);
    OK(gpushare_event_record(start, client.stream));
    OK(gpushare_event_synchronize(start));
    OK(gpushare_event_elapsed(end, start, &ms));
    assert_true(ms >= 0);
    gpushare_close(&client.gpu);
}

static int start(void **state)
{
    *state = server = server_start(NULL, NULL);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_in_flight_name_the_memory_that_they_write),
        cmocka_unit_test(buffers_of_the_library_are_not_named),
        cmocka_unit_test(a_shorter_report_is_filled_as_far_as_it_goes),
        cmocka_unit_test(a_report_covers_two_losses),
        cmocka_unit_test(events_of_an_earlier_loss_stay_lost),
        cmocka_unit_test(times_from_before_are_refused_in_words),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
