/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * server: what all sessions of the server share, and the quotas that they charge. Data alone: the
 * supervisor fills it, the sessions and the loop's turn use it. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_SERVER_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/devices_max.h"
#include "common/ipc/channel.h"
#include "common/list.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/device/offenders.h"
#include "server/supervisor/client/image.h"
#include "server/supervisor/loop/closer.h"
#include "server/supervisor/loop/job.h"
#include "server/supervisor/keep/keeper.h"
#include "server/supervisor/loop/send_queue.h"
#include "server/supervisor/account/fd_budget.h"
#include "server/supervisor/account/history.h"
#include "server/supervisor/account/quota.h"
#include "server/supervisor/session/accounting.h"
#include "server/supervisor/session/own_request.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/account/total.h"
#include "server/supervisor/account/total_override.h"
#include "server/supervisor/account/user_share.h"

struct config;
struct session;

/* Each notice of a worker names its client by the number, so it has to be found at once. By default
 * there are 4096 clients at most, and thus chains of four. */
enum { SERVER_BUCKETS = 1024 };

struct server {
    uv_loop_t *loop;
    const struct settings *settings;
    struct device devices[DEVICES_MAX];
    uint32_t device_count;
    struct list session_list; /* in the order in which they connected */
    uint32_t sessions;        /* number of sessions in that list */
    struct queue due;         /* marked sessions that the loop's turn has to look at */
    struct config *config;    /* the configuration in force, or NULL */
    bool attaching_waits;     /* a reload is under way: clients that want to attach wait */
    bool attaching_again;     /* memory came back, for which clients wait to attach */
    bool memory_awaited;      /* a session's memory_wait may be active */
    struct fd_budget budget;
    uint32_t user_clients_max; /* number of clients that one uid may have */
    uint64_t served;           /* clients that attached since the start */
    uint64_t refused; /* connections that could not: one too many, or refused by attaching */
    /* Has memory that clients keep idle give way (session_memory_make_room). */
    void (*make_room)(struct session *session, uint64_t request);
    struct address_plan plan;
    struct quota quotas[RESOURCES]; /* of all clients: resources that no device has its own of */
    struct pinned_pool pinned;      /* host buffers that nobody uses, and their windows */
    struct quota fds;               /* descriptors for handles and buffers of all clients */
    struct quota images;            /* module images of all clients, bytes */
    struct user_shares user_shares; /* parts of these two that one user may have */
    struct totals totals;           /* of users and groups */
    struct total_overrides total_overrides;
    struct own_requests own_requests;
    struct offenders offenders;
    struct history history; /* what administrators watch */
    struct accounting accounting;
    struct image_cache cache;
    struct closer *closer; /* of descriptors that clients have sent */
    struct job_pool jobs;
    struct keeper *keeper; /* NULL: nothing outlives this server */
    struct send_hold hold; /* with a keeper: what is sent waits until it is kept */
    struct queue touched;  /* sessions of which the keeper has to look */
    /* The sessions of session_list again, in chains by the remainder of their numbers. */
    struct session *by_number[SERVER_BUCKETS];
    /* Every client's message arrives here, one at a time, and stays until it is handled. */
    struct channel_message message;
};

#endif
