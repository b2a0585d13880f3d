/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/session_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/messages.h"
#include "common/printable.h"
#include "server/supervisor/session/inbox.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

bool session_reads(const struct session *session)
{
    return !session->parked.present && !session->keeping.peeked &&
           session->state != PROTO_CONNECTION_STATE_ATTACHING &&
           session->state != PROTO_CONNECTION_STATE_LEAVING &&
           session->requests < PROTO_REQUESTS_MAX;
}

/* Descriptors of answers that the client does not read are the client's, as those of its memory
 * are. Answers that are held are sent in this turn. */
static void unread_charge(struct session *session)
{
    const struct send_queue *queue = &session->send_queue;
    if (queue->held || session->unread.amount == queue->fds)
        return;
    quota_return(&session->unread);
    if (queue->fds && quota_charge(&session->fds, &session->unread, queue->fds, NULL))
        session_fail(session, MESSAGE(answers_unread));
}

void session_poll(struct session *session)
{
    unread_charge(session);
    session->paused = !session_reads(session);
    int events = UV_DISCONNECT | (session->paused ? 0 : UV_READABLE) |
                 (send_queue_waiting(&session->send_queue) ? UV_WRITABLE : 0);
    uv_poll_start(&session->poll, events, session->ready);
}

static void send_done(struct session *session, int result)
{
    if (result == SEND_QUEUE_QUEUED)
        session_poll(session);
    else if (result == -ENOBUFS)
        session_fail(session, MESSAGE(answers_unread));
    else if (result == -EPIPE || result == -ECONNRESET)
        session_fail(session, MESSAGE(client_hung_up));
    else if (result < 0)
        session_fail(session, MESSAGE(answer_unsent), strerror(-result));
}

void session_answer(struct session *session, uint16_t opcode, uint64_t serial, const void *body,
                    const int *fds, unsigned fd_count)
{
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return;
    session_inbox_answered(session, serial);
    send_done(session, send_queue_send(&session->send_queue,
                                       &(struct channel_packet){.opcode = opcode,
                                                                .serial = serial,
                                                                .body = body,
                                                                .fds = fds,
                                                                .fd_count = fd_count}));
}

void session_refuse(struct session *session, uint64_t serial, uint32_t error, const char *format,
                    ...)
{
    struct proto_failed body = {.error = error ? error : PROTO_ERROR_UNKNOWN};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body.text, sizeof body.text, format, arguments);
    va_end(arguments);
    printable_replace(body.text);
    session_answer(session, PROTO_FAILED, serial, &body, NULL, 0);
}

void session_refuse_why(struct session *session, uint64_t serial, const struct error *why)
{
    session_refuse(session, serial, why->number, "%s", why->text);
}

void session_pass(struct session *session, uint64_t serial, const struct worker_answer *answer)
{
    const struct channel_message *message = answer->message;
    session_inbox_answered(session, serial);
    if (answer->outcome != WORKER_ANSWERED)
        session_refuse(session, serial, answer->error, "%s", answer->text);
    else if (session->state != PROTO_CONNECTION_STATE_LEAVING)
        send_done(session,
                  send_queue_send(&session->send_queue,
                                  &(struct channel_packet){.opcode = message->header.opcode,
                                                           .serial = serial,
                                                           .body = message->body,
                                                           .tail = message->tail,
                                                           .tail_bytes = message->tail_bytes}));
}

struct closer_sender session_sender(const struct session *session)
{
    return (struct closer_sender){.client = session->number, .uid = session->uid};
}

struct session *session_find_companion(struct session *session, uint64_t serial, uint32_t number)
{
    struct session *other = session_find(session->server, number);
    if (other && session_is_companion(session, other, session->group))
        return other;
    session_refuse(session, serial, MESSAGE(share_foreign), number);
    return NULL;
}
