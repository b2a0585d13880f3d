/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/driver_caller.h"

#include <string.h>

#include "common/messages.h"
#include "server/worker/calls/activity.h"
#include "server/worker/worker.h"

static void *driver_caller_main(void *argument)
{
    struct driver_caller *caller = argument;
    struct worker *worker = caller->worker;
    activity_begin(ACTIVITY_CALLER);
    cuda_result result = gpu_enter(&worker->gpu);
    if (result != CUDA_OK)
        worker_fail(worker, result, CONTEXT_LOSS_ENTERING);
    while (result == CUDA_OK && driver_calls_wait(&worker->driver_calls))
        driver_calls_make_next(&worker->driver_calls);
    return NULL;
}

uint32_t driver_caller_start(struct driver_caller *caller, struct worker *worker, struct error *why)
{
    *caller = (struct driver_caller){.worker = worker};
    int error = thread_start(&caller->thread, "caller", driver_caller_main, caller);
    if (error)
        return error_set(why, MESSAGE(driver_caller_thread), strerror(error));
    return 0;
}

void driver_caller_stop(struct driver_caller *caller)
{
    if (!caller->thread.running)
        return;
    driver_calls_stop(&caller->worker->driver_calls);
    thread_join(&caller->thread);
}
