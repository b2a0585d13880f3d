/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/array.h"
#include "common/clock.h"
#include "server/softgpu/report.h"

/* An event waits for turns that are at most this far behind it in modelled time, and for no
 * longer than this in real time. */
enum { ORDER_NS = 5000000, POSTPONE_MAX_NS = 10000000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* for engine threads */
    pthread_cond_t done; /* for callers that wait */
    struct engine_heap events;
    struct queue sequences; /* those with ordered tasks that have not begun */
    uint64_t order;
    struct queue others; /* other tasks */
    uint64_t *running;   /* for each thread, the time of its ordered task, or UINT64_MAX */
    unsigned threads;
    unsigned idle;            /* engine threads that wait */
    unsigned waiting;         /* callers that wait */
    uint64_t watched;         /* the earliest time for which an idle thread will wake by itself */
    uint64_t postponed_since; /* real time since which the next event is held back, or 0 */
    uint64_t given_up;        /* turns up to this time hold nothing back any more */
    bool realtime;
    bool stopped;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER, .watched = UINT64_MAX};

/* The latest reading of this thread: a reading takes as long as an eighth of a short block. */
static _Thread_local uint64_t known_now;

uint64_t engine_now(void)
{
    known_now = clock_read(CLOCK_MONOTONIC);
    return known_now;
}

uint64_t engine_thread_ns(void)
{
    return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

void engine_pass_time(uint64_t until)
{
    /* A thread's timer slack is 50 us, and waking takes some more. */
    const uint64_t spin = 100000;
    uint64_t now = engine_now();

    if (until > now + spin) {
        struct timespec wake = clock_timespec(until - spin);

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
    }
    while (engine_now() < until)
        ;
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

/* Without a branch: which of two entries is the earlier one, nobody can predict. */
static inline bool entry_before(const struct engine_entry *a, const struct engine_entry *b)
{
    return (a->time < b->time) | ((a->time == b->time) & (a->order < b->order));
}

/* Puts the entry where the hole is, or above. */
static void sift_up(struct engine_heap *heap, size_t at, const struct engine_entry *entry)
{
    while (at > 0 && entry_before(entry, &heap->at[(at - 1) / 2])) {
        heap->at[at] = heap->at[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->at[at] = *entry;
}

static int heap_push(struct engine_heap *heap, struct engine_event *event, uint64_t time)
{
    const struct engine_entry entry = {time, engine.order++, event};

    if (array_reserve(heap->at, heap->capacity, heap->count + 1) < 0)
        return -ENOMEM;
    sift_up(heap, heap->count++, &entry);
    return 0;
}

static struct engine_entry heap_pop(struct engine_heap *heap)
{
    const struct engine_entry top = heap->at[0], last = heap->at[--heap->count];
    size_t at = 0, child = 1;

    /* The hole goes down to where it has no two children, since most entries at the end of the heap
     * belong there; from there the last one goes up. */
    for (; child + 1 < heap->count; child = 2 * at + 1) {
        child += entry_before(&heap->at[child + 1], &heap->at[child]);
        heap->at[at] = heap->at[child];
        at = child;
    }
    if (child < heap->count) {
        heap->at[at] = heap->at[child];
        at = child;
    }
    sift_up(heap, at, &last);
    return top;
}

/* ---- work -------------------------------------------------------------------------- */

/* An engine thread leaves events and tasks behind when it is about to look at both itself: while it
 * handles events, and at the end of a task. Before its next task it wakes another one if need be.
 */
static _Thread_local bool looks_itself;

static void wake_one(void)
{
    if (engine.idle > 0 && !looks_itself)
        pthread_cond_signal(&engine.work);
}

/* For an engine thread that is about to be busy: others go on with what there is. next: the time of
 * the next event. */
static void wake_for_rest(uint64_t next)
{
    bool tasks = !queue_is_empty(&engine.others) || !queue_is_empty(&engine.sequences);

    if (engine.idle > 0 && (tasks || next < engine.watched))
        pthread_cond_signal(&engine.work);
}

int engine_at(struct engine_event *event, uint64_t time)
{
    if (heap_push(&engine.events, event, time) < 0)
        return -ENOMEM;
    if (time < engine.watched)
        wake_one();
    return 0;
}

int engine_run_ordered(struct engine_sequence *sequence, struct engine_task *task, uint64_t time)
{
    if (heap_push(&sequence->turns, &task->key, time) < 0)
        return -ENOMEM;
    if (sequence->turns.count == 1)
        queue_append(&engine.sequences, &sequence->link);
    wake_one();
    return 0;
}

void engine_sequence_end(struct engine_sequence *sequence)
{
    free(sequence->turns.at);
    sequence->turns = (struct engine_heap){0};
}

void engine_run(struct engine_task *task)
{
    queue_append(&engine.others, &task->link);
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

static bool holds_back(uint64_t turn, uint64_t time)
{
    return turn < time && time - turn <= ORDER_NS && turn > engine.given_up;
}

/* Whether a turn that is under way may have consequences before this time. */
static bool is_postponed(uint64_t time)
{
    const struct engine_sequence *sequence;

    QUEUE_FOR_EACH (sequence, &engine.sequences, link)
        if (holds_back(sequence->turns.at[0].time, time))
            return true;
    for (unsigned i = 0; i < engine.threads; i++)
        if (holds_back(engine.running[i], time))
            return true;
    return false;
}

/* Handles the events that are due. Returns the time of the next one, UINT64_MAX for none. */
static uint64_t happen_due(void)
{
    uint64_t now = known_now;

    while (!engine.stopped && engine.events.count > 0) {
        const struct engine_entry next = engine.events.at[0];

        if (next.time > now)
            now = engine_now();
        if (next.time > now)
            return next.time;
        if (is_postponed(next.time)) {
            now = engine_now();
            if (engine.postponed_since == 0)
                engine.postponed_since = now;
            if (now - engine.postponed_since < POSTPONE_MAX_NS)
                return UINT64_MAX; /* the thread that ends that turn will handle the event */
            engine.given_up = next.time;
        }
        engine.postponed_since = 0;
        heap_pop(&engine.events);
        next.event->happen(next.event, next.time);
    }
    return UINT64_MAX;
}

static struct engine_task *take_turn(uint64_t *running)
{
    struct engine_sequence *sequence = QUEUE_TAKE(&engine.sequences, struct engine_sequence, link);
    struct engine_entry turn;

    if (!sequence)
        return NULL;
    turn = heap_pop(&sequence->turns);
    if (sequence->turns.count > 0)
        queue_append(&engine.sequences, &sequence->link);
    *running = turn.time;
    return container_of(turn.event, struct engine_task, key);
}

static struct engine_task *take_other(void)
{
    return QUEUE_TAKE(&engine.others, struct engine_task, link);
}

/* Takes a task of each kind in turn, so that neither starves the other. */
static struct engine_task *take_task(uint64_t *running, bool *other_first)
{
    struct engine_task *task;

    if (engine.stopped)
        return NULL;
    *other_first = !*other_first;
    if (*other_first) {
        task = take_other();
        return task ? task : take_turn(running);
    }
    task = take_turn(running);
    return task ? task : take_other();
}

/* Waits for a signal; and until `next`, unless another thread already does that. */
static void thread_idle(uint64_t next)
{
    engine.idle++;
    if (next < engine.watched) {
        struct timespec until = clock_timespec(next);

        engine.watched = next;
        pthread_cond_timedwait(&engine.work, &engine.lock, &until);
        if (engine.watched == next)
            engine.watched = UINT64_MAX;
    } else {
        pthread_cond_wait(&engine.work, &engine.lock);
    }
    engine.idle--;
}

/* A program that a thread of ours might start inherits nothing of it. */
static void become_realtime(void)
{
    const struct sched_param lowest = {.sched_priority = 1};

    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) < 0)
        report("an engine thread gets no real-time priority: %s", strerror(errno));
}

static void *engine_main(void *number)
{
    uint64_t *running = &engine.running[(uintptr_t)number];
    bool other_first = false;

    looks_itself = true;
    /* The default timer slack of 50 us would be the error of every modelled wait. */
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_NAME, "softgpu");
    if (engine.realtime)
        become_realtime();
    engine_lock();
    for (;;) {
        uint64_t next = happen_due();
        struct engine_task *task = take_task(running, &other_first);

        if (!task) {
            thread_idle(next);
            continue;
        }
        wake_for_rest(next);
        engine_unlock();
        task->run(task);
        *running = UINT64_MAX;
    }
    return NULL;
}

int engine_start(unsigned threads, bool realtime)
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
    engine.running = malloc(threads * sizeof(*engine.running));
    if (!engine.running)
        return -ENOMEM;
    for (unsigned i = 0; i < threads; i++)
        engine.running[i] = UINT64_MAX;
    engine.threads = threads;
    engine.realtime = realtime;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    /* The program's signals are for its own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < threads && error == 0; i++) {
        pthread_t thread;

        error = pthread_create(&thread, &detached, engine_main, (void *)(uintptr_t)i);
        if (error != 0 && i > 0)
            error = 0, threads = i; /* fewer threads are slower, not wrong */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return -error;
}
