/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/context_lock.h"

#include "server/softgpu/device/stream.h"

/*
 * Waiters are served in the order they came. A plain mutex would let a thread that
 * submits in a loop keep a module load out for as long as it likes.
 */
static void take_lock(struct device *device)
{
    struct context_lock *lock = &device->context_lock;
    uint64_t mine;

    if (!device_settings()->context_lock)
        return;
    pthread_mutex_lock(&lock->mutex);
    mine = lock->next++;
    while (lock->serving != mine)
        pthread_cond_wait(&lock->turn, &lock->mutex);
    pthread_mutex_unlock(&lock->mutex);
}

void context_lock_release(struct device *device)
{
    struct context_lock *lock = &device->context_lock;

    if (!device_settings()->context_lock)
        return;
    pthread_mutex_lock(&lock->mutex);
    lock->serving++;
    pthread_cond_broadcast(&lock->turn);
    pthread_mutex_unlock(&lock->mutex);
}

static bool call_drains(enum context_call call)
{
    const struct softgpu_settings *settings = device_settings();

    if (settings->drains_named)
        return settings->drains >> call & 1;
    return settings->locking_drains || context_call_drains(call);
}

/* Nothing can be submitted meanwhile, so what is submitted now is all. */
static void drain_context(struct device *device)
{
    engine_lock();
    if (device_random() % 100 < device_settings()->drain_percent)
        stream_await_device(device);
    engine_unlock();
}

void context_lock_submit(struct device *device)
{
    take_lock(device);
}

void context_lock_call(struct device *device, enum context_call call)
{
    take_lock(device);
    if (device_settings()->context_lock && call_drains(call))
        drain_context(device);
}

void context_lock_call_all(enum context_call call)
{
    for (int i = 0; device_at(i); i++)
        context_lock_call(device_at(i), call);
}

void context_lock_release_all(void)
{
    for (int i = 0; device_at(i); i++)
        context_lock_release(device_at(i));
}
