/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launcher: a client that launches short kernels on and on, in a thread of its own, and notes how
 * long none of them ended. A call that fails fails the test as OK does.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_LAUNCHER_H
#define GPUSHARE_TESTS_SUPPORT_LAUNCHER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "client/gpushare.h"

enum { LAUNCHER_STREAMS_MAX = 100 };

struct launcher {
    gpushare_connection *gpu; /* its own */
    gpushare_function *function;
    gpushare_stream *streams[LAUNCHER_STREAMS_MAX]; /* without any: the default one, NULL */
    unsigned stream_count;
    unsigned in_flight; /* kernels of a round in each stream */
    uint32_t milliseconds;
    pthread_t thread;
    atomic_bool stop;
    /* The test may read these while it runs, and reset them. */
    atomic_uint done;     /* kernels of the rounds that ended */
    atomic_ulong longest; /* ns from the end of one round to that of the next */
};

/*
 * Loads the kernel, which lasts so many milliseconds, and makes so many streams (0: it launches in
 * the default stream; at most LAUNCHER_STREAMS_MAX). A round launches in_flight kernels in each and
 * waits for all. The connection belongs to the launcher from now on.
 */
void launcher_prepare(struct launcher *launcher, gpushare_connection *gpu, unsigned streams,
                      unsigned in_flight, uint32_t milliseconds);

void launcher_start(struct launcher *launcher);

/* Waits until the round is over and the thread has ended. */
void launcher_stop(struct launcher *launcher);

/* Closes the connection of a launcher that is stopped, or was never started. */
void launcher_close(struct launcher *launcher);

#endif
