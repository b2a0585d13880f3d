/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * pinned_pool: host buffers that nobody uses, kept registered for the next client of the same user.
 *
 * Registering takes the driver a millisecond a MiB, and unregistering waits for a quiet window. So
 * a buffer that its client gave up, or left behind, stays mapped and registered at its worker. It
 * is cleared, and lent again to a client of the user who had it: a former owner may have its
 * descriptor still, and so shares the memory with the next one. No other user ever gets it.
 *
 * A buffer has one address in client, worker and device. So the addresses are kept with it: the
 * window of a client that left waits for the next client of its user, with the buffers in it.
 *
 *        pinned_pool_take                     cleared                  pinned_pool_lend
 *   USED ----------------> CLEARING -----------------------> IDLE ----------------------> USED
 *     |                                                       | room is needed
 *     | pinned_pool_drop                                      v
 *     '-------------------------------------------------> DROPPING --------> EMPTYING --> gone
 *                                                                unregistered
 *
 * The pool's buffers are charged to the server: they count in --host-memory-total and among the
 * server's descriptors, but to no client and no user. The pool has at most --pinned-pool bytes.
 * Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_PINNED_POOL_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_PINNED_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/list.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/account/heap.h"
#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/loop/job.h"

struct device;
struct server;
struct session;

enum pinned_state {
    PINNED_USED, /* by a session, or on its way back from it */
    PINNED_CLEARING,
    PINNED_IDLE,
    PINNED_DROPPING, /* the worker was asked to unregister it */
    PINNED_STUCK,    /* and refused: it stays until that worker ends */
    PINNED_EMPTYING  /* no worker has it; its memory is being given back */
};

/* Of each host buffer: what its region's owner keeps there, made and freed with that. */
struct pinned_buffer {
    struct list_link link; /* in the pool; the one that is there longest first */
    struct server *server;
    struct heap_region *region;
    struct device *device;
    uid_t uid;
    enum pinned_state state;
    bool keep;                    /* its worker keeps it when its session lets go */
    struct pinned_window *window; /* that it lies in; NULL: a session's */
    struct job_client jobs;       /* in its user's turn */
    struct job job;               /* of clearing and emptying */
    bool lost;                    /* while it was cleared, its worker was lost */
    int fd;
    uint64_t bytes;
    uint32_t start;              /* device->starts when it was made: which worker has it; 0: none */
    struct session *restoring;   /* that the next worker is told of it for */
    worker_link_reply *answered; /* of the session, when the worker has */
};

/* A window without a session, with buffers in it. Made with each session. */
struct pinned_window {
    struct list_link link; /* in the pool; NULL: a session's */
    struct address_window addresses;
    struct heap buffers;
    struct device *device;
    uid_t uid;
    char name[64]; /* of the client that had it */
};

struct pinned_pool {
    struct list buffers;
    struct list windows;
    uint64_t bytes;    /* of buffers in the pool, in whatever state */
    uint64_t emptying; /* of buffers that no worker has, and whose charges come back in a moment */
    uint32_t count;
    bool retry_due; /* of all sessions */
    /* Memory came back, or became idle: requests that wait for it are tried again. NULL: of all
     * sessions. */
    void (*retry)(struct server *server, struct session *session);
};

void pinned_pool_open(struct pinned_pool *pool,
                      void (*retry)(struct server *server, struct session *session));

/* To be called in the loop's turn: tries again for all sessions' requests if any buffer has been
 * freed since the last call. Returns whether it did so. */
bool pinned_pool_retry(struct server *server);

/* Whether nothing is left, neither buffer nor window. */
bool pinned_pool_is_empty(const struct pinned_pool *pool);

/* ---- one buffer ---- */

/* Makes what a buffer of this size needs. The caller sets its region, which has it as its user.
 * NULL: no memory. */
struct pinned_buffer *pinned_pool_buffer_make(struct session *session, uint64_t bytes);

/* Its worker is gone, and maybe another one is there. */
bool pinned_pool_buffer_is_lost(const struct pinned_buffer *buffer);

/* Frees one without a region. NULL is allowed. */
void pinned_pool_buffer_free(struct pinned_buffer *buffer);

/* Frees the region with all that belongs to it. No worker has it. */
void pinned_pool_buffer_forget(struct heap_region *region);

/* Begins to empty a buffer that no worker has any more, and forgets it then; one without memory at
 * once. Idempotent. */
void pinned_pool_buffer_empty(struct heap_region *region);

/* Empties a buffer that is being unmapped (session->host_unmapping), if neither its own worker nor
 * another session has it any more. */
void pinned_pool_buffer_settle(struct heap_region *region);

/* A worker did not unmap the buffer for this client, and has it pinned still: so its descriptor,
 * charges and addresses stay until the end of the session that uses it. Logs that. client 0: the
 * buffer was the pool's. */
void pinned_pool_log_refused(uint32_t client, const struct heap_region *region,
                             const struct worker_answer *answer);

/* ---- the pool ---- */

/* The worker keeps the buffer, and its session has let go of it (UNMAPPING): the pool takes it
 * over, and its charges. False: the pool has no room, and nothing has changed. */
bool pinned_pool_take(struct heap_region *region);

/* Has the worker unregister a buffer that it keeps or may keep; then the buffer is emptied. Of one
 * that the pool did not take, the charge stays its session's meanwhile. */
void pinned_pool_drop(struct heap_region *region);

/* A buffer of exactly this size in the session's window; NULL: there is none. *soon: one is being
 * cleared. */
struct heap_region *pinned_pool_find(struct session *session, uint64_t bytes, bool *soon);

/* Charges a buffer that pinned_pool_find returned to the session, whose it is then, MAPPING.
 * Returns 0; or HEAP_FULL with the quota that lacks room in *culprit, and nothing has changed. */
int pinned_pool_lend(struct session *session, struct heap_region *region,
                     const struct quota **culprit);

/* A charge of so many bytes lacks room in this quota; NULL: the session's window is full. Returns
 * whether the pool is giving way, so that the caller may wait for retry. */
bool pinned_pool_make_room(struct session *session, const struct quota *culprit, uint64_t bytes);

/* The device's worker is gone, and with it what it had registered. */
void pinned_pool_lose(struct server *server, const struct device *device);

/* ---- windows ---- */

/* A session without addresses attaches: gives it a kept window of its user with the buffers in it.
 * False: there is none that fits. */
bool pinned_pool_take_window(struct session *session);

/* Whether each buffer in the session's window is the pool's, or was and is being emptied. */
bool pinned_pool_has_all(const struct session *session);

/* The session has none but buffers of the pool in its window, and gives it up with them. False: the
 * pool has too many windows, or no memory; the session keeps the window, the buffers are dropped,
 * and session_schedule follows. */
bool pinned_pool_give_window(struct session *session);

#endif
