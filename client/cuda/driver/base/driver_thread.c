/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_thread.h"

#include <pthread.h>
#include <signal.h>

/* The mask is inherited, so no signal can reach the thread before it blocks them. */
cuda_result driver_thread_start(const char *name, void *(*run)(void *unused))
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return CUDA_ERR_OPERATING_SYSTEM;
    pthread_setname_np(thread, name);
    pthread_detach(thread);
    return CUDA_OK;
}
