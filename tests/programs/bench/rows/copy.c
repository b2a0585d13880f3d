/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The copy rows: 64 MiB through a shared host buffer on the null driver, which copies inside the
 * call on the worker's CPU. The yardstick is memcpy on that CPU between the same two memfds: the
 * host buffer, and the null driver's memory.
 *
 * Buffers of its own would measure something else. Where the kernel happens to put the pages of a
 * memfd makes more of a difference than all that gpushare does. On a virtual machine whose memory
 * was in pieces, reading from one memfd took up to 2.5 times as long as from another.
 *
 * No neighbours: they would have the memory bus in turn, which is not what the row compares.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum { BYTES = 64 << 20, SERVERS = 9, COPIES = 31 };

/* Maps the one allocation of the device's memory, whose memfd the supervisor keeps. */
static void *map_device(const struct server *server)
{
    char path[64], name[352], target[128];
    void *base = MAP_FAILED;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)server_pid(server));
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat file;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        ssize_t length = readlink(name, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        if (!strstr(target, "null device memory") || stat(name, &file) || file.st_size != BYTES)
            continue;
        int fd = open(name, O_RDWR | O_CLOEXEC);
        base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        close(fd);
        break;
    }
    if (folder)
        closedir(folder);
    if (base == MAP_FAILED)
        bench_die("the null driver's memory can't be mapped");
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
    void *host;
    BENCH_CHECK(gpushare_memory_alloc(gpu, BYTES, &device));
    BENCH_CHECK(gpushare_host_alloc(gpu, BYTES, &host));
    memset(host, 2, BYTES);
    BENCH_CHECK(gpushare_copy_to_device(gpu, device, host, BYTES));
    void *memory = map_device(server), *to = to_device ? memory : host;
    if (memcmp(memory, host, BYTES))
        bench_die("the null driver's memory is not what was copied");
    const void *from = to_device ? host : memory;
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
    munmap(memory, BYTES);
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
