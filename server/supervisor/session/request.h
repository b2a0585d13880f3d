/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_request: what a session answers its client, asks of its worker and has under way, and the
 * mark that the session must end. The other session files stand on this one; it calls none of them.
 *
 * A session never ends within a call. session_fail marks it, and the loop takes it down
 * (session/end.h) when every callback of this turn has returned. So no caller of a function here
 * has to ask whether its session is still there. Answers after the mark are not sent. All that the
 * session owns stays valid until the loop's turn. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/ipc/channel.h"
#include "common/list.h"
#include "server/supervisor/loop/closer.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/session/want.h"
#include "server/supervisor/device/worker_link.h"

struct heap_region;
struct host_import;
struct image;
struct module;
struct session;

/*
 * A request that waits for the worker, for a copy or for memory. It keeps the session from being
 * freed. Everything that it waits for calls back exactly once, and the last callback calls
 * session_request_end.
 */
struct request {
    struct session *session;
    uint64_t serial; /* of the client's message; 0: the client made no request */
    uint16_t reply;  /* opcode of the answer */
    struct want want;
    struct job job;
    int (*work)(struct request *request);
    void (*worked)(struct request *request, int result);
    struct module *module;
    struct heap_region *region;
    struct host_import *import;
    struct image *image; /* made by the job; NULL: none */
    struct image *known; /* that the image is compared with, with a reference; NULL: none */
    bool equal;          /* the result of that */
    uint32_t object;     /* number of the stream, event, kernel or link */
    uint64_t count;
    int fd;                 /* a descriptor that the request owns, or -1 */
    struct charge charge;   /* for that descriptor */
    struct queue_link link; /* in the session's host_wants */
};

/* ---- the end ---- */

/*
 * Marks the session, which must end for this reason. Logs the reason, and has the loop take the
 * session down: the client is then told (fault word, `ended`). Only the first reason counts. error
 * is an error number; PROTO_ERROR_SUCCESS: the client hung up by itself.
 */
void session_fail(struct session *session, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void session_fail_why(struct session *session, const struct error *why);

/* Sets the session's state. A marked session stays in PROTO_CONNECTION_STATE_LEAVING. */
void session_enter(struct session *session, enum proto_connection_state state);

/* Has the loop look at a marked session again, after something that kept it from being freed has
 * gone. Does nothing for a session that is not marked. */
void session_schedule(struct session *session);

/* ---- the client ---- */

/* Whether to read the client's next message: not while it is being attached, while a message is
 * parked, after the mark, or while it has PROTO_REQUESTS_MAX requests under way. */
bool session_reads(const struct session *session);

/* Has the loop wait for the client's messages, or for its hanging up alone while session_reads is
 * false. */
void session_poll(struct session *session);

/* Answer the client's message with this serial. If the client does not read its answers, that may
 * mark the session. fds stay the caller's. */
void session_answer(struct session *session, uint16_t opcode, uint64_t serial, const void *body,
                    const int *fds, unsigned fd_count);
void session_refuse(struct session *session, uint64_t serial, uint32_t error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void session_refuse_why(struct session *session, uint64_t serial, const struct error *why);
/* Passes the worker's answer on to the client, whether it answers or refuses. */
void session_pass(struct session *session, uint64_t serial, const struct worker_answer *answer);

/* The client, as a sender of descriptors. */
struct closer_sender session_sender(const struct session *session);

/* ---- requests under way ---- */

/* Makes a request for the client's message with this serial. NULL: no memory, and the client has
 * been refused. */
struct request *session_request(struct session *session, uint64_t serial, uint16_t reply);
/* Makes a request for which the client did not ask. NULL: no memory. */
struct request *session_request_own(struct session *session);
/* Frees a request with what it still owns. */
void session_request_end(struct request *request);

/*
 * Runs `work` on another thread, where it may touch the request alone, and again as long as it
 * returns JOB_AGAIN. Then calls `worked` from the loop with the result of work, or with -ECANCELED
 * if the session has ended; in that case only session_request_end is left to do.
 */
void session_request_work(struct request *request, int (*work)(struct request *request),
                          void (*worked)(struct request *request, int result));

/* ---- the worker ---- */

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
