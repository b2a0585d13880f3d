/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The launch rows: gpushare's own cost, on a driver whose operations complete inside the call. The
 * client is on CPU 0 and the worker on CPU 1. A yardstick's other process is on CPU 1 too, while
 * the worker sleeps. Neighbours are on both.
 *
 * launch_with_64_clients has no neighbours: the 63 other clients are the scene, and do nothing. The
 * rows beside metrics have none: gpushare-exporter and the accounts are the scene.
 */
#include <fcntl.h>
#include <pthread.h>
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
#include "tests/programs/bench/exporter.h"

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

/* ---- beside metrics and accounts ---- */

/*
 * Two servers side by side. One keeps accounts, with a line for its client each second, and has a
 * gpushare-exporter; the other has neither. Windows of a second are measured in turn, and pairs
 * begin with either server in turn. A request to the exporter falls into each window of the first
 * server, at a moment that is drawn, and into none of the other's.
 *
 * The value of a window is the mean over all of its launches, so that it has what the request takes
 * from a few of them. The exporter, the supervisor and the thread that asks run on either CPU,
 * where the client and the worker leave none idle.
 */
enum { WINDOWS = 20, SHORT_WINDOWS = 2, WINDOW_MS = 1000, SHORT_WINDOW_MS = 200 };

struct asker {
    struct exporter *exporter;
    double when;
    bool whole; /* the answer had the client */
};

static void *ask_once(void *argument)
{
    struct asker *asker = argument;
    bench_pin_self(-1);
    bench_sleep_until(asker->when);
    exporter_scrape(asker->exporter);
    asker->whole = exporter_has_clients(asker->exporter, 1);
    return NULL;
}

static double mean_of_bursts(struct scene *scene, double until)
{
    double sum = 0;
    unsigned count = 0;
    for (; bench_now() < until; count++)
        sum += burst(scene);
    return sum / count;
}

static double mean_of_round_trips(struct scene *scene, double until)
{
    const double start = bench_now();
    unsigned count = 0;
    double end = start;
    for (; end < until; count++) {
        launch(scene);
        BENCH_CHECK(gpushare_stream_synchronize(scene->gpu, NULL));
        end = bench_now();
    }
    return (end - start) / count;
}

typedef double (*measure_until)(struct scene *scene, double until);

/* Nanoseconds of a launch. exporter: NULL where nobody asks. */
static double window(struct scene *scene, struct exporter *exporter, measure_until measure,
                     uint64_t *draws, struct bench_result *result)
{
    const uint64_t ms = bench_short ? SHORT_WINDOW_MS : WINDOW_MS;
    const double begins = bench_now() + 0.01; /* until the other server's worker sleeps */
    struct asker asker = {.exporter = exporter,
                          .when = begins + (double)bench_draw(draws, ms / 10, ms * 8 / 10) / 1e3};
    pthread_t thread;
    if (exporter && pthread_create(&thread, NULL, ask_once, &asker) != 0)
        bench_die("no thread");
    bench_sleep_until(begins);
    measure(scene, bench_now() + 0.002);
    const double ns = measure(scene, begins + (double)ms / 1e3) * 1e9;
    if (!exporter)
        return ns;
    pthread_join(thread, NULL);
    if (!asker.whole)
        bench_doubt(result, "an answer of gpushare-exporter lacks the client");
    return ns;
}

/* A line for the client each second is the most that accounts can have. */
static struct server *begin_accounted(const char *counters)
{
    char path[96];
    snprintf(path, sizeof path, "%s.yaml", counters);
    FILE *file = fopen(path, "we");
    if (!file || fprintf(file, "accounting:\n  file: %s.jsonl\n  interval: 1s\n", counters) < 0 ||
        fclose(file) != 0)
        bench_die("%s can't be written", path);
    return bench_server_null_configured(counters, path);
}

/* The server has ended. Returns the number of lines, and removes its files. */
static unsigned end_accounts(const struct scene *scene)
{
    char path[96], line[8192];
    unsigned lines = 0;
    snprintf(path, sizeof path, "%s.yaml", scene->path);
    unlink(path);
    snprintf(path, sizeof path, "%s.jsonl", scene->path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        lines += strchr(line, '\n') != NULL;
    if (file)
        fclose(file);
    unlink(path);
    return lines;
}

static void beside_metrics(struct bench_result *result, measure_until measure)
{
    const size_t windows = bench_short ? SHORT_WINDOWS : WINDOWS;
    struct scene watched, plain;
    double values[WINDOWS], yardsticks[WINDOWS];
    uint64_t draws = bench_seed;
    open_scene_with(&watched, begin_accounted);
    struct exporter *exporter = exporter_start(watched.server);
    open_scene(&plain);
    for (size_t i = 0; i < windows; i++) {
        if (i % 2)
            yardsticks[i] = window(&plain, NULL, measure, &draws, result);
        values[i] = window(&watched, exporter, measure, &draws, result);
        if (i % 2 == 0)
            yardsticks[i] = window(&plain, NULL, measure, &draws, result);
    }
    exporter_stop(exporter);
    close_scene(&plain);
    close_scene(&watched);
    const unsigned lines = end_accounts(&watched);
    /* Both servers have their windows in that time; a short run may have the client's last line
     * alone. */
    if (lines < (bench_short ? 1 : windows))
        bench_doubt(result, "the accounts have %u lines", lines);
    bench_pairs(result, values, yardsticks, windows);
    snprintf(result->note, sizeof result->note,
             "%zu windows of %d ms each, a request to the exporter in each; lines of accounts: %u",
             windows, bench_short ? SHORT_WINDOW_MS : WINDOW_MS, lines);
}

void bench_launch_async_beside_metrics(struct bench_result *result)
{
    beside_metrics(result, mean_of_bursts);
}

void bench_launch_sync_beside_metrics(struct bench_result *result)
{
    beside_metrics(result, mean_of_round_trips);
}
