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
#include "common/util.h"
#include "common/ipc/timeline.h"
#include "server/supervisor/session/inbox.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

/* Of the time that passes, the part that a user's records may take. */
#define REST_PART UINT64_C(4)
/* Of each time that a session's records are put, what nobody is charged for. Most take less. */
#define FREE_NS UINT64_C(50000)
/* A debt for which nobody waits. */
#define REST_NS UINT64_C(1000000)

static uint64_t rest_left(const struct session *session)
{
    const struct user_share *share = session->user_share;
    uint64_t now = timeline_now();
    return share && share->rests_until > now + REST_NS ? share->rests_until - now - REST_NS : 0;
}

static void rest_add(struct session *session, uint64_t nanoseconds)
{
    struct user_share *share = session->user_share;
    /* It is in nobody's way if it is alone. */
    if (share && (share->next || share != session->server->user_shares.first))
        share->rests_until =
            max(share->rests_until, timeline_now()) + (REST_PART - 1) * nanoseconds;
}

void session_rest_ahead(struct session *session)
{
    session->keeping.ahead = session->keeping.cost;
    rest_add(session, session->keeping.cost);
}

void session_rest_after(struct session *session, uint64_t nanoseconds)
{
    uint64_t cost = saturating_sub(nanoseconds, FREE_NS);
    rest_add(session, saturating_sub(cost, session->keeping.ahead));
    session->keeping.cost = cost;
    session->keeping.ahead = 0;
}

static void rest_over(uv_timer_t *timer)
{
    struct server *server = timer->data;
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->paused && session->state != PROTO_CONNECTION_STATE_LEAVING)
            session_poll(session);
}

static void rest_begin(struct server *server, uint64_t nanoseconds)
{
    uint64_t milliseconds = nanoseconds / 1000000 + 1;
    if (!uv_is_active((uv_handle_t *)&server->rest) ||
        uv_timer_get_due_in(&server->rest) > milliseconds)
        uv_timer_start(&server->rest, rest_over, milliseconds, 0);
}

static bool may_be_asked(const struct session *session)
{
    return !session->parked.present && session->state != PROTO_CONNECTION_STATE_ATTACHING &&
           session->state != PROTO_CONNECTION_STATE_LEAVING &&
           session->requests < PROTO_REQUESTS_MAX;
}

bool session_reads(const struct session *session)
{
    return may_be_asked(session) && !rest_left(session);
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
    const uint64_t rest = rest_left(session);
    if (rest)
        rest_begin(session->server, rest);
    session->paused = rest || !may_be_asked(session);
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
