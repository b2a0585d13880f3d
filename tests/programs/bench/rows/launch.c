/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The launch rows: gpushare's own cost, on a driver whose operations complete inside the call. The
 * client is on CPU 0 and the worker on CPU 1. A yardstick's other process is on CPU 1 too, while
 * the worker sleeps. Neighbours are on both.
 *
 * launch_with_64_clients has no neighbours: the 63 other clients are the scene, and do nothing.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cpu.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/company.h"

enum { BURST = 512, ROUNDS = 200, TRIPS = 400, MANY = 64 };

struct scene {
    struct server *server;
    gpushare_connection *gpu;
    gpushare_function *nothing;
    gpushare_address memory;
    volatile uint64_t *counter; /* the driver counts launches here */
    uint64_t before;            /* launches of the worker itself, at its start */
    uint64_t launched;
    char path[64];
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void open_scene_with(struct scene *scene, struct server *(*begin)(const char *counters))
{
    snprintf(scene->path, sizeof scene->path, "/tmp/gpushare-bench-XXXXXX");
    int fd = mkstemp(scene->path);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        bench_die("can't make a file in /tmp");
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        bench_die("can't map the counters");
    scene->counter = page;
    scene->launched = 0;
    scene->server = begin(scene->path);
    pid_t workers[4];
    if (server_workers(scene->server, workers, 4) != 1)
        bench_die("the server has not one worker");
    bench_pin_process(workers[0], 1);
    bench_pin_self(0);
    scene->gpu = bench_connect(scene->server, 0);
    scene->nothing = bench_function(scene->gpu, "nothing");
    BENCH_CHECK(gpushare_memory_alloc(scene->gpu, 4096, &scene->memory));
    scene->before = *scene->counter;
}

static void open_scene(struct scene *scene)
{
    open_scene_with(scene, bench_server_null);
}

static void close_scene(struct scene *scene)
{
    BENCH_CHECK(gpushare_synchronize(scene->gpu));
    uint64_t seen = *scene->counter - scene->before;
    /* Neighbours launch too. */
    if (seen < scene->launched || (seen > scene->launched && !company_expected()))
        bench_die("%llu launches were made, the driver saw %llu",
                  (unsigned long long)scene->launched, (unsigned long long)seen);
    gpushare_close(&scene->gpu);
    bench_server_stop(scene->server);
    munmap((void *)(uintptr_t)scene->counter, 4096);
    unlink(scene->path);
    bench_pin_self(-1);
}

static void launch(struct scene *scene)
{
    static const struct gpushare_dim grid = {16, 1, 1}, block = {128, 1, 1};
    uint32_t count = 2048;
    void *parameters[] = {&scene->memory, &scene->memory, &scene->memory, &count};
    gpushare_error error = gpushare_launch(scene->nothing, grid, block, 0, NULL, parameters);
    if (error != GPUSHARE_SUCCESS)
        bench_check(error, "gpushare_launch");
    scene->launched++;
}

/* Seconds that a launch costs its caller, over one burst. */
static double burst(struct scene *scene)
{
    double start = bench_now();
    for (int i = 0; i < BURST; i++)
        launch(scene);
    double took = bench_now() - start;
    BENCH_CHECK(gpushare_synchronize(scene->gpu));
    return took / BURST;
}

void bench_launch_async(struct bench_result *result)
{
    struct scene scene;
    double values[ROUNDS], yardsticks[ROUNDS];
    open_scene(&scene);
    burst(&scene);
    for (int round = 0; round < ROUNDS; round++) {
        values[round] = burst(&scene) * 1e9;
        double start = bench_now();
        for (int i = 0; i < BURST; i++)
            syscall(SYS_getppid);
        yardsticks[round] = (bench_now() - start) / BURST * 1e9;
    }
    unsigned long long launched = scene.launched;
    close_scene(&scene);
    bench_pairs(result, values, yardsticks, ROUNDS);
    snprintf(result->note, sizeof result->note, "%llu launches, the driver saw as many", launched);
}

/* Seconds from a launch until its completion is seen, with both sides awake. */
static double round_trips(struct scene *scene)
{
    double trips[TRIPS];
    for (int i = 0; i < 50; i++) {
        launch(scene);
        BENCH_CHECK(gpushare_stream_synchronize(scene->gpu, NULL));
    }
    for (int i = 0; i < TRIPS; i++) {
        double start = bench_now();
        launch(scene);
        gpushare_error error = gpushare_stream_synchronize(scene->gpu, NULL);
        trips[i] = bench_now() - start;
        if (error != GPUSHARE_SUCCESS)
            bench_check(error, "gpushare_stream_synchronize");
    }
    return bench_median(trips, TRIPS);
}

/* ---- the yardsticks' other process, on CPU 1 ---- */

struct partner {
    pid_t pid;
    int socket; /* carries a byte there and back; a byte also wakes the other side for a ping-pong
                 */
    struct {
        _Alignas(128) uint64_t ping;
        _Alignas(128) uint64_t pong;
    } * shared;
};

static void partner_main(struct partner *partner, int fd)
{
    bench_pin_self(1);
    char byte;
    while (read(fd, &byte, 1) == 1) {
        if (byte == 'p') {
            for (uint64_t i = 1; i <= TRIPS; i++) {
                while (__atomic_load_n(&partner->shared->ping, __ATOMIC_ACQUIRE) != i)
                    cpu_pause();
                __atomic_store_n(&partner->shared->pong, i, __ATOMIC_RELEASE);
            }
            __atomic_store_n(&partner->shared->ping, 0, __ATOMIC_RELEASE);
        } else if (write(fd, &byte, 1) != 1) {
            break;
        }
    }
    _exit(0);
}

static void open_partner(struct partner *partner)
{
    int pair[2];
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        bench_die("can't make the yardstick's socket");
    partner->shared = page;
    partner->pid = fork();
    if (partner->pid == 0) {
        close(pair[0]);
        partner_main(partner, pair[1]);
    }
    close(pair[1]);
    partner->socket = pair[0];
}

static void close_partner(struct partner *partner)
{
    close(partner->socket);
    waitpid(partner->pid, NULL, 0);
    munmap(partner->shared, 4096);
}

static double pingpong(struct partner *partner)
{
    double trips[TRIPS];
    __atomic_store_n(&partner->shared->pong, 0, __ATOMIC_RELEASE);
    if (write(partner->socket, "p", 1) != 1)
        bench_die("the yardstick's process is gone");
    for (uint64_t i = 1; i <= TRIPS; i++) {
        double start = bench_now();
        __atomic_store_n(&partner->shared->ping, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&partner->shared->pong, __ATOMIC_ACQUIRE) != i)
            cpu_pause();
        trips[i - 1] = bench_now() - start;
    }
    while (__atomic_load_n(&partner->shared->ping, __ATOMIC_ACQUIRE))
        ;
    return bench_median(trips, TRIPS);
}

static double socket_trips(struct partner *partner)
{
    double trips[TRIPS];
    for (int i = 0; i < TRIPS; i++) {
        char byte = 's';
        double start = bench_now();
        if (write(partner->socket, &byte, 1) != 1 || read(partner->socket, &byte, 1) != 1)
            bench_die("the yardstick's process is gone");
        trips[i] = bench_now() - start;
    }
    return bench_median(trips, TRIPS);
}

static void launch_sync(struct bench_result *result, double (*yardstick)(struct partner *))
{
    enum { SYNC_ROUNDS = 40 };
    struct scene scene;
    struct partner partner;
    double values[SYNC_ROUNDS], yardsticks[SYNC_ROUNDS];
    open_partner(&partner);
    open_scene(&scene);
    for (int round = 0; round < SYNC_ROUNDS; round++) {
        values[round] = round_trips(&scene) * 1e9;
        pause_ms(5); /* until the worker sleeps and leaves its CPU to the yardstick */
        yardsticks[round] = yardstick(&partner) * 1e9;
    }
    close_scene(&scene);
    close_partner(&partner);
    bench_pairs(result, values, yardsticks, SYNC_ROUNDS);
}

void bench_launch_sync_pingpong(struct bench_result *result)
{
    launch_sync(result, pingpong);
}

void bench_launch_sync_socket(struct bench_result *result)
{
    launch_sync(result, socket_trips);
}

/* Seconds for each launch from the first one of a burst to the last one's completion. */
static double burst_to_end(struct scene *scene)
{
    double start = bench_now();
    for (int i = 0; i < BURST; i++)
        launch(scene);
    BENCH_CHECK(gpushare_stream_synchronize(scene->gpu, NULL));
    return (bench_now() - start) / BURST;
}

/*
 * One server has one client and another has 64, side by side, so that both can be measured in turn.
 * Every connected client has launched once, so that the submitter knows it.
 */
void bench_launch_64(struct bench_result *result)
{
    struct scene alone, crowd;
    gpushare_connection *others[MANY - 1];
    double values[ROUNDS], yardsticks[ROUNDS];
    open_scene(&alone);
    open_scene(&crowd);
    for (int i = 0; i < MANY - 1; i++) {
        struct scene other = crowd;
        others[i] = other.gpu = bench_connect(crowd.server, 0);
        other.nothing = bench_function(other.gpu, "nothing");
        launch(&other);
        crowd.launched++;
        BENCH_CHECK(gpushare_synchronize(other.gpu));
    }
    for (int round = 0; round < ROUNDS; round++) {
        pause_ms(1); /* until the other server's worker sleeps: both are on CPU 1 */
        burst_to_end(&crowd);
        values[round] = burst_to_end(&crowd) * 1e9;
        pause_ms(1);
        burst_to_end(&alone);
        yardsticks[round] = burst_to_end(&alone) * 1e9;
    }
    for (int i = 0; i < MANY - 1; i++)
        gpushare_close(&others[i]);
    close_scene(&crowd);
    close_scene(&alone);
    bench_pairs(result, values, yardsticks, ROUNDS);
}

/*
 * Two servers side by side, in turn; the worker of one notes nothing. The cost of the journal and
 * of the records is the median of the differences. It is no number where it is smaller than what
 * the differences vary by: then the row is not met.
 */
void bench_journal_launch(struct bench_result *result)
{
    enum { PAIRS = 4 * ROUNDS, JOURNAL_GOAL_NS = 5 };
    struct scene noted, unnoted;
    double with[PAIRS], without[PAIRS], differences[PAIRS];
    open_scene(&noted);
    open_scene_with(&unnoted, bench_server_unjournaled);
    for (int round = 0; round < PAIRS; round++) {
        pause_ms(1); /* until the other server's worker sleeps: both are on CPU 1 */
        burst_to_end(&noted);
        with[round] = burst_to_end(&noted) * 1e9;
        pause_ms(1);
        burst_to_end(&unnoted);
        without[round] = burst_to_end(&unnoted) * 1e9;
        differences[round] = with[round] - without[round];
    }
    close_scene(&unnoted);
    close_scene(&noted);
    bench_pairs(result, with, without, PAIRS);
    snprintf(result->note, sizeof result->note, "a launch: %.1f ns with, %.1f ns without",
             result->value, result->yardstick);
    result->value = bench_median(differences, PAIRS);
    result->yardstick = result->ratio = 0;
    const double quarter = differences[PAIRS / 4], three = differences[PAIRS * 3 / 4];
    const size_t used = strlen(result->note);
    snprintf(result->note + used, sizeof result->note - used,
             "; half of the differences are between %.1f and %.1f ns", quarter, three);
    if (!bench_short && (three - quarter > JOURNAL_GOAL_NS || result->value < -JOURNAL_GOAL_NS))
        bench_doubt(result, "the differences vary too much: half are between %.1f and %.1f ns",
                    quarter, three);
}
