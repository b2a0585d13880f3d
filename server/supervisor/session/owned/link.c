/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/link.h"

#include <string.h>
#include <unistd.h>

#include "common/ipc/ring.h"
#include "common/messages.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

static void link_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct objects *objects = &request->session->objects;
    if (answer->outcome == WORKER_ANSWERED)
        objects_change(objects, OBJECT_LINK, request->object)->state = OBJECT_MADE;
    else
        objects_free(objects, OBJECT_LINK, request->object);
    session_pass(request->session, request->serial, answer);
    request_end(request);
}

void session_link(struct session *session, struct channel_message *message)
{
    struct proto_link body;
    uint64_t serial = message->header.serial;
    memcpy(&body, message->body, sizeof body);
    struct session *other = session_find_companion(session, serial, body.client);
    if (!other)
        return;
    struct request *request = request_make(session, serial, PROTO_LINKED);
    if (!request)
        return;
    if (objects_new(&session->objects, OBJECT_LINK, &request->object) < 0) {
        session_refuse(session, serial, MESSAGE(links_max));
        request_end(request);
        return;
    }
    objects_change(&session->objects, OBJECT_LINK, request->object)->client = other->number;
    request->fd = shm_readonly_fd(&other->shadow);
    struct proto_worker_link link = {.streams = session->server->settings->streams,
                                     .link = request->object};
    struct channel_packet ask = {
        .opcode = PROTO_WORKER_LINK, .body = &link, .fds = &request->fd, .fd_count = 1};
    int result =
        request->fd < 0 ? request->fd : session_send(session, &ask, link_answered, request);
    other->linked |= result == 0;
    if (result < 0) {
        objects_free(&session->objects, OBJECT_LINK, request->object);
        session_refuse(session, serial, MESSAGE(link_failed), strerror(-result));
        request_end(request);
    }
}

/* The timelines of the other connection; or, if that is gone, some on which every value has been
 * reached. Returns a descriptor or -errno. */
static int timelines_of(const struct session *session, uint32_t other)
{
    const struct session *there = session_find(session->server, other);
    struct shm ended;
    if (there && there->shadow.fd >= 0)
        return shm_readonly_fd(&there->shadow);
    int fd = shm_create(&ended, "gpushare-shadow",
                        ring_shadow_bytes(session->server->settings->streams));
    if (fd < 0)
        return fd;
    memset(ended.base, 0xff, ended.bytes);
    fd = shm_readonly_fd(&ended);
    shm_release(&ended);
    return fd;
}

static void link_restore(struct session *session, uint32_t number, const struct object *object,
                         worker_link_reply *answered)
{
    struct proto_worker_link body = {.streams = session->server->settings->streams, .link = number};
    int fd = timelines_of(session, object->client);
    struct channel_packet packet = {
        .opcode = PROTO_WORKER_LINK, .body = &body, .fds = &fd, .fd_count = 1};
    if (fd < 0) {
        session_fail(session, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(session_not_restored),
                     strerror(-fd));
        return;
    }
    session_send_restoring(session, &packet, answered);
    close(fd);
}

void session_link_restore(struct session *session, worker_link_reply *answered)
{
    const struct object_table *links = &session->objects.tables[OBJECT_LINK];
    for (uint32_t i = 0; i < links->count; i++)
        if (links->rows[i].state == OBJECT_MADE)
            link_restore(session, i + 1, &links->rows[i], answered);
}
