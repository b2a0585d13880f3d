/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * steady: a client that makes calls of all kinds without a pause, verifies what comes back, and
 * ends with status 1 at the first call that fails or byte that is wrong.
 *
 * usage: steady SEED
 * It prints "ready" when its first round is over. On SIGTERM it frees all that it has, and prints a
 * line "ROUNDS LONGEST": its rounds, and its longest call in microseconds. It leaves when its
 * standard input ends. On SIGUSR1 it stops itself (SIGSTOP) between two rounds, with nothing under
 * way. If it got a SIGUSR2 meanwhile, it launches, copies and verifies ALONE times, by its rings
 * alone, prints "alone", and stops itself again.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"

__asm__(".pushsection .rodata\n"
        "survive_ptx:\n"
        ".incbin \"tests/programs/survive/kernels.ptx\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char survive_ptx[];

enum { WORDS = 256, KEPT = 3, STEP = 7, ALONE = 200 };

static volatile sig_atomic_t enough, rests, works_alone;
static uint64_t longest, begun;
static uint32_t state;

static void stop(int number)
{
    (void)number;
    enough = 1;
}

static void rest(int number)
{
    (void)number;
    rests = 1;
}

static void work_alone(int number)
{
    (void)number;
    works_alone = 1;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint32_t chance(uint32_t below)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static void check(gpushare_error error, const char *call, int line)
{
    uint64_t took = now() - begun;
    if (took > longest)
        longest = took;
    if (!error)
        return;
    fprintf(stderr, "steady %d, line %d: %s: %s\n", (int)getpid(), line, call,
            gpushare_error_text());
    exit(1);
}

#define CALL(call) (begun = now(), check((call), #call, __LINE__))

static void verify(const uint32_t *words, uint32_t wanted, int line)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != wanted + i) {
            fprintf(stderr, "steady %d, line %d: word %u is %u and not %u\n", (int)getpid(), line,
                    i, words[i], wanted + i);
            exit(1);
        }
}

struct kept {
    uint64_t device;
    uint32_t *host, value;
};

static gpushare_connection *gpu;

/* Adds on the device, and reads back through the buffer. */
static void kept_step(struct kept *kept, gpushare_function *add, gpushare_stream *stream)
{
    static const struct gpushare_dim one = {1, 1, 1};
    uint32_t count = WORDS;
    void *parameters[] = {&kept->device, &count};
    CALL(gpushare_launch(add, one, one, 0, stream, parameters));
    kept->value += STEP;
    CALL(gpushare_copy_from_device_async(gpu, kept->host, kept->device, WORDS * 4, stream));
    CALL(gpushare_stream_synchronize(gpu, stream));
    verify(kept->host, kept->value, __LINE__);
}

static void kept_open(struct kept *kept)
{
    CALL(gpushare_memory_alloc(gpu, WORDS * 4 + (uint64_t)chance(3 << 20), &kept->device));
    CALL(gpushare_host_alloc(gpu, WORDS * 4 + chance(1 << 18), (void **)&kept->host));
    kept->value = chance(1 << 30);
    for (unsigned i = 0; i < WORDS; i++)
        kept->host[i] = kept->value + i;
    CALL(gpushare_copy_to_device(gpu, kept->device, kept->host, WORDS * 4));
}

static void kept_close(struct kept *kept)
{
    CALL(gpushare_memory_free(gpu, kept->device));
    CALL(gpushare_host_free(gpu, kept->host));
}

/* Stops, and works in between if it is told to. */
static void take_rest(struct kept kept[KEPT], gpushare_function *add)
{
    rests = 0;
    raise(SIGSTOP);
    if (!works_alone)
        return;
    works_alone = 0;
    for (unsigned i = 0; i < ALONE; i++)
        kept_step(&kept[i % KEPT], add, NULL);
    puts("alone");
    fflush(stdout);
    raise(SIGSTOP);
}

static void round_take(struct kept kept[KEPT], gpushare_function *add)
{
    gpushare_stream *stream;
    gpushare_event *event;
    struct gpushare_memory_info info = {.size = sizeof info};
    unsigned which = chance(KEPT);
    CALL(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &stream));
    CALL(gpushare_event_create(gpu, 0, &event));
    kept_step(&kept[chance(KEPT)], add, stream);
    CALL(gpushare_event_record(event, stream));
    CALL(gpushare_event_synchronize(event));
    if (chance(4) == 0) {
        gpushare_module *module;
        gpushare_function *other;
        CALL(gpushare_module_load(gpu, survive_ptx, strlen(survive_ptx) + 1, &module));
        CALL(gpushare_module_function(module, "add", &other));
        kept_step(&kept[chance(KEPT)], other, NULL);
        CALL(gpushare_module_unload(module));
    }
    if (chance(2) == 0) {
        kept_close(&kept[which]);
        kept_open(&kept[which]);
    }
    CALL(gpushare_memory_info(gpu, &info));
    CALL(gpushare_event_destroy(event));
    CALL(gpushare_stream_destroy(stream));
}

int main(int argc, char **argv)
{
    struct kept kept[KEPT];
    gpushare_module *module;
    gpushare_function *add;
    uint64_t rounds = 0;
    char byte;
    if (argc != 2)
        return 2;
    state = (uint32_t)strtoul(argv[1], NULL, 10);
    signal(SIGTERM, stop);
    signal(SIGUSR1, rest);
    signal(SIGUSR2, work_alone);
    CALL(gpushare_connect(NULL, &gpu));
    CALL(gpushare_module_load(gpu, survive_ptx, strlen(survive_ptx) + 1, &module));
    CALL(gpushare_module_function(module, "add", &add));
    for (unsigned i = 0; i < KEPT; i++)
        kept_open(&kept[i]);
    longest = 0;
    for (; !enough; rounds++) {
        round_take(kept, add);
        if (!rounds) {
            longest = 0;
            puts("ready");
            fflush(stdout);
        }
        if (rests)
            take_rest(kept, add);
    }
    for (unsigned i = 0; i < KEPT; i++)
        kept_step(&kept[i], add, NULL);
    for (unsigned i = 0; i < KEPT; i++)
        kept_close(&kept[i]);
    CALL(gpushare_module_unload(module));
    printf("%" PRIu64 " %" PRIu64 "\n", rounds, longest / 1000);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    gpushare_close(&gpu);
    return 0;
}
