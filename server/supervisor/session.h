/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session: one client: its connection, what it was granted, and all that it owns.
 *
 *   HELLO -> GREETED -> ATTACHING -> ATTACHED
 *     any of them -> LEAVING -> freed
 *
 * Leaving begins when the client hangs up, misbehaves, is killed, or its device's
 * worker is lost (session_end). It is over when the worker has said that nothing of
 * the client is left on the device (or is dead) and every request has ended: only
 * then do charges, descriptors and the window go back. Until then nothing of it can
 * be used by anybody else.
 *
 * A request of a client that must wait for the worker, a copy or memory is a struct
 * request. Its callbacks come exactly once, with nothing if the session leaves.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "common/channel.h"
#include "common/shm.h"
#include "server/supervisor/address_plan.h"
#include "server/supervisor/admission.h"
#include "server/supervisor/heap.h"
#include "server/supervisor/identity.h"
#include "server/supervisor/image.h"
#include "server/supervisor/job.h"
#include "server/supervisor/outbox.h"
#include "server/supervisor/quota.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/total.h"
#include "server/supervisor/worker_link.h"

/* Requests of one client that may wait at a time; then its messages are left in the socket. */
#define SESSION_REQUESTS_MOST 64
/* What one client may have; bounds the memory that this process spends on it. */
#define SESSION_ALLOCATIONS_MOST (UINT64_C(1) << 18)
#define SESSION_MODULES_MOST     4096

enum session_state {
    SESSION_HELLO,
    SESSION_GREETED,
    SESSION_ATTACHING,
    SESSION_ATTACHED,
    SESSION_LEAVING
};

struct session;
struct supervisor;
struct device;
struct config;
struct module;
struct host_share;

/* Device memory that somebody waits for. */
struct want {
    struct want *next;
    struct session *session;
    uint64_t count;
    /* block: the memory, used; or NULL with an error and a sentence; error 0: the session leaves.
     */
    void (*done)(struct want *want, struct heap_block *block, uint32_t error, const char *text);
};

struct request {
    struct session *session;
    uint32_t serial;
    uint16_t reply; /* opcode of the answer */
    struct want want;
    struct job job;
    struct module *module;
    struct heap_region *region;
    struct host_share *share;
    struct image *image; /* the job's result */
    uint64_t count;
    int fd;               /* the client's, or -1 */
    struct charge charge; /* of that descriptor */
    struct request *next; /* waiting for pinned memory */
};

/* Places in what its user and its groups have in total. */
struct session_totals {
    struct total_member *memory, *host;
};

/* One more than may be, of all or of its user: refused at hello. */
enum session_surplus { SURPLUS_NONE, SURPLUS_SERVER, SURPLUS_USER };

struct session {
    struct supervisor *supervisor;
    struct device *device; /* NULL before attach */
    struct session *previous, *next;
    uint32_t number;
    enum session_state state;
    enum session_surplus surplus;
    bool paused; /* nothing is read */

    pid_t pid; /* as the kernel says */
    uid_t uid;
    struct identity identity; /* read at attach */
    uint64_t connected_at;
    char name[64];
    uint8_t group[16];

    uv_poll_t poll;
    uv_poll_t life; /* pidfd */
    uv_timer_t patience;
    unsigned handles; /* open */
    int fd, pidfd;    /* -1: closed */
    struct outbox outbox;

    uint32_t requests; /* struct request that exist */
    bool at_worker;    /* it was told of this client and has not answered worker_detach */

    struct {
        bool held;
        uint32_t serial;
        uint16_t opcode;
        struct proto_attach body;
    } parked; /* waits for the device to be ready */

    struct proto_attach asked;
    struct grant grant;
    struct proto_worker_attached worker;
    struct proto_worker_limits share; /* asked of the worker last... */
    uint32_t sharing;                 /* ...while so many answers are due */
    uint32_t attach_serial;

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
    uint64_t slab_most;                            /* what the device had room for */

    struct heap buffers; /* host memory; one region a buffer */
    struct request *host_wants, *host_wants_last;
    uint32_t host_unmapping;
    struct host_share *shares; /* of others' buffers, used here */
    uint32_t lent;             /* own buffers that others use */

    struct module *modules;
    uint32_t module_count, next_module;
};

/* ---- session.c: life and connection ---- */

/* Takes over fd. Returns 0 or -errno (fd is closed then). */
int session_open(struct session **session, struct supervisor *supervisor, int fd, uint32_t number,
                 enum session_surplus surplus);

/* Ends it: fault word, `ended`, one line in the log. PROTO_ERROR_SUCCESS: it hung up by itself. */
void session_end(struct session *session, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Frees a leaving session once nothing of it is left anywhere. Called after every event. */
void session_settle(struct session *session);

/* The session's device is ready, or is not going to be. */
void session_unpark(struct session *session);

const char *session_state_name(enum session_state state);
uint32_t session_fds(const struct session *session);

/* Answers. They do nothing while the session leaves. */
void session_answer(struct session *session, uint16_t opcode, uint32_t serial, const void *body,
                    const int *fds, unsigned fd_count);
void session_refuse(struct session *session, uint32_t serial, uint32_t error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
/* Passes an answer of the worker's on. */
void session_pass(struct session *session, uint32_t serial, const struct channel_message *answer);

/* NULL: no memory; the request has been refused. */
struct request *session_request(struct session *session, uint32_t serial, uint16_t reply);
/* One that the client did not make. NULL: no memory. */
struct request *session_request_own(struct session *session);
void session_request_end(struct request *request);

/* A request to the worker about this client. */
int session_ask(struct session *session, uint16_t opcode, const void *body, const int *fds,
                unsigned fd_count, worker_link_reply *reply, void *context);

static inline bool session_leaves(const struct session *session)
{
    return session->state == SESSION_LEAVING;
}

/* ---- one file each: handlers of its messages, and the end of what it owns ---- */

typedef void session_handler(struct session *session, struct channel_message *message);

/* session_attach.c */
session_handler session_window_move;
void session_attach_now(struct session *session, uint32_t serial, const struct proto_attach *wish);
void session_attach_release(struct session *session);

/* session_quota.c: its accounts. All zero, they are closed. */
/* 0, or an error number with a sentence: what is to be guaranteed does not fit. Close them in any
 * case. */
uint32_t session_quota_open(struct session *session, char *why, size_t why_size);
void session_quota_close(struct session *session);
/* Guarantees it so much memory, device's and host's, or changes nothing: as session_quota_open. */
uint32_t session_quota_guarantee(struct session *session, uint64_t memory, uint64_t host, char *why,
                                 size_t why_size);
/* As it was a moment ago, whatever its totals say by now. False: others have taken some of it, and
 * what they have taken stays as it is. */
bool session_quota_restore(struct session *session, uint64_t memory, uint64_t host);
/* The totals that it would be in under a configuration (NULL: in none). 0 or -ENOMEM. */
int session_quota_find_totals(struct session *session, const struct config *config,
                              struct session_totals *totals);
void session_quota_drop_totals(struct supervisor *supervisor, struct session_totals *totals);
/* It is in these from now on, and *totals are those that it was in. */
void session_quota_swap_totals(struct session *session, struct session_totals *totals);
/* What these limits of a total come to on this device. */
struct config_limits;
uint64_t session_quota_total_memory(const struct device *device,
                                    const struct config_limits *limits);
/* Gives all totals their limits. */
void session_quota_limit_totals(struct supervisor *supervisor, const struct config *config);
/* Why so much more memory can't be charged. */
void session_quota_explain(const struct session *session, const struct quota *culprit,
                           uint64_t asked, char *text, size_t text_bytes);

/* session_limits.c */
session_handler session_limits_query;
/* 0, or an error number with a sentence: what session_limits_set would refuse now. */
uint32_t session_limits_check(struct session *session, const struct supervisor_change *change,
                              char *why, size_t why_size);
/* Changes what the client is granted; see supervisor_set. */
int session_limits_set(struct session *session, const struct supervisor_change *change,
                       const char *by, supervisor_set_done *done, void *context);
/* The same, of what it was granted a moment ago; see supervisor_put_back. */
int session_limits_put_back(struct session *session, const struct supervisor_change *change,
                            const char *by, supervisor_set_done *done, void *context);

/* supervisor_config.c: what a client is granted under a configuration (NULL: under none). 0;
 * -ENOENT: the profile that it asks for does not exist. */
int session_grant(const struct config *config, const struct session *session,
                  const struct device *device, const struct proto_attach *wish,
                  struct grant *grant);

/* session_memory.c */
session_handler session_memory_alloc, session_memory_free, session_memory_query;
void session_memory_want(struct want *want);
void session_memory_return(struct session *session, struct heap_block *block);
void session_memory_flush(struct session *session);   /* those who wait are told that it leaves */
void session_memory_release(struct session *session); /* the worker has nothing any more */

/* session_host.c */
session_handler session_host_alloc, session_host_free, session_host_share, session_link;
void session_host_flush(struct session *session);
void session_host_recall(struct session *session);  /* others stop using its buffers */
void session_host_unshare(struct session *session); /* its worker has nothing of it any more */
void session_host_release(struct session *session);

/* session_module.c */
session_handler session_module_load, session_module_unload;
bool session_module_known(const struct session *session, uint32_t module);
void session_module_release(struct session *session);

/* session_forward.c */
session_handler session_forward;

#endif
