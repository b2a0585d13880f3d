/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host_record: what is kept of a session's host buffers (keep/pack.h), and the way back. A
 * server that keeps has no pinned pool. A buffer that was being mapped comes back as one that is
 * being unmapped. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_RECORD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_RECORD_H

#include "server/supervisor/keep/kept_table.h"
#include "server/supervisor/keep/pack.h"

struct session;

kept_writer session_host_record_buffer_pack, session_host_record_import_pack;

/* Return 0 or -errno. */
int session_host_record_buffers_unpack(struct session *session, struct unpack *unpack);
int session_host_record_imports_unpack(struct session *session, struct unpack *unpack);

/* Finds the buffers of other connections that the session uses, when all of them are unpacked.
 * Returns 0; -ENOENT: some are not there, and are used no more. */
int session_host_record_find(struct session *session);

/* Asks the worker for all that was under way. */
void session_host_record_resume(struct session *session);

#endif
