/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/engine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* for engine threads */
    pthread_cond_t done; /* for callers that wait */
    struct engine_event **heap;
    size_t events, capacity;
    uint64_t order;
    struct engine_task *first, **last;
    unsigned idle;    /* engine threads that wait */
    unsigned waiting; /* callers that wait */
    uint64_t watched; /* the earliest time that an idle thread will wake for by itself */
    bool stopped;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER, .watched = UINT64_MAX};

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t engine_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t engine_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void engine_lock(void)
{
    pthread_mutex_lock(&engine.lock);
}

void engine_unlock(void)
{
    pthread_mutex_unlock(&engine.lock);
}

/* ---- the heap of events --------------------------------------------------------- */

static bool earlier(const struct engine_event *a, const struct engine_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static int heap_push(struct engine_event *event)
{
    size_t at;

    if (engine.events == engine.capacity) {
        size_t capacity = engine.capacity ? 2 * engine.capacity : 1024;
        struct engine_event **heap = realloc(engine.heap, capacity * sizeof(*heap));

        if (!heap)
            return -ENOMEM;
        engine.heap = heap;
        engine.capacity = capacity;
    }
    at = engine.events++;
    while (at > 0 && earlier(event, engine.heap[(at - 1) / 2])) {
        engine.heap[at] = engine.heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    engine.heap[at] = event;
    return 0;
}

static struct engine_event *heap_pop(void)
{
    struct engine_event *top = engine.heap[0];
    struct engine_event *last = engine.heap[--engine.events];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= engine.events)
            break;
        if (child + 1 < engine.events && earlier(engine.heap[child + 1], engine.heap[child]))
            child++;
        if (!earlier(engine.heap[child], last))
            break;
        engine.heap[at] = engine.heap[child];
        at = child;
    }
    engine.heap[at] = last;
    return top;
}

/* ---- work -------------------------------------------------------------------------- */

static void wake_one(void)
{
    if (engine.idle > 0)
        pthread_cond_signal(&engine.work);
}

int engine_at(struct engine_event *event, uint64_t time)
{
    event->time = time;
    event->order = engine.order++;
    if (heap_push(event) < 0)
        return -ENOMEM;
    if (time < engine.watched)
        wake_one();
    return 0;
}

void engine_run(struct engine_task *task)
{
    task->next = NULL;
    *engine.last = task;
    engine.last = &task->next;
    wake_one();
}

void engine_stop(void)
{
    engine.stopped = true;
    engine_announce();
}

bool engine_stopped(void)
{
    return engine.stopped;
}

void engine_await(void)
{
    engine.waiting++;
    pthread_cond_wait(&engine.done, &engine.lock);
    engine.waiting--;
}

void engine_announce(void)
{
    if (engine.waiting > 0)
        pthread_cond_broadcast(&engine.done);
}

static void happen_due(void)
{
    while (!engine.stopped && engine.events > 0 && engine.heap[0]->time <= engine_now()) {
        struct engine_event *event = heap_pop();

        event->happen(event, event->time);
    }
}

static struct engine_task *take_task(void)
{
    struct engine_task *task = engine.stopped ? NULL : engine.first;

    if (task) {
        engine.first = task->next;
        if (!engine.first)
            engine.last = &engine.first;
    }
    return task;
}

/* Waits for a signal, and for the next event unless another thread does so already. */
static void idle(void)
{
    uint64_t next = !engine.stopped && engine.events > 0 ? engine.heap[0]->time : UINT64_MAX;

    engine.idle++;
    if (next < engine.watched) {
        struct timespec until = {.tv_sec = (time_t)(next / 1000000000u),
                                 .tv_nsec = (long)(next % 1000000000u)};

        engine.watched = next;
        pthread_cond_timedwait(&engine.work, &engine.lock, &until);
        if (engine.watched == next)
            engine.watched = UINT64_MAX;
    } else {
        pthread_cond_wait(&engine.work, &engine.lock);
    }
    engine.idle--;
}

static void *engine_main(void *unused)
{
    /* The default slack of 50 us would be the error of every modelled wait. */
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_NAME, "softgpu");
    engine_lock();
    for (;;) {
        struct engine_task *task;

        happen_due();
        task = take_task();
        if (!task) {
            idle();
            continue;
        }
        /* Others can go on with what is due while this one is busy. */
        if (engine.first || (engine.events > 0 && engine.heap[0]->time < engine.watched))
            wake_one();
        engine_unlock();
        task->run(task);
        engine_lock();
    }
    return unused;
}

int engine_start(unsigned threads)
{
    pthread_condattr_t monotonic;
    pthread_attr_t detached;
    sigset_t all, before;
    int error = 0;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&engine.work, &monotonic);
    pthread_cond_init(&engine.done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    engine.last = &engine.first;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    /* Signals of the program are the program's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < threads && error == 0; i++) {
        pthread_t thread;

        error = pthread_create(&thread, &detached, engine_main, NULL);
        if (error != 0 && i > 0)
            error = 0, threads = i; /* fewer threads are slower, not wrong */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return -error;
}
