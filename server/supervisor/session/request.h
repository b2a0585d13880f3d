/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_request: what a session answers its client, asks of its worker and has
 * under way, and the mark that it must end. The floor of all session files: it calls
 * none of them.
 *
 * A session never ends within a call. session_fail marks it, and the loop takes it
 * down (session/end.h) when every callback of this turn has returned. So no caller
 * of anything here has to ask whether its session is still there: what is answered
 * after the mark is not sent, and all that the session owns stays valid until the
 * loop's turn. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/ipc/channel.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/session/memory.h"
#include "server/supervisor/device/worker_link.h"

/* Requests of one client that may wait at a time; then its messages are left in the socket. */
#define SESSION_REQUESTS_MAX 64

struct heap_region;
struct host_share;
struct image;
struct module;
struct session;

/*
 * A request of the client that waits for the worker, a copy or memory. It keeps the
 * session from being freed. Whatever it waits for calls back exactly once, and whoever
 * is called last calls session_request_end.
 */
struct request {
    struct session *session;
    uint64_t serial; /* of the client's message */
    uint16_t reply;  /* opcode of the answer */
    struct want want;
    struct job job;
    int (*work)(struct request *request);
    void (*worked)(struct request *request, int result);
    struct module *module;
    struct heap_region *region;
    struct host_share *share;
    struct image *image; /* the job's result */
    uint32_t object;     /* number of the stream, event, kernel or link */
    uint64_t count;
    int fd;               /* the client's, or -1 */
    struct charge charge; /* of that descriptor */
    struct request *next; /* waiting for pinned memory */
};

/* ---- the end ---- */

/*
 * Marks the session: it must end, for this reason. Logs it, and has the loop take it
 * down: the client is then told (fault word, `ended`). The first reason counts.
 * error: of the error table; PROTO_ERROR_SUCCESS: the client hung up by itself.
 */
void session_fail(struct session *session, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The session's next state, but for one that is marked: that stays SESSION_LEAVING to its end. */
void session_enter(struct session *session, enum session_state state);

/* Something that kept an ended session from being freed is gone: the loop looks at it again. Does
 * nothing for a session that has not been marked. */
void session_schedule(struct session *session);

/* ---- the client ---- */

/* Whether to read the client's next message: not while it is attached, parked or ended,
 * nor while as many requests as it may have are under way. */
bool session_reads(const struct session *session);

/* Waits for messages, or stops while session_reads says no. */
void session_poll(struct session *session);

/* Answers. What the client does not read may mark the session; fds stay the caller's. */
void session_answer(struct session *session, uint16_t opcode, uint64_t serial, const void *body,
                    const int *fds, unsigned fd_count);
void session_refuse(struct session *session, uint64_t serial, uint32_t error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
/* Passes the worker's answer on, whatever it is. */
void session_pass(struct session *session, uint64_t serial, const struct worker_answer *answer);

/* ---- requests under way ---- */

/* NULL: no memory; the client has been refused. */
struct request *session_request(struct session *session, uint64_t serial, uint16_t reply);
/* One that the client did not make. NULL: no memory. */
struct request *session_request_own(struct session *session);
/* Frees it, with what it still holds. */
void session_request_end(struct request *request);

/*
 * Runs work on another thread, where it touches the request alone; then calls worked
 * from the loop with its result, or with -ECANCELED if the session has ended: all that
 * is left to do then is session_request_end. Returns 0, or -errno: neither is called.
 */
int session_request_work(struct request *request, int (*work)(struct request *request),
                         void (*worked)(struct request *request, int result));

/* ---- the worker ---- */

/*
 * A request to the worker about this client, which is filled in here: see
 * worker_link_request. Its callback comes while the session stands, or with
 * WORKER_LOST or WORKER_SESSION_ENDED. -ESHUTDOWN: the session has been taken down.
 */
int session_send(struct session *session, struct worker_request *request, worker_link_reply *reply,
                 void *context);
/* The same for one that is no more than its body. */
int session_ask(struct session *session, uint16_t opcode, const void *body,
                worker_link_reply *reply, void *context);

#endif
