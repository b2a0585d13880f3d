/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session: one client: its connection, what it was granted, and all that it owns.
 *
 *   HELLO -> GREETED -> ATTACHING -> ATTACHED
 *     any of them -> LEAVING -> freed
 *
 * Leaving begins when the client hangs up, breaks the protocol or is killed, or when its device's
 * worker is lost with work of the client in flight. A client that had none is held until the next
 * worker has all that it had (session/life/restore.h).
 *
 * session_fail (session_state.h) marks the session, and the loop takes it down
 * (session/life/end.h). Leaving is over when nothing of the client is left on the device, as the
 * worker says or because it is dead, and when every request has ended. Only then are charges,
 * descriptors and the window given back, so no other client can use them before.
 *
 * The files of a session: session is the connection, which hands each message to
 * its handler. session_state has the mark, session_client answers, session_worker asks, and request
 * is what is under way; the others stand on these. Handlers of one subject each are in attach,
 * limits, memory, host, rings, module, load_wait and forward, with the quotas in quota and
 * own_request. objects knows what the client has on its worker.
 *
 * restore tells the next worker of all this, lost_copies and lost_kernels say what the last one had
 * in flight, and blame says whose fault its end was. record and inbox keep it for another server.
 * end takes down what the others made. Loop thread.
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
#include "server/supervisor/account/bill.h"
#include "server/supervisor/account/client_accounts.h"
#include "server/supervisor/account/heap.h"
#include "server/supervisor/account/history.h"
#include "server/supervisor/client/identity.h"
#include "server/supervisor/client/objects.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/loop/send_queue.h"
#include "server/supervisor/session/inbox.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/account/total.h"

struct device;
struct pinned_window;
struct request;
struct ring_segment;
struct session;
struct server;
struct user_share;

/* The totals of its user and its groups that it counts in. */
struct session_totals {
    struct total_member *of[RESOURCES];
};

/* A connection above the limit of all clients or of its user's clients; its hello is refused. */
enum session_over_limit { OVER_LIMIT_NONE, OVER_LIMIT_SERVER, OVER_LIMIT_USER };

/* A part of a host buffer, of a stream's copies that were lost; lost_copies.h. */
struct lost_copy {
    uint32_t stream;
    uint64_t address, bytes;
};

struct lost_copies {
    struct lost_copy *rows;
    size_t count, room;
    bool more; /* there may be others, of any stream */
};

struct session {
    struct server *server;
    struct device *device; /* NULL before attach */
    struct list_link link; /* in server->session_list */
    uint32_t number;
    struct session *next_of_bucket;    /* in server->by_number */
    enum proto_connection_state state; /* the schema says what a client may ask for in each */
    enum session_over_limit over_limit;
    bool paused; /* its messages are not read now */
    bool down;   /* its connection is closed, and the worker is asked nothing more for it */
    bool due;    /* it is in server->due */
    struct queue_link due_link;
    struct proto_ended ended; /* why it leaves */

    pid_t pid; /* as the kernel says; 0: not visible from here */
    uid_t uid;
    struct identity identity; /* read when the client attaches */
    uint64_t connected_at;
    char name[64];     /* as the client calls itself; control characters replaced */
    uint8_t group[16]; /* token that connections of one process share */

    uv_poll_t poll;
    uv_poll_cb ready;       /* callback of poll */
    uv_poll_t process_poll; /* of pidfd; its data is NULL while it is not open */
    uv_timer_t deadline;    /* until it has attached; then of its loads that wait, or of its end */
    uv_timer_t host_wait;   /* until a request has waited for the pool for long enough */
    uv_timer_t memory_wait; /* likewise, for memory that other clients keep idle */
    unsigned handles;       /* number of open handles */
    int fd, pidfd;          /* -1: closed */
    bool pidfd_by_number;   /* it was found by the pid; identity.h */
    struct send_queue send_queue;
    struct charge unread; /* of descriptors that wait in it */

    uint64_t heard_at;    /* CLOCK_MONOTONIC: its latest message */
    uint64_t last_serial; /* of the client's latest request */
    struct session_keeping keeping;
    uint32_t requests;     /* number of struct request that exist */
    bool at_worker;        /* the worker knows this client and has not answered worker_detach */
    uint32_t worker_start; /* which of the device's workers that is: device->starts */
    bool released;         /* it has left, and the worker has no memory of it any more */
    bool lost;             /* its worker is gone */
    bool held;             /* and its requests wait for the next one */
    struct {
        uint32_t step;    /* of restore.c; 0: it was not begun */
        uint32_t due;     /* answers of this step */
        uint64_t held_at; /* CLOCK_MONOTONIC: it began to wait for a worker; 0: it does not */
        bool adopts;      /* the worker has all of it, as the last server left it */
        bool busy;        /* it had work, or has some, so it comes before others */
    } restore;
    struct {
        bool suspect;         /* of its device's latest fault */
        bool proven;          /* the kernels that were interrupted by that have run alone since */
        bool asked;           /* a request of it was under way when its worker was lost */
        bool isolated;        /* it was a suspect too often */
        uint32_t common;      /* faults and crashes that it may have made as well as others */
        uint32_t beside_left; /* likewise, as well as others that left without running alone */
        uint64_t beside_left_at; /* CLOCK_MONOTONIC: the latest of these was settled */
    } blame;
    uint64_t singly_before;  /* device_singly_ns when it attached */
    struct history_use used; /* as a worker said last */
    struct bill bill;        /* for the accounting */
    struct lost_copies lost_copies;
    bool refused;   /* attaching was, and the server has counted that */
    bool announced; /* the log has said that it attached */

    struct {
        bool present;
        uint64_t serial;
        uint16_t opcode;
        struct proto_attach body;
    } parked; /* a message that waits until the device's worker serves */

    struct proto_attach asked;
    struct allowance wish; /* the limits in `asked` */
    struct grant grant;
    struct client_accounts
        counts_in; /* as its worker was told when the client attached, or since */
    struct proto_worker_attached worker; /* the worker's latest answer about its share */
    struct allowance limits_sent;        /* what the worker was asked for last */
    uint32_t answers_due;                /* answers about shares that are still due */
    uint64_t attach_serial;
    uint64_t own_told; /* last_serial, when it was told that its requests are lowered */

    struct address_window window;
    struct quota quotas[RESOURCES]; /* those of QUOTA_FOR_EACH are open from attaching on */
    struct quota fds, images;       /* under those of its user */
    struct user_share *user_share;  /* NULL: its quotas are not open */
    struct job_client jobs;         /* open with them */
    struct session_totals totals;
    struct shm header; /* the first page of the ring memory */
    struct ring_segment *rings;
    struct shm status, shadow;
    int doorbell; /* -1: none */
    bool linked;  /* a client on another device may wait for its timelines */

    struct heap heap;                              /* device memory */
    struct queue wants;                            /* that wait, in order of arrival */
    struct heap_block *retired_now, *retired_next; /* wait for this quiesce; for the next one */
    uint32_t unmapping;                            /* number of regions being unmapped */
    uint64_t room_until; /* ms of the loop: it waits to attach, for memory that others keep idle */
    uint64_t slab_max;   /* bytes; lowered while the device is full */

    struct heap buffers;                /* host memory; one region for each buffer */
    struct pinned_window *spare_window; /* for giving the window up; or NULL */
    struct queue host_wants;            /* requests that wait, in order of arrival */
    uint32_t host_unmapping;            /* number of buffers that are being unmapped */
    uint32_t host_emptying; /* number of those whose memory is being given back after that */
    struct list imports;    /* struct host_import, of other sessions' buffers, used by this one */
    uint32_t lent;          /* number of shares of its own buffers */

    struct objects objects; /* open from attaching on */
    struct list modules;    /* struct module */
    uint32_t module_count, next_module;
    struct {
        uint32_t loads; /* that the worker has */
        uint32_t told;  /* the client for whom they wait, as last told; 0: nothing was told */
        bool asks;      /* the worker was asked, and has not answered */
    } load_wait;
};

/* Handles a message of the client, which belongs to the callee only during the call. The handler
 * may mark the session; the session stays valid for its caller. */
typedef void session_handler(struct session *session, struct channel_message *message);

/* Makes a session for a connected socket, which it takes over. Returns 0, or -errno: the socket is
 * closed then. */
int session_open(struct session **session, struct server *server, int fd, uint32_t number,
                 enum session_over_limit over_limit);

/* To be called when the session's device has become ready or has failed to, and when a reload is
 * over. Carries out the parked message or refuses it; a request to attach stays parked while a
 * reload is under way. Does nothing if no message is parked. */
void session_unpark(struct session *session);

/* Handles a request anew that another server had taken, and not answered. */
void session_handle_again(struct session *session, struct channel_message *message);

/* Number of descriptors that the server holds for the session. */
uint32_t session_fds(const struct session *session);

#endif
