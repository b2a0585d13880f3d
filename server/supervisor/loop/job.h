/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * job: copying and clearing of much memory, off the loop's thread, so that one
 * client's gibibyte does not delay another's request.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_JOB_H
#define GPUSHARE_SERVER_SUPERVISOR_JOB_H

#include <uv.h>

/* Embedded in what it works for, which must live until done was called. */
struct job {
    uv_work_t work;
    int (*run)(struct job *job); /* on another thread; touches the job's own alone */
    /* On the loop's thread, with what run returned. It may free the job: nobody looks at it after.
     */
    void (*done)(struct job *job, int result);
    int result;
};

/* Returns 0, or -errno: neither is called then. A job can't be cancelled. */
int job_start(struct job *job, uv_loop_t *loop, int (*run)(struct job *job),
              void (*done)(struct job *job, int result));

#endif
