/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The promise of time (docs/sharing.md) on random mixes, drawn from the bench's seed on: 32 with a
 * lease of 50 ms, so plans of 1 s and kernels to 80 ms, and 8 with the default of 250 ms, plans of
 * 5 s and kernels to 400 ms.
 *
 * A mix has 2 to 16 clients of one to four users; a run without root's rights has one user. Half of
 * the mixes request 100 % in total, and half have kernels of a fiftieth of a plan and of 20 ms at
 * most. Every fourth mix is eleven clients of 5 % and one of 45 %, half of them with such short
 * kernels.
 *
 * A client computes all the time, or pauses for up to a tenth of a plan after bursts. All have two
 * streams, some copy, some are connected and idle for up to a plan.
 *
 * strict_random_mixes_points: in mode strict, the largest distance of a client from its promise in
 * any window of ten plans, above or below, in points beyond the mix's longest kernel. The promise
 * allows two leases, which are one point.
 *
 * fair_pauses_points: in mode fair, the least that a client had over its request of what it would
 * have alone, in points and with the longest kernel added.
 *
 * limit_overrun_points: clients with limits of 5, 10, 15 and 20 % beside one without, with kernels
 * of 5, 20 and 80 ms and of drawn lengths; what a client had in any ten plans, its first ones
 * included, beyond its limit and the longest of its own kernels.
 *
 * Four servers run side by side, since their kernels sleep. No neighbours: a client without a
 * request has what the mix leaves, and its kernels would be the longest.
 */
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/mix.h"
#include "tests/programs/bench/mixes.h"

enum {
    SHORT_MIXES = 32,
    LONG_MIXES = 8,
    AT_ONCE = 4,
    LIMIT_SCENES = 4,
    USER_UID = 61000,
    BRIEF_NS = 20000000
};

#define EXTRA_PLANS 1.5 /* beyond the ten, so that windows begin at several moments */

static double window_plans(void)
{
    return bench_short ? 4 : MIX_WINDOW_PLANS;
}

/* ---- a mix that is drawn ---- */

static bool one_in(uint64_t *state, uint64_t n)
{
    return bench_draw(state, 1, n) == 1;
}

static void draw_client(struct mix_client *client, uint64_t *state, uint64_t plan_ns, bool brief,
                        unsigned users)
{
    const uint64_t tenth = plan_ns / 10;
    uint64_t most = plan_ns * 8 / 100;
    if (brief)
        most = plan_ns / 50 < BRIEF_NS ? plan_ns / 50 : BRIEF_NS;
    /* Below the tenth of `most` that bounds half of the clients. */
    const uint64_t least = plan_ns / 1000 < most / 20 ? plan_ns / 1000 : most / 20;
    client->seed = bench_draw(state, 1, UINT32_MAX);
    client->longest = bench_draw(state, least, one_in(state, 2) ? most : most / 10);
    client->shortest = one_in(state, 2) ? client->longest : least;
    client->uid = geteuid() ? 0 : USER_UID + (uint32_t)bench_draw(state, 1, users);
    client->copies = one_in(state, 3);
    client->when = one_in(state, 2) ? 0 : (double)bench_draw(state, 0, 100) / 100;
    client->burst = 1;
    if (one_in(state, 3))
        return;
    client->burst = one_in(state, 2) ? 1 : (uint32_t)bench_draw(state, 1, 40);
    client->pause_most = bench_draw(state, tenth / 100, tenth * 9 / 10);
    client->pause_least = client->pause_most / (one_in(state, 2) ? 2 : 50);
}

static void draw_mix(struct mix *mix, const struct mixes_scene *scene)
{
    uint64_t state = scene->seed;
    bool small = scene->number % 4 == 0, brief = (scene->number + scene->number / 4) % 2;
    uint32_t sum = one_in(&state, 2) ? MIX_WHOLE : (uint32_t)bench_draw(&state, 3000, 9999);
    uint32_t weights[MIX_CLIENTS], total = 0;
    unsigned users = (unsigned)bench_draw(&state, 1, 4);
    mix->lease_ms = bench_short ? 25 : scene->number < SHORT_MIXES ? 50 : 250;
    mix->count = small ? 12 : (uint32_t)bench_draw(&state, 2, MIX_CLIENTS);
    for (uint32_t i = 0; i < mix->count; i++)
        total += weights[i] = small ? (i ? 5 : 45) : (uint32_t)bench_draw(&state, 1, 20);
    for (uint32_t i = 0; i < mix->count; i++) {
        draw_client(&mix->clients[i], &state, (uint64_t)(mix_plan(mix) * 1e9), brief, users);
        mix->clients[i].request = small ? weights[i] * 100 : sum * weights[i] / total;
    }
}

static void play_mix(const struct server *server, struct mix *mix, struct mixes_scene *scene)
{
    mix_begin(mix, server);
    bench_sleep_until(mix->began + (window_plans() + EXTRA_PLANS) * mix_plan(mix));
    mix_end(mix);
    scene->from = mix->began;
    scene->to = mix->ended;
    scene->points = -100;
}

static void note_worst(struct mixes_scene *scene, const struct mix *mix,
                       const struct mix_client *client, double points, const char *what)
{
    if (points <= scene->points)
        return;
    scene->points = points;
    snprintf(scene->words, sizeof scene->words,
             "a client of %u.%02u %% (bursts of %u, pauses to %.0f ms) of %u had %s; kernels to "
             "%.0f ms",
             client->request / 100, client->request % 100, client->burst,
             (double)client->pause_most / 1e6, mix->count, what, (double)mix->kernel / 1e6);
}

static void play_drawn(const struct server *server, struct mixes_scene *scene, const char *mode)
{
    struct mix mix = {.mode = mode};
    draw_mix(&mix, scene);
    play_mix(server, &mix, scene);
    for (uint32_t i = 0; i < mix.count; i++) {
        const struct mix_client *client = &mix.clients[i];
        struct mix_distance far = mix_distance(&mix, client, client->request, window_plans());
        mix_must_compare(&mix, client, &far);
        scene->windows += far.windows;
        scene->compared += far.compared;
        note_worst(scene, &mix, client, far.less, "less");
        if (mode[0] == 's')
            note_worst(scene, &mix, client, far.more, "more");
    }
    mix_free(&mix);
}

static void play_strict(const struct server *server, struct mixes_scene *scene)
{
    play_drawn(server, scene, "strict");
}

static void play_fair(const struct server *server, struct mixes_scene *scene)
{
    play_drawn(server, scene, "fair");
}

void bench_strict_random_mixes(struct bench_result *result)
{
    mixes_run(result, play_strict, bench_short ? 2 : SHORT_MIXES + LONG_MIXES, AT_ONCE);
}

void bench_fair_pauses(struct bench_result *result)
{
    mixes_run(result, play_fair, bench_short ? 2 : SHORT_MIXES + LONG_MIXES, AT_ONCE);
    result->value = -result->value;
}

/* ---- limits ---- */

static void play_limits(const struct server *server, struct mixes_scene *scene)
{
    static const uint64_t kernel_ms[LIMIT_SCENES] = {20, 5, 80, 80};
    struct mix mix = {.mode = "fair", .lease_ms = bench_short ? 25 : 50, .count = 5};
    for (uint32_t i = 0; i < mix.count; i++) {
        struct mix_client *client = &mix.clients[i];
        client->limit = i < 4 ? 500 * (i + 1) : MIX_WHOLE;
        client->seed = scene->seed + i;
        client->longest = kernel_ms[scene->number] * 1000000 / (bench_short ? 4 : 1);
        client->shortest = scene->number < 3 ? client->longest : 1000000;
        client->burst = 1;
    }
    play_mix(server, &mix, scene);
    for (uint32_t i = 0; i < mix.count; i++) {
        const struct mix_client *client = &mix.clients[i];
        if (client->limit == MIX_WHOLE)
            continue;
        mix.kernel = mix_longest(client);
        struct mix_distance far = mix_distance(&mix, client, client->limit, window_plans());
        mix_must_compare(&mix, client, &far);
        scene->windows += far.windows;
        scene->compared += far.windows; /* `more` needs no work of the client's */
        if (far.more <= scene->points)
            continue;
        scene->points = far.more;
        snprintf(scene->words, sizeof scene->words, "a limit of %u %%, kernels to %.0f ms",
                 client->limit / 100, (double)mix.kernel / 1e6);
    }
    mix_free(&mix);
}

void bench_limit_overrun(struct bench_result *result)
{
    mixes_run(result, play_limits, bench_short ? 1 : LIMIT_SCENES, AT_ONCE);
}
