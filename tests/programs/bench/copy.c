/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The copy rows: 64 MiB through a shared host buffer on the null driver, which copies inside the
 * call on the worker's CPU. The yardstick is memcpy between two memfds on that CPU.
 *
 * The pages of a buffer make a difference of a few per cent for as long as it lives, by where they
 * happen to lie (0.93 to 0.98 from server to server on one virtual machine, 3 % within each). That
 * holds for the yardstick's buffers too. So the row is the median over several of both.
 *
 * No neighbours: they would have the memory bus in turn, which is not what the row compares.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum { BYTES = 64 << 20, SERVERS = 9, COPIES = 31 };

static void *prefaulted(void)
{
    int fd = memfd_create("bench", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, BYTES) < 0)
        bench_die("no memory for the yardstick");
    void *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        bench_die("no memory for the yardstick");
    memset(base, 1, BYTES);
    return base;
}

static double yardstick(void *to, const void *from)
{
    bench_pin_self(1);
    double start = bench_now();
    memcpy(to, from, BYTES);
    double took = bench_now() - start;
    bench_pin_self(0);
    return BYTES / took / 1e9;
}

/* Measures one server with buffers of its own. */
static void copy_through(int to_device, double values[COPIES], double yardsticks[COPIES])
{
    struct server *server = bench_server_null(NULL);
    pid_t workers[4];
    if (server_workers(server, workers, 4) != 1)
        bench_die("the server has not one worker");
    bench_pin_process(workers[0], 1);
    bench_pin_self(0);
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_address device;
    void *host, *from = prefaulted(), *to = prefaulted();
    BENCH_CHECK(gpushare_memory_alloc(gpu, BYTES, &device));
    BENCH_CHECK(gpushare_host_alloc(gpu, BYTES, &host));
    memset(host, 2, BYTES);
    for (int i = -2; i < COPIES; i++) {
        double start = bench_now();
        if (to_device)
            BENCH_CHECK(gpushare_copy_to_device(gpu, device, host, BYTES));
        else
            BENCH_CHECK(gpushare_copy_from_device(gpu, host, device, BYTES));
        double took = bench_now() - start, speed = yardstick(to, from);
        if (i < 0)
            continue; /* the first copies fault pages in */
        values[i] = BYTES / took / 1e9;
        yardsticks[i] = speed;
    }
    munmap(from, BYTES);
    munmap(to, BYTES);
    gpushare_close(&gpu);
    bench_server_stop(server);
    bench_pin_self(-1);
}

static void copy_row(struct bench_result *result, int to_device)
{
    static double values[SERVERS][COPIES], yardsticks[SERVERS][COPIES];
    int servers = bench_short ? 1 : SERVERS;
    for (int i = 0; i < servers; i++)
        copy_through(to_device, values[i], yardsticks[i]);
    bench_pairs(result, values[0], yardsticks[0], (size_t)servers * COPIES);
}

void bench_copy_h2d(struct bench_result *result)
{
    copy_row(result, 1);
}

void bench_copy_d2h(struct bench_result *result)
{
    copy_row(result, 0);
}
