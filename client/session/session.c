/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/session.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/session/failure.h"
#include "client/session/waiter.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/ipc/shared_word.h"
#include "common/messages.h"

/* How long a thread that saw the fault word waits for the sentence, which follows at once. If it
 * does not come, the fault word says enough. */
#define END_WAIT_NS (200 * UNITS_MS)

static uint32_t load_ended(const struct session *session)
{
    return atomic_load_explicit(&session->ended, memory_order_acquire);
}

/* Sets the error that ended the session, unless one is set already, and wakes every thread that
 * waits. Called with the lock. */
__attribute__((format(printf, 3, 4))) static void
mark_ended(struct session *session, uint32_t error, const char *format, ...)
{
    if (load_ended(session))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(session->text, sizeof session->text, format, arguments);
    va_end(arguments);
    /* Behind the text, which whoever sees the number reads without the lock. */
    atomic_store_explicit(&session->ended, error, memory_order_release);
    struct waiter *waiter;
    LIST_FOR_EACH (waiter, &session->waiters, link)
        waiter_wake(waiter);
    pthread_cond_broadcast(&session->room);
    /* A thread that reads or sends at the moment would not notice. */
    shutdown(session->fd, SHUT_RDWR);
}

/* The socket was closed without a message; the fault word may say why. Called with the lock. */
static void mark_lost(struct session *session)
{
    uint32_t fault = session->status ? shared_word_read(&session->status->fault) : 0;
    if (fault)
        mark_ended(session, fault, "%s", error_sentence(fault));
    else
        mark_ended(session, MESSAGE(session_closed));
}

static gpushare_error report_end(const struct session *session)
{
    return failure_text(load_ended(session), session->text);
}

/* ---- reading ---- */

/* The sentence that a message tells without being asked; NULL: it is another message. */
static const char *notice_text(const struct channel_message *message)
{
    if (message->header.serial != 0)
        return NULL;
    if (message->header.opcode == PROTO_LOAD_WAIT)
        return ((const struct proto_load_wait *)message->body)->text;
    return message->header.opcode == PROTO_NOTICE
               ? ((const struct proto_notice *)message->body)->text
               : NULL;
}

/* Whether the message is such a notice; passes it on. Called by the reading thread, without the
 * lock: the program's function may take its time. */
static bool pass_notice(const struct session *session)
{
    const char *text = notice_text(session->message);
    if (text && *text && session->notice)
        session->notice(session->notice_context, text);
    return text != NULL;
}

/* Takes a waiter whose request is over out of the list. Called with the lock. */
static void remove_request(struct session *session, struct waiter *waiter)
{
    list_remove(&waiter->link);
    session->requests--;
    pthread_cond_signal(&session->room);
}

/* Hands the reply to the thread that waits for it. A server that took over may send a reply again,
 * which is dropped; a reply to what was never asked ends the session. Called with the lock. */
static void deliver_reply(struct session *session)
{
    struct channel_message *message = session->message;
    struct waiter *waiter = waiter_find(&session->waiters, message->header.serial);
    if (waiter && waiter_take(waiter, message)) {
        remove_request(session, waiter);
        waiter_wake(waiter);
        return;
    }
    channel_close_fds(message);
    if (!waiter && message->header.serial && message->header.serial <= session->serial)
        return;
    if (waiter)
        mark_ended(session, MESSAGE(server_reply_unfit));
    else
        mark_ended(session, MESSAGE(server_reply_unasked));
}

/* Acts on what channel_receive returned, with session->message, if that was no notice. Called with
 * the lock. */
static void take_message(struct session *session, int result)
{
    const struct channel_message *message = session->message;
    if (result == -EPROTO && channel_is_old_refusal(message)) {
        mark_ended(session, MESSAGE(server_protocol_old), GPUSHARE_VERSION, PROTO_MAJOR,
                   PROTO_MINOR);
    } else if (result == -EPROTO) {
        mark_ended(session, MESSAGE(server_broke_protocol), message->why);
    } else if (result) {
        mark_lost(session);
    } else if (message->header.opcode == PROTO_ENDED) {
        const struct proto_ended *ended = message->body;
        mark_ended(session, ended->error, "%s",
                   *ended->text ? ended->text : error_sentence(ended->error));
    } else {
        deliver_reply(session);
    }
}

/*
 * Reads one message, and waits for it for this many ms (-1: until it comes). Returns false if none
 * came. Called with the lock, which is not held meanwhile, while no other thread reads.
 */
static bool read_message(struct session *session, int ms)
{
    struct pollfd poll_fd = {.fd = session->fd, .events = POLLIN};
    session->reading = true;
    pthread_mutex_unlock(&session->lock);
    int result = 0;
    bool came = ms < 0 || poll(&poll_fd, 1, ms) > 0;
    if (came)
        result = channel_receive(session->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR,
                                 session->message);
    bool notice = came && !result && pass_notice(session);
    pthread_mutex_lock(&session->lock);
    session->reading = false;
    if (came && !notice)
        take_message(session, result);
    return came;
}

/* Reads the messages that are there, unless another thread reads. Called with the lock. */
static void read_pending(struct session *session)
{
    while (!session->reading && !load_ended(session) && read_message(session, 0))
        ;
}

/* Leaves the reading to a thread that waits. Every thread that may have read calls this, with the
 * lock, when it reads no more. */
static void pass_reading_on(struct session *session)
{
    if (!session->reading)
        waiter_wake_one(&session->waiters);
}

/* ---- requests ---- */

/* Sends the waiter's request, which counts as under way from then on. Returns SUCCESS, the error
 * that ended the session, or SERVER_RESOURCES: nothing is under way then. */
static gpushare_error send_request(struct session *session, struct waiter *waiter)
{
    const struct session_call *call = waiter->call;
    int result = 0;
    pthread_mutex_lock(&session->sending);
    pthread_mutex_lock(&session->lock);
    while (session->requests >= PROTO_REQUESTS_MAX && !load_ended(session))
        pthread_cond_wait(&session->room, &session->lock);
    bool ended = load_ended(session);
    if (!ended) {
        /* In the list before it is sent: the reply may come before this thread goes on. */
        waiter->serial = ++session->serial;
        list_append(&session->waiters, &waiter->link);
        session->requests++;
    }
    pthread_mutex_unlock(&session->lock);
    if (!ended)
        result = channel_send(session->fd, &(struct channel_packet){.opcode = call->request,
                                                                    .serial = waiter->serial,
                                                                    .body = call->body,
                                                                    .tail = call->tail,
                                                                    .tail_bytes = call->tail_bytes,
                                                                    .fds = call->fd,
                                                                    .fd_count = call->fd ? 1 : 0});
    pthread_mutex_unlock(&session->sending);
    if (ended)
        return report_end(session);
    /* After -EPIPE there may still be a message that says why the server ended the session. */
    if (result != -EINVAL && result != -ETOOMANYREFS && result != -ENOBUFS && result != -ENOMEM)
        return GPUSHARE_SUCCESS;
    pthread_mutex_lock(&session->lock);
    if (list_is_linked(&waiter->link))
        remove_request(session, waiter);
    pthread_mutex_unlock(&session->lock);
    return failure(MESSAGE(request_unsent), strerror(-result));
}

static gpushare_error await_reply(struct session *session, struct waiter *waiter)
{
    pthread_mutex_lock(&session->lock);
    while (!waiter->answered && !load_ended(session)) {
        if (session->reading)
            waiter_sleep(waiter, &session->lock);
        else
            read_message(session, -1);
    }
    if (list_is_linked(&waiter->link))
        remove_request(session, waiter);
    pass_reading_on(session);
    pthread_mutex_unlock(&session->lock);
    return waiter->answered ? waiter_result(waiter) : report_end(session);
}

gpushare_error session_call(struct session *session, const struct session_call *call)
{
    struct waiter waiter;
    int cancel;
    /* The waiter lies on this thread's stack, and others know its address. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    waiter_open(&waiter, call);
    gpushare_error error = send_request(session, &waiter);
    if (!error)
        error = await_reply(session, &waiter);
    waiter_close(&waiter);
    pthread_setcancelstate(cancel, NULL);
    return error;
}

/* ---- the end ---- */

bool session_alive(struct session *session)
{
    int cancel;
    if (load_ended(session))
        return false;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&session->lock);
    read_pending(session);
    pass_reading_on(session);
    pthread_mutex_unlock(&session->lock);
    pthread_setcancelstate(cancel, NULL);
    return !load_ended(session);
}

/* Whether the server said that the session is over, by the fault word or, as far as another thread
 * has not read it yet, by closing the socket. Called with the lock. */
static bool server_is_through(const struct session *session)
{
    struct pollfd hung_up = {.fd = session->fd};
    return (session->status && shared_word_read(&session->status->fault)) ||
           (session->reading && poll(&hung_up, 1, 0) > 0);
}

/* Waits until the session has ended, for END_WAIT_NS at most. Called with the lock. */
static void await_end(struct session *session)
{
    struct waiter waiter;
    waiter_open(&waiter, NULL);
    list_append(&session->waiters, &waiter.link);
    uint64_t now, until = clock_now() + END_WAIT_NS;
    while (!load_ended(session) && (now = clock_now()) < until) {
        if (session->reading)
            waiter_sleep_until(&waiter, &session->lock, until);
        else
            read_message(session, (int)((until - now) / UNITS_MS) + 1);
    }
    list_remove(&waiter.link);
    waiter_close(&waiter);
}

void session_give_up(struct session *session)
{
    pthread_mutex_lock(&session->lock);
    mark_ended(session, MESSAGE(session_given_up));
    pthread_mutex_unlock(&session->lock);
}

gpushare_error session_ended(struct session *session)
{
    int cancel;
    if (load_ended(session))
        return report_end(session);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&session->lock);
    read_pending(session);
    /* The server sets the fault word before it sends its sentence, which may still be under way,
     * or with the thread that reads. */
    if (!load_ended(session) && server_is_through(session)) {
        await_end(session);
        mark_lost(session);
    }
    pass_reading_on(session);
    pthread_mutex_unlock(&session->lock);
    pthread_setcancelstate(cancel, NULL);
    return load_ended(session) ? report_end(session) : GPUSHARE_SUCCESS;
}

/* ---- the socket ---- */

/* Sessions with a socket, from the moment when it is made to that when it is closed. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list open_sessions = LIST_INIT(open_sessions);

static void fork_prepare(void)
{
    pthread_mutex_lock(&open_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&open_lock);
}

/* In the child only the forking thread lives, and others may have held any other lock: nothing but
 * the sockets is touched. They are closed so that the server notices when the parent ends. */
static void fork_child(void)
{
    struct session *session;
    LIST_FOR_EACH (session, &open_sessions, link)
        close(session->fd);
    list_init(&open_sessions);
    fork_parent();
}

static void watch_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void socket_close(struct session *session)
{
    pthread_mutex_lock(&open_lock);
    if (session->fd >= 0) {
        list_remove(&session->link);
        close(session->fd);
    }
    session->fd = -1;
    pthread_mutex_unlock(&open_lock);
}

static int socket_open(struct session *session)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&open_lock);
    session->fd = channel_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    int result = session->fd < 0 ? -errno : 0;
    if (result == 0)
        list_append(&open_sessions, &session->link);
    pthread_mutex_unlock(&open_lock);
    return result;
}

static int dial_socket(struct session *session, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int result = socket_open(session);
    if (result < 0)
        return result;
    do
        result = connect(session->fd, (struct sockaddr *)&address, sizeof address);
    while (result < 0 && errno == EINTR);
    if (result == 0)
        return 0;
    result = -errno;
    socket_close(session);
    return result;
}

static gpushare_error send_hello(struct session *session, struct proto_welcome *welcome)
{
    struct proto_hello hello = {.major = PROTO_MAJOR, .minor = PROTO_MINOR};
    struct session_call call = {.request = PROTO_HELLO,
                                .body = &hello,
                                .reply = PROTO_WELCOME,
                                .reply_body = welcome,
                                .reply_bytes = sizeof *welcome};
    gpushare_error error = session_call(session, &call);
    if (!error && welcome->major != PROTO_MAJOR)
        error = failure(MESSAGE(server_protocol), welcome->version, welcome->major, welcome->minor,
                        GPUSHARE_VERSION, PROTO_MAJOR, PROTO_MINOR);
    return error;
}

/* reasons: the errno of connecting to each path. */
static gpushare_error fail_unreachable(const struct session_address *address, const int reasons[2])
{
    const char *first = address->paths[0], *second = address->paths[1];
    for (int i = 0; i < 2 && *address->paths[i]; i++)
        if (reasons[i] == EACCES)
            return failure(MESSAGE(socket_denied), address->paths[i], strerror(EACCES));
    if (reasons[0] == EPROTOTYPE)
        return failure(MESSAGE(socket_not_clients), first);
    if (address->from)
        return failure(MESSAGE(server_unreachable_named), first, strerror(reasons[0]),
                       address->from);
    if (!*second)
        return failure(MESSAGE(server_unreachable), first, strerror(reasons[0]));
    return failure(MESSAGE(server_unreachable_twice), first, strerror(reasons[0]), second,
                   strerror(reasons[1]));
}

static gpushare_error dial_once(struct session *session, const struct session_address *address,
                                struct proto_welcome *welcome)
{
    int reasons[2] = {0};
    memset(session, 0, sizeof *session);
    session->fd = -1;
    for (int i = 0; i < 2 && session->fd < 0 && *address->paths[i]; i++) {
        reasons[i] = -dial_socket(session, address->paths[i]);
        snprintf(session->path, sizeof session->path, "%s", address->paths[i]);
    }
    if (session->fd < 0)
        return fail_unreachable(address, reasons);
    session->message = malloc(sizeof *session->message);
    if (!session->message) {
        socket_close(session);
        return failure(MESSAGE(process_no_memory));
    }
    pthread_mutex_init(&session->sending, NULL);
    pthread_mutex_init(&session->lock, NULL);
    pthread_cond_init(&session->room, NULL);
    list_init(&session->waiters);
    gpushare_error error = send_hello(session, welcome);
    if (error)
        session_close(session);
    return error;
}

/* A server that is killed at the moment when it accepts a connection takes that along, and no other
 * server can know of it. Nothing was asked for yet, so the next attempt finds the next one, which
 * may be killed as well. A server that ends each connection must not be asked for ever. */
gpushare_error session_dial(struct session *session, const struct session_address *address,
                            struct proto_welcome *welcome)
{
    enum { ATTEMPTS = 8 };
    gpushare_error error = GPUSHARE_ERROR_CONNECTION_LOST;
    for (int i = 0; i < ATTEMPTS && error == GPUSHARE_ERROR_CONNECTION_LOST; i++)
        error = dial_once(session, address, welcome);
    return error;
}

void session_close(struct session *session)
{
    if (!session->message)
        return;
    socket_close(session);
    free(session->message);
    session->message = NULL;
    pthread_cond_destroy(&session->room);
    pthread_mutex_destroy(&session->lock);
    pthread_mutex_destroy(&session->sending);
}
