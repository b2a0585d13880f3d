/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * strict_come_and_go_points: mode strict with the default lease and plan. Steady clients of 11, 17
 * and 44 % always have work, while visitors of the same user come and go.
 *
 * A visitor requests 1 % and launches kernels of 10 to 400 ms. It waits for them, for two seconds
 * at most, and leaves; or it leaves at once, or is killed with its work in flight, or leaves after
 * half a second without having run. There are ten of each kind at least.
 *
 * The row is the largest distance of a steady client from its request in any window of ten plans,
 * in points beyond their longest kernel, which is one of 20 ms. No neighbours: the visitors are
 * some.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/mix.h"
#include "tests/programs/bench/mixes.h"

enum { STEADY = 3, VISITORS = 4, LAUNCHES_MAX = 3, WAYS = 4, EACH_LEAST = 10 };

static const double extra_plans = 1.5;
/* One that waits for more would wait for all of the row: an overrun of 400 ms is paid back at 1 %.
 */
static const double patience_s = 2;

/* How a visitor ends. */
enum way { WAITS, LEAVES, IS_KILLED, NEVER_RUNS };

struct visitors {
    const struct server *server;
    uint64_t random;
    unsigned count, ways[WAYS]; /* that came; those that left, by their kind */
    struct visitor {
        pid_t pid;
        enum way way;
        double until; /* then it is killed; 0: it ends by itself */
    } of[VISITORS];
};

static gpushare_error wait_in_patience(gpushare_connection *gpu)
{
    const double end = bench_now() + patience_s;
    gpushare_error error;
    while ((error = gpushare_stream_query(gpu, NULL)) == GPUSHARE_ERROR_NOT_READY &&
           bench_now() < end)
        usleep(1000);
    return error == GPUSHARE_ERROR_NOT_READY ? 0 : error;
}

static gpushare_error visit(const struct server *server, enum way way, uint64_t random)
{
    struct gpushare_options options = {
        .size = sizeof options, .socket = server_socket(server), .name = "visitor"};
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu;
    void *words;
    if (putenv("GPUSHARE_TIME_REQUEST=1%"))
        return GPUSHARE_ERROR_OUT_OF_MEMORY;
    gpushare_error error = gpushare_connect(&options, &gpu);
    if (error)
        return error;
    if (way == NEVER_RUNS) {
        usleep(500000);
        gpushare_close(&gpu);
        return 0;
    }
    gpushare_function *span = bench_function(gpu, "span");
    error = gpushare_host_alloc(gpu, 4096, &words);
    for (uint64_t i = bench_draw(&random, 1, LAUNCHES_MAX); i && !error; i--) {
        uint64_t at = (uint64_t)(uintptr_t)words, counted = at + 64;
        uint64_t ns = bench_draw(&random, 10, bench_short ? 40 : 400) * 1000000;
        void *parameters[] = {&at, &counted, &ns};
        error = gpushare_launch(span, one, one, 0, NULL, parameters);
    }
    if (!error && way == WAITS)
        error = wait_in_patience(gpu);
    if (way == IS_KILLED)
        pause();
    gpushare_close(&gpu);
    return error;
}

static void admit(struct visitors *visitors, unsigned at)
{
    enum way way = (enum way)bench_draw(&visitors->random, 0, WAYS - 1);
    uint64_t random = bench_draw(&visitors->random, 1, UINT32_MAX),
             stays = bench_draw(&random, 1, 20);
    pid_t parent = getpid();
    visitors->of[at].way = way;
    visitors->of[at].until = way == IS_KILLED ? bench_now() + (double)stays / 10 : 0;
    visitors->of[at].pid = fork();
    visitors->count++;
    if (visitors->of[at].pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    gpushare_error error = visit(visitors->server, way, random);
    if (error)
        fprintf(stderr, "bench: a visitor: %s: %s\n", gpushare_error_name(error),
                gpushare_error_text());
    _exit(error != 0);
}

/* One that is to be killed ends in no other way, and the others end well. */
static void see_off(struct visitors *visitors, struct visitor *visitor, int status)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (visitor->way == IS_KILLED ? !killed : status != 0)
        bench_die("a visitor's call failed, or it crashed: wait status %#x", (unsigned)status);
    visitors->ways[visitor->way]++;
    visitor->pid = 0;
}

static void look_after(struct visitors *visitors)
{
    int status;
    for (unsigned i = 0; i < VISITORS; i++) {
        struct visitor *visitor = &visitors->of[i];
        if (visitor->pid && visitor->until > 0 && bench_now() > visitor->until)
            kill(visitor->pid, SIGKILL);
        if (visitor->pid && waitpid(visitor->pid, &status, WNOHANG) > 0)
            see_off(visitors, visitor, status);
        if (!visitors->of[i].pid && bench_draw(&visitors->random, 0, 49) == 0)
            admit(visitors, i);
    }
}

static void play(const struct server *server, struct mixes_scene *scene)
{
    static const uint32_t request[STEADY] = {1100, 1700, 4400};
    struct mix mix = {.mode = "strict", .lease_ms = bench_short ? 25 : 250, .count = STEADY};
    struct visitors visitors = {.server = server, .random = scene->seed};
    double plans = bench_short ? 4 : MIX_WINDOW_PLANS;
    for (uint32_t i = 0; i < STEADY; i++)
        mix.clients[i] = (struct mix_client){.request = request[i],
                                             .shortest = 2000000,
                                             .longest = bench_short ? 2000000 : 20000000,
                                             .burst = 1,
                                             .seed = scene->seed + i};
    mix_begin(&mix, server);
    while (bench_now() < mix.began + (plans + extra_plans) * mix_plan(&mix)) {
        look_after(&visitors);
        usleep(10000);
    }
    mix_end(&mix);
    for (unsigned i = 0; i < VISITORS; i++)
        if (visitors.of[i].pid)
            kill(visitors.of[i].pid, SIGKILL);
    for (unsigned i = 0; i < WAYS && !bench_short; i++)
        if (visitors.ways[i] < EACH_LEAST)
            bench_die("of the visitors %u waited, %u left at once, %u were killed and %u never ran",
                      visitors.ways[WAITS], visitors.ways[LEAVES], visitors.ways[IS_KILLED],
                      visitors.ways[NEVER_RUNS]);
    scene->points = -100;
    for (uint32_t i = 0; i < STEADY; i++) {
        struct mix_distance far = mix_distance(&mix, &mix.clients[i], request[i], plans);
        mix_must_compare(&mix, &mix.clients[i], &far);
        double most = far.more > far.less ? far.more : far.less;
        scene->windows += far.windows;
        scene->compared += far.compared;
        if (most <= scene->points)
            continue;
        scene->points = most;
        snprintf(scene->words, sizeof scene->words, "the client of %u %% had %s; %u visitors",
                 request[i] / 100, far.more > far.less ? "more" : "less", visitors.count);
    }
    scene->from = mix.began;
    scene->to = mix.ended;
    mix_free(&mix);
}

void bench_strict_come_and_go(struct bench_result *result)
{
    mixes_run(result, play, 1, 1);
}
