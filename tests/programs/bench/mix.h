/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * mix: clients of one server that share its device by time, and each one's distance from the
 * promise of docs/sharing.md by what its kernels wrote.
 *
 * Each client is a process. It launches a burst of kernels, waits until they are done, and pauses;
 * one without pauses has always several launches in flight. The row fills in `clients`, calls
 * mix_begin, waits, and calls mix_end. Then it asks for distances, and calls mix_free. One thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_MIX_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/programs/bench/load.h"
#include "tests/support/server.h"

enum { MIX_CLIENTS = 16, MIX_WHOLE = 10000, MIX_WINDOW_PLANS = 10 };

struct mix_client {
    uint32_t request, limit;          /* of the time, in MIX_WHOLE-ths; limit 0: none */
    uint32_t uid;                     /* the user that it runs as; 0: as this program */
    uint64_t shortest, longest;       /* kernels: ns asked for */
    uint32_t burst;                   /* kernels before a pause */
    uint64_t pause_least, pause_most; /* ns; 0: it does not pause */
    double when;                      /* its first launch: plans after the mix began */
    bool copies;                      /* a small copy to the device follows each burst */
    uint64_t seed;
    struct load *load; /* of mix_begin */
};

struct mix {
    const char *mode;
    uint32_t lease_ms; /* a plan is twenty leases */
    uint32_t count;
    struct mix_client clients[MIX_CLIENTS];
    /* of mix_begin and mix_end: */
    double began, ended; /* CLOCK_MONOTONIC seconds */
    /* The longest kernel, as the kernels wrote it, ns; a row may put another one here. */
    uint64_t kernel;
};

/* The time that a client had too much, and too little, in hundredths of a window, at the worst
 * window of ten plans; below 0: within the promise. The mix's longest kernel is taken off. */
struct mix_distance {
    double more, less;
    unsigned windows;  /* that there were: `more` is of all of them */
    unsigned compared; /* of these: those that `less` is of */
};

double mix_plan(const struct mix *mix); /* seconds */

/* Connects all clients, sets the mode and their shares, and has each begin at its time. Returns
 * when all have begun. */
void mix_begin(struct mix *mix, const struct server *server);
/* Ends all clients. The mix has ended at the moment of the call. */
void mix_end(struct mix *mix);
void mix_free(struct mix *mix);

/* The longest kernel of this client, as the kernels wrote it, ns. mix_end has been called. */
uint64_t mix_longest(const struct mix_client *client);

/*
 * The distance from `share` (MIX_WHOLE-ths) of a client, over all windows of so many plans that
 * begin with its first launch or a seventh of a plan after another. `less` has only windows in
 * which each pause of the client is shorter than a tenth of a plan, and compares with the share of
 * what the client would have alone: by its pauses in the whole mix, or, where those of the window
 * are longer, by how far it came.
 */
struct mix_distance mix_distance(const struct mix *mix, const struct mix_client *client,
                                 uint32_t share, double plans);

/* Ends the process if the client had no window, or none that could be compared although it asked
 * for no pauses of a twentieth of a plan: those that were longer than a tenth were not its own. */
void mix_must_compare(const struct mix *mix, const struct mix_client *client,
                      const struct mix_distance *distance);

#endif
