/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: on multiprocessors of its own a client keeps half its pace at least; nobody waits 1 s */
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
#include "tests/support/admin_answer.h"
#include "tests/support/server.h"

enum { STREAMS_MAX = 100, IN_FLIGHT = 8 };

#define MS       UINT64_C(1000000)
#define STALL_NS (1000 * MS)
#define RUN_US   750000

static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
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
                          "setp.ne.u32 %q, %n, 0;\n@%q bra again;\nret;\n}\n";

#define OK(call) assert_ok((call), #call)

static void assert_ok(gpushare_error error, const char *call)
{
    if (error != GPUSHARE_SUCCESS)
        fail_msg("%s: %s: %s", call, gpushare_error_name(error), gpushare_error_text());
}

static struct server *server;
static struct gpushare_dim one = {1, 1, 1};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static int setup_with(const char *more)
{
    const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", more, NULL};
    server = server_start(NULL, env);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(NULL);
}

static int setup_with_work_queues(void **state)
{
    (void)state;
    return setup_with("SOFTGPU_WORK_QUEUES=1");
}

static int teardown(void **state)
{
    (void)state;
    return server_stop(server);
}

/* request: of multiprocessors, which is the limit too; 0: none. */
static gpushare_connection *arrive(double request)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu;
    options.thread_request = request;
    options.thread_percentage = request;
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

/* What gpusharectl tells of the client, in the order of coming. The caller releases it. */
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

/* ---- a client that launches on and on in some streams ---- */

struct worker {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream *streams[STREAMS_MAX];
    unsigned count;
    uint32_t milliseconds;
    atomic_int stop;
    atomic_uint done;     /* launches that ended */
    atomic_ulong longest; /* ns between two ends */
};

static void *work(void *context)
{
    struct worker *worker = context;
    uint64_t last = now_ns();
    while (!worker->stop) {
        void *parameters[] = {&worker->milliseconds};
        for (unsigned n = 0; n < IN_FLIGHT; n++)
            for (unsigned i = 0; i < worker->count; i++)
                OK(gpushare_launch(worker->function, one, one, 0, worker->streams[i], parameters));
        OK(gpushare_synchronize(worker->gpu));
        uint64_t now = now_ns();
        if (now - last > worker->longest)
            worker->longest = now - last;
        last = now;
        worker->done += IN_FLIGHT * worker->count;
    }
    return NULL;
}

static void worker_arrive(struct worker *worker, double request, unsigned streams,
                          uint32_t milliseconds)
{
    *worker =
        (struct worker){.gpu = arrive(request), .count = streams, .milliseconds = milliseconds};
    worker->function = load(worker->gpu, "milliseconds");
    for (unsigned i = 0; i < streams; i++)
        OK(gpushare_stream_create(worker->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0,
                                  &worker->streams[i]));
}

static void worker_start(struct worker *worker)
{
    worker->stop = 0;
    assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
}

static void worker_stop(struct worker *worker)
{
    worker->stop = 1;
    pthread_join(worker->thread, NULL);
}

/* Launches that end in the time of a run. */
static unsigned throughput(struct worker *worker)
{
    worker->done = 0;
    worker->longest = 0;
    usleep(RUN_US);
    return worker->done;
}

/* ---- queues ---- */

/* Beside a neighbour on the other half, whose kernels last so long that waiting for one shows. */
static void keeps_its_pace(unsigned streams)
{
    struct worker client, neighbour;
    worker_arrive(&client, 50, 1, 1);
    worker_arrive(&neighbour, 50, streams, 20);
    worker_start(&client);
    usleep(200000);
    unsigned alone = throughput(&client);
    worker_start(&neighbour);
    /* Beyond the time in which what could not be had at first is made. */
    usleep(1500000);
    unsigned beside = throughput(&client);
    print_message("%u streams: %u beside, %u alone; longest %.1f ms\n", streams, beside, alone,
                  (double)client.longest / 1e6);
    assert_int_equal(tell_number(0, "shared_queues"), 0);
    assert_int_equal(tell_number(1, "shared_queues"), 0);
    worker_stop(&neighbour);
    worker_stop(&client);
    gpushare_close(&neighbour.gpu);
    gpushare_close(&client.gpu);
    /* The CPUs of a machine under test are others' too; without queues of its own it is a
     * hundredth. */
    assert_true(beside * 2 >= alone);
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

/* ---- an endless kernel ---- */

struct endless {
    gpushare_connection *gpu;
    _Atomic uint32_t *word;
};

static void endless_start(struct endless *endless, double request)
{
    void *word;
    endless->gpu = arrive(request);
    OK(gpushare_host_alloc(endless->gpu, 4096, &word));
    endless->word = word;
    *endless->word = 0;
    uint64_t address = (uint64_t)(uintptr_t)word;
    void *parameters[] = {&address};
    OK(gpushare_launch(load(endless->gpu, "until"), one, one, 0, NULL, parameters));
}

static void endless_stop(struct endless *endless)
{
    *endless->word = 1;
    OK(gpushare_synchronize(endless->gpu));
    gpushare_close(&endless->gpu);
}

/* A stream of the usual kind needs no call of the driver; its work is a fill. */
static void newcomers_have_streams_beside_an_endless_kernel(void **state)
{
    (void)state;
    struct endless endless;
    endless_start(&endless, 0);
    for (int n = 0; n < 20; n++) {
        uint64_t start = now_ns();
        gpushare_connection *gpu = arrive(0);
        gpushare_stream *streams[4];
        gpushare_address memory;
        OK(gpushare_memory_alloc(gpu, 4096, &memory));
        for (int i = 0; i < 4; i++) {
            OK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]));
            OK(gpushare_fill_async(gpu, memory, 7, 1, 4096, streams[i]));
        }
        OK(gpushare_synchronize(gpu));
        assert_true(now_ns() - start < STALL_NS);
        gpushare_close(&gpu);
    }
    endless_stop(&endless);
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
    struct worker other, changed;
    worker_arrive(&other, 0, 1, 1);
    worker_arrive(&changed, 0, 1, 1);
    endless_start(&endless, 0);
    worker_start(&other);
    worker_start(&changed);
    throughput(&other);
    long number = tell_number(1, "client");
    uint64_t start = now_ns();
    int set = set_threads(number, 37);
    uint64_t took = now_ns() - start;
    /* It goes on where it is, and so does the other. */
    unsigned done = throughput(&other);
    uint64_t others = other.longest, own = changed.longest;
    endless_stop(&endless);
    worker_stop(&changed);
    worker_stop(&other);
    print_message("set in %.1f ms; %u done; longest %.1f ms of others, %.1f ms of its own\n",
                  (double)took / 1e6, done, (double)others / 1e6, (double)own / 1e6);
    assert_int_equal(set, 0);
    assert_true(took < 2 * STALL_NS);
    assert_true(done > 100);
    assert_true(others < STALL_NS);
    assert_true(own < STALL_NS);
    gpushare_close(&changed.gpu);
    gpushare_close(&other.gpu);
}

int main(void)
{
    server_needs_softgpu();
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_neighbour_with_40_streams_takes_nothing),
        T(a_neighbour_with_100_streams_takes_nothing),
        T(newcomers_have_streams_beside_an_endless_kernel),
        T(a_new_partition_waits_and_disturbs_nobody),
        cmocka_unit_test_setup_teardown(a_neighbour_with_100_streams_takes_nothing,
                                        setup_with_work_queues, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
