/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The share of a client changes while it works. Both the moment at which it took effect
 * and whether a launch was lost are read from words that the kernels wrote.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/bench/bench.h"

enum { CHANGES = 1000, IN_FLIGHT = 4, LAUNCHES_MOST = 1 << 18, KERNEL_NS = 1000000 };

struct work {
    gpushare_connection *gpu;
    gpushare_function *mark;
    unsigned *blocks, *highest; /* one word a launch */
    unsigned grid;
    unsigned launched; /* atomic */
    int stop;          /* atomic */
};

static unsigned word(const unsigned *at)
{
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

static unsigned launch(struct work *work)
{
    unsigned i = work->launched;
    uint64_t blocks = (uint64_t)(uintptr_t)&work->blocks[i];
    uint64_t highest = (uint64_t)(uintptr_t)&work->highest[i], ns = KERNEL_NS;
    struct gpushare_dim grid = {work->grid, 1, 1}, block = {32, 1, 1};
    void *parameters[] = {&blocks, &highest, &ns};
    if (i == LAUNCHES_MOST)
        bench_die("the changes took more than %d launches", LAUNCHES_MOST);
    BENCH_CHECK(gpushare_launch(work->mark, grid, block, 0, NULL, parameters));
    __atomic_store_n(&work->launched, i + 1, __ATOMIC_SEQ_CST);
    return i;
}

static void *work_main(void *context)
{
    struct work *work = context;
    while (!__atomic_load_n(&work->stop, __ATOMIC_SEQ_CST)) {
        unsigned i = launch(work);
        while (i >= IN_FLIGHT && word(&work->blocks[i - IN_FLIGHT]) < 32 * work->grid)
            usleep(50);
    }
    BENCH_CHECK(gpushare_synchronize(work->gpu));
    return NULL;
}

static int admin_open_socket(const struct server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", server_admin_socket(server));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        bench_die("the admin socket can't be reached");
    return fd;
}

static void set(int admin, unsigned client, const char *threads)
{
    char line[4096];
    int length = snprintf(line, sizeof line,
                          "{\"request\":\"set\",\"client\":%u,\"threads\":{\"limit\":\"%s\"}}\n",
                          client, threads);
    if (send(admin, line, (size_t)length, MSG_NOSIGNAL) != length)
        bench_die("the admin socket was closed");
    size_t used = 0;
    do {
        ssize_t got = recv(admin, line + used, sizeof line - 1 - used, 0);
        if (got <= 0)
            bench_die("the admin socket was closed");
        used += (size_t)got;
        line[used] = 0;
    } while (line[used - 1] != '\n');
    if (!strstr(line, "\"ok\":true"))
        bench_die("the share could not be set: %s", line);
}

/* The highest multiprocessor of a set, told by a launch of its own. */
static unsigned highest_of(struct work *work, int admin, unsigned client, const char *threads)
{
    set(admin, client, threads);
    unsigned i = launch(work);
    BENCH_CHECK(gpushare_synchronize(work->gpu));
    return word(&work->highest[i]);
}

/* Waits for the first launch, from this one on, all of whose blocks are on the new set. */
static void wait_for_set(const struct work *work, unsigned from, bool larger, unsigned small)
{
    double end = bench_now() + 20;
    for (unsigned i = from; bench_now() < end; usleep(50))
        for (; i < word(&work->launched) && word(&work->blocks[i]) == 32 * work->grid; i++)
            if ((word(&work->highest[i]) > small) == larger)
                return;
    bench_die("a change of share had no effect for 20 s");
}

static int by_value(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

void bench_share_change(struct bench_result *result)
{
    static double took[CHANGES];
    struct server *server = bench_server_soft(NULL);
    struct work work = {.gpu = bench_connect(server, 50)};
    struct gpushare_limits limits = {.size = sizeof limits};
    void *words;
    BENCH_CHECK(gpushare_limits(work.gpu, &limits));
    BENCH_CHECK(gpushare_host_alloc(work.gpu, 2 * sizeof(unsigned) * LAUNCHES_MOST, &words));
    work.blocks = words;
    work.highest = work.blocks + LAUNCHES_MOST;
    work.grid = limits.multiprocessors;
    work.mark = bench_function(work.gpu, "mark");
    int admin = admin_open_socket(server);
    unsigned small = highest_of(&work, admin, limits.client, "25%");
    unsigned large = highest_of(&work, admin, limits.client, "50%");
    if (small >= large)
        bench_die("the sets of 25 %% and 50 %% can't be told apart (%u, %u)", small, large);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_main, &work))
        bench_die("no thread for a client");
    for (int i = 0; i < CHANGES; i++) {
        bool larger = i % 2;
        unsigned from = word(&work.launched);
        double start = bench_now();
        set(admin, limits.client, larger ? "50%" : "25%");
        wait_for_set(&work, from, larger, small);
        took[i] = (bench_now() - start) * 1e3;
    }
    __atomic_store_n(&work.stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    unsigned lost = 0;
    for (unsigned i = 0; i < work.launched; i++)
        lost += word(&work.blocks[i]) != 32 * work.grid;
    close(admin);
    gpushare_close(&work.gpu);
    if (server_stop(server))
        bench_die("the server did not end well");
    if (lost)
        bench_die("%u of %u launches are not whole", lost, work.launched);
    qsort(took, CHANGES, sizeof took[0], by_value);
    result->value = took[CHANGES * 99 / 100];
    result->spread = (took[CHANGES * 3 / 4] - took[CHANGES / 4]) / took[CHANGES / 2];
    snprintf(result->note, sizeof result->note,
             "p99 of %d, median %.2f, most %.2f; %d in flight; %u launches, none lost", CHANGES,
             took[CHANGES / 2], took[CHANGES - 1], IN_FLIGHT, work.launched);
}
