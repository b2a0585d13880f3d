/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * engine: the threads that drive every device, and modelled time.
 *
 * Modelled time counts nanoseconds of CLOCK_MONOTONIC. Whatever happens on a
 * device happens at an event with a modelled time; events are handled in that
 * order, never before real time has reached them, sometimes after. What follows
 * from an event happens at the event's time, not when a thread woke up for it:
 * so modelled time is exact however late threads run, and lags when the CPU
 * cannot keep up.
 *
 * One lock guards devices, streams and grids. Turns of blocks and pieces of
 * copies are tasks, which run without it.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_ENGINE_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/list.h"

/*
 * Exact order needs one thing more: while a turn is under way, what it will lead
 * to is not known yet. So an event waits for turns that began at an earlier
 * modelled time, unless they lag too far behind it (then the CPU is short, and
 * nobody is to wait for a backlog of somebody else's) or are known to be long.
 */

/* Embedded in what it is about; in the heap at most once at a time. */
struct engine_event {
    uint64_t time;
    uint64_t order; /* events of one time happen in the order they were set */
    void (*happen)(struct engine_event *event, uint64_t time); /* lock held */
};

struct engine_heap {
    struct engine_event **at;
    size_t count, capacity;
};

/* Tasks of one origin (a grid's turns). Groups are served in turn. All zeros to begin with. */
struct engine_group {
    struct engine_heap turns;
    struct queue_link link; /* among groups with turns to run */
};

struct engine_task {
    struct engine_event key; /* when it began, on the modelled clock; happen is unused */
    struct queue_link link;
    void (*run)(struct engine_task *task); /* without the lock */
};

/*
 * Starts the threads. 0 or a negative errno. Called once, before anything below. realtime: the
 * threads ask for the lowest real-time priority, for they are the hardware; where that is not
 * allowed a line says so, and they go on without.
 */
int engine_start(unsigned threads, bool realtime);

/* The one lock: everything that says "lock held" is between these two. Not recursive. */
void engine_lock(void);
void engine_unlock(void);

/* Real now, on the modelled clock. */
uint64_t engine_now(void);
/* CPU time of the calling thread, for work whose modelled time is what it took. */
uint64_t engine_thread_ns(void);

/* Returns when that time has come in truth; near it with the CPU, for a sleeper wakes too late. */
void engine_pass_time(uint64_t until);

/* All below: lock held. */
/* -ENOMEM when the event could not be set. */
int engine_at(struct engine_event *event, uint64_t time);
/*
 * Runs the task on a thread. engine_run_ordered(): before others of its group with
 * a later modelled time; events behind that time wait for it; it must be short.
 * -ENOMEM when it could not be queued.
 */
int engine_run_ordered(struct engine_group *group, struct engine_task *task, uint64_t time);
void engine_run(struct engine_task *task);
/* Gives back what a group without turns holds. */
void engine_group_end(struct engine_group *group);

/* A fault: no event or task begins any more. */
void engine_stop(void);
bool engine_stopped(void);

/* Waits until engine_announce() is called (or spuriously returns). */
void engine_await(void);
void engine_announce(void);

#endif
