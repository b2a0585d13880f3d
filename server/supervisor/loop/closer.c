/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/closer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/log.h"
#include "common/messages.h"

/* A thread sleeps in one close at a time, and holds no descriptor's number while it does. */
#define THREADS_MAX 32
/* Threads of one user: others' descriptors are closed while each of these hangs. */
#define USER_THREADS_MAX 8
#define STACK_BYTES      ((size_t)256 << 10)
/* A close that sleeps is interrupted after this time, and again until it ends. A file's last close
 * is made whole by the kernel all the same, but for waiting. */
#define INTERRUPT_NS (100 * UNITS_MS)
/* Longer than any close of a client that means well. */
#define SLOW_NS UNITS_SECOND
/* A close that takes this long may never end. */
#define HUNG_NS (60 * UNITS_SECOND)
/* Messages read from one socket: more than it can hold, and bounded whatever it holds. */
#define DRAIN_MAX 4096

/* Its place in closer->numbers is the descriptor's number: so each descriptor has one without
 * memory that could be missing, and the loop need never close one itself. */
struct waiting {
    struct queue_link link;
    bool connection; /* the server's own end of one, not what a client sent */
    struct closer_sender sender;
};

/* The close that a thread is in. */
struct closing {
    uint64_t started_at; /* 0: none */
    struct closer_sender sender;
    pthread_t thread;
    bool said; /* the log has it */
};

struct closer {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* a descriptor waits, or the end has come */
    pthread_cond_t watch; /* a close has begun, or the end has come */
    pthread_cond_t ended; /* a thread has ended */
    struct waiting *numbers;
    unsigned number_count;
    struct queue queue; /* of struct waiting, in order of arrival */
    unsigned waiting, waiting_max;
    struct closing closing[THREADS_MAX];
    unsigned threads, idle; /* that close */
    bool watched;           /* the thread that interrupts them runs */
    bool full;              /* the log has it */
    bool ending;
    bool abandoned; /* the last thread frees the closer */
};

/* The signal cuts a sleep short by arriving. */
static void note_interrupt(int signal)
{
    (void)signal;
}

int closer_open(struct closer **out, unsigned numbers, unsigned waiting_max)
{
    const struct sigaction action = {.sa_handler = note_interrupt}; /* without SA_RESTART */
    *out = NULL;
    struct closer *closer = calloc(1, sizeof *closer);
    /* The kernel has no pages for most of it: a page comes with the first of its numbers. */
    struct waiting *table = calloc(numbers, sizeof *table);
    if (!closer || !table) {
        free(closer);
        free(table);
        return -ENOMEM;
    }
    sigaction(SIGRTMIN, &action, NULL);
    closer->numbers = table;
    closer->number_count = numbers;
    closer->waiting_max = waiting_max;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&closer->lock, NULL);
    pthread_cond_init(&closer->work, NULL);
    pthread_cond_init(&closer->watch, &monotonic);
    pthread_cond_init(&closer->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = closer;
    return 0;
}

static void closer_free(struct closer *closer)
{
    pthread_cond_destroy(&closer->ended);
    pthread_cond_destroy(&closer->watch);
    pthread_cond_destroy(&closer->work);
    pthread_mutex_destroy(&closer->lock);
    free(closer->numbers);
    free(closer);
}

/* ---- threads ---- */

/* Called with the lock, as are all functions up to closer_main but the two that threads begin in.
 */
static unsigned user_threads(const struct closer *closer, uid_t uid)
{
    unsigned count = 0;
    for (unsigned i = 0; i < THREADS_MAX; i++)
        count += closer->closing[i].started_at && closer->closing[i].sender.uid == uid;
    return count;
}

static unsigned user_waiting(const struct closer *closer, uid_t uid)
{
    unsigned count = 0;
    struct waiting *waiting;
    QUEUE_FOR_EACH (waiting, &closer->queue, link)
        count += waiting->sender.uid == uid;
    return count;
}

/* The first descriptor for which its user may have a thread; NULL: none. */
static struct waiting *next_waiting(const struct closer *closer)
{
    struct waiting *waiting;
    QUEUE_FOR_EACH (waiting, &closer->queue, link)
        if (user_threads(closer, waiting->sender.uid) < USER_THREADS_MAX)
            break;
    return waiting;
}

static bool any_closing(const struct closer *closer)
{
    for (unsigned i = 0; i < THREADS_MAX; i++)
        if (closer->closing[i].started_at)
            return true;
    return false;
}

/* A connection that is closed with messages unread is reset, and the other side loses what it was
 * told last. Descriptors in the messages are closed here and now. */
static void read_rest(int connection)
{
    char byte;
    for (unsigned i = 0; i < DRAIN_MAX && recv(connection, &byte, 1, MSG_DONTWAIT) > 0; i++)
        ;
}

/* The close itself is made without the lock. Another descriptor may have the number, and the place
 * that goes with it, as soon as it is made. */
static void waiting_close(struct closer *closer, struct waiting *place)
{
    const struct waiting waiting = *place;
    int fd = (int)(place - closer->numbers);
    queue_remove(&closer->queue, &place->link);
    closer->waiting--;
    closer->full = false;
    struct closing *closing = closer->closing;
    while (closing->started_at)
        closing++;
    uint64_t started_at = clock_now();
    *closing = (struct closing){
        .started_at = started_at, .sender = waiting.sender, .thread = pthread_self()};
    pthread_cond_signal(&closer->watch);
    pthread_mutex_unlock(&closer->lock);
    if (waiting.connection)
        read_rest(fd);
    close(fd);
    uint64_t took = clock_now() - started_at;
    if (took > SLOW_NS)
        log_warning(MESSAGE_TEXT(log_close_slow), waiting.sender.client, (double)took / 1e9);
    pthread_mutex_lock(&closer->lock);
    closing->started_at = 0;
}

/* Says so of a close that never ends, and so has no end at which its thread could. */
static void hung_report(struct closing *closing, uint64_t now)
{
    if (closing->said || now - closing->started_at < HUNG_NS)
        return;
    closing->said = true;
    log_warning(MESSAGE_TEXT(log_close_hangs), closing->sender.client,
                (double)(now - closing->started_at) / 1e9);
}

/* The last thread to end frees a closer that nobody waits for. Gives the lock up. */
static void thread_end(struct closer *closer)
{
    bool last = closer->abandoned && !closer->threads && !closer->watched;
    pthread_cond_signal(&closer->ended);
    pthread_mutex_unlock(&closer->lock);
    if (last)
        closer_free(closer);
}

static void *watch_main(void *context)
{
    struct closer *closer = context;
    pthread_mutex_lock(&closer->lock);
    while (!closer->ending || closer->threads) {
        struct timespec end = clock_timespec(clock_now() + INTERRUPT_NS);
        if (any_closing(closer) || closer->ending)
            pthread_cond_timedwait(&closer->watch, &closer->lock, &end);
        else
            pthread_cond_wait(&closer->watch, &closer->lock);
        uint64_t now = clock_now();
        for (unsigned i = 0; i < THREADS_MAX; i++) {
            struct closing *closing = &closer->closing[i];
            if (!closing->started_at || now - closing->started_at < INTERRUPT_NS)
                continue;
            /* Its thread can't end before it has taken the lock. */
            pthread_kill(closing->thread, SIGRTMIN);
            hung_report(closing, now);
        }
    }
    closer->watched = false;
    thread_end(closer);
    return NULL;
}

static void *closer_main(void *context)
{
    struct closer *closer = context;
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGRTMIN);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
    pthread_mutex_lock(&closer->lock);
    for (;;) {
        struct waiting *waiting = next_waiting(closer);
        if (waiting) {
            waiting_close(closer, waiting);
            continue;
        }
        /* One idle thread is enough for clients that mean well. */
        if (closer->ending || closer->idle)
            break;
        closer->idle++;
        pthread_cond_wait(&closer->work, &closer->lock);
        closer->idle--;
    }
    closer->threads--;
    pthread_cond_signal(&closer->watch);
    thread_end(closer);
    return NULL;
}

static bool closer_thread_start(struct closer *closer, void *(*start)(void *))
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* Signals are the loop's. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, start, closer) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

/* Called with the lock. Without a thread the descriptor waits for the next one that is started. */
static void threads_start(struct closer *closer)
{
    if (!closer->watched)
        closer->watched = closer_thread_start(closer, watch_main);
    if (!closer->idle && closer->threads < THREADS_MAX && next_waiting(closer))
        closer->threads += closer_thread_start(closer, closer_main);
}

void closer_close(struct closer **out)
{
    struct closer *closer = *out;
    *out = NULL;
    if (!closer)
        return;
    struct timespec end = clock_timespec(clock_now() + UNITS_SECOND);
    pthread_mutex_lock(&closer->lock);
    closer->ending = true;
    pthread_cond_broadcast(&closer->work);
    pthread_cond_signal(&closer->watch);
    while ((closer->threads || closer->watched) &&
           pthread_cond_timedwait(&closer->ended, &closer->lock, &end) == 0)
        ;
    bool abandoned = closer->abandoned = closer->threads || closer->watched;
    pthread_mutex_unlock(&closer->lock);
    if (!abandoned)
        closer_free(closer);
}

/* ---- descriptors ---- */

static bool take_over(struct closer *closer, int fd, bool connection, struct closer_sender sender)
{
    if (fd < 0)
        return true;
    assert((unsigned)fd < closer->number_count && "the limit of descriptors forbids it");
    struct waiting *waiting = &closer->numbers[fd];
    pthread_mutex_lock(&closer->lock);
    *waiting = (struct waiting){.connection = connection, .sender = sender};
    queue_append(&closer->queue, &waiting->link);
    closer->waiting++;
    bool room = closer->waiting <= closer->waiting_max &&
                user_waiting(closer, sender.uid) <= closer->waiting_max - closer->waiting_max / 4;
    if (!room && !closer->full)
        log_warning(MESSAGE_TEXT(log_closes_wait), closer->waiting, sender.client);
    closer->full = closer->full || !room;
    threads_start(closer);
    pthread_cond_signal(&closer->work);
    pthread_mutex_unlock(&closer->lock);
    return room;
}

bool closer_take(struct closer *closer, int fd, struct closer_sender sender)
{
    return take_over(closer, fd, false, sender);
}

bool closer_take_message(struct closer *closer, struct channel_message *message,
                         struct closer_sender sender)
{
    bool room = true;
    for (unsigned i = 0; i < message->fd_count; i++)
        room &= closer_take(closer, channel_take_fd(message, i), sender);
    return room;
}

bool closer_drain(struct closer *closer, int socket, bool with_fds, struct closer_sender sender)
{
    struct channel_message rest;
    shutdown(socket, SHUT_RD);
    for (unsigned i = 0; i < DRAIN_MAX; i++) {
        if (!with_fds && channel_brings_fds(socket))
            return false;
        int result = channel_discard(socket, &rest);
        if (result != 0)
            return result == CHANNEL_CLOSED;
        /* The rest of the descriptors takes fewer numbers inside the socket. */
        if (!closer_take_message(closer, &rest, sender))
            return false;
    }
    return false;
}

void closer_hang_up(struct closer *closer, int socket, bool with_fds, struct closer_sender sender)
{
    if (closer_drain(closer, socket, with_fds, sender))
        close(socket);
    else
        take_over(closer, socket, true, sender);
}
