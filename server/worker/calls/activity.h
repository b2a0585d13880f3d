/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * activity: notes what each thread of the worker does in the page that the supervisor reads
 * (common/cuda/activity.h). Without a page, as in tests, the notes go to memory of the process.
 *
 * A thread that activity_begin was not called in notes nothing that is shown.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_ACTIVITY_H
#define GPUSHARE_SERVER_WORKER_CALLS_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/activity.h"

/* Takes the supervisor's page: a descriptor, which the caller keeps. Returns 0 or -errno. Before
 * any other thread is started. */
int activity_open(int fd);

/* Replaces the entries of a driver by functions that note the call, but for those that a launch or
 * a copy makes: the submitter notes these once a batch. Once in a process. */
void activity_watch(struct cuda_driver *driver);

/* The calling thread has this role from now on. */
void activity_begin(enum activity_thread thread);

/* The calling thread is alive. Costs a load and a comparison while nothing was asked. */
void activity_beat(void);

/* The calling thread sleeps until it is woken, or does so no longer. */
void activity_rest(bool rests);

/* The calling thread hands a batch to the device, or does so no longer. */
void activity_batch(bool begins);

/* Counts one more, or one less. Any thread. */
void activity_add(enum activity_count what);
void activity_subtract(enum activity_count what);

/* The calling thread's notes; NULL: it makes none. For the function below. */
extern _Thread_local struct activity_slot *activity_own;

/* Within a batch: the calling thread makes this call now. Neither its end nor the time is noted, so
 * that a launch pays for one store. */
static inline void activity_in(enum activity_call call)
{
    if (activity_own)
        atomic_store_explicit(&activity_own->call, call, memory_order_relaxed);
}

#endif
