/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_link: the timelines of another connection of the same process, which a session's streams
 * may wait for. forward.h destroys and keeps links as it does other objects. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LINK_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LINK_H

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

session_handler session_link;

/* Has a new worker know the links that the one before had (session_send_restoring). */
void session_link_restore(struct session *session, worker_link_reply *answered);

#endif
