/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/forward.h"

#include <string.h>

#include "server/supervisor/session/module.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"

static void forward_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    session_pass(request->session, request->serial, answer);
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
    uint64_t serial = message->header.serial;
    uint32_t module = module_of(message);
    if (module && !session_module_known(session, module)) {
        session_refuse(session, serial, PROTO_ERROR_INVALID_HANDLE,
                       "module %u is not a module of this client", module);
        return;
    }
    struct request *request = session_request(session, serial, message->type->reply);
    if (!request)
        return;
    struct worker_request forwarded = {.opcode = message->header.opcode,
                                       .body = message->body,
                                       .tail = message->tail,
                                       .tail_bytes = message->tail_bytes};
    int result = session_send(session, &forwarded, forward_answered, request);
    if (result < 0) {
        session_refuse(session, serial, PROTO_ERROR_WORKER_LOST, "the worker of device %u ended",
                       session->device->index);
        session_request_end(request);
    }
}
