/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_state: the state of a session, the mark that it must end, and the mark that the keeper
 * has to look at it. The other session files stand on this one; it calls none of them.
 *
 * A session never ends within a call. session_fail marks it, and the loop takes it down
 * (session/life/end.h) when every callback of this turn has returned. So no caller of a function
 * here has to ask whether its session is still there. Answers after the mark are not sent. All that
 * the session owns stays valid until the loop's turn. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_STATE_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol.h"
#include "server/supervisor/session/inbox.h"

struct server;
struct session;

/* Enters a session into the server's list, where session_find finds it, and takes it out. */
void session_enlist(struct session *session);
void session_delist(struct session *session);

/* The session with that number, whatever its state, or NULL. */
struct session *session_find(const struct server *server, uint32_t number);

/* Whether another session is an attached connection of the same process, and has this token. */
bool session_is_companion(const struct session *session, const struct session *other,
                          const uint8_t group[16]);

/*
 * Marks the session, which must end for this reason. Logs the reason, and has the loop take the
 * session down: the client is then told (fault word, `ended`). Only the first reason counts. error
 * is an error number; PROTO_ERROR_SUCCESS: the client hung up by itself.
 */
void session_fail(struct session *session, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void session_fail_why(struct session *session, const struct error *why);

/* The same, where the log has the reason already: its line says `logged` in place of it. */
void session_fail_logged(struct session *session, uint32_t error, const char *logged,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Sets the session's state. A marked session stays in PROTO_CONNECTION_STATE_LEAVING. */
void session_enter(struct session *session, enum proto_connection_state state);

/* Has the loop look at a marked session again, after something that kept it from being freed has
 * gone. Does nothing for a session that is not marked. */
void session_schedule(struct session *session);

/* The worker says that no memory of the session is left on its device (worker_released). The
 * charges for that memory are given back in the loop's turn, however long the rest of the session
 * stays. A session that was not taken down is left alone. */
void session_released(struct session *session);

/* The next line of the log is about this client. */
void session_log_about(const struct session *session);

/* Has the keeper look at the session, which has changed. Does nothing without a keeper. */
void session_touch(struct session *session);

/* The first of the tables from this part on, for those whose rows they are to have; NULL without a
 * keeper. */
struct kept_table *session_tables(struct session *session, enum session_part part);

#endif
