/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * engine: the threads that drive every device, and modelled time.
 *
 * Modelled time counts nanoseconds of CLOCK_MONOTONIC. Everything that happens on a device happens
 * at an event, which has a modelled time. The engine handles events in the order of their times,
 * never before real time has reached them, and sometimes later.
 *
 * The consequences of an event happen at the event's time, not at the time when a thread woke up.
 * So modelled time is exact however late threads run, and it lags behind real time if the CPU can't
 * keep up.
 *
 * One lock guards devices, streams and grids. Turns of blocks and pieces of copies are tasks, which
 * run without the lock.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_ENGINE_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

/*
 * For exact order one more rule is needed, because the consequences of a turn are not known while
 * it runs. An event waits for the turns that began at an earlier modelled time. There are two
 * exceptions. A turn that lags too far behind the event is not waited for: the CPU is short then,
 * and one backlog must not delay the others' work. A turn that is known to be long is not waited
 * for either.
 */

/* Embedded in the object that it concerns. It is in the heap at most once at a time. */
struct engine_event {
    void (*happen)(struct engine_event *event, uint64_t time); /* lock held */
};

/* Times and orders stand in the heap itself: a heap of a thousand blocks then fits in the first
 * cache, and the blocks do not. */
struct engine_entry {
    uint64_t time;
    uint64_t order; /* those with the same time come in the order in which they were set */
    struct engine_event *event;
};

struct engine_heap {
    struct engine_entry *at;
    size_t count, capacity;
};

/* Tasks of one origin, such as a grid's turns. Sequences are served in turn. A zeroed one is
 * ready for use. */
struct engine_sequence {
    struct engine_heap turns;
    struct queue_link link; /* among sequences with turns to run */
};

struct engine_task {
    struct engine_event
        key; /* in a heap by its beginning on the modelled clock; happen is unused */
    struct queue_link link;
    /* Called without the lock, and returns with it, as it has to have it at its end: taking it
     * twice costs a short block a thirtieth of its time. */
    void (*run)(struct engine_task *task);
};

/*
 * Starts the threads. Returns 0 or -errno. Called once, before any function below.
 */
int engine_start(unsigned threads, bool realtime);

/* Take and release the engine's lock. Functions that say "lock held" are called between these
 * two. Not recursive. */
void engine_lock(void);
void engine_unlock(void);

/* Returns the present real time, on the modelled clock. */
uint64_t engine_now(void);
/* Returns the CPU time of the calling thread, for work that takes as much modelled time as it
 * took CPU time. */
uint64_t engine_thread_ns(void);

/* Returns when that time has come in truth; near it with the CPU, for a sleeper wakes too late. */
void engine_pass_time(uint64_t until);

/* All functions below: lock held. */

/* Sets an event. Returns 0 or -ENOMEM. */
int engine_at(struct engine_event *event, uint64_t time);
/*
 * Run a task on a thread of the engine. engine_run_ordered runs it before tasks of its sequence
 * with a later modelled time, and events behind its time wait for it, so it must be short. Returns
 * 0, or -ENOMEM if the task could not be queued.
 */
int engine_run_ordered(struct engine_sequence *sequence, struct engine_task *task, uint64_t time);
void engine_run(struct engine_task *task);
/* Frees the memory of a sequence that has no turns. */
void engine_sequence_end(struct engine_sequence *sequence);

/* Stops the engine after a fault: no event or task begins any more. */
void engine_stop(void);
bool engine_stopped(void);

/* Waits until engine_announce() is called. It may return early. */
void engine_await(void);
void engine_announce(void);

#endif
