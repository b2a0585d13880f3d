/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * halted: a thread that reads shared memory stands still, at any instruction, while another thread
 * writes. Threads that merely run at once hardly ever meet like that; a process that loses its
 * processor meets it every day.
 *
 * The writer calls halted_turn behind each write. Now and then that sends the reader SIGUSR1, whose
 * handler waits until some more writes are done, or for a millisecond: the reader may hold a lock
 * that the writer needs. One pair of threads at a time.
 */
#ifndef GPUSHARE_TESTS_SUPPORT_HALTED_H
#define GPUSHARE_TESTS_SUPPORT_HALTED_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/units.h"

enum {
    HALTED_EVERY = 16, /* writes between two signals, at least */
    HALTED_WRITES = 8  /* while the reader stands still, at most */
};

static struct {
    pthread_t reader;
    struct sigaction before;
    _Atomic uint64_t turns, halts;
    atomic_bool over, halting;
} halted;

static inline void halted_stand_still(int number)
{
    const uint64_t until =
        atomic_load(&halted.turns) + 1 + atomic_load(&halted.halts) % HALTED_WRITES;
    const uint64_t end = clock_now() + UNITS_MS;
    (void)number;
    while (!atomic_load(&halted.over) && atomic_load(&halted.turns) < until && clock_now() < end)
        sched_yield();
    atomic_fetch_add(&halted.halts, 1);
    atomic_store(&halted.halting, false);
}

/* The calling thread is the reader. Before the writer is started. */
static inline void halted_begin(void)
{
    const struct sigaction action = {.sa_handler = halted_stand_still, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, &halted.before);
    halted.reader = pthread_self();
    atomic_store(&halted.turns, 0);
    atomic_store(&halted.halts, 0);
    atomic_store(&halted.over, false);
    atomic_store(&halted.halting, false);
}

/* How often the reader stood still so far. */
static inline uint64_t halted_count(void)
{
    return atomic_load(&halted.halts);
}

/* The reader has read enough: waits until the writer, this thread, has ended. */
static inline void halted_end(pthread_t writer)
{
    atomic_store(&halted.over, true);
    pthread_join(writer, NULL);
    sigaction(SIGUSR1, &halted.before, NULL);
}

/* The writer has written once more. Returns whether it is to go on. */
static inline bool halted_turn(void)
{
    const uint64_t turn = atomic_fetch_add(&halted.turns, 1);
    if (turn % HALTED_EVERY == 0 && !atomic_exchange(&halted.halting, true))
        pthread_kill(halted.reader, SIGUSR1);
    return !atomic_load(&halted.over);
}

#endif
