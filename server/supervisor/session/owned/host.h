/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host: host buffers. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_H

#include <stdbool.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

session_handler session_host_alloc, session_host_free;

/* The session is taken down: ends its requests that wait for room. */
void session_host_flush(struct session *session);

/* No session uses the session's buffers any more, and its worker has released it or is gone.
 * Buffers that the worker keeps go to the pool, with the window. Others are emptied, which takes
 * other threads a while, and freed. False: some are left; session_schedule will be called, and then
 * this must be called again. */
bool session_host_release(struct session *session);

/* Whether the session has buffers, or had any that are not gone yet. Those of the pool that lie in
 * its window do not count. */
bool session_host_has_any(const struct session *session);

/* Tries again for requests that waited for memory; NULL: of all sessions. */
void session_host_retry(struct server *server, struct session *session);

/* Has a new worker map and register the buffers that the one before had (session_send_restoring).
 * Requests to the one before that are held are made right for a worker that keeps no buffers. */
void session_host_restore(struct session *session, worker_link_reply *answered);

/* Has the worker unmap a buffer that is being given back, as it was by the last server. */
void session_host_unmap_again(struct session *session, struct heap_region *region);

#endif
