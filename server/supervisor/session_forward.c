/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <string.h>

#include "server/supervisor/session.h"
#include "server/supervisor/supervisor_private.h"

/* What is passed on to the worker unchanged, and what comes back if it succeeds. */
static uint16_t reply_of(uint16_t opcode)
{
    switch (opcode) {
    case PROTO_FUNCTION_GET:
        return PROTO_FUNCTION_INFO;
    case PROTO_GLOBAL_GET:
        return PROTO_GLOBAL_INFO;
    case PROTO_OCCUPANCY_GET:
        return PROTO_OCCUPANCY_INFO;
    case PROTO_STREAM_CREATE:
        return PROTO_STREAM_CREATED;
    case PROTO_EVENT_CREATE:
        return PROTO_EVENT_CREATED;
    case PROTO_EVENT_ELAPSED:
        return PROTO_ELAPSED;
    default:
        return PROTO_DONE;
    }
}

static void forwarded(void *context, struct channel_message *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    if (answer &&
        (answer->header.opcode == request->reply || answer->header.opcode == PROTO_FAILED))
        session_pass(session, request->serial, answer);
    else if (answer)
        session_refuse(session, request->serial, PROTO_ERROR_UNKNOWN,
                       "the worker answered with %s, which is no answer to that request",
                       answer->type->name);
    session_request_end(request);
}

/* The module that a message names, 0 if it names none. */
static uint32_t module_of(const struct channel_message *message)
{
    struct proto_function_get body;
    if (message->header.opcode != PROTO_FUNCTION_GET && message->header.opcode != PROTO_GLOBAL_GET)
        return 0;
    _Static_assert(offsetof(struct proto_function_get, module) ==
                       offsetof(struct proto_global_get, module),
                   "both begin with the module");
    memcpy(&body, message->body, sizeof body);
    return body.module;
}

void session_forward(struct session *session, struct channel_message *message)
{
    uint32_t serial = message->header.serial, module = module_of(message);
    if (module && !session_module_known(session, module)) {
        session_refuse(session, serial, PROTO_ERROR_INVALID_HANDLE,
                       "module %u is not a module of this client", module);
        return;
    }
    struct request *request = session_request(session, serial, reply_of(message->header.opcode));
    if (!request)
        return;
    int result = session->device->link
                     ? worker_link_request(session->device->link, message->header.opcode,
                                           session->number, message->body, message->tail,
                                           message->tail_bytes, NULL, 0, forwarded, request)
                     : -1;
    if (result < 0) {
        session_refuse(session, serial, PROTO_ERROR_WORKER_LOST, "the worker of device %u ended",
                       session->device->index);
        session_request_end(request);
    }
}
