/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * lost_copies: the parts of a client's host buffers that copies were writing when its worker was
 * lost, from the journal (common/ipc/journal.h), until the client recovers the stream. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LOST_COPIES_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_LOST_COPIES_H

#include "protocol.h"
#include "server/supervisor/keep/pack.h"
#include "server/supervisor/session/session.h"

/* Adds those of the worker that was just lost, before another one writes to the journal. */
void session_lost_copies_find(struct session *session);

/* Writes those of one stream to the report, and forgets them. */
void session_lost_copies_take(struct session *session, uint32_t stream,
                              struct proto_stream_recovered *report);

/* As they are kept for another server. Unpacking returns 0 or -errno. */
void session_lost_copies_pack(struct session *session, struct pack *pack);
int session_lost_copies_unpack(struct session *session, struct unpack *unpack);

/* Forgets those of a stream whose number gets a new owner; all. */
void session_lost_copies_forget(struct session *session, uint32_t stream);
void session_lost_copies_release(struct session *session);

#endif
