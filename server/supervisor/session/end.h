/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_end: the one place where sessions end. The loop calls it, for sessions that
 * session_fail has marked and with none of their callbacks on the stack.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_END_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_END_H

#include <stdbool.h>

#include <uv.h>

struct session;

/*
 * The first time: tells the client (fault word, `ended`), closes its connection, ends
 * all that it waits for (WORKER_SESSION_ENDED, WANT_SESSION_ENDED) and has the worker
 * detach it. This and every later time: returns whether nothing of the session is left
 * anywhere; then charges, descriptors and the window have gone back, and the loop
 * frees the session when the caller has returned. May schedule other sessions, never
 * frees one.
 */
bool session_end(struct session *session);

/* The close callback of a session's handles; frees it after the last. */
void session_end_handle_closed(uv_handle_t *handle);

#endif
