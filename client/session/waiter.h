/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * waiter: a thread that waits for the reply to its request, or for the session's end. It lies on
 * that thread's stack and is in the session's list while the thread waits.
 *
 * The thread that reads the socket finds the waiter of a reply by its serial and puts the reply
 * where the request wants it. The session's lock guards the list and every member.
 */
#ifndef GPUSHARE_CLIENT_SESSION_WAITER_H
#define GPUSHARE_CLIENT_SESSION_WAITER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/ipc/channel.h"
#include "common/list.h"

struct session_call;

struct waiter {
    struct list_link link;
    const struct session_call *call; /* NULL: waits for the session's end */
    uint64_t serial;                 /* of the request; 0: none was sent */
    bool answered;
    struct error refusal; /* number 0: the reply is where the call wants it */
    bool sleeps;
    pthread_cond_t wake; /* answered, the session has ended, or nobody reads the socket */
};

/* Makes a waiter that is in no list. call: NULL to wait for the session's end; else it lasts as
 * long as the waiter. */
void waiter_open(struct waiter *waiter, const struct session_call *call);

/* The waiter is in no list, and no thread is about to wake it. */
void waiter_close(struct waiter *waiter);

/* The waiter for the reply to this request; NULL if no thread waits for it, as for serial 0. */
struct waiter *waiter_find(const struct list *waiters, uint64_t serial);

/*
 * Takes the reply: copies it to where the call wants it and hands the descriptors over, or keeps
 * the server's refusal. A tail for which there is no memory becomes a refusal too. Returns false,
 * and takes nothing, if the message is no reply to this request.
 */
bool waiter_take(struct waiter *waiter, struct channel_message *message);

/* Returns SUCCESS if the reply was taken, or the refusal, with the calling thread's sentence set.
 * The waiter's own thread calls, after waiter->answered. */
gpushare_error waiter_result(const struct waiter *waiter);

/* Sleep until waiter_wake, or until this time of clock_now(), in ns. They may wake for no
 * reason. The lock is the session's, which the caller has. */
void waiter_sleep(struct waiter *waiter, pthread_mutex_t *lock);
void waiter_sleep_until(struct waiter *waiter, pthread_mutex_t *lock, uint64_t time);

/* Wakes the waiter's thread. waiter_wake_one does so for the first of the list that sleeps: the
 * others, which still send, will look for themselves. */
void waiter_wake(struct waiter *waiter);
void waiter_wake_one(const struct list *waiters);

#endif
