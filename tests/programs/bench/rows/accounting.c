/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * accounting_error: the time that the server says it charged each client, against the software
 * GPU's own busy counters of every multiprocessor (SOFTGPU_STATS), which know of no client. Three
 * clients with requests of 20, 30 and 50 % and kernels of 20 ms, 1 ms and 100 us work for ten
 * seconds in mode strict. Then three others work in mode turns with a quantum of 1 s.
 *
 * In these modes one client runs at a time, and on an idle device without SOFTGPU_SCATTER blocks
 * go to the first multiprocessors. The clients' kernels have 1, 2 and 3 blocks. So multiprocessor 2
 * is busy for the third client only, multiprocessor 1 for the third and the second, multiprocessor
 * 0 for all: the differences of the counters are each client's busy time. The error is
 * |charged / busy - 1|, of the worst client.
 *
 * No neighbours: the counters know of no client, so their time could not be told from the clients'.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/softgpu/device/stats.h"
#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/load.h"

enum { CLIENTS = 3 };

/* Seconds that the server says it charged. */
static double charged(int admin, uint32_t client)
{
    json_t *answer = administer(admin, "{\"request\":\"clients\"}"), *one;
    size_t i;
    double seconds = -1;
    json_array_foreach(json_object_get(answer, "clients"), i, one)
    {
        if (json_integer_value(json_object_get(one, "client")) == client)
            seconds = json_number_value(json_object_get(one, "charged_seconds"));
    }
    json_decref(answer);
    if (seconds < 0)
        bench_die("the server does not know client %u", client);
    return seconds;
}

static double busy_seconds(const struct stats_file *stats, unsigned sm)
{
    return (double)__atomic_load_n(&stats->device[0].sm[sm].busy_ns, __ATOMIC_RELAXED) / 1e9;
}

static double run(const struct administer_mode *mode, char *note, size_t note_size)
{
    static const char *const requests[CLIENTS] = {
        "GPUSHARE_TIME_REQUEST=20%", "GPUSHARE_TIME_REQUEST=30%", "GPUSHARE_TIME_REQUEST=50%"};
    static const uint64_t kernels[CLIENTS] = {20000000, 1000000, 100000};
    char path[] = "/tmp/gpushare-stats-XXXXXX", setting[64];
    int fd = mkstemp(path);
    if (fd < 0 || unlink(path) < 0)
        bench_die("no file for the counters");
    close(fd);
    snprintf(setting, sizeof setting, "SOFTGPU_STATS=%s", path);
    const char *soft[] = {"SOFTGPU_SMS=16", setting, "SOFTGPU_SCATTER=0", NULL};
    struct server *server = bench_server_soft(soft);
    int admin = administer_open(server);
    struct load *loads[CLIENTS];
    double before[CLIENTS + 1], begun[CLIENTS], worst = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const char *env[] = {requests[i], NULL};
        struct load_spec spec = {.name = requests[i],
                                 .env = env,
                                 .kernel_ns = kernels[i],
                                 .blocks = i + 1,
                                 .most = 1 << 16};
        loads[i] = load_start(server, &spec);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct stats_file *stats = mmap(NULL, sizeof *stats, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || stats == MAP_FAILED)
        bench_die("the software GPU's counters can't be read");
    administer_mode(admin, mode);
    for (unsigned i = 0; i <= CLIENTS; i++)
        before[i] = busy_seconds(stats, i);
    for (int i = 0; i < CLIENTS; i++)
        begun[i] = charged(admin, loads[i]->page->client);
    for (int i = 0; i < CLIENTS; i++)
        load_go(loads[i]);
    sleep(bench_short ? 1 : 10);
    for (int i = 0; i < CLIENTS; i++)
        load_rest(loads[i]);
    for (int i = 0; i < CLIENTS; i++)
        load_settle(loads[i]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        double busy =
            busy_seconds(stats, i) - before[i] - (busy_seconds(stats, i + 1) - before[i + 1]);
        double seconds = charged(admin, loads[i]->page->client) - begun[i];
        double error = busy > 0 ? fabs(seconds / busy - 1) : 1;
        worst = error > worst ? error : worst;
        if (used < note_size)
            used += (size_t)snprintf(note + used, note_size - used, "%s%.3f/%.3f", i ? ", " : "",
                                     seconds, busy);
    }
    for (int i = 0; i < CLIENTS; i++) {
        load_stop(loads[i]);
        load_free(loads[i]);
    }
    munmap((void *)(uintptr_t)stats, sizeof *stats);
    close(fd);
    close(admin);
    bench_server_stop(server);
    unlink(path);
    return worst;
}

void bench_accounting(struct bench_result *result)
{
    const struct administer_mode strict = {.mode = "strict", .lease = "250ms", .precision = "5%"};
    const struct administer_mode turns = {.mode = "turns", .quantum = "1s"};
    char one[120] = "", other[120] = "";
    double in_strict = run(&strict, one, sizeof one), in_turns = run(&turns, other, sizeof other);
    result->value = in_strict > in_turns ? in_strict : in_turns;
    snprintf(result->note, sizeof result->note,
             "charged/busy seconds: strict %s (%.4f), turns %s (%.4f)", one, in_strict, other,
             in_turns);
}
