/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/printable.h"
#include "common/util.h"
#include "server/supervisor/client/image.h"
#include "server/supervisor/device/device_request.h"
#include "server/supervisor/session/inbox.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/server.h"

static void format_text(char *text, size_t bytes, const char *format, va_list arguments)
{
    vsnprintf(text, bytes, format, arguments);
    printable_replace(text);
}

/* ---- the end ---- */

static void log_end(const struct session *session)
{
    const struct proto_ended *ended = &session->ended;
    /* Every client first looks at the devices through a connection of its own; its end is no
     * news. */
    if (!ended->error && session->state < PROTO_CONNECTION_STATE_ATTACHING)
        log_debug(MESSAGE_TEXT(log_connection_gone), session->number, (int)session->pid,
                  session->uid, ended->text);
    else if (!ended->error)
        log_info(MESSAGE_TEXT(log_client_gone), session->number, session->name, (int)session->pid,
                 session->uid, ended->text);
    else
        log_warning(MESSAGE_TEXT(log_client_ended), session->number, session->name,
                    (int)session->pid, session->uid, error_name(ended->error), ended->text);
}

void session_schedule(struct session *session)
{
    if (session->state != PROTO_CONNECTION_STATE_LEAVING || session->due)
        return;
    session->due = true;
    queue_append(&session->server->due, &session->due_link);
}

void session_enter(struct session *session, enum proto_connection_state state)
{
    if (session->state != PROTO_CONNECTION_STATE_LEAVING)
        session->state = state;
    session_touch(session);
}

void session_fail(struct session *session, uint32_t error, const char *format, ...)
{
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return;
    va_list arguments;
    va_start(arguments, format);
    session->ended.error = error;
    format_text(session->ended.text, sizeof session->ended.text, format, arguments);
    va_end(arguments);
    log_end(session);
    session->state = PROTO_CONNECTION_STATE_LEAVING;
    session->parked.present = false;
    session_touch(session);
    session_schedule(session);
}

void session_fail_why(struct session *session, const struct error *why)
{
    session_fail(session, why->number, "%s", why->text);
}

/* ---- the client ---- */

bool session_reads(const struct session *session)
{
    return !session->parked.present && session->state != PROTO_CONNECTION_STATE_ATTACHING &&
           session->state != PROTO_CONNECTION_STATE_LEAVING &&
           session->requests < PROTO_REQUESTS_MAX;
}

void session_poll(struct session *session)
{
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
    format_text(body.text, sizeof body.text, format, arguments);
    va_end(arguments);
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

/* ---- requests under way ---- */

struct request *session_request_own(struct session *session)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->session = session;
    request->fd = -1;
    request->want.session = session;
    session->requests++;
    return request;
}

struct request *session_request(struct session *session, uint64_t serial, uint16_t reply)
{
    struct request *request = session_request_own(session);
    if (!request) {
        session_refuse(session, serial, MESSAGE(request_no_memory));
        return NULL;
    }
    request->serial = serial;
    request->reply = reply;
    return request;
}

void session_request_end(struct request *request)
{
    struct session *session = request->session;
    closer_take(session->server->closer, request->fd, session_sender(session));
    quota_return(&request->charge);
    image_release(request->image, session->server->closer);
    image_release(request->known, session->server->closer);
    free(request);
    session->requests--;
    session_touch(session);
    session_schedule(session);
    if (session->paused && session_reads(session))
        session_poll(session);
}

static struct request *request_of(struct job *job)
{
    return container_of(job, struct request, job);
}

static int job_run(struct job *job)
{
    struct request *request = request_of(job);
    return request->work(request);
}

/* A job can't be cancelled. If the session has ended meanwhile, the job's result goes with the
 * request. */
static void job_done(struct job *job, int result)
{
    struct request *request = request_of(job);
    bool ended = request->session->state == PROTO_CONNECTION_STATE_LEAVING;
    request->worked(request, ended ? -ECANCELED : result);
}

void session_request_work(struct request *request, int (*work)(struct request *request),
                          void (*worked)(struct request *request, int result))
{
    request->work = work;
    request->worked = worked;
    job_start(&request->job, &request->session->jobs, job_run, job_done);
}

/* ---- the worker ---- */

int session_send(struct session *session, struct channel_packet *request, worker_link_reply *reply,
                 void *context)
{
    /* session_end has cancelled the earlier requests; a later one would outlive the session. */
    if (session->down)
        return -ESHUTDOWN;
    request->client = session->number;
    session_touch(session);
    return session->held ? held_requests_add(&session->device->held, request, reply, context)
                         : device_request_again(session->device, request, reply, context);
}

void session_send_restoring(struct session *session, struct channel_packet *request,
                            worker_link_reply *answered)
{
    session_send_restoring_of(session, request, answered, session);
}

bool session_send_restoring_of(struct session *session, struct channel_packet *request,
                               worker_link_reply *answered, void *context)
{
    request->client = session->number;
    int result = device_request(session->device, request, answered, context);
    if (result == 0)
        session->restore.due++;
    /* A worker that is lost again is told about from the loop. */
    else if (result != -EPIPE)
        session_fail(session, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(session_not_restored),
                     strerror(-result));
    return result == 0;
}

int session_ask(struct session *session, uint16_t opcode, const void *body,
                worker_link_reply *reply, void *context)
{
    struct channel_packet request = {.opcode = opcode, .body = body};
    return session_send(session, &request, reply, context);
}

void session_ask_surely(struct session *session, uint16_t opcode, const void *body,
                        worker_link_reply *reply, void *context)
{
    int result = session_ask(session, opcode, body, reply, context);
    if (result < 0 && result != -ESHUTDOWN)
        device_abandon(session->device);
}
