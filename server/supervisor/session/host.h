/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host: host buffers, and what connections of one process share with one another. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_HOST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_HOST_H

#include <stdbool.h>

#include "server/supervisor/session/session.h"

session_handler session_host_alloc, session_host_free, session_host_import, session_host_link;

/* The session is taken down. session_host_flush ends its requests that wait for room;
 * session_host_recall_exports makes other sessions stop using its buffers. */
void session_host_flush(struct session *session);
void session_host_recall_exports(struct session *session);

/* The session's worker has nothing of it any more: buffers of other sessions that it used go back
 * to them. */
void session_host_return_imports(struct session *session);

/* No session and no worker uses the session's buffers any more: empties their memory, which takes
 * other threads a while, and frees them. False: some are not emptied yet; session_schedule will be
 * called, and then this must be called again. */
bool session_host_release(struct session *session);

#endif
