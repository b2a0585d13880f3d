/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host: host buffers, and what connections of one process share with one another. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_H

#include <stdbool.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

enum import_state { IMPORT_MAPPING, IMPORT_LIVE, IMPORT_UNMAPPING };

/* The use of another connection's buffer. */
struct host_import {
    struct host_import *next;
    struct session *user, *owner;
    struct heap_region *region;
    enum import_state state; /* session_host_import_enter changes it */
    uint32_t row;            /* of the user's table of imports */
    bool recalled;           /* unmap it as soon as it is mapped */
    struct charge charge;
    uint32_t owner_number; /* of one that the last server had, before it is found: the owner, */
    uint64_t address;      /* and where the region begins */
};

session_handler session_host_alloc, session_host_free, session_host_import, session_host_link;

/* The session is taken down. session_host_flush ends its requests that wait for room;
 * session_host_recall_exports makes other sessions stop using its buffers. */
void session_host_flush(struct session *session);
void session_host_recall_exports(struct session *session);

void session_host_import_enter(struct host_import *import, enum import_state state);

/* Has the user's worker give a share back that it has or is to have, and lets go of it. */
void session_host_import_return(struct host_import *import);

/* The session's worker has nothing of it any more: buffers of other sessions that it used go back
 * to them. */
void session_host_return_imports(struct session *session);

/* No session uses the session's buffers any more, and its worker has released it or is gone.
 * Buffers that the worker keeps go to the pool, with the window. Others are emptied, which takes
 * other threads a while, and freed. False: some are left; session_schedule will be called, and then
 * this must be called again. */
bool session_host_release(struct session *session);

/* Whether the session has buffers, or had any that are not gone yet. */
bool session_host_has_any(const struct session *session);

/* Tries again for requests that waited for memory; NULL: of all sessions. */
void session_host_retry(struct server *server, struct session *session);

/* Has a new worker map and register the buffers that the one before had, and know the links
 * (session_send_restoring). Requests to the one before that are held are made right for a worker
 * that keeps no buffers. */
void session_host_restore(struct session *session, worker_link_reply *answered);

/* Has the worker unmap a buffer that is being given back, as it was by the last server. */
void session_host_unmap_again(struct session *session, struct heap_region *region);

#endif
