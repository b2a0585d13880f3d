/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * job: work off the loop's thread, such as copying or clearing much memory, so that one client's
 * gibibyte does not delay another client's request.
 *
 * A job works in steps of JOB_STEP_BYTES. The threads take steps in turns: first by user, then by
 * client, then by job. So a short job waits for about one step of each other user, however many
 * jobs these have under way. No user has the last free thread, whatever its steps wait for.
 *
 * Loop thread, except where a function says otherwise.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_LOOP_JOB_H
#define GPUSHARE_SERVER_SUPERVISOR_LOOP_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "common/list.h"

/* A step takes some tens of milliseconds at most. */
#define JOB_STEP_BYTES (UINT64_C(32) << 20)

/* Returned by `run` when its job needs another step; common/error.h explains positive results. */
#define JOB_AGAIN 1

/* A place in the order: of the pool, of a user or of a client. Private to job.c. */
struct job_turn {
    struct job_turn *above; /* NULL: the pool's */
    struct queue_link link; /* in above->turns, while it is queued */
    struct queue turns;     /* those below it that have work, in order */
    struct queue jobs;      /* a client's that wait for a thread, in order */
    bool queued;
    unsigned running, running_max; /* steps that threads are at */
};

struct job_pool {
    uv_loop_t *loop;
    struct job_turn turn;
    struct job_user *users;
};

/* A client of the pool. */
struct job_client {
    struct job_turn turn;
    struct job_pool *pool;
    struct job_user *user; /* NULL: closed */
};

/* Embedded in the object that it works for, which must live until done is called. */
struct job {
    uv_work_t work;
    struct job_client *client;
    struct queue_link link; /* in the client's turn */
    /* One step, on another thread; may touch only what belongs to the job. Returns 0 when the job
     * is done, JOB_AGAIN, or -errno. */
    int (*run)(struct job *job);
    /* On the loop's thread, with the last step's result. It may free the job: the caller does not
     * use it afterwards. */
    void (*done)(struct job *job, int result);
    uint64_t at; /* where the next step begins: run's own, 0 at first */
    int result;
};

/* Makes a pool on the threads of a loop, which must outlive it. A pool without clients needs no
 * end. */
void job_pool_open(struct job_pool *pool, uv_loop_t *loop);

/* Begins a client's jobs. uid: the user in whose turn they are run. Returns 0 or -ENOMEM.
 * job_client_close must follow. */
int job_client_open(struct job_client *client, struct job_pool *pool, uid_t uid);

/* None of the client's jobs may be under way. Does nothing for one that is zeroed or closed. */
void job_client_close(struct job_client *client);

/* Starts a job, for which memory is never needed. A job can't be cancelled. */
void job_start(struct job *job, struct job_client *client, int (*run)(struct job *job),
               void (*done)(struct job *job, int result));

#endif
