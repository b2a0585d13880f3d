/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * user_totals_points: two users, one with one client and one with eight, all of which always have
 * work. Where nothing is asked for, each user's account should have half of the device; where each
 * account requests 50 %, too.
 *
 * The scenes are the modes `fair` (lease 50 ms), `turns` (quantum 50
 * ms) and `concurrent`, and `fair` with both requests, each on a server of its own. Each client's
 * kernels have a length of their own, drawn between 1 and 10 ms from the bench's seed.
 *
 * A launch has a block for each multiprocessor, and a block takes all of one, so in
 * `concurrent` too a user's part of the device is its part of the blocks' time. The row is the
 * distance of the users' parts from a half, in points, in the worst mode and over ten seconds.
 *
 * Only root can have clients of two users. No neighbours: they would be a third user's.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/programs/bench/administer.h"
#include "tests/programs/bench/load.h"
#include "tests/programs/bench/mixes.h"

enum {
    SCENES = 4,
    CLIENTS = 9,
    SMS = 16,
    SHORTEST_NS = 1000000,
    LONGEST_NS = 10000000,
    ONE_UID = 61001,
    EIGHT_UID = 61002
};

/* An account is there as long as one of its clients is. */
static void request_half(int admin, uint32_t uid)
{
    json_decref(administer(
        admin, "{\"request\":\"set\",\"user\":%u,\"total\":{\"time\":{\"request\":\"50%%\"}}}",
        uid));
}

static void play(const struct server *server, struct mixes_scene *scene)
{
    static const struct administer_mode modes[SCENES] = {
        {.mode = "fair", .lease = "50ms", .precision = "5%"},
        {.mode = "turns", .quantum = "50ms"},
        {.mode = "concurrent"},
        {.mode = "fair", .lease = "50ms", .precision = "5%"},
    };
    const bool requests = scene->number == SCENES - 1;
    struct load *loads[CLIENTS];
    uint64_t state = scene->seed;
    int admin = administer_open(server);
    administer_mode(admin, &modes[scene->number]);
    for (int i = 0; i < CLIENTS; i++) {
        struct load_spec spec = {.name = i ? "one of eight" : "one",
                                 .kernel_ns = bench_draw(&state, SHORTEST_NS, LONGEST_NS),
                                 .blocks = SMS,
                                 .whole_sm = true,
                                 .most = 1 << 14,
                                 .uid = i ? EIGHT_UID : ONE_UID};
        loads[i] = load_start(server, &spec);
        if (requests && i < 2)
            request_half(admin, spec.uid);
    }
    close(admin);
    for (int i = 0; i < CLIENTS; i++)
        load_go(loads[i]);
    usleep(1000000);
    scene->from = bench_now();
    bench_sleep_until(scene->to = scene->from + (bench_short ? 1 : 10));
    usleep(100000); /* until the kernels that ran by then have written their words */
    uint64_t from = load_device_time(loads[0], scene->from);
    uint64_t to = load_device_time(loads[0], scene->to);
    double one = 0, all = 0;
    for (int i = 0; i < CLIENTS; i++) {
        load_stop(loads[i]);
        all += (double)load_ns(loads[i], from, to);
        one += i ? 0 : (double)load_ns(loads[i], from, to);
        load_free(loads[i]);
    }
    scene->points = fabs(100 * one / all - 50);
    scene->windows = scene->compared = 1; /* all of the scene is one */
    snprintf(scene->words, sizeof scene->words, "%s%s: the one client had %.2f %%",
             modes[scene->number].mode, requests ? ", requests of 50 %" : "", 100 * one / all);
}

void bench_user_totals(struct bench_result *result)
{
    if (geteuid())
        bench_die("only root can have clients of two users");
    mixes_run(result, play, SCENES, SCENES);
}
