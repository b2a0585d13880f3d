/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_record: a session as it is kept for another server, and the way back.
 *
 * Its parts (enum session_part) are records of their own, and those that may be large are tables
 * (keep/kept_table.h), of which only what changed is packed.
 *
 * Work under way is not kept as such: a request that was not answered is handled anew, and what the
 * worker may have begun for it is undone first. So the worker needs to be told nothing of what it
 * has; it is asked for an answer (worker_attach), which comes when it is done with what the last
 * server had asked of it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_RECORD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_RECORD_H

#include <stdbool.h>

#include "server/supervisor/keep/keeper.h"
#include "server/supervisor/keep/state_log.h"

struct server;
struct session;

/* Kinds of the records are those of enum session_part; the key is the client's number, and a table
 * has as many pages as it needs. */

/* Stands for the form of the records. */
uint32_t session_record_layout(void);

/* Puts the session's records into the keeper, as far as they have changed. */
void session_record_put(struct session *session);

/* Whether what is kept of its tables is what they are now, when all has been put. For tests. */
bool session_record_is_current(struct session *session);

/* Takes them out: the session is gone. */
void session_record_remove(struct session *session);

/* The message that was peeked at is kept: it leaves the socket. */
void session_record_consume(struct session *session);

/*
 * Makes a session of its first record (PART_CLIENT); the caller puts it into the server's list. The
 * device that it is on is adopted already. Returns 0 or -errno, with *session NULL; after -ENOMEM
 * the process has to end, since a part of the session may be left.
 */
int session_record_open(struct session **session, struct server *server, uint32_t number,
                        const struct state_log_entry *entry);

/* Fills it with its other records. A session that can't be taken over is marked, with why. */
void session_record_read(struct session *session, const struct state_log_reader *reader);

/* All sessions and all records are read: finds what it uses of other sessions. Comes before any is
 * resumed. */
void session_record_link(struct session *session);

/* Begins what has to be undone, and what has to be done
 * anew. */
void session_record_resume(struct session *session);

#endif
