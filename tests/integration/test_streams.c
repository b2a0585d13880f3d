/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors *
 * timed: on multiprocessors of its own a client keeps half its pace at least; nobody waits 1 s
 * light: its kernels sleep
 * long: it counts for seconds, with 1, 40 and 100 streams
 * draining: not, for it says itself which calls of the driver wait
 */
/*
 * Streams, partitions and hardware queues through the real server, on a driver that keeps the
 * context's lock while it makes a stream and that has 32 queues for all of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
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
#include "tests/support/server.h"

enum { IN_FLIGHT = 8 };

#define MS       UINT64_C(1000000)
#define STALL_NS (1000 * MS)
#define RUN_US   750000

static struct server *server;

static int setup_with(void **state, const char *more)
{
    const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", more, NULL};
    *state = server = server_start(NULL, env);
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_with_work_queues(void **state)
{
    return setup_with(state, "SOFTGPU_WORK_QUEUES=1");
}

/* The worker asks for 32 all the same. */
static int setup_with_eight_queues(void **state)
{
    return setup_with(state, "SOFTGPU_QUEUES=8");
}

/* request: of multiprocessors, which is the limit too; 0: none. */
static gpushare_connection *arrive(double request)
{
    return arrival_connect_with(
        server, (struct gpushare_options){.thread_request = request, .thread_percentage = request});
}

/* A client as gpusharectl tells it, in the order of coming. The caller releases it. */
static json_t *tell(size_t place)
{
    json_t *answer = admin_answer(server, "clients");
    json_t *client = json_incref(json_array_get(json_object_get(answer, "clients"), place));
    json_decref(answer);
    assert_non_null(client);
    return client;
}

static long tell_number(size_t place, const char *what)
{
    json_t *client = tell(place);
    json_t *number = json_object_get(client, what);
    assert_true(json_is_integer(number));
    long told = (long)json_integer_value(number);
    json_decref(client);
    return told;
}

/* Launches that end in the time of a run. */
static unsigned throughput(struct launcher *launcher)
{
    launcher->done = 0;
    launcher->longest = 0;
    usleep(RUN_US);
    return launcher->done;
}

/* ---- queues ---- */

/* Beside a neighbour on the other half, whose kernels last so long that waiting for one shows. */
static void keeps_its_pace(unsigned streams)
{
    struct launcher client, neighbour;
    launcher_prepare(&client, arrive(50), 1, IN_FLIGHT, 1);
    launcher_prepare(&neighbour, arrive(50), streams, 2, 20);
    launcher_start(&client);
    usleep(200000);
    unsigned alone = throughput(&client);
    launcher_start(&neighbour);
    /* Beyond the time in which what could not be had at first is made. */
    usleep(1500000);
    unsigned beside = throughput(&client);
    print_message("%u streams: %u beside, %u alone; longest %.1f ms\n", streams, beside, alone,
                  (double)client.longest / 1e6);
    assert_int_equal(tell_number(0, "shared_queues"), 0);
    assert_int_equal(tell_number(1, "shared_queues"), 0);
    launcher_stop(&neighbour);
    launcher_stop(&client);
    launcher_close(&neighbour);
    launcher_close(&client);
    /* The neighbour's launches need some time of two CPUs; make bench, on a quiet machine, asks for
     * 0.97 (neighbour_streams). */
    assert_true(beside * 10 >= alone * 8);
}

static void a_neighbour_with_40_streams_takes_nothing(void **state)
{
    (void)state;
    keeps_its_pace(40);
}

static void a_neighbour_with_100_streams_takes_nothing(void **state)
{
    (void)state;
    keeps_its_pace(100);
}

/* The worker has found out how many queues there are, and keeps one for each of the two. */
static void with_fewer_queues_a_neighbour_takes_nothing(void **state)
{
    (void)state;
    keeps_its_pace(40);
}

/* Nine clients can't have a queue each, and who shares one is told. */
static void with_fewer_queues_real_sharing_is_told(void **state)
{
    (void)state;
    enum { CLIENTS = 9 };
    struct launcher launchers[CLIENTS];
    uint64_t end = clock_now() + 20000 * MS;
    long shared = 0;
    for (int i = 0; i < CLIENTS; i++) {
        launcher_prepare(&launchers[i], arrive(0), 1, 2, 20);
        launcher_start(&launchers[i]);
    }
    while (!shared && clock_now() < end)
        for (int i = 0; i < CLIENTS; i++)
            shared += tell_number((size_t)i, "shared_queues");
    for (int i = 0; i < CLIENTS; i++)
        launcher_stop(&launchers[i]);
    for (int i = 0; i < CLIENTS; i++)
        launcher_close(&launchers[i]);
    assert_true(shared > 0);
}

/* With fewer queues than streams some wait for each other's kernels, but all go on. */
static void fewer_queues_than_streams_stop_nobody(void **state)
{
    (void)state;
    struct launcher client, neighbour;
    uint64_t end = clock_now() + 20000 * MS;
    launcher_prepare(&client, arrive(50), 1, IN_FLIGHT, 1);
    launcher_prepare(&neighbour, arrive(50), 40, 2, 20);
    launcher_start(&client);
    launcher_start(&neighbour);
    while ((client.done < 10 * IN_FLIGHT || neighbour.done < 3 * 40 * 2) && clock_now() < end)
        usleep(10000);
    print_message("%u kernels, %u of the neighbour; longest %.1f ms\n", client.done, neighbour.done,
                  (double)client.longest / 1e6);
    assert_true(client.done >= 10 * IN_FLIGHT && neighbour.done >= 3 * 40 * 2);
    launcher_stop(&neighbour);
    launcher_stop(&client);
    launcher_close(&neighbour);
    launcher_close(&client);
}

/* ---- an endless kernel ---- */

/* A stream of the usual kind needs no call of the driver; its work is a fill. Each stream fills
 * memory of its own: nothing orders them. The newcomers ask for little memory, since the address
 * plan has few windows of the device's whole size where a sanitizer has its own part of the
 * addresses. */
static void newcomers_have_streams_beside_an_endless_kernel(void **state)
{
    (void)state;
    struct endless endless;
    endless_prepare(&endless, arrive(0));
    endless_start(&endless, 1, 1);
    for (int n = 0; n < 20; n++) {
        uint64_t start = clock_now();
        gpushare_connection *gpu =
            arrival_connect_with(server, (struct gpushare_options){.memory_limit = 64 << 20});
        gpushare_stream *streams[4];
        gpushare_address memory;
        OK(gpushare_memory_alloc(gpu, 4 * 4096, &memory));
        for (int i = 0; i < 4; i++) {
            OK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]));
            OK(gpushare_fill_async(gpu, memory + (uint64_t)i * 4096, 7, 1, 4096, streams[i]));
        }
        OK(gpushare_synchronize(gpu));
        assert_true(clock_now() - start < STALL_NS);
        gpushare_close(&gpu);
    }
    endless_end(&endless);
}

struct pacer {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream *stream;
    atomic_uint done;
};

enum { PACES = 50, BEHIND = 19 };

/* One kernel after the other: each ends before the next is launched. */
static void *pace(void *context)
{
    static const struct gpushare_dim one = {1, 1, 1};
    struct pacer *pacer = context;
    uint32_t ms = 1;
    void *parameters[] = {&ms};
    for (int i = 0; i < PACES; i++) {
        OK(gpushare_launch(pacer->function, one, one, 0, pacer->stream, parameters));
        OK(gpushare_stream_synchronize(pacer->gpu, pacer->stream));
        atomic_fetch_add(&pacer->done, 1);
    }
    return NULL;
}

/* Behind the kernel stands as much as the client may have in flight, and more. */
static void a_second_stream_goes_on_beside_an_endless_kernel_and_its_queue(void **state)
{
    (void)state;
    static const struct gpushare_dim one = {1, 1, 1};
    struct endless endless;
    struct pacer pacer = {.gpu = arrive(0)};
    uint32_t ms = 1;
    void *parameters[] = {&ms};
    endless_prepare(&endless, pacer.gpu);
    pacer.function = arrival_load(pacer.gpu, kernels_ptx, "milliseconds");
    OK(gpushare_stream_create(pacer.gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &pacer.stream));
    endless_start(&endless, 1, 1);
    for (int i = 0; i < BEHIND; i++)
        OK(gpushare_launch(pacer.function, one, one, 0, NULL, parameters));
    uint64_t end = clock_now() + 20000 * MS;
    assert_int_equal(pthread_create(&pacer.thread, NULL, pace, &pacer), 0);
    while (atomic_load(&pacer.done) < PACES && clock_now() < end)
        usleep(1000);
    unsigned done = atomic_load(&pacer.done);
    atomic_store(endless.word, 1);
    pthread_join(pacer.thread, NULL);
    endless_end(&endless);
    assert_int_equal(done, PACES);
}

struct allocation {
    pthread_t thread;
    gpushare_connection *gpu;
    atomic_bool made;
};

static void *allocate(void *context)
{
    struct allocation *allocation = context;
    gpushare_address memory;
    OK(gpushare_memory_alloc(allocation->gpu, 1 << 20, &memory));
    atomic_store(&allocation->made, true);
    return NULL;
}

/* The worker clears it on a hardware queue that it has to itself. */
static void memory_is_had_beside_an_endless_kernel_on_each_queue(void **state)
{
    (void)state;
    enum { QUEUES = 8 };
    struct endless endless[QUEUES];
    struct gpushare_options options = {.memory_limit = 64 << 20};
    struct allocation allocation = {.gpu = arrival_connect_with(server, options)};
    for (int i = 0; i < QUEUES; i++)
        endless_prepare(&endless[i], arrival_connect_with(server, options));
    for (int i = 0; i < QUEUES; i++)
        endless_start(&endless[i], 1, 1);
    usleep(100000);
    uint64_t end = clock_now() + STALL_NS;
    assert_int_equal(pthread_create(&allocation.thread, NULL, allocate, &allocation), 0);
    while (!atomic_load(&allocation.made) && clock_now() < end)
        usleep(1000);
    bool made = atomic_load(&allocation.made);
    for (int i = 0; i < QUEUES; i++)
        endless_end(&endless[i]);
    pthread_join(allocation.thread, NULL);
    gpushare_close(&allocation.gpu);
    assert_true(made);
}

static int set_threads(long client, unsigned percent)
{
    char program[PATH_MAX], command[2 * PATH_MAX];
    snprintf(command, sizeof command, "%s --socket %s set %ld threads=%u%%",
             server_build_path("bin/gpusharectl", program, sizeof program),
             server_admin_socket(server), client, percent);
    return system(command);
}

/* A partition of an odd size can't be made before the kernel ends. */
static void a_new_partition_waits_and_disturbs_nobody(void **state)
{
    (void)state;
    struct endless endless;
    struct launcher other, changed;
    launcher_prepare(&other, arrive(0), 1, IN_FLIGHT, 1);
    launcher_prepare(&changed, arrive(0), 1, IN_FLIGHT, 1);
    endless_prepare(&endless, arrive(0));
    endless_start(&endless, 1, 1);
    launcher_start(&other);
    launcher_start(&changed);
    throughput(&other);
    long number = tell_number(1, "client");
    uint64_t start = clock_now();
    int set = set_threads(number, 37);
    uint64_t took = clock_now() - start;
    /* It goes on where it is, and so does the other. */
    unsigned done = throughput(&other);
    uint64_t others = other.longest, own = changed.longest;
    endless_end(&endless);
    launcher_stop(&changed);
    launcher_stop(&other);
    print_message("set in %.1f ms; %u done; longest %.1f ms of others, %.1f ms of its own\n",
                  (double)took / 1e6, done, (double)others / 1e6, (double)own / 1e6);
    assert_int_equal(set, 0);
    assert_true(took < 2 * STALL_NS);
    assert_true(done > 100);
    assert_true(others < STALL_NS);
    assert_true(own < STALL_NS);
    launcher_close(&changed);
    launcher_close(&other);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, server_teardown)
    const struct CMUnitTest tests[] = {
        T(a_neighbour_with_40_streams_takes_nothing),
        T(a_neighbour_with_100_streams_takes_nothing),
        cmocka_unit_test_setup_teardown(fewer_queues_than_streams_stop_nobody,
                                        setup_with_eight_queues, server_teardown),
        cmocka_unit_test_setup_teardown(with_fewer_queues_a_neighbour_takes_nothing,
                                        setup_with_eight_queues, server_teardown),
        cmocka_unit_test_setup_teardown(with_fewer_queues_real_sharing_is_told,
                                        setup_with_eight_queues, server_teardown),
        T(newcomers_have_streams_beside_an_endless_kernel),
        cmocka_unit_test_setup_teardown(memory_is_had_beside_an_endless_kernel_on_each_queue,
                                        setup_with_eight_queues, server_teardown),
        T(a_second_stream_goes_on_beside_an_endless_kernel_and_its_queue),
        T(a_new_partition_waits_and_disturbs_nobody),
        cmocka_unit_test_setup_teardown(a_neighbour_with_100_streams_takes_nothing,
                                        setup_with_work_queues, server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
