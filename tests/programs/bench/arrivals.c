/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/arrivals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/image.h"

enum {
    ARRIVALS_MAX = 4096,
    BYTES = 64 << 20,
    EVERY_US = 100000,
    AT_ONCE_MAX = 32, /* processes; beyond that the machine would do nothing else */
    LOAD = 0,
    PINNED,
    DEVICE,
    STEPS
};

/* Shared by all processes. */
struct page {
    atomic_bool stop;
    atomic_uint count, killed, failed;
    struct arrival one[ARRIVALS_MAX];
};

struct arrivals {
    pid_t pid;
    struct page *page;
};

struct visit {
    gpushare_connection *gpu;
    void *pinned;
    gpushare_address device;
    uint64_t number, scene;
};

/* ---- one client ---- */

static gpushare_error take_step(struct visit *visit, unsigned step)
{
    gpushare_module *module;
    gpushare_error error;
    if (step == PINNED)
        return gpushare_host_alloc(visit->gpu, BYTES, &visit->pinned);
    if (step == DEVICE)
        return gpushare_memory_alloc(visit->gpu, BYTES, &visit->device);
    char *text = image_text(visit->number);
    error = gpushare_module_load(visit->gpu, text, 0, &module);
    free(text);
    return error;
}

static gpushare_error live(const char *socket, struct visit *visit)
{
    struct gpushare_options options = {.size = sizeof options, .socket = socket, .name = "arrival"};
    unsigned steps[STEPS] = {LOAD, PINNED, DEVICE};
    gpushare_error error = gpushare_connect(&options, &visit->gpu);
    for (unsigned i = 0; i < STEPS && !error; i++) {
        unsigned other = (unsigned)bench_draw(&visit->scene, i, STEPS - 1), step = steps[other];
        steps[other] = steps[i];
        error = take_step(visit, step);
    }
    if (!error)
        error =
            gpushare_copy_to_device_async(visit->gpu, visit->device, visit->pinned, BYTES, NULL);
    if (!error && bench_draw(&visit->scene, 0, 3))
        error = gpushare_synchronize(visit->gpu);
    if (!error && bench_draw(&visit->scene, 0, 1))
        gpushare_close(&visit->gpu);
    return error;
}

_Noreturn static void visit(const char *socket, struct page *page, unsigned number)
{
    struct visit visit = {.number = bench_seed + number, .scene = bench_seed + number};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpushare_error error = live(socket, &visit);
    if (error) {
        fprintf(stderr, "bench: arrival %u: %s: %s\n", number, gpushare_error_name(error),
                gpushare_error_text());
    } else {
        page->one[number].ended = bench_now();
    }
    _exit(error != 0);
}

/* ---- the process whose children they are ---- */

struct host {
    struct page *page;
    const char *socket;
    double patience;
    struct {
        pid_t pid;
        double until;
    } guests[AT_ONCE_MAX];
};

/* Returns a free place, or -1. */
static int look_after(struct host *host)
{
    int place = -1, status;
    for (int i = 0; i < AT_ONCE_MAX; i++) {
        pid_t pid = host->guests[i].pid;
        if (pid && waitpid(pid, &status, WNOHANG) == pid) {
            /* A crash is a failure too. */
            if (status)
                atomic_fetch_add(&host->page->failed, 1);
            host->guests[i].pid = 0;
        } else if (pid && bench_now() > host->guests[i].until) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            atomic_fetch_add(&host->page->killed, 1);
            host->guests[i].pid = 0;
        }
        if (!host->guests[i].pid)
            place = i;
    }
    return place;
}

static void admit(struct host *host, int place)
{
    unsigned number = atomic_load(&host->page->count);
    if (number == ARRIVALS_MAX)
        return;
    host->page->one[number].began = bench_now();
    host->guests[place].until = bench_now() + host->patience;
    host->guests[place].pid = fork();
    if (host->guests[place].pid == 0)
        visit(host->socket, host->page, number);
    atomic_store(&host->page->count, number + 1);
}

_Noreturn static void host_main(struct host *host)
{
    uint64_t scene = bench_seed;
    double next = bench_now();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!atomic_load(&host->page->stop)) {
        int place = look_after(host);
        if (bench_now() < next) {
            usleep(2000);
        } else if (place >= 0) {
            admit(host, place);
            next += (double)bench_draw(&scene, EVERY_US / 2, EVERY_US * 3 / 2) / 1e6;
        } else {
            usleep(2000);
        }
    }
    /* Those that are left end with this process. */
    _exit(0);
}

struct arrivals *arrivals_start(const struct server *server, double patience)
{
    struct arrivals *arrivals = calloc(1, sizeof *arrivals);
    void *page = mmap(NULL, sizeof *arrivals->page, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!arrivals || page == MAP_FAILED)
        bench_die("out of memory");
    arrivals->page = page;
    struct host host = {.page = page, .socket = server_socket(server), .patience = patience};
    fflush(NULL);
    arrivals->pid = fork();
    if (arrivals->pid < 0)
        bench_die("no process for clients that come and go");
    if (!arrivals->pid)
        host_main(&host);
    return arrivals;
}

void arrivals_stop(struct arrivals *arrivals)
{
    atomic_store(&arrivals->page->stop, true);
    waitpid(arrivals->pid, NULL, 0);
}

unsigned arrivals_count(const struct arrivals *arrivals)
{
    return atomic_load(&arrivals->page->count);
}

struct arrival arrivals_one(const struct arrivals *arrivals, unsigned number)
{
    return arrivals->page->one[number];
}

unsigned arrivals_killed(const struct arrivals *arrivals)
{
    return atomic_load(&arrivals->page->killed);
}

unsigned arrivals_failed(const struct arrivals *arrivals)
{
    return atomic_load(&arrivals->page->failed);
}

void arrivals_judge(struct bench_result *result, const struct arrivals *arrivals, double from,
                    double to)
{
    unsigned count = 0, failed = arrivals_failed(arrivals);
    double due = (to - from) * 1e6 / EVERY_US;
    for (unsigned i = 0; i < arrivals_count(arrivals); i++)
        count += from <= arrivals_one(arrivals, i).began && arrivals_one(arrivals, i).began < to;
    if (!arrivals_count(arrivals))
        bench_die("nobody arrived");
    if (failed)
        bench_doubt(result, "%u of %u arrivals crashed, or a call of theirs failed", failed,
                    arrivals_count(arrivals));
    if (count < (bench_short ? 1 : due * 4 / 5))
        bench_doubt(result, "%u clients arrived, not %.0f: the others before them still waited",
                    count, due);
}

void arrivals_free(struct arrivals *arrivals)
{
    munmap(arrivals->page, sizeof *arrivals->page);
    free(arrivals);
}
