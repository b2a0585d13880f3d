/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/forward.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/session/owned/lost_copies.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

static void forward_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

/* Passes the client's request on to the worker, with this body. Returns false if that fails: the
 * client has been refused, the request has ended, and `answered` is not called. */
static bool forward_ask(struct request *request, const struct channel_message *message,
                        const void *body, worker_link_reply *answered)
{
    struct session *session = request->session;
    struct channel_packet forwarded = {.opcode = message->header.opcode,
                                       .body = body,
                                       .tail = message->tail,
                                       .tail_bytes = message->tail_bytes};
    if (session_send(session, &forwarded, answered, request) == 0)
        return true;
    session_refuse(session, request->serial, MESSAGE(worker_ended), session->device->index);
    request_end(request);
    return false;
}

static void forward_plainly(struct session *session, struct channel_message *message)
{
    struct request *request = request_make(session, message->header.serial, message->type->reply);
    if (request)
        forward_ask(request, message, message->body, forward_answered);
}

/* Whether the client has left the number to the server, which chooses it. Refuses otherwise. */
static bool number_is_open(struct session *session, const struct channel_message *message,
                           uint32_t number)
{
    if (number)
        session_refuse(session, message->header.serial, MESSAGE(message_number),
                       message->type->name, number);
    return !number;
}

/* Makes the request to create an object. result is what objects_new returned; on its failure,
 * refuses and returns NULL. too_many: the sentence if there are as many as the client may have. */
static struct request *create_request(struct session *session,
                                      const struct channel_message *message, int result,
                                      uint32_t number, const char *too_many)
{
    uint64_t serial = message->header.serial;
    if (result < 0) {
        session_refuse(session, serial,
                       result == -ENOSPC ? PROTO_ERROR_TOO_MANY_OBJECTS
                                         : PROTO_ERROR_SERVER_RESOURCES,
                       "%s", result == -ENOSPC ? too_many : MESSAGE_TEXT(request_no_memory));
        return NULL;
    }
    struct request *request = request_make(session, serial, message->type->reply);
    if (request)
        request->object = number;
    return request;
}

/* ---- streams and events ---- */

static void object_made(struct request *request, enum object_kind kind,
                        const struct worker_answer *answer)
{
    struct objects *objects = &request->session->objects;
    if (answer->outcome == WORKER_ANSWERED)
        objects_change(objects, kind, request->object)->state = OBJECT_MADE;
    else
        objects_free(objects, kind, request->object);
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

static void stream_made(void *context, const struct worker_answer *answer)
{
    object_made(context, OBJECT_STREAM, answer);
}

static void event_made(void *context, const struct worker_answer *answer)
{
    object_made(context, OBJECT_EVENT, answer);
}

void session_forward_stream_create(struct session *session, struct channel_message *message)
{
    struct proto_stream_create body;
    memcpy(&body, message->body, sizeof body);
    if (!number_is_open(session, message, body.stream))
        return;
    int result = objects_new(&session->objects, OBJECT_STREAM, &body.stream);
    struct request *request =
        create_request(session, message, result, body.stream, MESSAGE_TEXT(streams_max));
    if (request) {
        objects_change(&session->objects, OBJECT_STREAM, body.stream)->priority = body.priority;
        session_lost_copies_forget(session, body.stream);
    }
    if (result == 0 && (!request || !forward_ask(request, message, &body, stream_made)))
        objects_free(&session->objects, OBJECT_STREAM, body.stream);
}

void session_forward_event_create(struct session *session, struct channel_message *message)
{
    struct proto_event_create body;
    memcpy(&body, message->body, sizeof body);
    if (!number_is_open(session, message, body.event))
        return;
    int result = objects_new(&session->objects, OBJECT_EVENT, &body.event);
    struct request *request =
        create_request(session, message, result, body.event, MESSAGE_TEXT(events_max));
    if (result == 0 && (!request || !forward_ask(request, message, &body, event_made)))
        objects_free(&session->objects, OBJECT_EVENT, body.event);
}

/* Finds an object that the client may use. Otherwise refuses the message and returns NULL. */
static const struct object *object_named(struct session *session,
                                         const struct channel_message *message,
                                         enum object_kind kind, uint32_t number)
{
    static const char *const nouns[] = {"stream", "event", "kernel", "link"};
    const struct object *object = objects_find(&session->objects, kind, number);
    if (object && object->state == OBJECT_MADE)
        return object;
    session_refuse(session, message->header.serial, MESSAGE(object_unknown), nouns[kind], number);
    return NULL;
}

/* The worker may have said before that the object has ended. */
static void object_destroyed(struct request *request, enum object_kind kind,
                             const struct worker_answer *answer)
{
    struct object *object = objects_change(&request->session->objects, kind, request->object);
    if (answer->outcome == WORKER_ANSWERED && object && object->gone)
        objects_free(&request->session->objects, kind, request->object);
    else if (answer->outcome == WORKER_REFUSED && object && object->state == OBJECT_ENDING)
        object->state = OBJECT_MADE;
    else if (answer->outcome == WORKER_ANSWERED && object && object->state == OBJECT_ENDING)
        object->destroyed = true;
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

static void stream_destroyed(void *context, const struct worker_answer *answer)
{
    object_destroyed(context, OBJECT_STREAM, answer);
}

static void event_destroyed(void *context, const struct worker_answer *answer)
{
    object_destroyed(context, OBJECT_EVENT, answer);
}

static void object_destroy(struct session *session, const struct channel_message *message,
                           enum object_kind kind, uint32_t number, worker_link_reply *answered)
{
    struct request *request = object_named(session, message, kind, number)
                                  ? request_make(session, message->header.serial, PROTO_DONE)
                                  : NULL;
    if (!request)
        return;
    request->object = number;
    if (forward_ask(request, message, message->body, answered))
        objects_change(&session->objects, kind, number)->state = OBJECT_ENDING;
}

void session_forward_stream_destroy(struct session *session, struct channel_message *message)
{
    struct proto_stream_destroy body;
    memcpy(&body, message->body, sizeof body);
    object_destroy(session, message, OBJECT_STREAM, body.stream, stream_destroyed);
}

/* The worker knows the timeline; which host memory was being written, the journal of the lost one
 * said. */
static void stream_recovered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct proto_stream_recovered body;
    if (answer->outcome == WORKER_ANSWERED) {
        memcpy(&body, answer->message->body, sizeof body);
        session_lost_copies_take(request->session, request->object, &body);
        session_answer(request->session, PROTO_STREAM_RECOVERED, request->serial, &body, NULL, 0);
    } else {
        session_pass(request->session, request->serial, answer);
    }
    request_end(request);
}

void session_forward_stream_recover(struct session *session, struct channel_message *message)
{
    struct proto_stream_recover body;
    memcpy(&body, message->body, sizeof body);
    /* The default stream is no object: it is always there. */
    if (body.stream && !object_named(session, message, OBJECT_STREAM, body.stream))
        return;
    struct request *request = request_make(session, message->header.serial, PROTO_STREAM_RECOVERED);
    if (!request)
        return;
    request->object = body.stream;
    forward_ask(request, message, &body, stream_recovered);
}

void session_forward_event_destroy(struct session *session, struct channel_message *message)
{
    struct proto_event_destroy body;
    memcpy(&body, message->body, sizeof body);
    object_destroy(session, message, OBJECT_EVENT, body.event, event_destroyed);
}

void session_forward_event_elapsed(struct session *session, struct channel_message *message)
{
    struct proto_event_elapsed body;
    memcpy(&body, message->body, sizeof body);
    if (object_named(session, message, OBJECT_EVENT, body.start) &&
        object_named(session, message, OBJECT_EVENT, body.end))
        forward_plainly(session, message);
}

void session_forward_ended(struct session *session, const struct channel_message *message)
{
    struct proto_worker_stream_ended stream;
    struct proto_worker_event_ended event;
    enum object_kind kind = OBJECT_STREAM;
    uint32_t number;
    if (message->header.opcode == PROTO_WORKER_STREAM_ENDED) {
        memcpy(&stream, message->body, sizeof stream);
        number = stream.stream;
    } else {
        memcpy(&event, message->body, sizeof event);
        kind = OBJECT_EVENT;
        number = event.event;
    }
    struct object *object = objects_change(&session->objects, kind, number);
    session_touch(session);
    /* The request has the number until it is answered: another server handles it anew. */
    if (object && object->state == OBJECT_ENDING && !object->destroyed)
        object->gone = true;
    else if (object && object->state == OBJECT_ENDING)
        objects_free(&session->objects, kind, number);
    else
        log_warning(MESSAGE_TEXT(log_object_not_destroyed), session->number, message->type->name,
                    number);
}

/* ---- kernels and variables ---- */

static bool module_is_known(struct session *session, const struct channel_message *message,
                            uint32_t module)
{
    struct error why;
    if (session_module_usable(session, module, &why))
        return true;
    session_refuse_why(session, message->header.serial, &why);
    return false;
}

static void function_found(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct objects *objects = &request->session->objects;
    /* NULL if the worker has answered the unload of the kernel's module before this. */
    const struct object *kernel = objects_find(objects, OBJECT_FUNCTION, request->object);
    if (kernel) {
        objects_function_told(objects, request->object);
        if (kernel->state == OBJECT_MAKING && answer->outcome == WORKER_ANSWERED)
            objects_change(objects, OBJECT_FUNCTION, request->object)->state = OBJECT_MADE;
        else if (kernel->state == OBJECT_MAKING && !kernel->function.asking)
            objects_free(objects, OBJECT_FUNCTION, request->object);
    }
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

void session_forward_function_get(struct session *session, struct channel_message *message)
{
    struct objects *objects = &session->objects;
    struct proto_function_get body;
    memcpy(&body, message->body, sizeof body);
    if (!number_is_open(session, message, body.function) ||
        !module_is_known(session, message, body.module))
        return;
    int result = 0;
    body.function = objects_function_find(objects, body.module, message->tail, message->tail_bytes);
    if (!body.function)
        result = objects_function_new(objects, body.module, message->tail, message->tail_bytes,
                                      &body.function);
    struct request *request =
        create_request(session, message, result, body.function, MESSAGE_TEXT(kernels_max));
    if (result == 0 && request && forward_ask(request, message, &body, function_found)) {
        objects_function_ask(objects, body.function);
        return;
    }
    const struct object *kernel =
        result == 0 ? objects_find(objects, OBJECT_FUNCTION, body.function) : NULL;
    if (kernel && kernel->state == OBJECT_MAKING && !kernel->function.asking)
        objects_free(objects, OBJECT_FUNCTION, body.function);
}

static void function_changed(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct object *kernel =
        objects_change(&request->session->objects, OBJECT_FUNCTION, request->object);
    if (kernel && answer->outcome == WORKER_ANSWERED) {
        kernel->function.shared_set = true;
        kernel->function.shared_bytes = (uint32_t)request->count;
    }
    forward_answered(request, answer);
}

void session_forward_function_set(struct session *session, struct channel_message *message)
{
    struct proto_function_set body;
    memcpy(&body, message->body, sizeof body);
    if (!object_named(session, message, OBJECT_FUNCTION, body.function))
        return;
    struct request *request = request_make(session, message->header.serial, PROTO_DONE);
    if (!request)
        return;
    request->object = body.function;
    request->count = body.value;
    forward_ask(request, message, &body, function_changed);
}

void session_forward_occupancy_get(struct session *session, struct channel_message *message)
{
    struct proto_occupancy_get body;
    memcpy(&body, message->body, sizeof body);
    if (object_named(session, message, OBJECT_FUNCTION, body.function))
        forward_plainly(session, message);
}

void session_forward_global_get(struct session *session, struct channel_message *message)
{
    struct proto_global_get body;
    memcpy(&body, message->body, sizeof body);
    if (module_is_known(session, message, body.module))
        forward_plainly(session, message);
}

/* ---- another worker ---- */

static void stream_restore(struct session *session, uint32_t number, const struct object *object,
                           worker_link_reply *answered)
{
    struct proto_stream_create body = {.stream = number, .priority = object->priority};
    struct channel_packet packet = {.opcode = PROTO_STREAM_CREATE, .body = &body};
    session_send_restoring(session, &packet, answered);
}

static void event_restore(struct session *session, uint32_t number, const struct object *object,
                          worker_link_reply *answered)
{
    struct proto_event_create body = {.event = number};
    struct channel_packet packet = {.opcode = PROTO_EVENT_CREATE, .body = &body};
    (void)object;
    session_send_restoring(session, &packet, answered);
}

static void kernel_tell_lost(struct session *session, uint32_t number, uint32_t module,
                             worker_link_reply *answered)
{
    struct proto_worker_function_lost body = {.module = module, .function = number};
    struct channel_packet packet = {.opcode = PROTO_WORKER_FUNCTION_LOST, .body = &body};
    session_send_restoring(session, &packet, answered);
}

static void kernel_restore(struct session *session, uint32_t number, const struct object *object,
                           worker_link_reply *answered)
{
    const struct object_function *kernel = &object->function;
    if (session_module_is_lost(session, kernel->module)) {
        kernel_tell_lost(session, number, kernel->module, answered);
        return;
    }
    struct proto_function_get body = {.module = kernel->module, .function = number};
    struct channel_packet packet = {.opcode = PROTO_FUNCTION_GET,
                                    .body = &body,
                                    .tail = kernel->name,
                                    .tail_bytes = kernel->name_bytes};
    session_send_restoring(session, &packet, answered);
}

static void attribute_restore(struct session *session, uint32_t number, const struct object *object,
                              worker_link_reply *answered)
{
    struct proto_function_set body = {
        .function = number, .attribute = 1, .value = object->function.shared_bytes};
    struct channel_packet packet = {.opcode = PROTO_FUNCTION_SET, .body = &body};
    if (object->function.shared_set && !session_module_is_lost(session, object->function.module))
        session_send_restoring(session, &packet, answered);
}

/* An object that is being made has its request among the held ones. */
static void restore_each(struct session *session, enum object_kind kind,
                         void (*restore)(struct session *session, uint32_t number,
                                         const struct object *object, worker_link_reply *answered),
                         worker_link_reply *answered)
{
    const struct object_table *table = &session->objects.tables[kind];
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].state == OBJECT_MADE || table->rows[i].state == OBJECT_ENDING)
            restore(session, i + 1, &table->rows[i], answered);
}

void session_forward_restore_objects(struct session *session, worker_link_reply *answered)
{
    restore_each(session, OBJECT_STREAM, stream_restore, answered);
    restore_each(session, OBJECT_EVENT, event_restore, answered);
}

void session_forward_restore_kernels(struct session *session, worker_link_reply *answered)
{
    restore_each(session, OBJECT_FUNCTION, kernel_restore, answered);
}

void session_forward_restore_attributes(struct session *session, worker_link_reply *answered)
{
    restore_each(session, OBJECT_FUNCTION, attribute_restore, answered);
}

static void end_each(struct session *session, enum object_kind kind, uint16_t opcode)
{
    const struct object_table *table = &session->objects.tables[kind];
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t number = i + 1; /* all that either message says */
        if (table->rows[i].state == OBJECT_ENDING && table->rows[i].destroyed)
            session_ask_surely(session, opcode, &number, NULL, NULL);
    }
}

void session_forward_restore_ends(struct session *session)
{
    end_each(session, OBJECT_STREAM, PROTO_STREAM_DESTROY);
    end_each(session, OBJECT_EVENT, PROTO_EVENT_DESTROY);
}

/* ---- another server ---- */

static enum object_state state_kept(enum object_kind kind, const struct object *object)
{
    /* A link that was being made keeps its number, which the worker may have; a kernel does not,
     * since the worker takes another one for it. */
    if (object->state == OBJECT_MAKING)
        return kind == OBJECT_FUNCTION ? OBJECT_FREE
               : kind == OBJECT_LINK   ? OBJECT_MADE
                                       : OBJECT_ENDING;
    return object->state == OBJECT_ENDING && !object->destroyed ? OBJECT_MADE : object->state;
}

static void object_pack(const struct session *session, enum object_kind kind, uint32_t number,
                        struct pack *pack)
{
    const struct object *object = objects_find(&session->objects, kind, number);
    const enum object_state state = object ? state_kept(kind, object) : OBJECT_FREE;
    if (state == OBJECT_FREE)
        return;
    const struct object_function *kernel = &object->function;
    pack_number(pack, (uint64_t)number << 8 | (unsigned)state);
    if (kind == OBJECT_STREAM)
        pack_number(pack, (uint32_t)object->priority);
    else if (kind == OBJECT_LINK)
        pack_number(pack, object->client);
    if (kind != OBJECT_FUNCTION)
        return;
    pack_number(pack, (uint64_t)kernel->module << 32 | kernel->shared_bytes);
    pack_number(pack, (uint64_t)kernel->name_bytes << 1 | kernel->shared_set);
    pack_bytes(pack, kernel->name, kernel->name_bytes);
}

void session_forward_stream_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    (void)item;
    object_pack(context, OBJECT_STREAM, row, pack);
}

void session_forward_event_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    (void)item;
    object_pack(context, OBJECT_EVENT, row, pack);
}

void session_forward_function_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    (void)item;
    object_pack(context, OBJECT_FUNCTION, row, pack);
}

void session_forward_link_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    (void)item;
    object_pack(context, OBJECT_LINK, row, pack);
}

static int kernel_unpack(struct session *session, struct unpack *unpack, uint32_t number)
{
    uint64_t what = unpack_number(unpack), name = unpack_number(unpack);
    const void *text = unpack_take(unpack, name >> 1);
    if (!text)
        return -EINVAL;
    int result = objects_function_put(&session->objects, (uint32_t)(what >> 32), text,
                                      (size_t)(name >> 1), number);
    if (result < 0)
        return result;
    struct object *object = objects_change(&session->objects, OBJECT_FUNCTION, number);
    object->function.shared_bytes = (uint32_t)what;
    object->function.shared_set = name & 1;
    object->state = OBJECT_MADE;
    return 0;
}

static int object_unpack(struct session *session, struct unpack *unpack, enum object_kind kind,
                         uint32_t number, enum object_state state)
{
    if (kind == OBJECT_FUNCTION)
        return kernel_unpack(session, unpack, number);
    int result = objects_put(&session->objects, kind, number);
    if (result < 0)
        return result;
    struct object *object = objects_change(&session->objects, kind, number);
    object->state = state;
    object->destroyed = state == OBJECT_ENDING;
    if (kind == OBJECT_STREAM)
        object->priority = (int32_t)(uint32_t)unpack_number(unpack);
    else if (kind == OBJECT_LINK)
        object->client = (uint32_t)unpack_number(unpack);
    return unpack->failed ? -EINVAL : 0;
}

int session_forward_unpack(struct session *session, enum object_kind kind, struct unpack *unpack)
{
    int result = 0;
    while (result == 0 && !unpack_is_whole(unpack)) {
        uint64_t word = unpack_number(unpack);
        result = (word & 0xff) == OBJECT_MADE || (word & 0xff) == OBJECT_ENDING
                     ? object_unpack(session, unpack, kind, (uint32_t)(word >> 8),
                                     (enum object_state)(word & 0xff))
                     : -EINVAL;
    }
    return result;
}

/* The worker answers that what it does not know has ended. */
void session_forward_resume(struct session *session)
{
    session_forward_restore_ends(session);
}
