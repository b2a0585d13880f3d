/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: launches beside an endless kernel must go on within a second, and requests within two */
/* light: it waits beside endless kernels */
/* draining: not, for it says itself which calls of the driver wait */
/*
 * One driver call at a time waits for the device and holds up whatever is submitted meanwhile. On
 * such a driver a kernel of one client does not end, another client launches, a third comes, asks
 * for this and that in random order, and loads a module; a fourth launches a kernel that needs more
 * local memory than any before.
 *
 * Each scene runs on two drivers: the software GPU with its context's lock, and the shim over a
 * software GPU without one. The outcome has to be the same, and nobody may be stopped. The shim
 * counts: the call has to be made from when the kernel begins, beside it or once it has ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/kernels.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

#define MS UINT64_C(1000000)
enum { STEP_MS = 2000, LOAD_MS = 300, GAP_MS = 1000, END_MS = 10000 };

/* A scene has a process of its own, which these end. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold: %s\n", __FILE__, __LINE__, #condition,       \
                    gpushare_error_text());                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const struct gpushare_dim one = {1, 1, 1};

static bool reaches(atomic_uint *count, unsigned wanted, unsigned milliseconds)
{
    uint64_t end = clock_now() + milliseconds * MS;
    while (atomic_load(count) < wanted && clock_now() < end)
        usleep(1000);
    return atomic_load(count) >= wanted;
}

static struct server *server;
static bool divided; /* the device has partitions */

/* Without partitions a limit is one of time, and a kernel that does not end uses up all of it. */
static gpushare_connection *arrive(double percentage)
{
    return arrival_connect(server, divided ? percentage : 0);
}

/* ---- the calls that were made ---- */

static char counted[] = "/tmp/gpushare-calls-XXXXXX";
static bool counts; /* the driver does */

/* The file has a byte for each. */
static uint32_t calls_made(void)
{
    struct stat file;
    if (!counts)
        return 0;
    CHECK(stat(counted, &file) == 0);
    return (uint32_t)file.st_size;
}

static uint32_t calls_made_since(uint32_t before)
{
    uint64_t end = clock_now() + 2000 * MS;
    while (counts && calls_made() == before && clock_now() < end)
        usleep(1000);
    return calls_made() - before;
}

/* ---- a client that grows the device's local memory ---- */

struct deep {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_address word;
    atomic_uint done;
};

static void deep_arrive(struct deep *deep)
{
    deep->gpu = arrive(25);
    deep->function = arrival_load(deep->gpu, kernels_ptx, "deep");
    OK(gpushare_memory_alloc(deep->gpu, 4096, &deep->word));
}

static void *deep_main(void *argument)
{
    struct deep *deep = argument;
    void *parameters[] = {&deep->word};
    OK(gpushare_launch(deep->function, one, one, 0, NULL, parameters));
    OK(gpushare_synchronize(deep->gpu));
    atomic_store(&deep->done, 1);
    return NULL;
}

/* ---- a client that comes, asks for this and that, and loads a module ---- */

struct newcomer {
    pthread_t thread;
    gpushare_connection *gpu;
    gpushare_function *loaded; /* before the kernel that does not end */
    unsigned seed;
    atomic_uint steps;
};

static size_t random_bytes(struct newcomer *newcomer)
{
    return (size_t)4096 * (1 + (unsigned)rand_r(&newcomer->seed) % 2048);
}

static void ask_memory(struct newcomer *newcomer)
{
    static const char bytes[100000];
    gpushare_address memory;
    OK(gpushare_memory_alloc(newcomer->gpu, sizeof bytes + random_bytes(newcomer), &memory));
    OK(gpushare_copy_to_device(newcomer->gpu, memory, bytes, sizeof bytes));
    OK(gpushare_memory_free(newcomer->gpu, memory));
}

static void ask_host(struct newcomer *newcomer)
{
    void *buffer;
    OK(gpushare_host_alloc(newcomer->gpu, random_bytes(newcomer), &buffer));
    OK(gpushare_host_free(newcomer->gpu, buffer));
}

/* Of a priority that nobody had before: the worker has no such CUstream. */
static void ask_stream(struct newcomer *newcomer)
{
    gpushare_stream *stream;
    gpushare_address memory;
    OK(gpushare_stream_create(newcomer->gpu, 0, -1, &stream));
    OK(gpushare_memory_alloc(newcomer->gpu, 4096, &memory));
    OK(gpushare_fill_async(newcomer->gpu, memory, 1, 1, 4096, stream));
    OK(gpushare_stream_synchronize(newcomer->gpu, stream));
    OK(gpushare_stream_destroy(stream));
}

/* Shares that nobody had need a partition of their own. */
static void ask_share(struct newcomer *newcomer)
{
    gpushare_connection *second = arrive(30 + 10 * (rand_r(&newcomer->seed) % 7));
    OK(gpushare_synchronize(second));
    gpushare_close(&second);
}

static void ask_shared(struct newcomer *newcomer)
{
    OK(gpushare_function_set_shared(newcomer->loaded, 60000));
}

typedef void newcomer_step(struct newcomer *newcomer);
static newcomer_step *const steps[] = {ask_memory, ask_host, ask_stream, ask_share, ask_shared};
enum { STEPS = sizeof steps / sizeof *steps, STEPS_DONE = STEPS + 1, LOADED };

static void *newcomer_main(void *argument)
{
    struct newcomer *newcomer = argument;
    /* The number of steps is a prime, so this takes each of them once. */
    unsigned first = (unsigned)rand_r(&newcomer->seed);
    unsigned by = 1 + (unsigned)rand_r(&newcomer->seed) % (STEPS - 1);
    newcomer->gpu = arrive(0);
    atomic_fetch_add(&newcomer->steps, 1);
    for (unsigned i = 0; i < STEPS; i++) {
        steps[(first + i * by) % STEPS](newcomer);
        atomic_fetch_add(&newcomer->steps, 1);
    }
    arrival_load(newcomer->gpu, kernels_ptx, "milliseconds");
    atomic_fetch_add(&newcomer->steps, 1);
    gpushare_close(&newcomer->gpu);
    return NULL;
}

/* ---- clients on partitions that nobody else has ---- */

/* More than the worker keeps for the next time. When they have left, some are destroyed. */
enum { CROWD_MAX = 18 };

static void crowd_arrive(gpushare_connection *crowd[CROWD_MAX], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        crowd[i] = arrive(8 + 5 * i);
}

static void crowd_leave(gpushare_connection *crowd[CROWD_MAX], unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        gpushare_close(&crowd[i]);
}

/* ---- the scene ---- */

struct outcome {
    uint32_t steps; /* of the newcomer, that were over beside the endless kernel */
    uint32_t grew;  /* whether the kernel with much local memory ended beside it */
    uint32_t went_on;
    uint32_t ended; /* whether all of it was over soon after the endless kernel */
    uint32_t made;  /* listed calls from when the endless kernel began; the shim alone counts */
};

static void thread_start(pthread_t *thread, void *(*main)(void *), void *argument)
{
    CHECK(pthread_create(thread, NULL, main, argument) == 0);
}

static void play(struct outcome *outcome, unsigned seed, unsigned crowd_count)
{
    gpushare_connection *crowd[CROWD_MAX];
    struct endless endless;
    struct launcher other;
    struct deep deep = {0};
    struct newcomer newcomer = {.seed = seed};
    launcher_prepare(&other, arrive(25), 0, 1, 1);
    deep_arrive(&deep);
    newcomer.loaded = deep.function;
    crowd_arrive(crowd, crowd_count);
    endless_prepare(&endless, arrive(25));
    uint32_t before = calls_made();
    endless_start(&endless, 1, 1);
    usleep(20000);
    crowd_leave(crowd, crowd_count);
    launcher_start(&other);
    thread_start(&newcomer.thread, newcomer_main, &newcomer);
    bool asked = reaches(&newcomer.steps, STEPS_DONE, STEP_MS);
    if (asked)
        reaches(&newcomer.steps, LOADED, LOAD_MS);
    thread_start(&deep.thread, deep_main, &deep);
    outcome->grew = reaches(&deep.done, 1, LOAD_MS);
    unsigned rounds = atomic_load(&other.done);
    outcome->went_on = reaches(&other.done, rounds + 2, GAP_MS);
    outcome->steps = atomic_load(&newcomer.steps);
    endless_end(&endless);
    outcome->ended = reaches(&newcomer.steps, LOADED, END_MS) && reaches(&deep.done, 1, END_MS);
    if (!outcome->ended)
        fprintf(stderr, "after the endless kernel: %u steps, %u deep, %u rounds\n",
                atomic_load(&newcomer.steps), atomic_load(&deep.done), atomic_load(&other.done));
    CHECK(outcome->ended);
    outcome->made = calls_made_since(before);
    launcher_stop(&other);
    pthread_join(newcomer.thread, NULL);
    pthread_join(deep.thread, NULL);
    launcher_close(&other);
    gpushare_close(&deep.gpu);
    outcome->went_on &= other.longest < GAP_MS * MS;
}

/* ---- both drivers ---- */

/* Windows of 1 GiB: a server under ThreadSanitizer has addresses for 128 of them. */
#define WINDOWS "GPUSHARE_MEMORY_LIMIT=1G"

static struct server *start_softgpu(const char *waits, const char *more)
{
    char drains[512];
    const char *const env[] = {
        drains, "SOFTGPU_CONTEXT_LOCK=1", "SOFTGPU_DRAIN_PERCENT=100", WINDOWS, more, NULL};
    snprintf(drains, sizeof drains, "SOFTGPU_DRAINS=%s", waits);
    return server_start(NULL, env);
}

static struct server *start_shim(const char *waits, const char *more)
{
    char names[512], below[600], path[512], shim[512], count[sizeof counted + 32];
    const char *const args[] = {"--driver", shim, NULL};
    const char *const env[] = {names, below, count, "SOFTGPU_CONTEXT_LOCK=0", WINDOWS, more, NULL};
    CHECK(realpath(server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path), shim));
    snprintf(below, sizeof below, "SHIM_DRIVER=%s", shim);
    CHECK(realpath(server_build_path("tests/programs/shim/libcuda.so.1", path, sizeof path), shim));
    snprintf(names, sizeof names, "SHIM_WAITS=%s", waits);
    snprintf(count, sizeof count, "SHIM_COUNT=%s", counted);
    counts = true;
    return server_start(args, env);
}

/* A row. */
struct listed {
    const char *waits;
    enum { CLOSED, OPEN, MAY_BE_OPEN } open;
    enum { BY_ANY, WITHOUT_PARTITIONS, BY_A_CROWD, BY_NOBODY } made;
};

/* more: NULL, or one setting of the software GPU more. */
typedef struct server *start_waiting(const char *waits, const char *more);

static pid_t scene_start(start_waiting *start, const struct listed *row, unsigned seed,
                         struct outcome *outcome)
{
    pid_t child = fork();
    if (child)
        return child;
    int fd = mkstemp(counted);
    CHECK(fd >= 0 && close(fd) == 0);
    divided = row->made != WITHOUT_PARTITIONS;
    server = start(row->waits, divided ? NULL : "SOFTGPU_NO_GREEN=1");
    play(outcome, seed, row->made == BY_A_CROWD ? CROWD_MAX : 0);
    CHECK(unlink(counted) == 0);
    CHECK(server_stop(server) == 0);
    _exit(0);
}

static bool scene_end(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    return !memcmp(a, b, offsetof(struct outcome, made));
}

static void print_outcome(const char *driver, const struct outcome *outcome)
{
    print_message("  %s: %u of %d steps, %s, %s; %u calls\n", driver, outcome->steps, STEPS_DONE,
                  outcome->grew ? "local memory grew" : "local memory waited",
                  outcome->went_on ? "others went on" : "others stood still", outcome->made);
}

/* OPEN: the worker makes the call beside others' work, for it is not known to wait for the device.
 * On a driver on which it does, others are stopped, on both drivers. MAY_BE_OPEN: whether a
 * scene comes to such a call is a matter of moments; it has to end well.
 *
 * WITHOUT_PARTITIONS: a worker makes these calls where the driver has no green contexts.
 * BY_A_CROWD: it makes them after clients with partitions of their own have left. BY_NOBODY: no
 * worker makes them; they wait too. */
static const struct listed rows[] = {
    {"cuFuncSetAttribute", CLOSED, BY_ANY},
    {"cuGreenCtxCreate", CLOSED, BY_ANY},
    {"cuGreenCtxDestroy", CLOSED, BY_A_CROWD},
    {"cuGreenCtxStreamCreate", CLOSED, BY_ANY},
    {"cuLaunchKernel", CLOSED, BY_ANY},
    {"cuMemHostRegister", OPEN, BY_ANY},
    {"cuMemHostUnregister", CLOSED, BY_ANY},
    {"cuMemMap", OPEN, BY_ANY},
    {"cuMemSetAccess", OPEN, BY_ANY},
    {"cuMemUnmap", MAY_BE_OPEN, BY_ANY},
    {"cuModuleLoadDataEx", CLOSED, BY_ANY},
    {"cuModuleUnload", CLOSED, BY_ANY},
    {"cuStreamCreateWithPriority", CLOSED, WITHOUT_PARTITIONS},
    {"cuStreamDestroy", CLOSED, BY_A_CROWD},
    {"cuCtxSetLimit", CLOSED, BY_ANY},
    {"cuMemAlloc cuMemFree cuMemFreeHost cuMemHostAlloc", CLOSED, BY_NOBODY},
};

/* $TEST_SEED, or drawn. */
static unsigned first_seed;

/* A row that is played: on both drivers at once. */
struct played {
    pid_t softgpu, shim;
    struct outcome outcomes[2]; /* softgpu's, shim's */
};

/* Both drivers play the same scene, and each row another one. */
static void row_start(size_t row, struct played *played)
{
    unsigned seed = first_seed + (unsigned)row;
    played->softgpu = scene_start(start_softgpu, &rows[row], seed, &played->outcomes[0]);
    played->shim = scene_start(start_shim, &rows[row], seed, &played->outcomes[1]);
}

/* Returns what is wrong with the row; NULL: nothing. */
static const char *row_end(size_t row, const struct played *played)
{
    const struct outcome *outcomes = played->outcomes;
    bool well = scene_end(played->softgpu);
    well = scene_end(played->shim) && well;
    print_message("%s\n", rows[row].waits);
    print_outcome("softgpu", &outcomes[0]);
    print_outcome("shim", &outcomes[1]);
    if (!well)
        return "a scene did not end well";
    if (rows[row].made == BY_NOBODY && outcomes[1].made)
        return "a worker makes such a call, which nobody's scene is known to need";
    if (rows[row].made != BY_NOBODY && !outcomes[1].made)
        return "the call was not made";
    if (rows[row].open == MAY_BE_OPEN)
        return NULL;
    if (!same(&outcomes[0], &outcomes[1]))
        return "the drivers differ";
    bool served = outcomes[0].steps == STEPS_DONE && outcomes[0].went_on;
    if (rows[row].open == OPEN && outcomes[0].went_on)
        return "nobody is stopped any more: the row is not open";
    if (rows[row].open == OPEN)
        return NULL;
    if (served)
        return NULL;
    return outcomes[0].went_on ? "a request waited for another client's kernel"
                               : "launches stood still";
}

/* Rows are played some at a time: most of a scene is waiting. */
static void no_call_that_waits_stops_anybody(void **state)
{
    enum { ROWS = sizeof rows / sizeof *rows, AT_ONCE = 2 };
    unsigned wrong = 0;
    struct played *played = mmap(NULL, ROWS * sizeof *played, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(played != MAP_FAILED);
    for (size_t row = 0; row < AT_ONCE; row++)
        row_start(row, &played[row]);
    for (size_t row = 0; row < ROWS; row++) {
        const char *why = row_end(row, &played[row]);
        if (why)
            print_error("%s: %s\n", rows[row].waits, why);
        wrong += why != NULL;
        if (row + AT_ONCE < ROWS)
            row_start(row + AT_ONCE, &played[row + AT_ONCE]);
    }
    munmap(played, ROWS * sizeof *played);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    server_needs_softgpu();
    first_seed = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_that_waits_stops_anybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
