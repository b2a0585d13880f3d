/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_worker: what a session asks of its worker. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_WORKER_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "server/supervisor/worker/worker_link.h"

struct session;

/*
 * Sends the worker a request about this client, whose number is filled in here; see
 * worker_link_request_again. While the session is held, the request is held. The reply comes while
 * the session stands, or with WORKER_LOST or WORKER_SESSION_ENDED. Returns 0; -ESHUTDOWN if the
 * session has been taken down; or -errno. reply is not called unless 0 is returned.
 */
int session_send(struct session *session, struct channel_packet *request, worker_link_reply *reply,
                 void *context);
/*
 * Sends the new worker of a session that is held a part of what the session had, ahead of the
 * requests that are held, and counts the answer that is due. `answered` is called with the session
 * as its context. If it can't be sent, the session is marked.
 */
void session_send_restoring(struct session *session, struct channel_packet *request,
                            worker_link_reply *answered);
/* The same, for an answer that is about more than the session. Returns whether it was sent. */
bool session_send_restoring_of(struct session *session, struct channel_packet *request,
                               worker_link_reply *answered, void *context);
/* Like session_send, for a request that has a body and nothing else. */
int session_ask(struct session *session, uint16_t opcode, const void *body,
                worker_link_reply *reply, void *context);
/* Like session_ask, for a request on which the session waits for ever if it is not made: where it
 * can't be sent, for want of memory say, the worker is given up (device_abandon). reply is not
 * called then. */
void session_ask_surely(struct session *session, uint16_t opcode, const void *body,
                        worker_link_reply *reply, void *context);

#endif
