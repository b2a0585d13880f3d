/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_forward: requests about streams, events and kernels, which the worker carries out. The
 * session chooses the objects' numbers and knows which exist (objects.h). The worker's answer goes
 * to the client as it is. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_FORWARD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_FORWARD_H

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

session_handler session_forward_stream_create, session_forward_stream_destroy;
session_handler session_forward_stream_recover;
session_handler session_forward_event_create, session_forward_event_destroy;
session_handler session_forward_event_elapsed;
session_handler session_forward_function_get, session_forward_function_set;
session_handler session_forward_occupancy_get, session_forward_global_get;

/* Handles the worker's worker_stream_ended or worker_event_ended about this session's client. */
void session_forward_ended(struct session *session, const struct channel_message *message);

/* Has a new worker make the streams and events that the one before had; then its kernels, whose
 * modules are loaded; then set their attributes (session_send_restoring). */
void session_forward_restore_objects(struct session *session, worker_link_reply *answered);
void session_forward_restore_kernels(struct session *session, worker_link_reply *answered);
void session_forward_restore_attributes(struct session *session, worker_link_reply *answered);

/* Has the new worker, which has been told to resume, end what the client had destroyed and the one
 * before had not ended. */
void session_forward_restore_ends(struct session *session);

/*
 * The records of streams, events, kernels and links, and the way back. Returns 0 or -errno. A
 * stream or event that was being made comes back as one that is being destroyed; of one that was
 * being destroyed, the request comes again. session_forward_resume asks the worker.
 */
kept_writer session_forward_stream_pack, session_forward_event_pack, session_forward_function_pack,
    session_forward_link_pack;
int session_forward_unpack(struct session *session, enum object_kind kind, struct unpack *unpack);
void session_forward_resume(struct session *session);

#endif
