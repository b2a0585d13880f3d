/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * scene: unkind neighbours around a test, each in a process of its own. One of each kind that is
 * asked for; how long, how often and how many is drawn at random. The seed is printed, and
 * $TEST_SEED sets it. One thread.
 *
 * SCENE_FAULTS    launches a kernel that traps, again and again. Its worker is lost each time, and
 *                 all connections with it: only promises that hold over a replaced worker can be
 *                 tested beside it. The other neighbours of such a scene come back.
 * SCENE_LOOPS     has kernels of 1,024 threads whose end nobody can foresee: after 50 to 300 ms.
 *                 Shares of time can't hold beside it.
 * SCENE_PAUSES    launches, and rests for up to 50 ms, with or without work in flight.
 * SCENE_VISITS    connects, loads a module, allocates, launches and leaves, on and on; half the
 *                 times it ends without a word, with kernels in flight.
 * SCENE_STREAMS   keeps 150 to 250 streams busy; the server must be started for that.
 * SCENE_GREEDY    is one user with six connections, each with memory and more kernels in flight
 *                 than it is served. As root, a user other than the test's.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_SCENE_H
#define GPUSHARE_TESTS_SUPPORT_SCENE_H

#include "tests/support/server.h"

enum {
    SCENE_FAULTS = 1 << 0,
    SCENE_LOOPS = 1 << 1,
    SCENE_PAUSES = 1 << 2,
    SCENE_VISITS = 1 << 3,
    SCENE_STREAMS = 1 << 4,
    SCENE_GREEDY = 1 << 5,
};

struct scene;

/* The name of one kind, such as "visits". */
const char *scene_name(unsigned kind);

/* Arguments for server_start: what a server must allow for a scene with SCENE_STREAMS. */
extern const char *const scene_server_args[];

/*
 * Starts the neighbours of these kinds, and waits until each has done its work once. Comes before
 * the test's own connections: a forked process would keep them open. Fails the test, by abort, if
 * a neighbour does not come up. The caller frees the scene with scene_end.
 */
struct scene *scene_begin(const struct server *server, unsigned kinds);

/*
 * Waits until each neighbour has done its work once more, at most 30 s for each, ends them and
 * frees the scene. Returns 0 if all went on until then; otherwise the neighbours have printed what
 * failed. A failure of a call counts but in a scene with SCENE_FAULTS.
 */
int scene_end(struct scene *scene);

#endif
