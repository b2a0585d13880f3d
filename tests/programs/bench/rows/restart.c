/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * supervisor_restart_pause_ms: four clients launch kernels of 1 ms and wait for each; between them
 * they allocate, copy and free, load modules, and make streams and events, all of which the server
 * has to answer. It is ended and started again at random moments: by SIGKILL, and by SIGUSR2, which
 * is an upgrade. The row is the longest time that a client waited in one call of all of them, and
 * no call may fail.
 *
 * A service manager that starts the next server at once is played by the bench; systemd's
 * RestartSec comes on top. Every call counts from one restart to the next, so one that begins later
 * and hangs does, too.
 *
 * A wait that a call has by itself counts as well: the note has the longest call of the second
 * before the first restart. The row is of the strict device, whose calls take modelled time, since
 * a client waits for that too; the note has the same without it.
 *
 * No neighbours: a scene's clients end the bench when their call fails.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/quiet.h"
#include "tests/programs/bench/span.h"

enum { CLIENTS = 4, RESTARTS = 100, CALLS = 1 << 16 };

/* From one restart to the next, with up to as much by chance. */
static const double ROUND_S = 0.15;
/* Before the first restart. */
static const double CALM_S = 1;

struct call {
    double from, to;
};

/* Shared with the processes of clients. */
struct page {
    atomic_bool stop;
    atomic_uint ready;
    atomic_uint made[CLIENTS];
    struct call calls[CLIENTS][CALLS]; /* those that were made so far, in turn */
};

static struct page *page;

static void note(unsigned client, double from, gpushare_error error, const char *call)
{
    bench_check(error, call);
    unsigned at = atomic_load(&page->made[client]);
    page->calls[client][at % CALLS] = (struct call){from, bench_now()};
    atomic_store(&page->made[client], at + 1);
}

/* Notes how long the call took. */
#define NOTE(call)                                                                                 \
    do {                                                                                           \
        double from_ = bench_now();                                                                \
        note(index, from_, (call), #call);                                                         \
    } while (0)

static void make_calls(gpushare_connection *gpu, gpushare_function *occupy, unsigned index,
                       uint64_t *chance)
{
    static const struct gpushare_dim one = {1, 1, 1};
    static char bytes[1 << 16];
    unsigned long long ns = 1000000;
    void *parameters[] = {&ns};
    gpushare_address memory;
    gpushare_stream *stream;
    gpushare_event *event;
    gpushare_module *module;
    NOTE(gpushare_launch(occupy, one, one, 0, NULL, parameters));
    NOTE(gpushare_synchronize(gpu));
    switch (bench_draw(chance, 0, 3)) {
    case 0:
        NOTE(gpushare_memory_alloc(gpu, bench_draw(chance, 1, 4 << 20), &memory));
        NOTE(gpushare_copy_to_device(gpu, memory, bytes, 1));
        NOTE(gpushare_memory_free(gpu, memory));
        break;
    case 1:
        NOTE(gpushare_stream_create(gpu, 0, 0, &stream));
        NOTE(gpushare_event_create(gpu, 0, &event));
        NOTE(gpushare_launch(occupy, one, one, 0, stream, parameters));
        NOTE(gpushare_event_record(event, stream));
        NOTE(gpushare_stream_synchronize(gpu, stream));
        NOTE(gpushare_event_destroy(event));
        NOTE(gpushare_stream_destroy(stream));
        break;
    case 2:
        NOTE(gpushare_module_load(gpu, bench_ptx, 0, &module));
        NOTE(gpushare_module_unload(module));
        break;
    default:
        break;
    }
}

static pid_t begin_client(const struct server *server, unsigned index)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        bench_die("fork: %s", strerror(errno));
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uint64_t chance = bench_seed + index;
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_function *occupy = bench_function(gpu, "occupy");
    make_calls(gpu, occupy, index, &chance);
    atomic_fetch_add(&page->ready, 1);
    while (!atomic_load(&page->stop))
        make_calls(gpu, occupy, index, &chance);
    gpushare_close(&gpu);
    _exit(0);
}

/* The longest call of any client that was under way between these times, in ms. */
static double find_longest(double from, double to, struct call *longest)
{
    *longest = (struct call){from, from};
    for (unsigned i = 0; i < CLIENTS; i++) {
        unsigned made = atomic_load(&page->made[i]);
        for (unsigned at = made > CALLS ? made - CALLS : 0; at < made; at++) {
            const struct call *call = &page->calls[i][at % CALLS];
            if (call->to > from && call->from < to &&
                call->to - call->from > longest->to - longest->from)
                *longest = *call;
        }
    }
    return (longest->to - longest->from) * 1e3;
}

/* The moments of a run: restarts[count] is its end. */
struct run {
    double began;
    struct call restarts[RESTARTS + 1];
    unsigned count;
};

static void restart_often(struct server *server, struct run *run)
{
    uint64_t chance = bench_seed;
    run->began = bench_now();
    bench_sleep_until(run->began + CALM_S);
    for (unsigned i = 0; i < run->count; i++) {
        run->restarts[i].from = bench_now();
        bench_server_replace(server, bench_draw(&chance, 0, 1) ? SIGKILL : SIGUSR2);
        run->restarts[i].to = bench_now();
        bench_sleep_until(bench_now() + ROUND_S +
                          (double)bench_draw(&chance, 0, 1000) / 1000 * ROUND_S);
    }
    run->restarts[run->count].from = bench_now();
}

struct pauses {
    double longest, all, median, undisturbed, ready; /* ms; all: with those that were dropped */
    unsigned count, dropped;
};

/* A restart is dropped if other programs disturbed the machine at any time until the next one: that
 * does not depend on how long a call took. */
static void judge(struct pauses *pauses, const struct run *run)
{
    static double longest[RESTARTS], took[RESTARTS], all[RESTARTS];
    const struct call *restarts = run->restarts;
    unsigned count = 0;
    struct call call;
    for (unsigned i = 0; i < run->count; i++) {
        double pause = find_longest(restarts[i].from, restarts[i + 1].from, &call);
        all[i] = pause;
        if (!quiet_between(restarts[i].from, restarts[i + 1].from))
            continue;
        took[count] = (restarts[i].to - restarts[i].from) * 1e3;
        longest[count++] = pause;
    }
    if (!count)
        bench_die("all %u restarts were disturbed by a busy machine", run->count);
    *pauses = (struct pauses){.longest = span_percentile(longest, count, 100),
                              .all = span_percentile(all, run->count, 100),
                              .median = span_percentile(longest, count, 50),
                              .undisturbed = find_longest(run->began, restarts[0].from, &call),
                              .ready = span_percentile(took, count, 100),
                              .count = count,
                              .dropped = run->count - count};
}

static void play(struct pauses *pauses, const char *const env[], unsigned rounds)
{
    static struct run run;
    struct server *server = bench_server_kept(env);
    pid_t pids[CLIENTS];
    int status = 0;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        bench_die("out of memory");
    for (unsigned i = 0; i < CLIENTS; i++)
        pids[i] = begin_client(server, i);
    for (int left = 60000; left > 0 && atomic_load(&page->ready) < CLIENTS; left--)
        usleep(1000);
    if (atomic_load(&page->ready) < CLIENTS)
        bench_die("%u of %u clients came", atomic_load(&page->ready), CLIENTS);
    quiet_start();
    run.count = rounds;
    restart_often(server, &run);
    quiet_stop();
    atomic_store(&page->stop, true);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (waitpid(pids[i], &status, 0) != pids[i] || status)
            bench_die("a call failed in a client");
    judge(pauses, &run);
    munmap(page, sizeof *page);
    bench_server_stop(server);
}

void bench_restart_pause(struct bench_result *result)
{
    static const char *const free_of_cost[] = {"SOFTGPU_CREATION_US=0", "SOFTGPU_LOAD_US=0",
                                               "SOFTGPU_REGISTER_US_PER_MIB=0", NULL};
    struct pauses own, total;
    play(&total, NULL, bench_short ? 3 : RESTARTS);
    play(&own, free_of_cost, bench_short ? 2 : RESTARTS / 2);
    quiet_judge_dropped(result, total.dropped, total.count + total.dropped);
    result->value = total.longest;
    snprintf(result->note, sizeof result->note,
             "the longest call at any of %u restarts, median of the longest %.1f, %u dropped, the "
             "longest of all %.1f; "
             "undisturbed %.1f; from the end of one server until the next is ready %.1f; without "
             "modelled costs %.1f, median %.1f, undisturbed %.1f",
             total.count, total.median, total.dropped, total.all, total.undisturbed, total.ready,
             own.longest, own.median, own.undisturbed);
}
