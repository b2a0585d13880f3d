/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * job: work off the loop's thread, such as copying or clearing much memory, so that one client's
 * gibibyte does not delay another client's request.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_JOB_H
#define GPUSHARE_SERVER_SUPERVISOR_JOB_H

#include <uv.h>

/* Embedded in the object that it works for, which must live until done is called. */
struct job {
    uv_work_t work;
    int (*run)(struct job *job); /* on another thread; may touch only what belongs to the job */
    /* On the loop's thread, with run's result. It may free the job: the caller does not use it
     * afterwards. */
    void (*done)(struct job *job, int result);
    int result;
};

/* Starts a job. Returns 0; or -errno, and neither run nor done is called. A job can't be cancelled.
 * Loop thread. */
int job_start(struct job *job, uv_loop_t *loop, int (*run)(struct job *job),
              void (*done)(struct job *job, int result));

#endif
