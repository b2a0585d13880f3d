/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A driver that blocks whoever submits to a hardware queue that is full, and keeps the context's
 * lock meanwhile: then nobody can submit. Greedy clients with many streams and deep rings, whose
 * work all waits for kernels that go on, bring the worker to no such queue. The software GPU's own
 * counter says so, of all threads.
 *
 * long: it hands many thousands of commands to a device that takes time for each
 * draining: not, for no call waits for the device here
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "server/softgpu/device/stats.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

/* More than enough to fill eight queues; for thirty-two it would take four times as many. */
enum { CLIENTS = 32, STREAMS = 64, ROUNDS = 4 };

#define MS UINT64_C(1000000)

/* As until() of tests/support/kernels.h, but looks so seldom that a hundred of them cost little. */
static const char text[] = ".version 7.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry until(.param .u64 word)\n"
                           "{\n"
                           "    .reg .u64 %a;\n"
                           "    .reg .u32 %v;\n"
                           "    .reg .pred %q;\n"
                           "    ld.param.u64 %a, [word];\n"
                           "again:\n"
                           "    nanosleep.u32 1000000;\n"
                           "    ld.volatile.global.u32 %v, [%a];\n"
                           "    setp.eq.u32 %q, %v, 0;\n"
                           "    @%q bra again;\n"
                           "    ret;\n"
                           "}\n";

/* Its work waits for a kernel that goes on. */
struct greedy {
    gpushare_connection *gpu;
    gpushare_function *until;
    gpushare_event *event;
    _Atomic uint32_t *word;  /* on the host; not 0: the kernel ends */
    gpushare_address filled; /* a word for each stream */
    gpushare_stream *streams[STREAMS];
};

static void greedy_prepare(struct greedy *greedy, const struct server *server)
{
    void *word;
    struct gpushare_options options = {.memory_limit = 64 << 20};
    gpushare_connection *gpu = greedy->gpu = arrival_connect_with(server, options);
    greedy->until = arrival_load(gpu, text, "until");
    OK(gpushare_host_alloc(gpu, 4096, &word));
    greedy->word = word;
    atomic_store(greedy->word, 0);
    OK(gpushare_event_create(gpu, 0, &greedy->event));
    OK(gpushare_memory_alloc(gpu, 4096, &greedy->filled));
    OK(gpushare_fill(gpu, greedy->filled, 0, 4, STREAMS));
    for (int i = 0; i < STREAMS; i++)
        OK(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &greedy->streams[i]));
}

/* Each stream has little at a time, so that a batch's own entries weigh most. */
static void greedy_start(struct greedy *greedy)
{
    struct gpushare_dim one = {1, 1, 1};
    uint64_t address = (uint64_t)(uintptr_t)greedy->word;
    void *parameters[] = {&address};
    OK(gpushare_launch(greedy->until, one, one, 0, NULL, parameters));
    OK(gpushare_event_record(greedy->event, NULL));
    for (int i = 0; i < STREAMS; i++)
        OK(gpushare_stream_wait_event(greedy->gpu, greedy->streams[i], greedy->event));
    for (uint32_t n = 1; n <= ROUNDS; n++)
        for (int i = 0; i < STREAMS; i++)
            OK(gpushare_fill_async(greedy->gpu, greedy->filled + 4 * (gpushare_address)i, n, 4, 1,
                                   greedy->streams[i]));
}

/* All of its commands were carried out, each stream's in order. */
static void greedy_end(struct greedy *greedy)
{
    uint32_t words[STREAMS];
    atomic_store(greedy->word, 1);
    OK(gpushare_synchronize(greedy->gpu));
    OK(gpushare_copy_from_device(greedy->gpu, words, greedy->filled, sizeof words));
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(words[i], ROUNDS);
    gpushare_close(&greedy->gpu);
}

/* ---- the counter ---- */

static char path[] = "/tmp/gpushare-queues-XXXXXX";
static const struct stats_file *stats;

static struct server *start(void)
{
    char counters[sizeof path + 32];
    /* A machine under test may keep a thread from running for long. */
    const char *const args[] = {"--watchdog-limit", "0", NULL};
    const char *const env[] = {counters, "SOFTGPU_QUEUES=8", "SOFTGPU_QUEUE_ENTRIES=1024",
                               "SOFTGPU_CONTEXT_LOCK=1", NULL};
    snprintf(path + sizeof path - 7, 7, "XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    snprintf(counters, sizeof counters, "SOFTGPU_STATS=%s", path);
    struct server *server = server_start(args, env);
    /* The counters are there when the worker is. */
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_close(&gpu);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    stats = mmap(NULL, sizeof *stats, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(stats != MAP_FAILED);
    close(fd);
    return server;
}

static void stop(struct server *server)
{
    munmap((void *)(uintptr_t)stats, sizeof *stats);
    unlink(path);
    assert_int_equal(server_stop(server), 0);
}

static uint64_t found_full(void)
{
    return __atomic_load_n(&stats->device[0].full_queues, __ATOMIC_RELAXED);
}

static void no_queue_is_found_full(void **state)
{
    static struct greedy greedy[CLIENTS];
    (void)state;
    struct server *server = start();
    for (int i = 0; i < CLIENTS; i++)
        greedy_prepare(&greedy[i], server);
    for (int i = 0; i < CLIENTS; i++)
        greedy_start(&greedy[i]);
    /* The submitter takes in what it can. */
    uint64_t end = clock_now() + 1000 * MS;
    while (!found_full() && clock_now() < end)
        usleep(10000);
    uint64_t full = found_full();
    for (int i = 0; i < CLIENTS; i++)
        atomic_store(greedy[i].word, 1);
    assert_int_equal(full, 0);
    for (int i = 0; i < CLIENTS; i++)
        greedy_end(&greedy[i]);
    assert_int_equal(found_full(), 0);
    stop(server);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_queue_is_found_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
