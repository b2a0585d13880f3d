/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The idle rows: the cost of 64 connected clients that do nothing.
 *
 * ring_bytes_idle_client: the shared memory of one client that has connected and done nothing: the
 * pages that its rings, shadow and status memory have, by the server's descriptors of them, and its
 * charge of pinned memory. The row is the larger one.
 *
 * No neighbours: the rows are what nobody's work costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/cpu_use.h"

enum { IDLE_CLIENTS = 64, SHORTER = 10 };

/* Times of a row, in ms; a short run has a tenth of them. IDLE_MS: how long it watches. SETTLE_MS:
 * after this, what a connection causes once is over. */
enum { IDLE_MS = 10000, SETTLE_MS = 1000 };

static void pass(unsigned ms)
{
    usleep(1000 * (bench_short ? ms / SHORTER : ms));
}

struct idle {
    struct server *server;
    pid_t processes[2]; /* supervisor, worker */
    gpushare_connection *clients[IDLE_CLIENTS];
    double bytes_before;
};

static double process_bytes(pid_t pid)
{
    char path[64], line[256];
    double kib = -1;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "Pss:", 4))
            kib = strtod(line + 4, NULL);
    if (file)
        fclose(file);
    if (kib < 0)
        bench_die("%s can't be read", path);
    return kib * 1024;
}

struct switches {
    unsigned long *counts;
    size_t count, most;
};

static void read_switches(void *context, const char *line)
{
    struct switches *switches = context;
    if (!strncmp(line, "voluntary_ctxt_switches:", 24) && switches->count < switches->most)
        switches->counts[switches->count++] = strtoul(line + 24, NULL, 10);
}

/* Counts how often each thread of a process has gone to sleep so far. Returns the number of
 * threads. */
static size_t thread_switches(pid_t pid, unsigned long *counts, size_t most)
{
    struct switches switches = {.counts = counts, .most = most};
    cpu_use_threads(pid, "status", read_switches, &switches);
    return switches.count;
}

static void open_idle(struct idle *idle)
{
    idle->server = bench_server_soft(NULL);
    idle->processes[0] = server_pid(idle->server);
    if (server_workers(idle->server, &idle->processes[1], 1) != 1)
        bench_die("the server has no worker");
    gpushare_connection *first = bench_connect(idle->server, 0);
    gpushare_close(&first); /* costs that the first client causes once are not the clients' */
    pass(SETTLE_MS);
    idle->bytes_before = process_bytes(idle->processes[0]) + process_bytes(idle->processes[1]);
    for (int i = 0; i < IDLE_CLIENTS; i++)
        idle->clients[i] = bench_connect(idle->server, 0);
    pass(SETTLE_MS);
}

static void close_idle(struct idle *idle)
{
    for (int i = 0; i < IDLE_CLIENTS; i++)
        gpushare_close(&idle->clients[i]);
    bench_server_stop(idle->server);
}

void bench_idle_cpu(struct bench_result *result)
{
    struct idle idle;
    open_idle(&idle);
    double before = cpu_use_of(idle.processes[0]) + cpu_use_of(idle.processes[1]);
    pass(IDLE_MS);
    result->value = cpu_use_of(idle.processes[0]) + cpu_use_of(idle.processes[1]) - before;
    close_idle(&idle);
}

void bench_idle_wakeups(struct bench_result *result)
{
    struct idle idle;
    unsigned long before[2][64], after[2][64];
    size_t counts[2];
    open_idle(&idle);
    for (int p = 0; p < 2; p++)
        counts[p] = thread_switches(idle.processes[p], before[p], 64);
    pass(IDLE_MS);
    for (int p = 0; p < 2; p++) {
        if (thread_switches(idle.processes[p], after[p], 64) != counts[p])
            bench_die("a thread came or went while all were idle");
        for (size_t i = 0; i < counts[p]; i++)
            if (after[p][i] - before[p][i] > result->value)
                result->value = (double)(after[p][i] - before[p][i]);
    }
    snprintf(result->note, sizeof result->note, "%zu threads", counts[0] + counts[1]);
    close_idle(&idle);
}

void bench_idle_bytes(struct bench_result *result)
{
    struct idle idle;
    open_idle(&idle);
    double after = process_bytes(idle.processes[0]) + process_bytes(idle.processes[1]);
    result->value = (after - idle.bytes_before) / IDLE_CLIENTS;
    snprintf(result->note, sizeof result->note,
             "proportional: pages that the client maps too count in part");
    close_idle(&idle);
}

/* ---- the shared memory of one ---- */

static double charged_bytes(const struct server *server)
{
    int admin = administer_open(server);
    json_int_t used;
    json_t *answer = administer(admin, "{\"request\":\"clients\"}");
    if (json_unpack(answer, "{s:[{s:{s:I}}]}", "clients", "host_memory", "used_bytes", &used))
        bench_die("the server does not say what its client has");
    json_decref(answer);
    close(admin);
    return (double)used;
}

void bench_ring_bytes(struct bench_result *result)
{
    struct server *server = bench_server_soft(NULL);
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_close(&gpu); /* costs that the first client causes once are not the client's */
    pass(SETTLE_MS);
    uint64_t before = server_shared_bytes(server_pid(server));
    gpu = bench_connect(server, 0);
    pass(SETTLE_MS);
    double real = (double)(server_shared_bytes(server_pid(server)) - before);
    double charged = charged_bytes(server);
    result->value = real > charged ? real : charged;
    snprintf(result->note, sizeof result->note, "pages %.0f, charged %.0f", real, charged);
    gpushare_close(&gpu);
    bench_server_stop(server);
}
