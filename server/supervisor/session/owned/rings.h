/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_rings: the memory of a client's rings. A client can write all of it, so all of it is
 * charged as pinned host memory before it is made, and stays charged until the session ends. It is
 * made in segments of a few neighbouring rings, when the client asks for one of them. A client that
 * does nothing has none. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_RINGS_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_RINGS_H

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

session_handler session_rings_make;

/* Empties and closes all segments and gives their charges back. The worker has nothing of the
 * session any more. Idempotent. */
void session_rings_release(struct session *session);

/* Tells a new worker of all segments (session_send_restoring). */
void session_rings_restore(struct session *session, worker_link_reply *answered);

/* The record of them, and the way back (keep/pack.h). Returns 0 or -errno. */
void session_rings_pack(struct session *session, struct pack *pack);
int session_rings_unpack(struct session *session, struct unpack *unpack);

/* The segment that holds a ring: fills *made, and returns its descriptor, which stays the
 * session's; -1: there is none. */
int session_rings_describe(const struct session *session, uint32_t stream,
                           struct proto_rings_made *made);

#endif
