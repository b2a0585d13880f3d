/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_forward: requests about streams, events and kernels, which the worker carries out. The
 * session chooses the objects' numbers and knows which exist (objects.h). The worker's answer goes
 * to the client as it is. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_FORWARD_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_FORWARD_H

#include "server/supervisor/session/session.h"

session_handler session_forward_stream_create, session_forward_stream_destroy;
session_handler session_forward_event_create, session_forward_event_destroy;
session_handler session_forward_event_elapsed;
session_handler session_forward_function_get, session_forward_function_set;
session_handler session_forward_occupancy_get, session_forward_global_get;

/* Handles the worker's worker_stream_ended or worker_event_ended about this session's client. */
void session_forward_ended(struct session *session, const struct channel_message *message);

#endif
