/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The thread of the worker that makes each call of the driver, and how many mutexes it holds, while
 * clients come, allocate, load, launch and go at random. tests/programs/held watches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/ok.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

enum { CLIENTS = 4, ROUNDS = 6, STEPS = 30, HELD_AT_ONCE = 8 };

static const char ptx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .entry short(.param .u32 count)\n"
    "{\n.reg .u32 %n;\nld.param.u32 %n, [count];\nnanosleep.u32 100000;\nret;\n}\n";

static struct server *server;
static char folder[] = "/tmp/gpushare-held-XXXXXX";
static char report[PATH_MAX], script[PATH_MAX];

static int setup(void **state)
{
    static const char *args[5];
    static char held[PATH_MAX];
    char worker[PATH_MAX], driver[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(report, sizeof report, "%s/report", folder);
    snprintf(script, sizeof script, "%s/worker", folder);
    server_build_path("tests/programs/held/held.so", held, sizeof held);
    FILE *file = fopen(script, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec env LD_PRELOAD=%s HELD_REPORT=%s HELD_DRIVER=%s %s \"$@\"\n",
            held, report, server_build_path("lib/softgpu/libcuda.so.1", driver, sizeof driver),
            server_build_path("libexec/gpushare-worker", worker, sizeof worker));
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(script, 0700), 0);
    args[0] = "--worker";
    args[1] = script;
    args[2] = "--driver";
    args[3] = held;
    static const char *const env[] = {"SOFTGPU_CONTEXT_LOCK=1", NULL};
    server = server_start(args, env);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    int status = server_stop(server);
    unlink(report);
    unlink(script);
    rmdir(folder);
    return status;
}

/* ---- the scene ---- */

static atomic_uint actors_ended;

struct actor {
    pthread_t thread;
    uint64_t random;
};

static uint32_t draw(struct actor *actor, uint32_t below)
{
    actor->random = actor->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(actor->random >> 33) % below;
}

struct belongings {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *function;
    gpushare_address memory[HELD_AT_ONCE];
    void *host[HELD_AT_ONCE];
    gpushare_stream *streams[HELD_AT_ONCE];
};

static void load(struct belongings *own)
{
    OK(gpushare_module_load(own->gpu, ptx, 0, &own->module));
    OK(gpushare_module_function(own->module, "short", &own->function));
}

static void launch(struct belongings *own, gpushare_stream *stream)
{
    struct gpushare_dim grid = {32, 1, 1}, block = {64, 1, 1};
    uint32_t count = 1;
    void *parameters[] = {&count};
    OK(gpushare_launch(own->function, grid, block, 0, stream, parameters));
}

static void event(struct belongings *own)
{
    gpushare_event *start, *end;
    double milliseconds;
    OK(gpushare_event_create(own->gpu, GPUSHARE_EVENT_TIMING, &start));
    OK(gpushare_event_create(own->gpu, GPUSHARE_EVENT_TIMING, &end));
    OK(gpushare_event_record(start, NULL));
    launch(own, NULL);
    OK(gpushare_event_record(end, NULL));
    OK(gpushare_event_synchronize(end));
    OK(gpushare_event_elapsed(start, end, &milliseconds));
    OK(gpushare_event_destroy(start));
    OK(gpushare_event_destroy(end));
}

static void toggle_memory(struct actor *actor, struct belongings *own, uint32_t slot)
{
    if (own->memory[slot]) {
        OK(gpushare_memory_free(own->gpu, own->memory[slot]));
        own->memory[slot] = 0;
    } else {
        OK(gpushare_memory_alloc(own->gpu, UINT64_C(4096) << draw(actor, 12), &own->memory[slot]));
    }
}

static void step(struct actor *actor, struct belongings *own)
{
    uint32_t slot = draw(actor, HELD_AT_ONCE);
    uint32_t blocks;
    gpushare_address address;
    uint64_t count;
    switch (draw(actor, 9)) {
    case 0:
        toggle_memory(actor, own, slot);
        break;
    case 1:
        if (own->host[slot])
            OK(gpushare_host_free(own->gpu, own->host[slot]));
        own->host[slot] = NULL;
        OK(gpushare_host_alloc(own->gpu, UINT64_C(65536) << draw(actor, 6), &own->host[slot]));
        break;
    case 2:
        if (own->streams[slot])
            OK(gpushare_stream_destroy(own->streams[slot]));
        own->streams[slot] = NULL;
        OK(gpushare_stream_create(own->gpu, 0, 0, &own->streams[slot]));
        break;
    case 3:
        OK(gpushare_module_unload(own->module));
        load(own);
        break;
    case 4:
        OK(gpushare_function_set_shared(own->function, 1024 * (1 + slot)));
        OK(gpushare_occupancy(own->function, 64, 0, &blocks));
        break;
    case 5:
        OK(gpushare_module_variable(own->module, "counter", &address, &count));
        OK(gpushare_fill(own->gpu, address, 0, 1, 4));
        break;
    case 6:
        event(own);
        break;
    default:
        launch(own, own->streams[slot]);
        break;
    }
}

static void *act(void *context)
{
    struct actor *actor = context;
    for (int round = 0; round < ROUNDS; round++) {
        struct belongings own = {.gpu = NULL};
        struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
        OK(gpushare_connect(&options, &own.gpu));
        load(&own);
        for (int i = 0; i < STEPS; i++)
            step(actor, &own);
        OK(gpushare_synchronize(own.gpu));
        gpushare_close(&own.gpu);
    }
    atomic_fetch_add(&actors_ended, 1);
    return NULL;
}

/* Other multiprocessors: partitions are made and dropped. False: the client has gone. */
static bool set_threads(uint32_t client, uint32_t percent)
{
    char program[PATH_MAX], command[2 * PATH_MAX];
    snprintf(command, sizeof command, "%s --socket %s set %u threads.limit=%u%% >/dev/null 2>&1",
             server_build_path("bin/gpusharectl", program, sizeof program),
             server_admin_socket(server), client, percent);
    int status = system(command);
    assert_true(status >= 0);
    return !status;
}

/* Clients come and go with rising numbers, so a number that is refused is of one that has gone, or
 * of one that is still to come. Returns the number of changes that were made. */
static unsigned change_threads_until_the_end(void)
{
    unsigned changed = 0;
    for (uint32_t i = 0; atomic_load(&actors_ended) < CLIENTS; i++)
        changed += set_threads(1 + i % (ROUNDS * CLIENTS), 10 + 7 * i % 90);
    return changed;
}

/* ---- what was seen ---- */

struct rule {
    const char *thread, *call; /* NULL: any */
};

static bool is_in(const struct rule *rules, size_t count, const char *thread, const char *call)
{
    for (size_t i = 0; i < count; i++)
        if ((!rules[i].thread || !strcmp(rules[i].thread, thread)) &&
            (!rules[i].call || !strcmp(rules[i].call, call)))
            return true;
    return false;
}

#define IS_IN(rules, thread, call) is_in(rules, sizeof rules / sizeof *rules, thread, call)

/* Calls that wait for the device, but those that clear memory with a copy engine. */
static const struct rule drains[] = {
    {NULL, "cuModuleLoadDataEx"}, {NULL, "cuModuleUnload"},   {NULL, "cuMemHostUnregister"},
    {NULL, "cuMemFreeHost"},      {NULL, "cuMemFree"},        {NULL, "cuCtxSetLimit"},
    {NULL, "cuCtxSynchronize"},   {NULL, "cuGreenCtxCreate"},
};

/* Calls that wait on some drivers. Where this one does not, the caller thread makes them
 * (test_openly.c). */
static const struct rule unsure[] = {
    {NULL, "cuStreamCreateWithPriority"}, {NULL, "cuStreamCreate"},
    {NULL, "cuGreenCtxStreamCreate"},     {NULL, "cuStreamDestroy"},
    {NULL, "cuGreenCtxDestroy"},
};

/* Those of them that the scene must have made, or it showed nothing about them. */
static const char *const awaited[] = {
    "cuModuleLoadDataEx", "cuModuleUnload",     "cuMemHostUnregister", "cuGreenCtxCreate",
    "cuLaunchKernel",     "cuStreamBatchMemOp", "cuEventRecord",       "cuEventElapsedTime"};
enum { AWAITED = sizeof awaited / sizeof *awaited };

/* The submitter makes them under its client's lock, for what a command names must stay until the
 * driver has it. They wait for no kernel, but take the context's lock. */
static const struct rule submissions[] = {
    {"submitter", "cuLaunchKernel"},     {"submitter", "cuMemcpyAsync"},
    {"submitter", "cuMemsetD8Async"},    {"submitter", "cuMemsetD16Async"},
    {"submitter", "cuMemsetD32Async"},   {"submitter", "cuStreamWaitEvent"},
    {"submitter", "cuStreamBatchMemOp"}, {"submitter", "cuEventRecord"},
};

/* They neither wait nor take the context's lock. */
static const struct rule questions[] = {
    {NULL, "cuEventQuery"}, {NULL, "cuEventElapsedTime"}, {NULL, "cuStreamQuery"}};

static const char *judge(const char *thread, const char *call, int held)
{
    if (IS_IN(submissions, thread, call) || IS_IN(questions, thread, call))
        return held > 1 ? "a second lock is held" : NULL;
    if (held)
        return "a lock is held";
    if (!strcmp(call, "cuMemsetD8"))
        return "memory is filled by a kernel";
    if (!strcmp(thread, "control") || !strcmp(thread, "submitter") || !strcmp(thread, "completer"))
        return "this thread must not wait for the context";
    if (IS_IN(drains, thread, call) && strcmp(thread, "quiet"))
        return "the call waits for the device, outside of a quiet window";
    if (IS_IN(unsure, thread, call) && strcmp(thread, "quiet") && strcmp(thread, "caller"))
        return "this thread must not make a call that may wait";
    return NULL;
}

static void no_call_is_made_by_a_thread_that_must_not_wait(void **state)
{
    (void)state;
    struct actor actors[CLIENTS] = {0};
    char thread[32], call[64];
    unsigned lines = 0, wrong = 0, caller = 0, quiet = 0, seen[AWAITED] = {0};
    int held;
    uint64_t seed = seed_draw();
    for (uint32_t i = 0; i < CLIENTS; i++) {
        actors[i].random = seed * CLIENTS + i;
        assert_int_equal(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    }
    unsigned changed = change_threads_until_the_end();
    for (uint32_t i = 0; i < CLIENTS; i++)
        pthread_join(actors[i].thread, NULL);
    FILE *file = fopen(report, "re");
    assert_non_null(file);
    while (fscanf(file, "%31s %63s %d", thread, call, &held) == 3) {
        const char *why = judge(thread, call, held);
        lines++;
        caller += !strcmp(thread, "caller");
        quiet += !strcmp(thread, "quiet");
        for (size_t i = 0; i < AWAITED; i++)
            seen[i] += !strcmp(call, awaited[i]);
        wrong += why != NULL;
        if (why)
            print_message("%s: %s with %d locks: %s\n", thread, call, held, why);
    }
    fclose(file);
    assert_int_equal(wrong, 0);
    /* Otherwise nothing was watched. */
    assert_true(lines > 15 && caller > 8 && quiet >= 3 && changed > 0);
    for (size_t i = 0; i < AWAITED; i++)
        if (!seen[i])
            fail_msg("%s was never called", awaited[i]);
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("a sanitizer has to be preloaded first\n");
    return 77;
#endif
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_is_made_by_a_thread_that_must_not_wait),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
