/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * request: a request that a session has under way. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/limits/allowance.h"
#include "common/list.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/session/want.h"

struct heap_region;
struct host_import;
struct image;
struct module;
struct session;

/*
 * A request that waits for the worker, for a copy or for memory. It keeps the session from being
 * freed. Everything that it waits for calls back exactly once, and the last callback calls
 * request_end.
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
    uint64_t pool_until;    /* uv_now at which its wait for the pool ends; 0: it has not waited */
    int fd;                 /* a descriptor that the request owns, or -1 */
    struct charge charge;   /* for that descriptor */
    struct queue_link link; /* in the session's host_wants */
};

/* Makes a request for the client's message with this serial. NULL: no memory, and the client has
 * been refused. */
struct request *request_make(struct session *session, uint64_t serial, uint16_t reply);
/* Makes a request for which the client did not ask. NULL: no memory. */
struct request *request_make_own(struct session *session);
/* Frees a request with what it still owns. */
void request_end(struct request *request);

/*
 * Runs `work` on another thread, where it may touch the request alone, and again as long as it
 * returns JOB_AGAIN. Then calls `worked` from the loop with the result of work, or with -ECANCELED
 * if the session has ended; in that case only request_end is left to do.
 */
void request_work(struct request *request, int (*work)(struct request *request),
                  void (*worked)(struct request *request, int result));

/* Refuses the request, for session_quota_refuse_room's reason, and ends it. */
void request_refuse_room(struct request *request, enum resource resource,
                         const struct quota *culprit, uint64_t asked);

#endif
