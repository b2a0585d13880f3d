/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/thread.h"

int thread_start(struct thread *thread, const char *name, void *(*body)(void *), void *argument)
{
    int error = pthread_create(&thread->id, NULL, body, argument);
    if (error)
        return error;
    thread->running = true;
    pthread_setname_np(thread->id, name);
    return 0;
}

void thread_join(struct thread *thread)
{
    if (!thread->running)
        return;
    pthread_join(thread->id, NULL);
    thread->running = false;
}
