/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_restore: a session whose worker was lost goes on with the next one.
 *
 *   worker lost: session_restore_hold        the session's requests are held from now on
 *   its process gone: session_restore_judge  what was in flight is known, and nothing changes it
 *   another worker ready: session_restore_all
 *     attached -> rings, memory, buffers, links, streams, events, images -> code -> kernels ->
 *     their attributes -> resumed; then what was held is sent
 *
 * The client's handles, addresses and rings stay. The worker writes down what it hands to the
 * driver before it does (ring_shadow_begun), so a command is never carried out twice: a stream that
 * had something in flight is interrupted by the next worker. session_blame says who ends for a
 * fault. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_RESTORE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/session/session.h"

struct device;
struct server;

/* The worker of an attached session is lost, the one that it had or the one that was to have it. */
void session_restore_hold(struct session *session);

/* Whether a supervisor that takes over needs to tell the worker nothing of the session. */
bool session_restore_is_whole(const struct session *session);

/*
 * Another supervisor had the session, which is attached. If it was whole, and its worker serves
 * still, that keeps what it has. Otherwise the worker is told of it anew, as of one whose worker is
 * lost. All its records have been read.
 */
void session_restore_take_up(struct session *session, bool whole);

/* Whether the device had work of the session that it was not seen to finish; true if that can't be
 * found out. Final when the worker's process is gone. */
bool session_restore_had_work(const struct session *session);

/* The lost worker's process is gone. Returns whether the session goes on; otherwise it is marked,
 * with this sentence. */
bool session_restore_judge(struct session *session, const char *text);

/*
 * The device has a new worker that serves: its held sessions are given back what they had. Those
 * that work come first: with something in flight when the worker was lost, or with commands that
 * were rung for since. Among equals it goes by their latest request to the server, the youngest
 * first.
 *
 * Users take turns, so that one with many clients does not keep others' from going on. A client
 * without work has its turn after eight of another user that work.
 *
 * A few sessions at a time are told to the worker, so that the first ones are whole before the last
 * ones begin; the next begins when one is whole.
 */
void session_restore_all(struct server *server, struct device *device);

/* Begins more of them, as far as there is room. To be called when time has passed (device_pace):
 * then one more begins, so that nobody waits for long for one whose modules load slowly. */
void session_restore_more(struct server *server, struct device *device);

/*
 * Whether sessions that the device's worker has to be told of come before one that is to be
 * attached. Otherwise a client that faults and connects again at once could have each worker fail
 * before the others are back. For a second at most after the worker is ready.
 */
bool session_restore_goes_first(const struct server *server, const struct device *device);

/* Compares the turns of two sessions, as comparisons for qsort do. Pure. */
int session_restore_compare(const struct session *one, const struct session *other);

#endif
