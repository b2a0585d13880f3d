/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/host_import.h"

#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

struct host_import *session_host_import_find(const struct session *session, uint64_t address)
{
    struct host_import *import;
    LIST_FOR_EACH (import, &session->imports, in_session)
        if (import->region->address == address)
            break;
    return import;
}

void session_host_import_enter(struct host_import *import, enum import_state state)
{
    import->state = state;
    kept_table_mark(session_tables(import->user, PART_IMPORTS), import->row);
}

/* The user's worker has nothing of the share mapped any more. */
static void import_free(struct host_import *import)
{
    struct session *owner = import->owner;
    struct heap_region *region = import->region;
    list_remove(&import->in_session);
    quota_return(&import->charge);
    kept_table_remove(session_tables(import->user, PART_IMPORTS), &import->row);
    free(import);
    if (!region)
        return; /* the last server had it, and it was not found yet */
    region->imports--;
    owner->lent--;
    pinned_pool_buffer_settle(region);
    session_schedule(owner);
}

static void import_unmap_answered(void *context, const struct worker_answer *answer)
{
    struct host_import *import = context;
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        import_free(import);
        break;
    case WORKER_REFUSED:
        pinned_pool_log_refused(import->user->number, import->region, answer);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        break; /* session_host_import_end takes it */
    }
}

void session_host_import_return(struct host_import *import)
{
    import->recalled = true;
    if (import->state != IMPORT_LIVE)
        return;
    struct proto_worker_host_unmap body = {.address = import->region->address,
                                           .count = import->region->bytes};
    session_host_import_enter(import, IMPORT_UNMAPPING);
    session_ask_surely(import->user, PROTO_WORKER_HOST_UNMAP, &body, import_unmap_answered, import);
}

static void import_map_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    struct host_import *import = request->import;
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        session_host_import_enter(import, IMPORT_LIVE);
        if (import->recalled) {
            session_refuse(session, request->serial, MESSAGE(share_owner_ended));
            session_host_import_return(import);
        } else {
            session_pass(session, request->serial, answer);
        }
        break;
    case WORKER_REFUSED:
        session_pass(session, request->serial, answer);
        import_free(import);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        break; /* session_host_import_end takes it */
    }
    request_end(request);
}

/* The buffers' owner leaves, so their addresses must not stay in use elsewhere. */
void session_host_import_recall(struct session *session)
{
    struct session *other;
    struct host_import *import;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        LIST_FOR_EACH (import, &other->imports, in_session)
            if (import->owner == session)
                session_host_import_return(import);
}

/* Shares are given back before the rest of the session: two connections that lend to each other
 * would otherwise wait for each other. */
void session_host_import_end(struct session *session)
{
    struct host_import *import;
    LIST_FOR_EACH (import, &session->imports, in_session)
        import_free(import);
}

/* Charges the use of the buffer, and has the session's worker map it. */
static void import_begin(struct request *request, struct session *owner,
                         const struct heap_block *block)
{
    struct session *session = request->session;
    struct host_import *import = calloc(1, sizeof *import);
    const struct quota *culprit = NULL;
    if (!import) {
        session_refuse(session, request->serial, MESSAGE(request_no_memory));
        request_end(request);
        return;
    }
    if (quota_charge(&session->quotas[RESOURCE_HOST_MEMORY], &import->charge, block->bytes,
                     &culprit)) {
        free(import);
        request_refuse_room(request, RESOURCE_HOST_MEMORY, culprit, block->bytes);
        return;
    }
    import->user = session;
    import->owner = owner;
    import->region = block->region;
    list_prepend(&session->imports, &import->in_session);
    import->region->imports++;
    owner->lent++;
    kept_table_add(session_tables(session, PART_IMPORTS), import, &import->row);
    request->import = import;
    struct proto_worker_host_map map = {.address = block->address, .count = block->bytes};
    struct channel_packet ask = {.opcode = PROTO_WORKER_HOST_MAP,
                                 .body = &map,
                                 .fds = &block->region->charged_fd.fd,
                                 .fd_count = 1};
    if (session_send(session, &ask, import_map_answered, request) < 0) {
        import_free(import);
        session_refuse(session, request->serial, MESSAGE(worker_just_ended));
        request_end(request);
    }
}

void session_host_import(struct session *session, struct channel_message *message)
{
    struct proto_host_import body;
    uint64_t serial = message->header.serial;
    memcpy(&body, message->body, sizeof body);
    struct session *owner = session_find_companion(session, serial, body.client);
    if (!owner)
        return;
    struct heap_block *block = heap_find(&owner->buffers, body.address);
    if (!block || session_host_import_find(session, body.address)) {
        if (block)
            session_refuse(session, serial, MESSAGE(share_exists),
                           (unsigned long long)body.address);
        else
            session_refuse(session, serial, MESSAGE(share_buffer_unknown),
                           (unsigned long long)body.address);
        return;
    }
    if (owner->device == session->device) {
        session_refuse(session, serial, MESSAGE(share_same_device), session->device->index);
        return;
    }
    struct request *request = request_make(session, serial, PROTO_DONE);
    if (request)
        import_begin(request, owner, block);
}

void session_host_import_restore(struct session *session, worker_link_reply *answered)
{
    const struct host_import *at;
    LIST_FOR_EACH (at, &session->imports, in_session) {
        const struct heap_region *region = at->region;
        struct proto_worker_host_map body = {.address = region->address, .count = region->bytes};
        struct channel_packet packet = {.opcode = PROTO_WORKER_HOST_MAP,
                                        .body = &body,
                                        .fds = &region->charged_fd.fd,
                                        .fd_count = 1};
        if (at->state != IMPORT_MAPPING)
            session_send_restoring(session, &packet, answered);
    }
}
