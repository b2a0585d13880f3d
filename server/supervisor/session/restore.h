/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_restore: a session whose worker was lost goes on with the next one.
 *
 *   worker lost: session_restore_hold        the session's requests are held from now on
 *   its process gone: session_restore_judge  what was in flight is known, and nothing changes it
 *   another worker ready: session_restore_begin
 *     attached -> rings, memory, buffers, links, streams, events, images -> code -> kernels ->
 *     their attributes -> resumed; then what was held is sent
 *
 * The client's handles, addresses and rings stay. The worker writes down what it hands to the
 * driver before it does (ring_shadow_begun), so a command is never carried out twice: a stream that
 * had something in flight is interrupted by the next worker. session_blame says who ends for a
 * fault. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_RESTORE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/session/session.h"

/* The worker of an attached session is lost, the one that it had or the one that was to have it. */
void session_restore_hold(struct session *session);

/* Whether the device had work of the session that it was not seen to finish; true if that can't be
 * found out. Final when the worker's process is gone. */
bool session_restore_had_work(const struct session *session);

/* The lost worker's process is gone. Returns whether the session goes on; otherwise it is marked,
 * with this sentence. */
bool session_restore_judge(struct session *session, const char *text);

/* The device of a held session has a new worker that serves. Does nothing if that was said
 * before. */
void session_restore_begin(struct session *session);

#endif
