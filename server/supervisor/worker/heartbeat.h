/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * heartbeat: whether a worker still serves, and what its threads do.
 *
 * The worker's control thread answers a message now and then; submitter and completer show in a
 * page of shared memory (common/cuda/activity.h) that they go on, or rest. These three serve all
 * clients. A worker is silent for as long as one of them has shown nothing. Calls that other
 * threads make for one client may last as long as they like.
 *
 * Only time in which the supervisor itself ran is counted, so that a machine that stood still, or a
 * supervisor that was stopped, does not make a worker silent. No clock and no timer; loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_HEARTBEAT_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/cuda/activity.h"
#include "common/ipc/shm.h"

struct heartbeat {
    struct shm page;                   /* base NULL: there is none */
    uint64_t interval_ns;              /* between two looks at a worker that has work */
    uint64_t looked_at;                /* 0: not yet */
    uint64_t next_ns;                  /* between the last look and the next one */
    bool outstanding;                  /* the control thread was asked and has not answered */
    uint64_t lag_ns[ACTIVITY_SERVING]; /* for which each thread has shown nothing */
};

/* A call of the driver that has lasted for a while. */
struct heartbeat_call {
    enum activity_thread thread;
    const char *name; /* static */
    uint64_t ns;
};

/* Makes the page for a new worker, whose descriptor is page.fd, in place of the last worker's.
 * shortest_ns: the shortest silence that matters. Returns 0 or -errno. */
int heartbeat_open(struct heartbeat *heartbeat, uint64_t shortest_ns);
/* Takes over the page of a worker that goes on, and its descriptor. Without memory there is none.
 */
void heartbeat_adopt(struct heartbeat *heartbeat, int fd, uint64_t shortest_ns);
/* The shortest silence that matters, ns, has changed: sets next_ns, and how often looks are due
 * from now on. The findings of earlier looks stay. */
void heartbeat_retime(struct heartbeat *heartbeat, uint64_t shortest_ns);
/* Idempotent; a zeroed heartbeat is closed. */
void heartbeat_close(struct heartbeat *heartbeat);

/* Looks at the threads. Returns whether the control thread is to be asked now: heartbeat_answered
 * follows its answer. Both set next_ns. now: ns of clock_now. */
bool heartbeat_look(struct heartbeat *heartbeat, uint64_t now);
void heartbeat_answered(struct heartbeat *heartbeat);

/* For how long the worker has been silent, as of the last look. 0: it is not. */
uint64_t heartbeat_silent_ns(const struct heartbeat *heartbeat);

/* Says which thread is silent, and in which call; of several, one that is in a call. pid: the
 * worker's, or 0. Returns text. */
enum { HEARTBEAT_TEXT = 96 };
const char *heartbeat_explain(const struct heartbeat *heartbeat, pid_t pid,
                              char text[HEARTBEAT_TEXT]);

/* Writes the calls that have lasted longer than least_ns. Returns their number. */
unsigned heartbeat_calls(const struct heartbeat *heartbeat, uint64_t now, uint64_t least_ns,
                         struct heartbeat_call calls[ACTIVITY_THREADS]);

/* The worker's count; 0 without a page. */
uint32_t heartbeat_count(const struct heartbeat *heartbeat, enum activity_count what);

#endif
