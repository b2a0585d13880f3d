/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/driver_calls.h"

#include <time.h>

#include "common/clock.h"
#include "common/util.h"
#include "server/worker/calls/wake.h"

#define NEVER UINT64_MAX

void driver_calls_open(struct driver_calls *calls, struct wake *wake)
{
    *calls = (struct driver_calls){.wake = wake};
    list_init(&calls->firsts);
    pthread_mutex_init(&calls->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&calls->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void driver_calls_close(struct driver_calls *calls)
{
    pthread_cond_destroy(&calls->more);
    pthread_mutex_destroy(&calls->lock);
}

/* ---- the queue; under the lock ---- */

static struct driver_call *first_of(const struct driver_calls *calls, uint32_t client)
{
    struct driver_call *first;
    LIST_FOR_EACH (first, &calls->firsts, chain.among_firsts)
        if (first->caller.client == client)
            break;
    return first;
}

/* The call was made: the client's next one has its turn behind those of the other clients. */
static void remove_first(struct driver_calls *calls, struct driver_call *call)
{
    struct chain_link *next = chain_leave(&call->chain);
    if (next)
        container_of(next, struct driver_call, chain)->turn = ++calls->turn;
}

static bool is_due(const struct driver_calls *calls, const struct driver_call *call, uint64_t now)
{
    return calls->stopped || call->not_before <= now;
}

/* When the first step is due that is held back now. */
static uint64_t next_due(const struct driver_calls *calls)
{
    uint64_t next = NEVER;
    const struct driver_call *call;
    LIST_FOR_EACH (call, &calls->firsts, chain.among_firsts)
        next = min(next, call->not_before);
    return next;
}

/* Of the owner that was served longest ago, the call whose step was queued first; NULL: none is
 * due. */
static struct driver_call *choose_call(struct driver_calls *calls)
{
    struct driver_call *best = NULL;
    uint64_t now = clock_now();
    struct driver_call *call;
    LIST_FOR_EACH (call, &calls->firsts, chain.among_firsts) {
        if (!is_due(calls, call, now))
            continue;
        uint64_t owner = owner_turns_last(&calls->owners, call->caller.owner);
        uint64_t best_owner = best ? owner_turns_last(&calls->owners, best->caller.owner) : 0;
        if (!best || owner < best_owner || (owner == best_owner && call->turn < best->turn))
            best = call;
    }
    if (best)
        owner_turns_take(&calls->owners, best->caller.owner);
    return best;
}

/* ---- for the threads ---- */

void driver_calls_leave(struct driver_calls *calls, struct driver_call *call)
{
    call->not_before = 0;
    pthread_mutex_lock(&calls->lock);
    struct driver_call *first = first_of(calls, call->caller.client);
    call->turn = ++calls->turn;
    chain_join(&calls->firsts, first ? &first->chain : NULL, &call->chain);
    pthread_cond_signal(&calls->more);
    pthread_mutex_unlock(&calls->lock);
}

struct driver_call *driver_calls_collect(struct driver_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    struct driver_call *call = QUEUE_TAKE(&calls->done, struct driver_call, chain.link);
    pthread_mutex_unlock(&calls->lock);
    return call;
}

bool driver_calls_make_next(struct driver_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    struct driver_call *call = choose_call(calls);
    pthread_mutex_unlock(&calls->lock);
    if (!call)
        return false;
    /* It stays the first of its client meanwhile, so that later ones queue behind it. */
    bool more = call->make(call);
    pthread_mutex_lock(&calls->lock);
    if (more) {
        call->turn = ++calls->turn;
    } else {
        remove_first(calls, call);
        queue_append(&calls->done, &call->chain.link);
    }
    pthread_mutex_unlock(&calls->lock);
    if (!more)
        wake_control(calls->wake);
    return true;
}

bool driver_calls_wait(struct driver_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    uint64_t due;
    while (!calls->stopped && (due = next_due(calls)) > clock_now()) {
        struct timespec until = clock_timespec(due);
        if (due == NEVER)
            pthread_cond_wait(&calls->more, &calls->lock);
        else
            pthread_cond_timedwait(&calls->more, &calls->lock, &until);
    }
    bool stopped = calls->stopped;
    pthread_mutex_unlock(&calls->lock);
    return !stopped;
}

void driver_calls_stop(struct driver_calls *calls)
{
    pthread_mutex_lock(&calls->lock);
    calls->stopped = true;
    pthread_cond_broadcast(&calls->more);
    pthread_mutex_unlock(&calls->lock);
}
