/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_end: the one place where sessions end. The loop calls it for sessions that session_fail
 * has marked, while none of their callbacks is on the stack. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_END_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_END_H

#include <stdbool.h>

#include <uv.h>

struct session;

/*
 * The first call tells the client (fault word, `ended`), closes its connection, ends everything
 * that the session waits for (WORKER_SESSION_ENDED, WANT_SESSION_ENDED) and has the worker detach
 * the client. Every call returns whether nothing of the session is left anywhere. On true, charges,
 * descriptors and the window have been given back, and the loop frees the session after the caller
 * has returned. May schedule other sessions, but frees none.
 */
bool session_end(struct session *session);

#endif
