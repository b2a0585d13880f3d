/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/ipc/timeline.h"
#include "common/log.h"
#include "common/messages.h"

/* A thread sleeps in one close at a time, and holds no descriptor's number while it does. */
#define THREADS_MAX 32
/* Descriptors that wait for a thread hold their numbers, so their number is bounded. */
#define WAITING_MAX 256
#define STACK_BYTES ((size_t)256 << 10)
/* Longer than any close of a client that means well. */
#define SLOW_NS UINT64_C(1000000000)
/* A close that takes this long may never end. */
#define HUNG_NS UINT64_C(60000000000)
/* Messages read from one socket: more than it can hold, and bounded whatever it holds. */
#define DRAIN_MAX 4096

struct waiting {
    struct waiting *next;
    int fd;
    uint32_t client;
};

/* The close that a thread is in. */
struct closing {
    uint64_t since; /* 0: none */
    uint32_t client;
    bool said; /* the log has it */
};

struct closer {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a descriptor waits, or the end has come */
    pthread_cond_t ended; /* a thread has ended */
    struct waiting *first, **last;
    unsigned waiting;
    struct closing closing[THREADS_MAX];
    unsigned threads, idle;
    bool full; /* the log has it */
    bool ending;
    bool abandoned; /* the last thread frees the closer */
};

int closer_open(struct closer **out)
{
    *out = NULL;
    struct closer *closer = calloc(1, sizeof *closer);
    if (!closer)
        return -ENOMEM;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&closer->lock, NULL);
    pthread_cond_init(&closer->work, NULL);
    pthread_cond_init(&closer->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    closer->last = &closer->first;
    *out = closer;
    return 0;
}

static void closer_free(struct closer *closer)
{
    pthread_cond_destroy(&closer->ended);
    pthread_cond_destroy(&closer->work);
    pthread_mutex_destroy(&closer->lock);
    free(closer);
}

/* ---- threads ---- */

/* Called with the lock, and returns with it; the close itself is made without. */
static void first_close(struct closer *closer)
{
    struct waiting *first = closer->first;
    closer->first = first->next;
    if (!closer->first)
        closer->last = &closer->first;
    closer->waiting--;
    closer->full = false;
    struct closing *closing = closer->closing;
    while (closing->since)
        closing++;
    uint64_t since = timeline_now();
    *closing = (struct closing){.since = since, .client = first->client};
    pthread_mutex_unlock(&closer->lock);
    close(first->fd);
    uint64_t took = timeline_now() - since;
    if (took > SLOW_NS)
        log_warning(MESSAGE_TEXT(log_close_slow), first->client, (double)took / 1e9);
    free(first);
    pthread_mutex_lock(&closer->lock);
    closing->since = 0;
}

static void *closer_main(void *context)
{
    struct closer *closer = context;
    pthread_mutex_lock(&closer->lock);
    for (;;) {
        if (closer->first) {
            first_close(closer);
            continue;
        }
        /* One idle thread is enough for clients that mean well. */
        if (closer->ending || closer->idle)
            break;
        closer->idle++;
        pthread_cond_wait(&closer->work, &closer->lock);
        closer->idle--;
    }
    bool last = --closer->threads == 0 && closer->abandoned;
    pthread_cond_signal(&closer->ended);
    pthread_mutex_unlock(&closer->lock);
    if (last)
        closer_free(closer);
    return NULL;
}

/* Called with the lock. Without a thread the descriptor waits for the next one that is started. */
static void thread_start(struct closer *closer)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* Signals are the loop's, and one would cut a lingering close short. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attributes, closer_main, closer) == 0)
        closer->threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

void closer_close(struct closer **out)
{
    struct closer *closer = *out;
    *out = NULL;
    if (!closer)
        return;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec++;
    pthread_mutex_lock(&closer->lock);
    closer->ending = true;
    pthread_cond_broadcast(&closer->work);
    while (closer->threads && pthread_cond_timedwait(&closer->ended, &closer->lock, &end) == 0)
        ;
    bool abandoned = closer->abandoned = closer->threads > 0;
    pthread_mutex_unlock(&closer->lock);
    if (!abandoned)
        closer_free(closer);
}

/* ---- descriptors ---- */

/* Called with the lock. A close that never ends has no end at which its thread could say so. */
static void hung_report(struct closer *closer)
{
    uint64_t now = timeline_now();
    for (unsigned i = 0; i < THREADS_MAX; i++) {
        struct closing *closing = &closer->closing[i];
        if (!closing->since || closing->said || now - closing->since < HUNG_NS)
            continue;
        closing->said = true;
        log_warning(MESSAGE_TEXT(log_close_hangs), closing->client,
                    (double)(now - closing->since) / 1e9);
    }
}

bool closer_take(struct closer *closer, int fd, uint32_t client)
{
    if (fd < 0)
        return true;
    struct waiting *waiting = malloc(sizeof *waiting);
    if (!waiting) {
        close(fd);
        return false;
    }
    *waiting = (struct waiting){.fd = fd, .client = client};
    pthread_mutex_lock(&closer->lock);
    *closer->last = waiting;
    closer->last = &waiting->next;
    closer->waiting++;
    bool room = closer->waiting <= WAITING_MAX;
    if (!room && !closer->full)
        log_warning(MESSAGE_TEXT(log_closes_wait), closer->waiting, client);
    closer->full = closer->full || !room;
    hung_report(closer);
    if (closer->waiting > closer->idle && closer->threads < THREADS_MAX)
        thread_start(closer);
    pthread_cond_signal(&closer->work);
    pthread_mutex_unlock(&closer->lock);
    return room;
}

bool closer_take_message(struct closer *closer, struct channel_message *message, uint32_t client)
{
    bool room = true;
    for (unsigned i = 0; i < message->fd_count; i++)
        room &= closer_take(closer, channel_take_fd(message, i), client);
    return room;
}

bool closer_drain(struct closer *closer, int socket, uint32_t client)
{
    struct channel_message rest;
    shutdown(socket, SHUT_RD);
    for (unsigned i = 0; i < DRAIN_MAX; i++) {
        int result = channel_discard(socket, &rest);
        if (result != 0)
            return result == CHANNEL_CLOSED;
        /* The rest of the descriptors takes fewer numbers inside the socket. */
        if (!closer_take_message(closer, &rest, client))
            return false;
    }
    return false;
}

void closer_hang_up(struct closer *closer, int socket, uint32_t client)
{
    if (closer_drain(closer, socket, client))
        close(socket);
    else
        closer_take(closer, socket, client);
}
