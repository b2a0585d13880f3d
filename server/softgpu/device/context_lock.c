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

/* How many of a hundred such calls wait for the device. A driver that keeps its clients waiting in
 * an unsure call does so each time: whoever has tried it once knows. */
static uint64_t percent_that_waits(enum context_call call)
{
    const struct softgpu_settings *settings = device_settings();
    enum context_class class = context_call_class(call);

    if (settings->drains_named)
        return settings->drains >> call & 1 ? settings->drain_percent : 0;
    if (class == CONTEXT_UNSURE && settings->unsure_drains)
        return 100;
    return class == CONTEXT_DRAINS || settings->locking_drains ? settings->drain_percent : 0;
}

/* Nothing can be submitted meanwhile, so what is submitted now is all. */
static void drain_context(struct device *device, uint64_t percent)
{
    engine_lock();
    if (device_random() % 100 < percent)
        stream_await_device(device);
    engine_unlock();
}

void context_lock_submit(struct device *device)
{
    take_lock(device);
}

void context_lock_call(struct device *device, enum context_call call)
{
    uint64_t percent = percent_that_waits(call);

    take_lock(device);
    if (device_settings()->context_lock && percent)
        drain_context(device, percent);
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
