/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * mixes: many scenes of one row, a few of them side by side: each has a server and a device of its
 * own. A scene beside which other programs took the CPU is played again with its seed. One thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_MIXES_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_MIXES_H

#include <stdint.h>

#include "tests/programs/bench/bench.h"

enum { MIXES_MAX = 64 };

struct mixes_scene {
    unsigned number;
    uint64_t seed;
    /* of the scene: */
    double points;     /* the row's value */
    double from, to;   /* CLOCK_MONOTONIC seconds: when it was measured */
    unsigned windows;  /* of all clients, in which they could be compared with their promise */
    unsigned compared; /* of these: in which they were */
    char words[200];   /* the worst client; may be empty */
};

/* Plays a scene on a server of its own, in a process of its own. */
typedef void mixes_play(const struct server *server, struct mixes_scene *scene);

/*
 * Plays so many scenes (MIXES_MAX at most) with seeds from bench_seed on, `at_once` at a time.
 * The result's value is the largest of their points, and its note names that scene. Scenes that
 * were disturbed twice don't count; above a tenth of such, the row ends as not measured. So it does
 * if less than half of the windows were compared: their value would say nothing.
 */
void mixes_run(struct bench_result *result, mixes_play *play, unsigned count, unsigned at_once);

#endif
