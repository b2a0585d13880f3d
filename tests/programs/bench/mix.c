/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/mix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/bench.h"

enum {
    STREAMS = 2,
    LAUNCHES_MAX = 1 << 15,
    COPY_BYTES = 64 << 10,
    WINDOW_STEPS = 7, /* windows begin so often in a plan; a prime, so at other moments of leases */
    IN_FLIGHT_NS = 30000000,
    LOOK_NS =
        2000000, /* load_wait looks each millisecond: the bench's own delay, not the server's */
    SETTLE_US = 200000, /* until the kernels that ran at the end have written their words */
};

double mix_plan(const struct mix *mix)
{
    return mix->lease_ms * 20 / 1e3;
}

/* ---- in a client's process ---- */

static uint64_t draw_log(uint64_t *state, uint64_t least, uint64_t most)
{
    double part = (double)bench_draw(state, 0, 1 << 20) / (1 << 20);
    return (uint64_t)((double)least * exp2(part * log2((double)most / (double)least)));
}

struct copying {
    void *host;
    gpushare_address device;
};

static struct copying copy_open(struct load *child, bool copies)
{
    struct copying copying = {0};
    if (copies) {
        BENCH_CHECK(gpushare_host_alloc(child->gpu, COPY_BYTES, &copying.host));
        BENCH_CHECK(gpushare_memory_alloc(child->gpu, COPY_BYTES, &copying.device));
    }
    return copying;
}

static void sleep_ns(uint64_t ns)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        NULL);
}

static bool wait_for_all(struct load *child)
{
    uint32_t launches = child->page->launches;
    for (uint32_t i = launches > STREAMS ? launches - STREAMS : 0; i < launches; i++)
        if (!load_wait(child, i))
            return false;
    return true;
}

/* Tells when each burst begins; its kernels are known by their number. */
static void live(struct load *child)
{
    const struct mix_client *client = child->spec.context;
    uint64_t state = client->seed;
    struct copying copying = copy_open(child, client->copies);
    while (load_resting(child) && !load_stopped(child))
        sleep_ns(1000000);
    while (!load_stopped(child)) {
        uint32_t number = child->page->launches;
        if (client->pause_most)
            load_tell(child, bench_now());
        else if (number >= child->spec.depth && !load_wait(child, number - child->spec.depth))
            return;
        for (uint32_t i = 0; i < client->burst; i++)
            load_launch(child, draw_log(&state, client->shortest, client->longest));
        if (copying.host)
            BENCH_CHECK(gpushare_copy_to_device_async(child->gpu, copying.device, copying.host,
                                                      COPY_BYTES, child->streams[0]));
        if (!client->pause_most)
            continue;
        if (!wait_for_all(child))
            return;
        load_tell_seen(child, bench_now());
        sleep_ns(draw_log(&state, client->pause_least, client->pause_most));
    }
}

/* ---- begin and end ---- */

static void write_share(char text[16], uint32_t share)
{
    snprintf(text, 16, share ? "%u.%02u%%" : "0", share / 100, share % 100);
}

static void set_share(int admin, const struct mix_client *client)
{
    char request[16], limit[16];
    write_share(request, client->request);
    write_share(limit, client->limit ? client->limit : MIX_WHOLE);
    json_decref(administer(admin,
                           "{\"request\":\"set\",\"client\":%u,\"time\":{\"request\":\"%s\","
                           "\"limit\":\"%s\"}}",
                           client->load->page->client, request, limit));
}

static int by_time(const void *a, const void *b)
{
    const struct mix_client *one = a, *other = b;
    return (one->when > other->when) - (one->when < other->when);
}

void mix_begin(struct mix *mix, const struct server *server)
{
    int admin = administer_open(server);
    char lease[32];
    snprintf(lease, sizeof lease, "%ums", mix->lease_ms);
    struct administer_mode mode = {.mode = mix->mode, .lease = lease, .precision = "5%"};
    administer_mode(admin, &mode);
    qsort(mix->clients, mix->count, sizeof mix->clients[0], by_time);
    for (uint32_t i = 0; i < mix->count; i++) {
        struct mix_client *client = &mix->clients[i];
        uint64_t depth = STREAMS + IN_FLIGHT_NS / client->shortest;
        struct load_spec spec = {.name = "mixed",
                                 .kernel_ns = client->shortest,
                                 .most = LAUNCHES_MAX,
                                 .streams = STREAMS,
                                 .depth = (uint32_t)depth,
                                 .uid = client->uid,
                                 .behave = live,
                                 .context = client};
        client->load = load_start(server, &spec);
        if (client->request || client->limit)
            set_share(admin, client);
    }
    close(admin);
    mix->began = bench_now();
    for (uint32_t i = 0; i < mix->count; i++) {
        bench_sleep_until(mix->began + mix->clients[i].when * mix_plan(mix));
        load_go(mix->clients[i].load);
    }
}

uint64_t mix_longest(const struct mix_client *client)
{
    uint64_t longest = 0;
    for (size_t n = 0; n < load_spans(client->load); n++) {
        const uint64_t took = client->load->spans[n].end - client->load->spans[n].begin;
        longest = took > longest ? took : longest;
    }
    return longest;
}

void mix_end(struct mix *mix)
{
    mix->ended = bench_now();
    usleep(SETTLE_US);
    for (uint32_t i = 0; i < mix->count; i++) {
        load_stop(mix->clients[i].load);
        const uint64_t longest = mix_longest(&mix->clients[i]);
        mix->kernel = longest > mix->kernel ? longest : mix->kernel;
    }
}

void mix_free(struct mix *mix)
{
    for (uint32_t i = 0; i < mix->count; i++)
        load_free(mix->clients[i].load);
}

/* ---- what each got ---- */

struct pauses {
    uint64_t sum, longest;
};

/* A pause lasts from when the client could see the end of a burst's last kernel until the next
 * burst: a server that is late in telling it lets the client wait. */
static struct pauses pauses_between(const struct mix_client *client, uint64_t from, uint64_t to)
{
    const struct load *load = client->load;
    struct pauses pauses = {0};
    uint64_t ended = 0;
    for (uint32_t burst = 0; burst < load->page->times; burst++) {
        uint64_t begins = load_device_time(load, load->page->time[burst]);
        uint64_t since = ended > from ? ended : from, until = begins < to ? begins : to;
        if (burst && since < until) {
            pauses.sum += until - since;
            pauses.longest = begins - ended > pauses.longest ? begins - ended : pauses.longest;
        }
        for (size_t i = (size_t)burst * client->burst;
             i < (size_t)(burst + 1) * client->burst && i < load_spans(load); i++)
            ended = load->spans[i].end > ended ? load->spans[i].end : ended;
        double seen = load->page->seen[burst];
        uint64_t told = seen > 0 ? load_device_time(load, seen) - LOOK_NS : 0;
        ended = told > ended ? told : ended;
    }
    return pauses;
}

/* The part of the time that the client would have alone. Work that waits at its end counts as done,
 * as long as its other kernels are: otherwise one that nobody serves would be owed nothing. */
static double part_alone(const struct mix_client *client, double kernels, double pauses)
{
    const size_t ran = load_spans(client->load), launches = client->load->page->launches;
    if (ran && launches > ran)
        kernels *= (double)launches / (double)ran;
    return kernels && kernels + pauses > 0 ? kernels / (kernels + pauses) : 1;
}

static double kernels_between(const struct mix_client *client, uint64_t from, uint64_t to)
{
    struct load *load = client->load;
    return load_any(&load, 1, from, to) * (double)(to - from);
}

struct mix_distance mix_distance(const struct mix *mix, const struct mix_client *client,
                                 uint32_t share, double plans)
{
    struct mix_distance worst = {.more = -100, .less = -100};
    uint64_t plan = (uint64_t)(mix_plan(mix) * 1e9), window = (uint64_t)((double)plan * plans);
    uint64_t came = client->load->page->arrived;
    uint64_t end = load_device_time(client->load, mix->ended);
    double part = (double)share / MIX_WHOLE, span = (double)window;
    double whole = part_alone(client, kernels_between(client, came, end),
                              (double)pauses_between(client, came, end).sum);
    for (uint64_t from = came; from + window <= end; from += plan / WINDOW_STEPS) {
        double got = kernels_between(client, from, from + window);
        struct pauses pauses = pauses_between(client, from, from + window);
        double more = got - part * span - (double)mix->kernel;
        /* Where pauses are longer than usual, as much is owed as brings it as far. */
        double owed =
            fmin(part * whole * span, got + whole * (part * span - got - (double)pauses.sum));
        double less = owed - got - (double)mix->kernel;
        worst.more = fmax(worst.more, 100 * more / span);
        worst.windows++;
        if (pauses.longest >= plan / 10)
            continue;
        worst.compared++;
        worst.less = fmax(worst.less, 100 * less / span);
    }
    return worst;
}

void mix_must_compare(const struct mix *mix, const struct mix_client *client,
                      const struct mix_distance *distance)
{
    bool explained = (double)client->pause_most > mix_plan(mix) * 1e9 / 20 || bench_short;
    if (!distance->windows || (!distance->compared && !explained))
        bench_die("none of the %u windows of a client of %u.%02u %% can be compared",
                  distance->windows, client->request / 100, client->request % 100);
}
