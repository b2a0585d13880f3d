/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quiet_window: the quiet thread, which makes calls that wait for the device, in times in which
 * nothing runs on it.
 *
 * server/scheduler/quiet.h decides when, quiet_calls.h has the calls. A window: the gate lets no
 * client submit, what runs ends, the calls are made one after the other, the gate lets everybody go
 * on. Clients keep their states, and leases are as long as without the window.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_QUIET_WINDOW_H
#define GPUSHARE_SERVER_WORKER_RUN_QUIET_WINDOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/thread.h"
#include "server/scheduler/quiet.h"

struct worker;

struct quiet_window {
    struct worker *worker;
    struct thread thread;
    bool holds, stops; /* what the gate was told */
    enum quiet_width width;
    struct quiet_work *works;
    uint32_t room;
    pthread_mutex_t lock; /* of the decision, which the control thread reads */
    struct quiet quiet;
};

/* 0 or an error number with a sentence. */
uint32_t quiet_window_start(struct quiet_window *window, struct worker *worker, struct error *why);

/* Ends the thread, after the call that it is at. The counts below can be read on. Idempotent. */
void quiet_window_stop(struct quiet_window *window);

/* After quiet_window_stop, when no thread asks for a count any more. */
void quiet_window_close(struct quiet_window *window);

/* The control thread: the longest work beside which a window begins; in force from the next look.
 */
void quiet_window_set_limit(struct quiet_window *window, uint64_t limit_ns);

/* Any thread: the client that calls wait for, or 0; its own, if its work alone is in the way. */
uint32_t quiet_window_waits_for(struct quiet_window *window);

/* Any thread: how many windows there were, and the device time that they and attempts took. */
void quiet_window_counts(struct quiet_window *window, uint32_t *windows, uint64_t *nanoseconds);

#endif
