/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/quiet_calls.h"

#include <time.h>

#include "common/clock.h"
#include "common/util.h"
#include "server/worker/calls/wake.h"

void quiet_calls_open(struct quiet_calls *calls, struct wake *wake)
{
    pthread_condattr_t clock;
    *calls = (struct quiet_calls){.wake = wake};
    list_init(&calls->firsts);
    pthread_mutex_init(&calls->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&calls->queue_changed, &clock);
    pthread_cond_init(&calls->over, &clock);
    pthread_condattr_destroy(&clock);
}

void quiet_calls_close(struct quiet_calls *calls)
{
    pthread_cond_destroy(&calls->queue_changed);
    pthread_cond_destroy(&calls->over);
    pthread_mutex_destroy(&calls->lock);
}

/* ---- the queue; under the lock ---- */

/* The first call of the chain that this one belongs to; NULL: none is queued. */
static struct quiet_call *first_of(const struct quiet_calls *calls, const struct quiet_call *call)
{
    struct quiet_call *first;
    LIST_FOR_EACH (first, &calls->firsts, chain.among_firsts)
        if (first->claim == call->claim && first->caller.client == call->caller.client &&
            first->caller.owner == call->caller.owner)
            break;
    return first;
}

static void enqueue_call(struct quiet_calls *calls, struct quiet_call *call, enum quiet_claim claim,
                         uint64_t asks_at)
{
    call->claim = claim;
    call->asks_at = asks_at;
    call->turn = ++calls->turn;
    call->over = call->made = false;
    struct quiet_call *first = first_of(calls, call);
    chain_join(&calls->firsts, first ? &first->chain : NULL, &call->chain);
    pthread_cond_signal(&calls->queue_changed);
}

static void append_done(struct quiet_calls *calls, struct quiet_call *call)
{
    queue_append(&calls->done, &call->chain.link);
}

/* Takes those out that are to go, of one client, or of all (0). */
static void sift_calls(struct quiet_calls *calls, uint32_t client,
                       bool (*goes)(const struct chain_link *call), struct queue *gone)
{
    struct quiet_call *first;
    LIST_FOR_EACH (first, &calls->firsts, chain.among_firsts)
        if (!client || first->caller.client == client)
            chain_sift(&first->chain, goes, gone);
}

/* ---- those who leave calls ---- */

bool quiet_calls_make(struct quiet_calls *calls, struct quiet_call *call)
{
    pthread_mutex_lock(&calls->lock);
    call->awaited = true;
    call->over = call->made = false;
    if (!calls->stopped)
        enqueue_call(calls, call, QUIET_ASKS, clock_now());
    else
        call->over = true;
    while (!call->over)
        pthread_cond_wait(&calls->over, &calls->lock);
    bool made = call->made;
    pthread_mutex_unlock(&calls->lock);
    return made;
}

void quiet_calls_work_begin(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    while (calls->closed && !calls->stopped)
        pthread_cond_wait(&calls->over, &calls->lock);
    calls->working++;
    pthread_mutex_unlock(&calls->lock);
}

bool quiet_calls_work_try(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    bool begun = !calls->closed || calls->stopped;
    calls->working += begun;
    pthread_mutex_unlock(&calls->lock);
    return begun;
}

void quiet_calls_work_end(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->working--;
    pthread_mutex_unlock(&calls->lock);
}

void quiet_calls_defer(struct quiet_calls *calls, struct quiet_call *call, bool asks)
{
    pthread_mutex_lock(&calls->lock);
    call->awaited = false;
    bool stopped = calls->stopped;
    if (!stopped)
        enqueue_call(calls, call,
                     call->patient ? QUIET_PATIENT
                     : asks        ? QUIET_ASKS
                                   : QUIET_LAZY,
                     call->patient ? UINT64_MAX : clock_now() + (asks ? 0 : QUIET_CALLS_LAZY_NS));
    pthread_mutex_unlock(&calls->lock);
    if (!stopped)
        return;
    call->make(call);
    pthread_mutex_lock(&calls->lock);
    call->over = call->made = true;
    append_done(calls, call);
    pthread_mutex_unlock(&calls->lock);
}

struct quiet_call *quiet_calls_collect(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    struct quiet_call *call = QUEUE_TAKE(&calls->done, struct quiet_call, chain.link);
    pthread_mutex_unlock(&calls->lock);
    return call;
}

static bool is_awaited(const struct chain_link *call)
{
    return container_of(call, const struct quiet_call, chain)->awaited;
}

static bool is_droppable(const struct chain_link *call)
{
    return container_of(call, const struct quiet_call, chain)->droppable;
}

/* Of one client, or of all (0): calls lie with those who wait for them, and go with them. Under the
 * lock. */
static void forget_awaited(struct quiet_calls *calls, uint32_t client)
{
    struct queue gone = {.first = NULL};
    struct quiet_call *call;
    sift_calls(calls, client, is_awaited, &gone);
    while ((call = QUEUE_TAKE(&gone, struct quiet_call, chain.link)))
        call->over = true;
    pthread_cond_broadcast(&calls->over);
}

/* Under the lock. */
static bool drop_deferred(struct quiet_calls *calls, uint32_t client)
{
    struct queue gone = {.first = NULL};
    struct quiet_call *call;
    sift_calls(calls, client, is_droppable, &gone);
    bool any = !queue_is_empty(&gone);
    while ((call = QUEUE_TAKE(&gone, struct quiet_call, chain.link))) {
        call->over = true;
        append_done(calls, call);
    }
    return any;
}

void quiet_calls_forget(struct quiet_calls *calls, uint32_t client)
{
    pthread_mutex_lock(&calls->lock);
    forget_awaited(calls, client);
    bool dropped = drop_deferred(calls, client);
    pthread_cond_signal(&calls->queue_changed);
    pthread_mutex_unlock(&calls->lock);
    if (dropped)
        wake_control(calls->wake);
}

bool quiet_calls_waits(struct quiet_calls *calls, uint32_t client)
{
    uint64_t now = clock_now();
    bool waits = false;
    pthread_mutex_lock(&calls->lock);
    const struct quiet_call *call;
    LIST_FOR_EACH (call, &calls->firsts, chain.among_firsts)
        waits |= call->caller.client == client && call->asks_at <= now;
    pthread_mutex_unlock(&calls->lock);
    return waits;
}

/* ---- the quiet thread ---- */

void quiet_calls_nudge(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->nudged = true;
    pthread_cond_signal(&calls->queue_changed);
    pthread_mutex_unlock(&calls->lock);
}

bool quiet_calls_wait(struct quiet_calls *calls, uint64_t until)
{
    struct timespec end = clock_timespec(until);
    pthread_mutex_lock(&calls->lock);
    if (calls->nudged)
        calls->nudged = false;
    else if (!calls->stopped && until == UINT64_MAX && list_is_empty(&calls->firsts))
        pthread_cond_wait(&calls->queue_changed, &calls->lock);
    else if (!calls->stopped && until != UINT64_MAX)
        pthread_cond_timedwait(&calls->queue_changed, &calls->lock, &end);
    bool stopped = calls->stopped;
    pthread_mutex_unlock(&calls->lock);
    return !stopped;
}

void quiet_calls_look(struct quiet_calls *calls, uint64_t now, struct quiet_calls_view *view)
{
    *view = (struct quiet_calls_view){.asks_next = UINT64_MAX};
    pthread_mutex_lock(&calls->lock);
    const struct quiet_call *call, *oldest = NULL;
    LIST_FOR_EACH (call, &calls->firsts, chain.among_firsts) {
        view->any = true;
        if (!oldest || call->turn < oldest->turn)
            oldest = call;
        if (call->asks_at > now) {
            view->asks_next = min(view->asks_next, call->asks_at);
            continue;
        }
        view->asks = true;
    }
    view->owner = oldest ? oldest->caller.owner : 0;
    view->working = calls->working;
    pthread_mutex_unlock(&calls->lock);
}

void quiet_calls_each_asking(struct quiet_calls *calls, uint64_t now,
                             void (*see)(void *context, const struct quiet_caller *caller,
                                         uint64_t asks_at),
                             void *context)
{
    pthread_mutex_lock(&calls->lock);
    const struct quiet_call *call;
    LIST_FOR_EACH (call, &calls->firsts, chain.among_firsts)
        if (call->asks_at <= now)
            see(context, &call->caller, call->asks_at);
    pthread_mutex_unlock(&calls->lock);
}

void quiet_calls_shut(struct quiet_calls *calls, bool closed)
{
    pthread_mutex_lock(&calls->lock);
    calls->closed = closed;
    pthread_cond_broadcast(&calls->over);
    pthread_mutex_unlock(&calls->lock);
}

/* 0 is the most urgent. The end of a client rides along, but what it had is missing to others until
 * then; nobody misses what is made beforehand. */
static uint32_t rank_of(const struct quiet_call *call, uint64_t now)
{
    if (call->asks_at > now)
        return call->patient ? UINT32_MAX : UINT32_MAX - 1;
    return now - call->asks_at >= QUIET_CALLS_PATIENCE_NS ? 0 : call->caller.level;
}

/* Under the lock. */
static bool goes_before(const struct quiet_calls *calls, const struct quiet_call *call,
                        const struct quiet_call *than, uint64_t now)
{
    uint32_t rank = rank_of(call, now), other = rank_of(than, now);
    if (rank != other)
        return rank < other;
    uint64_t owner = owner_turns_last(&calls->owners, call->caller.owner);
    uint64_t others = owner_turns_last(&calls->owners, than->caller.owner);
    return owner != others ? owner < others : call->turn < than->turn;
}

/* Under the lock. */
static struct quiet_call *take_next(struct quiet_calls *calls, uint64_t now)
{
    struct quiet_call *first, *call = NULL;
    LIST_FOR_EACH (first, &calls->firsts, chain.among_firsts)
        if (!call || goes_before(calls, first, call, now))
            call = first;
    if (!call)
        return NULL;
    chain_leave(&call->chain);
    owner_turns_take(&calls->owners, call->caller.owner);
    return call;
}

bool quiet_calls_make_next(struct quiet_calls *calls, uint64_t now, uint32_t *owner)
{
    pthread_mutex_lock(&calls->lock);
    struct quiet_call *call = calls->stopped ? NULL : take_next(calls, now);
    pthread_mutex_unlock(&calls->lock);
    if (!call)
        return false;
    if (owner)
        *owner = call->caller.owner;
    call->make(call);
    pthread_mutex_lock(&calls->lock);
    bool awaited = call->awaited;
    call->over = call->made = true;
    /* An awaited call is its waiter's again as soon as the lock is free. */
    if (awaited)
        pthread_cond_broadcast(&calls->over);
    else
        append_done(calls, call);
    pthread_mutex_unlock(&calls->lock);
    if (!awaited)
        wake_control(calls->wake);
    return true;
}

void quiet_calls_stop(struct quiet_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->stopped = true;
    forget_awaited(calls, 0);
    pthread_cond_broadcast(&calls->queue_changed);
    pthread_mutex_unlock(&calls->lock);
}

void quiet_calls_make_rest(struct quiet_calls *calls)
{
    for (;;) {
        pthread_mutex_lock(&calls->lock);
        struct quiet_call *call = LIST_FIRST(&calls->firsts, struct quiet_call, chain.among_firsts);
        if (call)
            chain_leave(&call->chain);
        pthread_mutex_unlock(&calls->lock);
        if (!call)
            return;
        quiet_calls_defer(calls, call, false);
    }
}
