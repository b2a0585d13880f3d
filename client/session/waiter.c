/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/waiter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/session/failure.h"
#include "client/session/session.h"
#include "common/clock.h"
#include "common/messages.h"

void waiter_open(struct waiter *waiter, const struct session_call *call)
{
    waiter->link = (struct list_link){0};
    waiter->call = call;
    waiter->serial = 0;
    waiter->answered = waiter->sleeps = false;
    waiter->refusal.number = 0;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void waiter_close(struct waiter *waiter)
{
    pthread_cond_destroy(&waiter->wake);
}

struct waiter *waiter_find(const struct list *waiters, uint64_t serial)
{
    struct waiter *waiter;
    LIST_FOR_EACH (waiter, waiters, link)
        if (waiter->call && waiter->serial == serial)
            return waiter;
    return NULL;
}

/* Gives the call a copy of the message's tail. Returns false if there is no memory for it. */
static bool copy_tail(const struct session_call *call, const struct channel_message *message)
{
    *call->reply_tail = NULL;
    *call->reply_tail_bytes = message->tail_bytes;
    if (!message->tail_bytes)
        return true;
    *call->reply_tail = malloc(message->tail_bytes);
    if (*call->reply_tail)
        memcpy(*call->reply_tail, message->tail, message->tail_bytes);
    return *call->reply_tail != NULL;
}

bool waiter_take(struct waiter *waiter, struct channel_message *message)
{
    const struct session_call *call = waiter->call;
    if (message->header.opcode == PROTO_FAILED) {
        const struct proto_failed *failed = message->body;
        error_set(&waiter->refusal, failed->error, "%s", failed->text);
        waiter->answered = true;
        return true;
    }
    if (message->header.opcode != call->reply || message->fd_count != call->reply_fd_max ||
        (call->reply_body && message->type->bytes != call->reply_bytes))
        return false;
    waiter->answered = true;
    if (call->reply_tail && !copy_tail(call, message)) {
        channel_close_fds(message);
        error_set(&waiter->refusal, MESSAGE(process_no_memory));
        return true;
    }
    if (call->reply_body)
        memcpy(call->reply_body, message->body, call->reply_bytes);
    for (unsigned i = 0; i < call->reply_fd_max; i++)
        call->reply_fds[i] = channel_take_fd(message, i);
    return true;
}

gpushare_error waiter_result(const struct waiter *waiter)
{
    const struct error *refusal = &waiter->refusal;
    return refusal->number ? failure_text(refusal->number, refusal->text) : GPUSHARE_SUCCESS;
}

void waiter_sleep(struct waiter *waiter, pthread_mutex_t *lock)
{
    waiter->sleeps = true;
    pthread_cond_wait(&waiter->wake, lock);
    waiter->sleeps = false;
}

void waiter_sleep_until(struct waiter *waiter, pthread_mutex_t *lock, uint64_t time)
{
    struct timespec at = clock_timespec(time);
    waiter->sleeps = true;
    pthread_cond_timedwait(&waiter->wake, lock, &at);
    waiter->sleeps = false;
}

void waiter_wake(struct waiter *waiter)
{
    pthread_cond_signal(&waiter->wake);
}

void waiter_wake_one(const struct list *waiters)
{
    struct waiter *waiter;
    LIST_FOR_EACH (waiter, waiters, link)
        if (waiter->sleeps) {
            waiter_wake(waiter);
            return;
        }
}
