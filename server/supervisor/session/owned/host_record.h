/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host_record: what is kept of a session's host buffers (keep/pack.h), and the way back. A
 * server that keeps has no pinned pool. A buffer that was being mapped comes back as one that is
 * being unmapped. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_RECORD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_RECORD_H

#include "server/supervisor/keep/pack.h"

struct session;

/* Adds all buffers to the pack. They get numbers of the keeper's where they have none. */
void session_host_record_pack(struct session *session, struct pack *pack);

/* Returns 0 or -errno. */
int session_host_record_unpack(struct session *session, struct unpack *unpack);

/* Finds the buffers of other connections that the session uses, when all of them are unpacked.
 * Returns 0; -ENOENT: some are not there, and are used no more. */
int session_host_record_find(struct session *session);

/* Asks the worker for all that was under way. */
void session_host_record_resume(struct session *session);

#endif
