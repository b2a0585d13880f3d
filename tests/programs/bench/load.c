/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/load.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

enum {
    CALIBRATIONS = 32,
    STEP_NS = 1000 /* of the device's clock */,
    START_SECONDS = 60,
    STOP_SECONDS = 120,
    POLL_NS = 1000000,
    GAP_NS = 10000 /* load_ns_joined */
};

/* The device's clock against CLOCK_MONOTONIC, measured once: later clients may be held. */
static struct {
    bool known;
    int64_t offset;
} device_clock;

static uint32_t get(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void put(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static void pause_ns(uint64_t ns)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        NULL);
}

static int64_t host_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the child ---- */

/* The words of a launch's first block. */
static struct span *words_of(const struct load *child, uint32_t launch)
{
    return &child->log[(size_t)(launch % child->spec.most) * child->spec.blocks];
}

uint32_t load_launch(struct load *child, uint64_t ns)
{
    uint32_t number = child->page->launches;
    struct gpushare_dim grid = {child->spec.blocks, 1, 1}, block = {1, 1, 1};
    uint64_t at = (uint64_t)(uintptr_t)words_of(child, number);
    uint64_t counted = (uint64_t)(uintptr_t)child->counted;
    void *parameters[] = {&at, &counted, &ns};
    if (number - (child->spec.endless ? child->page->whole : 0) == child->spec.most)
        bench_die("%s: more than %u launches", child->spec.name, number);
    if (!number)
        child->page->arrived = (uint64_t)(host_ns() + child->page->offset);
    gpushare_stream *stream = child->streams ? child->streams[number % child->spec.streams] : NULL;
    BENCH_CHECK(gpushare_launch(child->function, grid, block, child->shared, stream, parameters));
    put(&child->page->launches, number + 1);
    return number;
}

bool load_done(const struct load *child, uint32_t launch)
{
    const struct span *at = words_of(child, launch);
    for (uint32_t i = 0; i < child->spec.blocks; i++)
        if (!get(&at[i].done))
            return false;
    return true;
}

bool load_stopped(const struct load *child)
{
    return get(&child->page->stop);
}

bool load_resting(const struct load *child)
{
    return get(&child->page->rest);
}

void load_publish(struct load *child)
{
    const size_t bytes = child->spec.blocks * sizeof *child->log;
    uint32_t whole = child->page->whole;
    for (; whole < child->page->launches && load_done(child, whole); whole++)
        if (child->spec.endless)
            memset(words_of(child, whole), 0, bytes);
        else
            memcpy(&child->spans[(size_t)whole * child->spec.blocks], words_of(child, whole),
                   bytes);
    put(&child->page->whole, whole);
    put(&child->page->ran, whole);
}

/* One stream may be far ahead of another when the client ends; its kernels count too. */
static void publish_beyond_whole(struct load *child)
{
    const size_t blocks = child->spec.blocks;
    uint32_t ran = child->page->whole;
    for (uint32_t i = ran; i < child->page->launches; i++)
        if (load_done(child, i))
            memcpy(&child->spans[ran++ * blocks], words_of(child, i), blocks * sizeof *child->log);
    put(&child->page->ran, ran);
}

bool load_wait(struct load *child, uint32_t launch)
{
    while (launch >= child->page->whole && !load_done(child, launch)) {
        if (load_stopped(child))
            return false;
        pause_ns(POLL_NS);
        load_publish(child);
    }
    return true;
}

void load_tell(struct load *child, double time)
{
    if (child->page->times < LOAD_TIMES)
        child->page->time[child->page->times++] = time;
}

void load_tell_seen(struct load *child, double time)
{
    if (child->page->times && child->page->times < LOAD_TIMES)
        child->page->seen[child->page->times - 1] = time;
}

static void behave(struct load *child)
{
    const uint32_t depth = child->spec.depth;
    while (!load_stopped(child)) {
        uint32_t number = child->page->launches;
        if (load_resting(child)) {
            pause_ns(POLL_NS);
            load_publish(child);
        } else if (number < depth || load_wait(child, number - depth)) {
            load_launch(child, child->spec.kernel_ns);
        }
    }
}

/* A kernel begins after its call; the shortest such delay that is seen counts as none. On a busy
 * machine half a round trip would be a much worse guess. */
static void calibrate(struct load *child)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < CALIBRATIONS; i++) {
        int64_t before = host_ns();
        load_launch(child, STEP_NS);
        BENCH_CHECK(gpushare_synchronize(child->gpu));
        if ((int64_t)child->log[0].begin - before < least)
            least = (int64_t)child->log[0].begin - before;
        put(&child->page->launches, 0);
    }
    child->page->offset = least;
    memset(child->log, 0, child->spec.blocks * sizeof *child->log);
    *child->counted = 0;
}

static void child_open(struct load *child, const struct server *server)
{
    const struct load_spec *spec = &child->spec;
    struct gpushare_limits limits = {.size = sizeof limits};
    struct gpushare_options options = {
        .size = sizeof options, .socket = server_socket(server), .name = spec->name};
    void *words;
    for (size_t i = 0; spec->env && spec->env[i]; i++)
        if (putenv(strdup(spec->env[i])))
            bench_die("out of memory");
    BENCH_CHECK(gpushare_connect(&options, &child->gpu));
    BENCH_CHECK(gpushare_limits(child->gpu, &limits));
    child->page->client = limits.client;
    child->page->multiprocessors = limits.multiprocessors;
    child->function = bench_function(child->gpu, "span");
    if (spec->whole_sm) {
        struct gpushare_device device = {.size = sizeof device};
        BENCH_CHECK(gpushare_device(child->gpu, &device));
        child->shared = device.block_shared_optin;
        BENCH_CHECK(gpushare_function_set_shared(child->function, child->shared));
    }
    BENCH_CHECK(gpushare_host_alloc(
        child->gpu, 64 + (uint64_t)spec->most * spec->blocks * sizeof *child->log, &words));
    if (spec->streams) {
        child->streams = calloc(spec->streams, sizeof(gpushare_stream *));
        for (uint32_t i = 0; child->streams && i < spec->streams; i++)
            BENCH_CHECK(gpushare_stream_create(child->gpu, GPUSHARE_STREAM_NON_BLOCKING, 0,
                                               &child->streams[i]));
    }
    child->counted = words;
    child->log = (struct span *)((char *)words + 64);
    if (!device_clock.known)
        calibrate(child);
    else
        child->page->offset = device_clock.offset;
}

/* Launches of one stream end in order, so words that follow a launch which lacks some belong to a
 * lost launch. Of several streams only a client that drains knows. */
static void child_report(struct load *child)
{
    struct load_page *page = child->page;
    if (child->spec.drain)
        BENCH_CHECK(gpushare_synchronize(child->gpu));
    load_publish(child);
    uint32_t issued = page->launches, last = issued;
    while (last > page->whole && !load_done(child, last - 1))
        last--;
    load_publish(child);
    if (last > page->whole && !child->streams)
        bench_die("%s: launch %u of %u was lost", child->spec.name, page->whole, issued);
    if (!child->spec.endless)
        publish_beyond_whole(child);
    page->blocks_counted = get(child->counted);
    if (child->spec.drain &&
        (page->whole != issued || page->blocks_counted != issued * child->spec.blocks))
        bench_die("%s: %u launches of %u blocks, %u whole, %u blocks counted", child->spec.name,
                  issued, child->spec.blocks, page->whole, page->blocks_counted);
}

_Noreturn static void child_main(struct load *child, const struct server *server, pid_t parent)
{
    uint32_t uid = child->spec.uid;
    if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
        bench_die("%s: no other user than this program's: %s", child->spec.name, strerror(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user's process has it no more */
    if (getppid() != parent)
        _exit(1);
    child_open(child, server);
    put(&child->page->ready, 1);
    (child->spec.behave ? child->spec.behave : behave)(child);
    child_report(child);
    gpushare_close(&child->gpu);
    _exit(0);
}

/* ---- the parent ---- */

static void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("out of memory");
    return memory;
}

static size_t spans_bytes(const struct load_spec *spec)
{
    return (size_t)spec->most * spec->blocks * sizeof(struct span);
}

static void check_alive(const struct load *load)
{
    int status;
    if (waitpid(load->pid, &status, WNOHANG) == load->pid)
        bench_die("client %s ended early (status %#x)", load->spec.name, (unsigned)status);
}

struct load *load_start(const struct server *server, const struct load_spec *spec)
{
    struct load *load = calloc(1, sizeof *load);
    pid_t parent = getpid();
    if (!load)
        bench_die("out of memory");
    load->spec = *spec;
    if (!load->spec.blocks)
        load->spec.blocks = 1;
    if (!load->spec.depth)
        load->spec.depth = spec->kernel_ns < 8000000 ? (uint32_t)(25000000 / spec->kernel_ns) : 3;
    load->page = shared_memory(sizeof *load->page);
    load->page->rest = 1;
    load->spans = shared_memory(spans_bytes(&load->spec));
    fflush(NULL); /* otherwise the child would write the same text a second time */
    load->pid = fork();
    if (load->pid < 0)
        bench_die("no process for a client");
    if (!load->pid)
        child_main(load, server, parent);
    for (double end = bench_now() + START_SECONDS; !get(&load->page->ready); pause_ns(POLL_NS)) {
        check_alive(load);
        if (bench_now() > end)
            bench_die("client %s could not begin within %d s", spec->name, START_SECONDS);
    }
    device_clock.known = true;
    device_clock.offset = load->page->offset;
    return load;
}

void load_go(struct load *load)
{
    put(&load->page->rest, 0);
}

void load_rest(struct load *load)
{
    put(&load->page->rest, 1);
}

void load_settle(struct load *load)
{
    for (double end = bench_now() + STOP_SECONDS; load_whole(load) != get(&load->page->launches);
         pause_ns(POLL_NS)) {
        check_alive(load);
        if (bench_now() > end)
            bench_die("client %s: its work does not end", load->spec.name);
    }
}

void load_stop(struct load *load)
{
    put(&load->page->stop, 1);
    load_finish(load);
}

void load_finish(struct load *load)
{
    int status;
    pid_t ended;
    for (double end = bench_now() + STOP_SECONDS;
         !(ended = waitpid(load->pid, &status, WNOHANG)) && bench_now() < end;)
        pause_ns(POLL_NS);
    if (ended != load->pid || status)
        bench_die("client %s did not end well (status %#x)", load->spec.name,
                  ended == load->pid ? (unsigned)status : 0);
}

void load_free(struct load *load)
{
    munmap(load->page, sizeof *load->page);
    munmap(load->spans, spans_bytes(&load->spec));
    free(load);
}

size_t load_spans(const struct load *load)
{
    return (size_t)get(&load->page->ran) * load->spec.blocks;
}

uint32_t load_whole(const struct load *load)
{
    return get(&load->page->whole);
}

uint64_t load_device_time(const struct load *load, double seconds)
{
    return (uint64_t)((int64_t)(seconds * 1e9) + load->page->offset);
}

uint64_t load_ns(const struct load *load, uint64_t from, uint64_t to)
{
    return span_sum(load->spans, load_spans(load), from, to);
}

uint64_t load_ns_joined(const struct load *load, uint64_t from, uint64_t to)
{
    return span_sum_joined(load->spans, load_spans(load), from, to, GAP_NS);
}

/* All clients' spans, for the caller to free. */
static struct span *join_spans(struct load *const *loads, int count, size_t *all)
{
    size_t used = 0;
    *all = 0;
    for (int i = 0; i < count; i++)
        *all += load_spans(loads[i]);
    struct span *spans = calloc(*all + 1, sizeof *spans);
    if (!spans)
        bench_die("out of memory");
    for (int i = 0; i < count; i++) {
        memcpy(spans + used, loads[i]->spans, load_spans(loads[i]) * sizeof *spans);
        used += load_spans(loads[i]);
    }
    return spans;
}

typedef int64_t sum_function(const struct span *spans, size_t count, uint64_t from, uint64_t to);

static double part_of_time(struct load *const *loads, int count, uint64_t from, uint64_t to,
                           sum_function *sum)
{
    size_t all;
    struct span *spans = join_spans(loads, count, &all);
    int64_t ns = sum(spans, all, from, to);
    free(spans);
    if (ns < 0)
        bench_die("out of memory");
    return (double)ns / (double)(to - from);
}

double load_single(struct load *const *loads, int count, uint64_t from, uint64_t to)
{
    return part_of_time(loads, count, from, to, span_single);
}

double load_any(struct load *const *loads, int count, uint64_t from, uint64_t to)
{
    return part_of_time(loads, count, from, to, span_any);
}
