/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/job.h"

static void job_work(uv_work_t *handle)
{
    struct job *job = handle->data;
    job->result = job->run(job);
}

static void job_after(uv_work_t *handle, int status)
{
    struct job *job = handle->data;
    job->done(job, status < 0 ? status : job->result);
}

int job_start(struct job *job, uv_loop_t *loop, int (*run)(struct job *job),
              void (*done)(struct job *job, int result))
{
    job->run = run;
    job->done = done;
    job->work.data = job;
    return uv_queue_work(loop, &job->work, job_work, job_after);
}
