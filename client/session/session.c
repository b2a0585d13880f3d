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
#include "common/error.h"
#include "common/ipc/shared_word.h"
#include "common/messages.h"

static uint32_t load_ended(const struct session *session)
{
    return atomic_load_explicit(&session->ended, memory_order_acquire);
}

/* Sets the error that ended the session, unless one is set already. Called with the lock. */
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

/*
 * Receives one message; the session ends on anything but a message for the caller, or a notice.
 * Returns true if there is one (a reply, to whatever serial; or a notice). Called with the lock.
 */
static bool receive_message(struct session *session)
{
    struct channel_message *message = session->message;
    int result = channel_receive(session->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, message);
    if (result == -EPROTO && channel_is_old_refusal(message)) {
        mark_ended(session, MESSAGE(server_protocol_old), GPUSHARE_VERSION, PROTO_MAJOR,
                   PROTO_MINOR);
        return false;
    }
    if (result == -EPROTO) {
        mark_ended(session, MESSAGE(server_broke_protocol), message->why);
        return false;
    }
    if (result) {
        mark_lost(session);
        return false;
    }
    if (message->header.opcode == PROTO_ENDED) {
        const struct proto_ended *ended = message->body;
        mark_ended(session, ended->error, "%s",
                   *ended->text ? ended->text : error_sentence(ended->error));
        return false;
    }
    return true;
}

/* Whether the message tells without being asked for whom a load waits; passes it on. */
static bool pass_notice(const struct session *session)
{
    const struct channel_message *message = session->message;
    if (message->header.opcode != PROTO_LOAD_WAIT || message->header.serial != 0)
        return false;
    const struct proto_load_wait *wait = message->body;
    if (session->notice && *wait->text)
        session->notice(session->notice_context, wait->text);
    return true;
}

static gpushare_error report_end(const struct session *session)
{
    return failure_text(load_ended(session), session->text);
}

/* Copies the reply to the caller, or returns the server's refusal. Called with the lock. */
static gpushare_error take_reply(struct session *session, const struct session_call *call)
{
    struct channel_message *message = session->message;
    if (message->header.opcode == PROTO_FAILED) {
        const struct proto_failed *failed = message->body;
        return failure_text(failed->error, failed->text);
    }
    if (message->header.opcode != call->reply || message->fd_count != call->reply_fd_max ||
        (call->reply_body && message->type->bytes != call->reply_bytes)) {
        channel_close_fds(message);
        mark_ended(session, MESSAGE(server_reply_unfit));
        return report_end(session);
    }
    if (call->reply_tail) {
        *call->reply_tail = NULL;
        *call->reply_tail_bytes = message->tail_bytes;
        if (message->tail_bytes && !(*call->reply_tail = malloc(message->tail_bytes))) {
            channel_close_fds(message);
            return failure(MESSAGE(process_no_memory));
        }
        if (message->tail_bytes)
            memcpy(*call->reply_tail, message->tail, message->tail_bytes);
    }
    if (call->reply_body)
        memcpy(call->reply_body, message->body, call->reply_bytes);
    for (unsigned i = 0; i < call->reply_fd_max; i++)
        call->reply_fds[i] = channel_take_fd(message, i);
    return GPUSHARE_SUCCESS;
}

static gpushare_error exchange_messages(struct session *session, const struct session_call *call)
{
    if (load_ended(session))
        return report_end(session);
    uint64_t serial = ++session->serial;
    int result = channel_send(session->fd, call->request, serial, 0, call->body, call->tail,
                              call->tail_bytes, call->fd, call->fd ? 1 : 0);
    if (result == -EINVAL || result == -ETOOMANYREFS || result == -ENOBUFS || result == -ENOMEM)
        return failure(MESSAGE(request_unsent), strerror(-result));
    /* After -EPIPE there may still be a message that says why the server ended the session. */
    while (receive_message(session)) {
        if (session->message->header.serial == serial)
            return take_reply(session, call);
        if (pass_notice(session))
            continue;
        channel_close_fds(session->message);
        mark_ended(session, MESSAGE(server_reply_unasked));
        break;
    }
    return report_end(session);
}

gpushare_error session_call(struct session *session, const struct session_call *call)
{
    pthread_mutex_lock(&session->lock);
    gpushare_error error = exchange_messages(session, call);
    pthread_mutex_unlock(&session->lock);
    return error;
}

/* Reads messages that answer no request, as long as there are any. Called with the lock. */
static void read_notices(struct session *session)
{
    struct pollfd poll_fd = {.fd = session->fd, .events = POLLIN};
    while (!load_ended(session) && poll(&poll_fd, 1, 0) > 0) {
        if (!receive_message(session))
            return;
        if (pass_notice(session))
            continue;
        channel_close_fds(session->message);
        mark_ended(session, MESSAGE(server_reply_unasked));
    }
}

bool session_alive(struct session *session)
{
    if (!load_ended(session) && pthread_mutex_trylock(&session->lock) == 0) {
        read_notices(session);
        pthread_mutex_unlock(&session->lock);
    }
    return !load_ended(session);
}

gpushare_error session_ended(struct session *session)
{
    if (!load_ended(session)) {
        pthread_mutex_lock(&session->lock);
        read_notices(session);
        /* The server sets the fault word before it sends its sentence, which may still be under
         * way. If it does not come within 200 ms, the fault word says enough. */
        if (!load_ended(session) && session->status && shared_word_read(&session->status->fault)) {
            struct pollfd poll_fd = {.fd = session->fd, .events = POLLIN};
            if (poll(&poll_fd, 1, 200) > 0)
                read_notices(session);
            if (!load_ended(session))
                mark_lost(session);
        }
        pthread_mutex_unlock(&session->lock);
    }
    return load_ended(session) ? report_end(session) : GPUSHARE_SUCCESS;
}

static int dial_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    int fd = channel_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (fd < 0)
        return -errno;
    int result;
    do
        result = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (result < 0 && errno == EINTR);
    if (result < 0) {
        int saved = errno;
        close(fd);
        return -saved;
    }
    return fd;
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

/* reasons: the errno of connecting to `first`, and to `second` if that is not empty. */
static gpushare_error fail_unreachable(const char *first, const char *second, const int reasons[2])
{
    if (reasons[0] == EPROTOTYPE)
        return failure(MESSAGE(socket_not_clients), first);
    if (!*second)
        return failure(MESSAGE(server_unreachable), first, strerror(reasons[0]));
    return failure(MESSAGE(server_unreachable_twice), first, strerror(reasons[0]), second,
                   strerror(reasons[1]));
}

gpushare_error session_dial(struct session *session, const char *first, const char *second,
                            struct proto_welcome *welcome)
{
    int reasons[2] = {0};
    const char *found = first;
    memset(session, 0, sizeof *session);
    session->fd = dial_socket(first);
    if (session->fd < 0 && *second) {
        reasons[0] = -session->fd;
        session->fd = dial_socket(found = second);
    }
    if (session->fd < 0) {
        reasons[*second != 0] = -session->fd;
        session->fd = -1;
        return fail_unreachable(first, second, reasons);
    }
    snprintf(session->path, sizeof session->path, "%s", found);
    session->message = malloc(sizeof *session->message);
    if (!session->message) {
        close(session->fd);
        session->fd = -1;
        return failure(MESSAGE(process_no_memory));
    }
    pthread_mutex_init(&session->lock, NULL);
    gpushare_error error = send_hello(session, welcome);
    if (error)
        session_close(session);
    return error;
}

void session_close(struct session *session)
{
    if (!session->message)
        return;
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
    free(session->message);
    session->message = NULL;
    pthread_mutex_destroy(&session->lock);
}

void session_abandon(struct session *session)
{
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
}
