/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/session_worker.h"

#include <errno.h>
#include <string.h>

#include "common/messages.h"
#include "server/supervisor/device/device_request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

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
