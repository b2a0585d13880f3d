/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A CUDA program (tests/programs/pace) as a client, against the same program straight on the same
 * kind of device, in turn. The launch alone is on the null driver, with the client on CPU 0 and the
 * worker on CPU 1, as in the launch rows.
 *
 * The row of whole programs has examples/unmodified/heat instead, which needs no toolkit either:
 * tests/programs/samples measures NVIDIA's samples, where nvcc is there to build them.
 *
 * No neighbours but there: a program that is alone on its device has none to be compared beside.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum { ROUNDS_MAX = 21 };

struct figures {
    double first, second; /* second: 0 if the program prints one */
};

/* Of the device of a program without a server, which is the steady servers'. */
static const char *const device[] = {"SOFTGPU_STRICT=1",
                                     "SOFTGPU_INSTRUCTION_PS=1",
                                     "SOFTGPU_REALTIME=1",
                                     "SOFTGPU_CONTENTION_PERCENT=0",
                                     "SOFTGPU_VARIATION_PERCENT=0",
                                     NULL};

/* Becomes a program of the build, called with one word. server: NULL: straight on the software GPU.
 * Does not return. */
static void become(const char *program, const char *word, const struct server *server, int out)
{
    char path[600], own[600], soft[600], libraries[1300], seed[48];
    server_build_path("lib/gpushare", own, sizeof own);
    server_build_path("lib/softgpu", soft, sizeof soft);
    server_build_path(program, path, sizeof path);
    if (server) {
        setenv("GPUSHARE_SOCKET", server_socket(server), 1);
        snprintf(libraries, sizeof libraries, "%s", own);
    } else {
        snprintf(libraries, sizeof libraries, "%s:%s", soft, own);
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)bench_seed);
        setenv("SOFTGPU_SEED", seed, 1);
        for (size_t i = 0; device[i]; i++)
            putenv((char *)(uintptr_t)device[i]);
    }
    setenv("LD_LIBRARY_PATH", libraries, 1);
    dup2(out, STDOUT_FILENO);
    execl(path, path, word, (char *)NULL);
    _exit(127);
}

static struct figures run_pace(const char *mode, const struct server *server)
{
    struct figures figures = {0};
    int ends[2], status;
    if (pipe(ends) < 0)
        bench_die("no pipe");
    pid_t child = fork();
    if (child == 0)
        become("tests/programs/pace/pace", mode, server, ends[1]);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    int found = from ? fscanf(from, "%lf %lf", &figures.first, &figures.second) : 0;
    if (from)
        fclose(from);
    if (child < 0 || waitpid(child, &status, 0) != child || status || found < 1)
        bench_die("pace %s could not be measured %s", mode,
                  server ? "as a client" : "on the device itself");
    return figures;
}

/* Program after program, once as a client and once without. */
struct turns {
    double client[ROUNDS_MAX], direct[ROUNDS_MAX];
    double client_second[ROUNDS_MAX], direct_second[ROUNDS_MAX];
    size_t count;
};

static void take_turns(struct turns *turns, const char *mode, size_t rounds)
{
    struct server *server = bench_server_steady(NULL);
    turns->count = bench_short ? 1 : rounds;
    for (size_t i = 0; i < turns->count; i++) {
        struct figures client = run_pace(mode, server), direct = run_pace(mode, NULL);
        turns->client[i] = client.first;
        turns->client_second[i] = client.second;
        turns->direct[i] = direct.first;
        turns->direct_second[i] = direct.second;
    }
    bench_server_stop(server);
}

/* The row's number is what being a client adds. */
static void state_difference(struct bench_result *result, struct turns *turns, const char *unit)
{
    double differences[ROUNDS_MAX];
    for (size_t i = 0; i < turns->count; i++)
        differences[i] = turns->client[i] - turns->direct[i];
    result->value = bench_median(differences, turns->count);
    snprintf(result->note, sizeof result->note, "%.4g %s as a client, %.4g %s on the device itself",
             bench_median(turns->client, turns->count), unit,
             bench_median(turns->direct, turns->count), unit);
}

void bench_dropin_launch(struct bench_result *result)
{
    enum { ROUNDS = 9 };
    double rounds[ROUNDS];
    size_t count = bench_short ? 1 : ROUNDS;
    pid_t workers[4];
    struct server *server = bench_server_null(NULL);
    if (server_workers(server, workers, 4) != 1)
        bench_die("the server has not one worker");
    bench_pin_process(workers[0], 1);
    bench_pin_self(0);
    for (size_t i = 0; i < count; i++)
        rounds[i] = run_pace("launch", server).first;
    bench_pin_self(-1);
    bench_server_stop(server);
    result->value = bench_median(rounds, count);
    snprintf(result->note, sizeof result->note, "from %.4g to %.4g in %zu programs", rounds[0],
             rounds[count - 1], count);
}

void bench_dropin_sync(struct bench_result *result)
{
    struct turns turns;
    /* A program's median depends on which processors its threads get. */
    take_turns(&turns, "sync", ROUNDS_MAX);
    state_difference(result, &turns, "us");
}

void bench_dropin_start(struct bench_result *result)
{
    struct turns turns;
    take_turns(&turns, "start", ROUNDS_MAX);
    state_difference(result, &turns, "ms");
}

static void copy_row(struct bench_result *result, const char *mode)
{
    const double bytes = 2 * (64 << 20); /* up and down */
    struct turns turns;
    take_turns(&turns, mode, 9);
    for (size_t i = 0; i < turns.count; i++) {
        turns.client[i] = bytes / turns.client[i] / 1e9;
        turns.direct[i] = bytes / turns.direct[i] / 1e9;
    }
    bench_pairs(result, turns.client, turns.direct, turns.count);
}

void bench_dropin_copy_pinned(struct bench_result *result)
{
    copy_row(result, "pinned");
}

void bench_dropin_copy_pageable(struct bench_result *result)
{
    copy_row(result, "pageable");
}

void bench_dropin_allocate(struct bench_result *result)
{
    struct turns turns;
    take_turns(&turns, "allocate", 9);
    bench_pairs(result, turns.client, turns.direct, turns.count);
    snprintf(result->note, sizeof result->note, "the first step %.4g ms, on the device itself %.4g",
             bench_median(turns.client_second, turns.count),
             bench_median(turns.direct_second, turns.count));
}

/* Wall time of examples/unmodified/heat, from its start to its exit, in ms: it exits with 0 only if
 * its result is right. */
static double run_whole(const char *steps, const struct server *server)
{
    static const char program[] = "examples/unmodified/heat";
    char path[600];
    int status, nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    server_build_path(program, path, sizeof path);
    if (access(path, X_OK) < 0)
        bench_die("%s is not there: its object is checked in for x86_64, and is linked without a "
                  "sanitizer alone",
                  program);
    double began = bench_now();
    pid_t child = fork();
    if (child == 0)
        become(program, steps, server, nowhere);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        bench_die("%s %s failed %s", program, steps,
                  server ? "as a client" : "on the device itself");
    close(nowhere);
    return (bench_now() - began) * 1e3;
}

/* Four sizes in turn, so that the median is not of one length of a program. */
void bench_dropin_samples(struct bench_result *result)
{
    static const char *const steps[] = {"50", "100", "200", "400"};
    enum { SIZES = sizeof steps / sizeof *steps, ROUNDS = 5 };
    double client[SIZES * ROUNDS], direct[SIZES * ROUNDS];
    size_t count = bench_short ? 1 : SIZES * ROUNDS;
    struct server *server = bench_server_steady(NULL);
    for (size_t i = 0; i < count; i++) {
        client[i] = run_whole(steps[i % SIZES], server);
        direct[i] = run_whole(steps[i % SIZES], NULL);
    }
    bench_server_stop(server);
    bench_pairs(result, client, direct, count);
}
