/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Four honest clients launch kernels of 1 ms, one after the other, wait for each, and recover their
 * stream when it was interrupted.
 *
 * worker_kill_recovery_ms_p99: the worker is killed. The row is the time from the kill to the end
 * of a client's longest stretch without a completed launch; the 99th percentile over all clients of
 * 100 kills.
 *
 * fault_recovery_ms_p99: the same, from the launch of another client's kernel that traps. Each such
 * client faults once, and where the bench is root's each is another user's, so none waits for
 * earlier faults.
 *
 * Both have a standby that has initialised the driver, on a device whose calls take no modelled
 * time; the note has the totals on the strict device for each kind of standby.
 *
 * innocent_throughput_beside_faults: the launches of the four in a minute, from the second fault
 * on, beside a client of the same user that faults, connects again and faults as fast as the server
 * lets it, against five seconds alone. The row is not met if fewer than five workers were lost to
 * that client in the minute.
 *
 * recovery_1000_objects_ms: 64 clients, each with 16 modules, streams and allocations. The text of
 * each module is another one, since a worker decodes a text once for all modules that have it.
 *
 * The worker is killed while every eighth of them works and the others don't; then all launch. The
 * row is the time from the kill to the end of the last client's launch, without modelled costs as
 * above; the median of ten kills. The note has the first one of those that worked.
 *
 * client_death_reclaim_ms: a client with 256 MiB, 16 MiB of pinned memory and kernels of 1 ms is
 * killed. The row is the time until nothing of it is left, less the kernel that ran; the longest
 * of 50. Nothing is left when the server charges nothing, the supervisor has no more descriptors
 * than after an earlier client's death, and the device itself counts no more memory.
 *
 * The server may keep the pinned memory for a later client, who then gets it: so there is never
 * more of it than one client had. A first death that is not measured shows what is kept.
 *
 * Times are dropped if other programs disturbed the machine (quiet.h) in the time from the event
 * that the row's goal is: a time of its own would drop the long ones more often. The note has the
 * figure of all.
 *
 * No neighbours: a scene's clients end the bench when their work is interrupted.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/device_memory.h"
#include "tests/programs/bench/quiet.h"
#include "tests/programs/bench/span.h"
#include "tests/support/kernels.h"

enum {
    HONEST = 4,
    KILLS = 100,
    ENDS = 1 << 17,
    KERNEL_NS = 1000000,
    MANY = 64,
    OBJECTS = 16,
    MANY_KILLS = 10,
    BUSY_EVERY = 8, /* of the many clients one works */
    DEATHS = 50,
    DEATH_BYTES = 256 << 20,
    DEATH_PINNED = 16 << 20,
    FAULTS_LEAST = 5,
    ALONE_S = 5,
    BESIDE_S = 60
};

/* From one loss of a worker to the next one. */
static const double ROUND_S = 0.9;
/* A stretch that begins later is of the next loss, which comes at once when a round is over. */
static const double STRETCH_S = 0.8;
/* The goals of the rows of recovery and of a client's death. */
static const double RECOVERY_GOAL_S = 0.03, DEATH_GOAL_S = 0.05;

/* Shared with the processes of clients. */
struct page {
    atomic_bool stop;
    atomic_uint ready, go; /* clients that have connected; and rounds that were let go */
    atomic_uint launches[MANY];
    double ends[HONEST][ENDS]; /* of the launches that were counted so far, in turn */
    double done[MANY];         /* when the round's launch was complete */
};

static struct page *page;
static const struct gpushare_dim one = {1, 1, 1};

static void open_page(void)
{
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        bench_die("out of memory");
}

/* Sleeps until `go` is no longer this, so that waiting clients take no time from the server. */
static void await_go(unsigned is)
{
    while (atomic_load(&page->go) == is && !atomic_load(&page->stop))
        syscall(SYS_futex, &page->go, FUTEX_WAIT, is, &(struct timespec){.tv_sec = 1}, NULL, 0);
}

static void let_go(unsigned round)
{
    atomic_store(&page->go, round);
    syscall(SYS_futex, &page->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static pid_t begin_client(void (*work)(const struct server *server, unsigned index),
                          const struct server *server, unsigned index)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        bench_die("fork: %s", strerror(errno));
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(server, index);
    _exit(0);
}

static void await_ready(unsigned count)
{
    for (int i = 0; i < 60000 && atomic_load(&page->ready) < count; i++)
        usleep(1000);
    if (atomic_load(&page->ready) < count)
        bench_die("%u of %u clients came", atomic_load(&page->ready), count);
}

static void end_clients(const pid_t *pids, unsigned count)
{
    int status = 0;
    atomic_store(&page->stop, true);
    syscall(SYS_futex, &page->go, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    for (unsigned i = 0; i < count; i++)
        if (waitpid(pids[i], &status, 0) != pids[i] || status)
            bench_die("a client could not go on");
}

static gpushare_error run_once(gpushare_connection *gpu, gpushare_function *occupy)
{
    unsigned long long ns = KERNEL_NS;
    void *parameters[] = {&ns};
    gpushare_error error = gpushare_launch(occupy, one, one, 0, NULL, parameters);
    return error ? error : gpushare_synchronize(gpu);
}

static void work_honestly(const struct server *server, unsigned index)
{
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_function *occupy = bench_function(gpu, "occupy");
    atomic_fetch_add(&page->ready, 1);
    while (!atomic_load(&page->stop)) {
        gpushare_error error = run_once(gpu, occupy);
        if (error == GPUSHARE_ERROR_INTERRUPTED) {
            BENCH_CHECK(gpushare_stream_recover(gpu, NULL, NULL));
            continue;
        }
        bench_check(error, "an honest launch");
        unsigned at = atomic_load(&page->launches[index]);
        page->ends[index][at % ENDS] = bench_now();
        atomic_store(&page->launches[index], at + 1);
    }
    gpushare_close(&gpu);
}

/* ---- one worker is lost ---- */

static json_t *first_device(int admin, json_t **answer)
{
    *answer = administer(admin, "{\"request\": \"status\"}");
    return json_array_get(json_object_get(*answer, "devices"), 0);
}

static void kill_worker(int admin)
{
    json_t *answer, *device = first_device(admin, &answer);
    pid_t worker = (pid_t)json_integer_value(json_object_get(device, "worker_pid"));
    json_decref(answer);
    if (!worker)
        bench_die("there is no worker");
    kill(worker, SIGKILL);
}

static bool is_ready(const json_t *object)
{
    const char *state = json_string_value(json_object_get(object, "state"));
    return state && !strcmp(state, "ready");
}

/* Until the device serves, and its standby is ready. */
static void await_standby(int admin, const char *kind)
{
    bool ready = false;
    for (int i = 0; i < 2000 && !ready; i++) {
        json_t *answer, *device = first_device(admin, &answer);
        ready = is_ready(device) &&
                (!strcmp(kind, "none") || is_ready(json_object_get(device, "standby")));
        json_decref(answer);
        if (!ready)
            usleep(10000);
    }
    if (!ready)
        bench_die("the device or its standby is not ready after 20 s");
}

/* The worker may be lost while the client connects. */
static gpushare_connection *connect_when_ready(const struct server *server)
{
    struct gpushare_options options = {
        .size = sizeof options, .socket = server_socket(server), .name = "bench"};
    gpushare_connection *gpu = NULL;
    gpushare_error error = gpushare_connect(&options, &gpu);
    for (int i = 0; i < 2000 && error == GPUSHARE_ERROR_DEVICE_NOT_READY; i++) {
        usleep(10000);
        error = gpushare_connect(&options, &gpu);
    }
    bench_check(error, "the connection of a client that faults");
    return gpu;
}

/* Faults when its turn has come. */
static void fault_once(const struct server *server, unsigned index)
{
    enum { FIRST_USER = 30000 };
    if (geteuid() == 0 && setuid(FIRST_USER + index))
        bench_die("setuid: %s", strerror(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid takes it back */
    gpushare_connection *gpu = connect_when_ready(server);
    gpushare_module *module;
    gpushare_function *trapped;
    BENCH_CHECK(gpushare_module_load(gpu, kernels_ptx, 0, &module));
    BENCH_CHECK(gpushare_module_function(module, "trapped", &trapped));
    atomic_fetch_add(&page->ready, 1);
    while (atomic_load(&page->go) != index + 1)
        usleep(100);
    page->done[0] = bench_now();
    if (gpushare_launch(trapped, one, one, 0, NULL, NULL) == GPUSHARE_SUCCESS)
        (void)gpushare_synchronize(gpu);
}

/* The end of the longest stretch without a completed launch that begins before the next event. */
static double find_end(unsigned client, double event)
{
    unsigned count = atomic_load(&page->launches[client]);
    double before = event, longest = 0, end = event;
    for (unsigned at = count > ENDS ? count - ENDS : 0; at < count; at++) {
        double now = page->ends[client][at % ENDS];
        if (now <= event)
            continue;
        if (before > event + STRETCH_S)
            break;
        if (now - before > longest) {
            longest = now - before;
            end = now;
        }
        before = now;
    }
    return end;
}

struct recovery {
    double took[KILLS * HONEST];
    double all[KILLS * HONEST]; /* as took, with those that were disturbed */
    unsigned count, dropped;
};

/* A client that has completed nothing since has waited until now. */
static void collect(struct recovery *recovery, double event)
{
    const double now = bench_now();
    for (unsigned i = 0; i < HONEST; i++) {
        double end = find_end(i, event);
        double took = ((end > event ? end : now) - event) * 1e3;
        recovery->all[recovery->count + recovery->dropped] = took;
        if (quiet_between(event, event + RECOVERY_GOAL_S))
            recovery->took[recovery->count++] = took;
        else
            recovery->dropped++;
    }
}

static void play(struct recovery *recovery, struct server *server, const char *standby, bool faults,
                 unsigned rounds)
{
    static double events[KILLS];
    pid_t honest[HONEST], guilty = 0;
    open_page();
    for (unsigned i = 0; i < HONEST; i++)
        honest[i] = begin_client(work_honestly, server, i);
    await_ready(HONEST);
    int admin = administer_open(server);
    json_decref(
        administer(admin, "{\"request\": \"set\", \"gpu\": 0, \"standby\": \"%s\"}", standby));
    quiet_start();
    for (unsigned i = 0; i < rounds; i++) {
        bench_sleep_until(bench_now() + ROUND_S);
        await_standby(admin, standby);
        if (faults) {
            guilty = begin_client(fault_once, server, i);
            await_ready(HONEST + i + 1);
            usleep(100000);
            atomic_store(&page->go, i + 1);
            waitpid(guilty, NULL, 0);
            events[i] = page->done[0];
        } else {
            events[i] = bench_now();
            kill_worker(admin);
        }
    }
    bench_sleep_until(bench_now() + ROUND_S + 0.1);
    quiet_stop();
    close(admin);
    *recovery = (struct recovery){.count = 0};
    for (unsigned i = 0; i < rounds; i++)
        collect(recovery, events[i]);
    end_clients(honest, HONEST);
    munmap(page, sizeof *page);
    bench_server_stop(server);
    if (!recovery->count)
        bench_die("all %u times were disturbed by a busy machine", recovery->dropped);
}

static const char *const free_of_cost[] = {"SOFTGPU_CREATION_US=0", "SOFTGPU_LOAD_US=0",
                                           "SOFTGPU_REGISTER_US_PER_MIB=0", NULL};

static void measure_recovery(struct bench_result *result, bool faults)
{
    static const char *const kinds[] = {"none", "driver", "context"};
    static struct recovery own, total;
    play(&own, bench_server_soft(free_of_cost), "driver", faults, bench_short ? 3 : KILLS);
    quiet_judge_dropped(result, own.dropped, own.count + own.dropped);
    result->value = span_percentile(own.took, own.count, 99);
    int used = snprintf(result->note, sizeof result->note,
                        "p99 of %u, median %.1f; %u dropped, p99 of all %.1f; with modelled costs, "
                        "p99 (median):",
                        own.count, span_percentile(own.took, own.count, 50), own.dropped,
                        span_percentile(own.all, own.count + own.dropped, 99));
    for (unsigned i = 0; i < 3; i++) {
        play(&total, bench_server_soft(NULL), kinds[i], faults, bench_short ? 2 : KILLS / 5);
        used +=
            snprintf(result->note + used, sizeof result->note - (size_t)used, "%s %s %.0f (%.0f)",
                     i ? "," : "", kinds[i], span_percentile(total.took, total.count, 99),
                     span_percentile(total.took, total.count, 50));
    }
}

void bench_kill_recovery(struct bench_result *result)
{
    measure_recovery(result, false);
}

void bench_fault_recovery(struct bench_result *result)
{
    measure_recovery(result, true);
}

/* ---- beside one that faults all the time ---- */

static void fault_for_ever(const struct server *server, unsigned index)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    (void)index;
    while (!atomic_load(&page->stop)) {
        gpushare_connection *gpu = NULL;
        gpushare_module *module;
        gpushare_function *trapped;
        if (gpushare_connect(&options, &gpu)) {
            usleep(1000);
            continue;
        }
        if (!gpushare_module_load(gpu, kernels_ptx, 0, &module) &&
            !gpushare_module_function(module, "trapped", &trapped))
            while (!atomic_load(&page->stop)) {
                gpushare_error error = gpushare_launch(trapped, one, one, 0, NULL, NULL);
                error = error ? error : gpushare_synchronize(gpu);
                atomic_fetch_add(&page->go, 1);
                if (error != GPUSHARE_ERROR_INTERRUPTED || gpushare_stream_recover(gpu, NULL, NULL))
                    break;
            }
        gpushare_close(&gpu);
    }
}

static double count_launches(double seconds)
{
    unsigned before = 0, after = 0;
    for (unsigned i = 0; i < HONEST; i++)
        before += atomic_load(&page->launches[i]);
    double from = bench_now();
    bench_sleep_until(from + seconds);
    double to = bench_now();
    for (unsigned i = 0; i < HONEST; i++)
        after += atomic_load(&page->launches[i]);
    return (after - before) / (to - from);
}

/* Workers that were started so far: each fault costs one. The server ends an administrator's
 * connection that is idle for a minute. */
static int64_t count_workers(const struct server *server)
{
    int admin = administer_open(server);
    json_t *answer, *device = first_device(admin, &answer);
    json_int_t starts;
    if (json_unpack(device, "{s:I}", "worker_starts", &starts))
        bench_die("status does not say how many workers were started");
    json_decref(answer);
    close(admin);
    return starts;
}

void bench_innocent_throughput(struct bench_result *result)
{
    struct server *server = bench_server_soft(NULL);
    pid_t pids[HONEST + 1];
    open_page();
    for (unsigned i = 0; i < HONEST; i++)
        pids[i] = begin_client(work_honestly, server, i);
    await_ready(HONEST);
    usleep(200000);
    result->yardstick = count_launches(bench_short ? 0.5 : ALONE_S);
    pids[HONEST] = begin_client(fault_for_ever, server, HONEST);
    for (int i = 0; i < 20000 && atomic_load(&page->go) < 2; i++)
        usleep(1000);
    unsigned faults = atomic_load(&page->go);
    if (faults < 2)
        bench_doubt(result, "there were %u faults in 20 s", faults);
    int64_t before = count_workers(server);
    double beside = count_launches(bench_short ? 1 : BESIDE_S);
    int64_t lost = count_workers(server) - before;
    result->value = result->ratio = beside / result->yardstick;
    if (!bench_short && lost < FAULTS_LEAST)
        bench_doubt(result, "%lld workers were lost to faults in %d s", (long long)lost, BESIDE_S);
    snprintf(result->note, sizeof result->note,
             "%.0f launches a second, alone %.0f; %lld workers lost in that time after the first "
             "%u faults",
             beside, result->yardstick, (long long)lost, faults);
    end_clients(pids, HONEST + 1);
    munmap(page, sizeof *page);
    bench_server_stop(server);
}

/* ---- many objects ---- */

/* A launch that the worker's loss interrupts begins again with the next one. */
static void run_through(gpushare_connection *gpu, gpushare_function *occupy)
{
    gpushare_error error;
    while ((error = run_once(gpu, occupy)) == GPUSHARE_ERROR_INTERRUPTED)
        BENCH_CHECK(gpushare_stream_recover(gpu, NULL, NULL));
    bench_check(error, "a launch on the next worker");
}

static bool is_busy(unsigned index)
{
    return index % BUSY_EVERY == 0;
}

static void hold_objects(const struct server *server, unsigned index)
{
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_function *occupy = NULL;
    for (int i = 0; i < OBJECTS; i++) {
        gpushare_module *module;
        gpushare_stream *stream;
        gpushare_address memory;
        char *text;
        if (asprintf(&text, "%s// %u, %d\n", bench_ptx, index, i) < 0)
            bench_die("out of memory");
        BENCH_CHECK(gpushare_module_load(gpu, text, 0, &module));
        free(text);
        BENCH_CHECK(gpushare_module_function(module, "occupy", &occupy));
        BENCH_CHECK(gpushare_stream_create(gpu, 0, 0, &stream));
        BENCH_CHECK(gpushare_memory_alloc(gpu, 1 << 20, &memory));
        BENCH_CHECK(gpushare_fill(gpu, memory, 1, 4, 1024));
    }
    BENCH_CHECK(run_once(gpu, occupy));
    atomic_fetch_add(&page->ready, 1);
    for (unsigned round = 1;; round++) {
        while (is_busy(index) && atomic_load(&page->go) < round && !atomic_load(&page->stop))
            run_through(gpu, occupy);
        await_go(round - 1);
        if (atomic_load(&page->stop))
            break;
        run_through(gpu, occupy);
        page->done[index] = bench_now();
        atomic_fetch_add(&page->ready, 1);
    }
    gpushare_close(&gpu);
}

void bench_many_objects(struct bench_result *result)
{
    static double last[MANY_KILLS], first[MANY_KILLS];
    struct server *server = bench_server_soft(free_of_cost);
    unsigned rounds = bench_short ? 1 : MANY_KILLS, clients = bench_short ? 8 : MANY;
    pid_t pids[MANY];
    open_page();
    for (unsigned i = 0; i < clients; i++)
        pids[i] = begin_client(hold_objects, server, i);
    await_ready(clients);
    int admin = administer_open(server);
    for (unsigned round = 0; round < rounds; round++) {
        usleep(200000);
        double event = bench_now();
        kill_worker(admin);
        let_go(round + 1);
        await_ready(clients * (round + 2));
        first[round] = last[round] = (page->done[0] - event) * 1e3;
        for (unsigned i = 1; i < clients; i++) {
            double took = (page->done[i] - event) * 1e3;
            if (is_busy(i) && took < first[round])
                first[round] = took;
            last[round] = took > last[round] ? took : last[round];
        }
    }
    result->value = bench_median(last, rounds);
    snprintf(result->note, sizeof result->note,
             "median of %u for the last of %u clients, most %.1f; for the first one that worked "
             "%.1f",
             rounds, clients, last[rounds - 1], bench_median(first, rounds));
    close(admin);
    end_clients(pids, clients);
    munmap(page, sizeof *page);
    bench_server_stop(server);
}

/* ---- a client dies ---- */

static void work_until_killed(const struct server *server, unsigned index)
{
    gpushare_connection *gpu = bench_connect(server, 0);
    gpushare_function *occupy = bench_function(gpu, "occupy");
    unsigned long long ns = KERNEL_NS;
    void *parameters[] = {&ns};
    gpushare_address memory;
    void *pinned;
    (void)index;
    BENCH_CHECK(gpushare_memory_alloc(gpu, DEATH_BYTES, &memory));
    BENCH_CHECK(gpushare_host_alloc(gpu, DEATH_PINNED, &pinned));
    for (unsigned launches = 0;; launches++) {
        BENCH_CHECK(gpushare_launch(occupy, one, one, 0, NULL, parameters));
        if (launches == 20)
            atomic_fetch_add(&page->ready, 1);
    }
}

/* All that is charged to clients, and what the server keeps of pinned memory. */
struct charged {
    json_int_t clients, memory, host_memory, descriptors;
};

static struct charged ask_for_charged(int admin)
{
    struct charged charged;
    json_t *answer, *device = first_device(admin, &answer);
    if (json_unpack(device, "{s:I, s:I}", "clients", &charged.clients, "memory_used_bytes",
                    &charged.memory) ||
        json_unpack(answer, "{s:I, s:I}", "host_memory_used_bytes", &charged.host_memory,
                    "descriptors", &charged.descriptors))
        bench_die("status does not say what clients have");
    json_decref(answer);
    return charged;
}

/* A server whose clients die, and what it has beside them. */
struct scene_of_deaths {
    struct server *server;
    int admin;
    char folder[32], state[64];
    size_t descriptors;     /* of the supervisor */
    uint64_t device_memory; /* by the device's own count */
};

static void deaths_begin(struct scene_of_deaths *scene)
{
    char setting[96];
    const char *const env[] = {setting, NULL};
    *scene = (struct scene_of_deaths){.folder = "/tmp/gpushare-bench-XXXXXX"};
    if (!mkdtemp(scene->folder))
        bench_die("no temporary folder");
    snprintf(scene->state, sizeof scene->state, "%s/state", scene->folder);
    snprintf(setting, sizeof setting, "SOFTGPU_STATE=%s", scene->state);
    scene->server = bench_server_soft(env);
    scene->admin = administer_open(scene->server);
}

static void deaths_end(struct scene_of_deaths *scene)
{
    close(scene->admin);
    bench_server_stop(scene->server);
    unlink(scene->state);
    rmdir(scene->folder);
}

static bool is_rid(const struct scene_of_deaths *scene)
{
    struct charged left = ask_for_charged(scene->admin);
    return !left.clients && !left.memory && left.host_memory <= DEATH_PINNED && !left.descriptors &&
           server_fd_count(server_pid(scene->server)) <= scene->descriptors;
}

/* Returns when the client was killed; it worked until then. */
static double kill_busy_client(const struct scene_of_deaths *scene, unsigned number)
{
    pid_t pid = begin_client(work_until_killed, scene->server, 0);
    await_ready(number);
    struct charged has = ask_for_charged(scene->admin);
    if (has.memory < DEATH_BYTES || has.host_memory <= DEATH_PINNED || !has.descriptors)
        bench_die("the client is not charged what it has");
    if (device_memory_used(scene->state) < DEATH_BYTES)
        bench_die("the device does not count what the client has");
    double event = bench_now();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return event;
}

/* Returns the ms until nothing of the client was left. The device is asked when the server says so:
 * how long asking takes does not count. */
static double await_reclaimed(const struct scene_of_deaths *scene, double event)
{
    double rid;
    do {
        while (!is_rid(scene) && bench_now() < event + 30)
            usleep(500);
        rid = bench_now();
    } while (device_memory_used(scene->state) > scene->device_memory && rid < event + 30);
    return (rid - event) * 1e3 - KERNEL_NS / 1e6;
}

/* The first death leaves what the server keeps for later clients. */
static void note_kept(struct scene_of_deaths *scene)
{
    scene->descriptors = SIZE_MAX;
    scene->device_memory = UINT64_MAX;
    await_reclaimed(scene, kill_busy_client(scene, 1));
    usleep(500000);
    scene->descriptors = server_fd_count(server_pid(scene->server));
    scene->device_memory = device_memory_used(scene->state);
}

void bench_client_death(struct bench_result *result)
{
    static double took[DEATHS], all[DEATHS];
    struct scene_of_deaths scene;
    unsigned rounds = bench_short ? 3 : DEATHS, count = 0, dropped = 0;
    open_page();
    deaths_begin(&scene);
    note_kept(&scene);
    quiet_start();
    for (unsigned i = 0; i < rounds; i++) {
        double event = kill_busy_client(&scene, i + 2);
        double ms = await_reclaimed(&scene, event);
        all[count + dropped] = ms;
        if (quiet_between(event, event + DEATH_GOAL_S))
            took[count++] = ms;
        else
            dropped++;
    }
    quiet_stop();
    if (!count)
        bench_die("all %u deaths were disturbed by a busy machine", dropped);
    quiet_judge_dropped(result, dropped, count + dropped);
    result->value = span_percentile(took, count, 100);
    snprintf(result->note, sizeof result->note,
             "the longest of %u, median %.2f; %u dropped, longest of all %.2f; %llu bytes of the "
             "device and %zu descriptors are not a client's",
             count, span_percentile(took, count, 50), dropped,
             span_percentile(all, count + dropped, 100), (unsigned long long)scene.device_memory,
             scene.descriptors);
    munmap(page, sizeof *page);
    deaths_end(&scene);
}
