/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_load_wait: tells a client for whom module loads wait, in a sentence with the remedy.
 *
 * A client can ask at any time (load_wait_query). While a load of its own waits for longer than a
 * second it is told without asking, once for each client that stands in the way. Name and process
 * of another user's client are not told. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LOAD_WAIT_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LOAD_WAIT_H

#include "server/supervisor/session/session.h"

/* Handles load_wait_query. */
session_handler session_load_wait_query;

/* A load of the session's is handed to its worker, and was answered. Between the two, the same
 * number of times each. */
void session_load_wait_begin(struct session *session);
void session_load_wait_end(struct session *session);

#endif
