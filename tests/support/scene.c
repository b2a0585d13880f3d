/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/support/scene.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/kernels.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"

enum {
    KINDS = 6,
    STREAMS_MAX = 250,
    CONNECTIONS = 6,
    GREEDY_USER = 65534,
    POLL_US = 10000,
    PATIENCE_SECONDS = 30,
};

const char *const scene_server_args[] = {"--streams", "256", NULL};

struct shared {
    atomic_ulong rounds[KINDS];
    atomic_bool stop;
};

struct scene {
    unsigned kinds;
    pid_t pids[KINDS];
    struct shared *shared;
};

/* The knowledge of a neighbour's process. */
struct neighbour {
    const char *socket;
    struct shared *shared;
    atomic_ulong *rounds; /* its own */
    unsigned kinds;       /* of the scene */
    unsigned random;
    bool may_fail; /* a neighbour's fault takes its worker */
};

#define TRY(call)                                                                                  \
    do {                                                                                           \
        gpushare_error try_error = (call);                                                         \
        if (try_error != GPUSHARE_SUCCESS)                                                         \
            return try_error;                                                                      \
    } while (0)

static const struct gpushare_dim one = {1, 1, 1};

static unsigned draw(struct neighbour *me, unsigned from, unsigned to)
{
    return from + (unsigned)rand_r(&me->random) % (to - from + 1);
}

static bool stopped(const struct neighbour *me)
{
    return atomic_load(&me->shared->stop);
}

static void end_round(struct neighbour *me)
{
    atomic_fetch_add(me->rounds, 1);
}

static int polls(void)
{
    return (int)(patience_seconds(PATIENCE_SECONDS) * 1e6 / POLL_US);
}

/* A worker that follows one that was lost is still starting: the server says so. */
static gpushare_error connect_to(struct neighbour *me, gpushare_connection **gpu)
{
    /* With limits, so that many find addresses: a server under ThreadSanitizer has only 128 GiB. */
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = me->socket,
                                       .name = "unkind",
                                       .memory_limit = UINT64_C(1) << 30,
                                       .host_memory_limit = UINT64_C(1) << 28};
    gpushare_error error = gpushare_connect(&options, gpu);
    for (int i = polls(); i && error == GPUSHARE_ERROR_DEVICE_NOT_READY; i--) {
        usleep(POLL_US);
        error = gpushare_connect(&options, gpu);
    }
    return error;
}

static gpushare_error load(gpushare_connection *gpu, const char *kernel,
                           gpushare_function **function)
{
    gpushare_module *module;
    TRY(gpushare_module_load(gpu, kernels_ptx, 0, &module));
    return gpushare_module_function(module, kernel, function);
}

static gpushare_error sleep_on_device(gpushare_function *milliseconds, gpushare_stream *stream,
                                      uint32_t count)
{
    void *parameters[] = {&count};
    return gpushare_launch(milliseconds, one, one, 0, stream, parameters);
}

/* ---- the kinds: each works on a connection until it is told to stop, or a call fails ---- */

/* Others' rounds have to fit between two faults. On busy CPUs, or under a sanitizer, a worker takes
 * seconds to start, to compile and to take six connections. */
static void await_others(const struct neighbour *me)
{
    unsigned long before[KINDS];
    for (unsigned i = 0; i < KINDS; i++)
        before[i] = atomic_load(&me->shared->rounds[i]);
    int left = polls();
    for (unsigned i = 0; i < KINDS; i++)
        while (me->kinds & 1u << i && me->rounds != &me->shared->rounds[i] && !stopped(me) &&
               left-- > 0 && atomic_load(&me->shared->rounds[i]) == before[i])
            usleep(POLL_US);
}

static gpushare_error fault(struct neighbour *me, gpushare_connection *gpu)
{
    gpushare_function *trapped;
    TRY(load(gpu, "trapped", &trapped));
    await_others(me);
    usleep(draw(me, 100, 400) * 1000);
    TRY(gpushare_launch(trapped, one, one, 0, NULL, NULL));
    gpushare_error error = gpushare_synchronize(gpu);
    if (error)
        end_round(me);
    return error;
}

static gpushare_error loop(struct neighbour *me, gpushare_connection *gpu)
{
    struct gpushare_dim block = {1024, 1, 1};
    gpushare_function *until;
    void *page;
    TRY(gpushare_host_alloc(gpu, 4096, &page));
    TRY(load(gpu, "until", &until));
    _Atomic uint32_t *word = page;
    uint64_t address = (uint64_t)(uintptr_t)page;
    void *parameters[] = {&address};
    while (!stopped(me)) {
        atomic_store(word, 0);
        TRY(gpushare_launch(until, one, block, 0, NULL, parameters));
        usleep(draw(me, 50, 300) * 1000);
        atomic_store(word, 1);
        TRY(gpushare_synchronize(gpu));
        end_round(me);
        usleep(draw(me, 1, 20) * 1000);
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error pause_often(struct neighbour *me, gpushare_connection *gpu)
{
    gpushare_function *milliseconds;
    TRY(load(gpu, "milliseconds", &milliseconds));
    while (!stopped(me)) {
        for (unsigned i = draw(me, 1, 20); i; i--)
            TRY(sleep_on_device(milliseconds, NULL, draw(me, 1, 3)));
        if (draw(me, 0, 1))
            TRY(gpushare_synchronize(gpu));
        usleep(draw(me, 1, 50) * 1000);
        TRY(gpushare_synchronize(gpu));
        end_round(me);
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error visit(struct neighbour *me, gpushare_connection *gpu)
{
    gpushare_function *milliseconds;
    gpushare_address memory;
    TRY(load(gpu, "milliseconds", &milliseconds));
    TRY(gpushare_memory_alloc(gpu, (uint64_t)draw(me, 1, 64) << 20, &memory));
    for (unsigned i = draw(me, 1, 20); i; i--)
        TRY(sleep_on_device(milliseconds, NULL, 1));
    bool word = draw(me, 0, 1);
    if (word)
        TRY(gpushare_synchronize(gpu));
    end_round(me);
    if (!word)
        _exit(0);
    return GPUSHARE_SUCCESS;
}

static gpushare_error use_streams(struct neighbour *me, gpushare_connection *gpu)
{
    gpushare_function *milliseconds;
    gpushare_stream *streams[STREAMS_MAX];
    unsigned count = draw(me, 150, STREAMS_MAX);
    TRY(load(gpu, "milliseconds", &milliseconds));
    for (unsigned i = 0; i < count; i++)
        TRY(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]));
    while (!stopped(me)) {
        for (unsigned i = 0; i < count && !stopped(me); i++)
            TRY(sleep_on_device(milliseconds, streams[i], 1));
        TRY(gpushare_synchronize(gpu));
        end_round(me);
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error be_greedy(struct neighbour *me, gpushare_connection *gpu)
{
    gpushare_connection *all[CONNECTIONS] = {gpu};
    gpushare_function *milliseconds[CONNECTIONS];
    gpushare_address memory;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        if (i)
            TRY(connect_to(me, &all[i]));
        TRY(load(all[i], "milliseconds", &milliseconds[i]));
        TRY(gpushare_memory_alloc(all[i], (uint64_t)draw(me, 16, 256) << 20, &memory));
    }
    while (!stopped(me)) {
        for (unsigned n = draw(me, 8, 16); n; n--)
            for (unsigned i = 0; i < CONNECTIONS; i++)
                TRY(sleep_on_device(milliseconds[i], NULL, draw(me, 1, 3)));
        TRY(gpushare_synchronize(all[draw(me, 0, CONNECTIONS - 1)]));
        end_round(me);
    }
    for (unsigned i = 1; i < CONNECTIONS; i++)
        gpushare_close(&all[i]);
    return GPUSHARE_SUCCESS;
}

static const struct kind {
    const char *name;
    gpushare_error (*work)(struct neighbour *me, gpushare_connection *gpu);
} kinds[KINDS] = {
    {"faults", fault}, {"loops", loop},          {"pauses", pause_often},
    {"visits", visit}, {"streams", use_streams}, {"greedy", be_greedy},
};

const char *scene_name(unsigned kind)
{
    for (unsigned i = 0; i < KINDS; i++)
        if (kind == 1u << i)
            return kinds[i].name;
    return "none";
}

/* ---- their processes ---- */

/* One connection, from its beginning to its end, in a process of its own: what a failed call left
 * open ends with it. Returns its exit status. */
static int live_once(struct neighbour *me, const struct kind *kind)
{
    gpushare_connection *gpu;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpushare_error error = connect_to(me, &gpu);
    if (!error)
        error = kind->work(me, gpu);
    if (!error) {
        gpushare_close(&gpu);
        return 0;
    }
    if (me->may_fail)
        return 0;
    fprintf(stderr, "a neighbour that %s: %s: %s\n", kind->name, gpushare_error_name(error),
            gpushare_error_text());
    return 1;
}

static int live(struct neighbour *me, const struct kind *kind)
{
    if (kind->work == be_greedy && geteuid() == 0 && seteuid(GREEDY_USER) != 0)
        return 1;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after seteuid, which takes it back */
    while (!stopped(me)) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(live_once(me, kind));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            return 1;
        me->random++; /* each life draws anew */
    }
    return 0;
}

static bool wait_round(const struct scene *scene, unsigned kind, unsigned long above)
{
    for (int i = polls(); i; i--) {
        siginfo_t ended = {0};
        if (atomic_load(&scene->shared->rounds[kind]) > above)
            return true;
        waitid(P_PID, (id_t)scene->pids[kind], &ended, WEXITED | WNOHANG | WNOWAIT);
        if (ended.si_pid)
            break;
        usleep(POLL_US);
    }
    fprintf(stderr, "a neighbour that %s came to its end, or to a rest, after %lu rounds\n",
            kinds[kind].name, above);
    return false;
}

struct scene *scene_begin(const struct server *server, unsigned which)
{
    struct scene *scene = calloc(1, sizeof *scene);
    void *page = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!scene || page == MAP_FAILED)
        abort();
    unsigned seed = seed_draw();
    scene->kinds = which;
    scene->shared = page;
    for (unsigned i = 0; i < KINDS; i++) {
        if (!(which & 1u << i))
            continue;
        struct neighbour me = {.socket = server_socket(server),
                               .shared = scene->shared,
                               .rounds = &scene->shared->rounds[i],
                               .kinds = which,
                               .random = seed + 1000 * i,
                               .may_fail = which & SCENE_FAULTS};
        scene->pids[i] = fork();
        if (scene->pids[i] == 0)
            _exit(live(&me, &kinds[i]));
        if (scene->pids[i] < 0)
            abort();
    }
    for (unsigned i = 0; i < KINDS; i++)
        if (which & 1u << i && !wait_round(scene, i, 0))
            abort();
    return scene;
}

int scene_end(struct scene *scene)
{
    int result = 0;
    for (unsigned i = 0; i < KINDS; i++)
        if (scene->kinds & 1u << i && !wait_round(scene, i, scene->shared->rounds[i])) {
            kill(scene->pids[i], SIGKILL);
            result = 1;
        }
    atomic_store(&scene->shared->stop, true);
    for (unsigned i = 0; i < KINDS; i++) {
        int status;
        if (scene->kinds & 1u << i && waitpid(scene->pids[i], &status, 0) == scene->pids[i] &&
            status)
            result = 1;
    }
    munmap(scene->shared, sizeof *scene->shared);
    free(scene);
    return result;
}
