/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host: host buffers, and what connections of one process share with one another.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_HOST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_HOST_H

#include "server/supervisor/session/session.h"

session_handler session_host_alloc, session_host_free, session_host_share, session_host_link;

/* The session is taken down: its requests that wait for room end... */
void session_host_flush(struct session *session);
/* ...and other sessions stop using its buffers. */
void session_host_recall(struct session *session);

/* Its worker has nothing of it any more: what it used of others' buffers goes back to them. */
void session_host_unshare(struct session *session);

/* Nobody uses its buffers any more: they go back. */
void session_host_release(struct session *session);

#endif
