/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session: one client: its connection, what it was granted, and all that it owns.
 *
 *   HELLO -> GREETED -> ATTACHING -> ATTACHED
 *     any of them -> LEAVING -> freed
 *
 * Leaving begins when the client hangs up, misbehaves, is killed, or its device's
 * worker is lost: session_fail (session/request.h) marks the session, and the loop
 * takes it down (session/end.h). It is over when the worker has said that nothing of
 * the client is left on the device (or is dead) and every request has ended: only
 * then do charges, descriptors and the window go back. Until then nothing of it can
 * be used by anybody else.
 *
 * Its files: session_request is the floor (answers, requests, the mark); session_attach,
 * session_quota, session_limits, session_memory, session_host, session_module and
 * session_forward hold one subject each; objects knows what the client has on its worker;
 * session_end takes down what they made; session is the connection, which hands each message to its
 * handler. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "common/ipc/channel.h"
#include "common/list.h"
#include "common/ipc/shm.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/account/admission.h"
#include "server/supervisor/account/heap.h"
#include "server/supervisor/session/identity.h"
#include "server/supervisor/session/objects.h"
#include "server/supervisor/loop/send_queue.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/account/total.h"

/* As the schema numbers them, which says what a client may ask for in each. */
enum session_state {
    SESSION_HELLO = PROTO_CONNECTION_STATE_HELLO,
    SESSION_GREETED = PROTO_CONNECTION_STATE_GREETED,
    SESSION_ATTACHING = PROTO_CONNECTION_STATE_ATTACHING,
    SESSION_ATTACHED = PROTO_CONNECTION_STATE_ATTACHED,
    SESSION_LEAVING = PROTO_CONNECTION_STATE_LEAVING
};

struct device;
struct host_share;
struct module;
struct request;
struct session;
struct server;
struct want;

/* Places in what its user and its groups have in total. */
struct session_totals {
    struct total_member *memory, *host;
};

/* One more than may be, of all or of its user: refused at hello. */
enum session_over_limit { OVER_LIMIT_NONE, OVER_LIMIT_SERVER, OVER_LIMIT_USER };

struct session {
    struct server *server;
    struct device *device; /* NULL before attach */
    struct list_link link; /* in server->session_list */
    uint32_t number;
    enum session_state state;
    enum session_over_limit over_limit;
    bool paused; /* nothing is read */
    bool down;   /* its connection is closed, and nothing more is asked for it */
    bool due;    /* the loop looks at it once more (session_schedule) */
    struct queue_link due_link;
    struct proto_ended ended; /* why it leaves */

    pid_t pid; /* as the kernel says */
    uid_t uid;
    struct identity identity; /* read at attach */
    uint64_t connected_at;
    char name[64];
    uint8_t group[16];

    uv_poll_t poll;
    uv_poll_cb ready;       /* of poll */
    uv_poll_t process_poll; /* pidfd */
    uv_timer_t deadline;
    unsigned handles; /* open */
    int fd, pidfd;    /* -1: closed */
    struct send_queue send_queue;

    uint64_t last_serial; /* of the client's latest request */
    uint32_t requests;    /* struct request that exist */
    bool at_worker;       /* it was told of this client and has not answered worker_detach */

    struct {
        bool held;
        uint64_t serial;
        uint16_t opcode;
        struct proto_attach body;
    } parked; /* waits for the device to be ready */

    struct proto_attach asked;
    struct allowance wish; /* as `asked` has it */
    struct grant grant;
    struct proto_worker_attached worker;
    struct allowance share; /* asked of the worker last... */
    uint32_t sharing;       /* ...while so many answers are due */
    uint64_t attach_serial;

    struct address_window window;
    struct quota memory, host, fds, images;
    struct session_totals totals;
    struct shm ring, status, twin;
    int doorbell; /* -1 */
    bool linked;  /* somebody waits for its timelines */

    struct heap heap;                              /* device memory */
    struct want *wants;                            /* in order of arrival */
    struct heap_block *retired_now, *retired_next; /* the first wait for the worker's quiesce */
    uint32_t unmapping;                            /* regions */
    uint64_t slab_max;                             /* what the device had room for */

    struct heap buffers; /* host memory; one region a buffer */
    struct request *host_wants, *host_wants_last;
    uint32_t host_unmapping;
    struct host_share *shares; /* of others' buffers, used here */
    uint32_t lent;             /* own buffers that others use */

    struct objects objects; /* open from attach on */
    struct module *modules;
    uint32_t module_count, next_module;
};

/* Handles a message of the client, which is the callee's only during the call. It may mark the
 * session; the session is there as long as its caller needs it. */
typedef void session_handler(struct session *session, struct channel_message *message);

/* Takes over fd. Returns 0 or -errno (fd is closed then). */
int session_open(struct session **session, struct server *server, int fd, uint32_t number,
                 enum session_over_limit over_limit);

/* The session's device is ready, or is not going to be: what waits for that is carried out or
 * refused. Does nothing if nothing waits. */
void session_unpark(struct session *session);

/* "hello", "greeted", ... Static. */
const char *session_state_name(enum session_state state);

/* Descriptors that the server holds for it. */
uint32_t session_fds(const struct session *session);

#endif
