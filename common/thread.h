/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * thread: a thread with a name, which is started and joined once. Started and joined by one thread.
 */
#ifndef GPUSHARE_COMMON_THREAD_H
#define GPUSHARE_COMMON_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct thread {
    pthread_t id;
    bool running; /* false in zeroed memory: not started, or joined */
};

/*
 * Starts a thread that calls body(argument). The system shows `name` (pthread_setname_np), which
 * has 15 bytes at most. Returns 0, or the error of pthread_create: nothing runs then.
 */
int thread_start(struct thread *thread, const char *name, void *(*body)(void *), void *argument);

/* Waits until the thread has ended. Does nothing if none runs. */
void thread_join(struct thread *thread);

#endif
