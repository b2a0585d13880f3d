/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_request: one line of the admin socket, read and checked.
 *
 * A line is hostile. Its length, nesting, members and their types are checked here, so that no
 * other file handles JSON that came from outside. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/log.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/view.h"

#define ADMIN_LINE_MAX  65536 /* bytes of a request, with its newline */
#define ADMIN_DEPTH_MAX 8     /* objects and arrays inside one another */

/* Rows of clients in an answer to metrics: the default, and the most. */
enum { ADMIN_METRICS_CLIENTS = 100, ADMIN_METRICS_CLIENTS_MAX = 10000 };

enum admin_kind {
    ADMIN_PING,
    ADMIN_VERSION,
    ADMIN_STATUS,
    ADMIN_CLIENTS,
    ADMIN_KILL,
    ADMIN_GET,
    ADMIN_SET,
    ADMIN_RELOAD,
    ADMIN_TRACE,
    ADMIN_METRICS,
    ADMIN_DRAIN,
    ADMIN_RESUME,
    ADMIN_EVENTS,
    ADMIN_LOG_LEVEL,
    ADMIN_CONFIG
};

/* The kind of object that a request is about. */
enum admin_target {
    ADMIN_TARGET_NONE,
    ADMIN_TARGET_CLIENT,
    ADMIN_TARGET_USER,
    ADMIN_TARGET_GROUP,
    ADMIN_TARGET_CGROUP,
    ADMIN_TARGET_GPU
};

struct admin_request {
    enum admin_kind kind;
    enum admin_target target;
    uint32_t number;         /* of the client or the GPU; or the uid or gid */
    json_t *cgroup;          /* the path of the control group, a text; else NULL */
    bool force;              /* kill: even if other clients end too */
    bool all;                /* kill: the clients of all users */
    struct allowance change; /* set: new limits of each client */
    /* set: besides, what goes back to the configuration's: RESOURCE_BITs, and bits of scalars. */
    unsigned back_requests, back_limits, back_scalars;
    bool totals;               /* set: `total` is changed instead */
    struct total_change total; /* set: new limits of the user's or the group's total */
    struct schedule schedule;  /* set, of a GPU: new parts of its schedule */
    unsigned parts;            /* set, of a GPU: these parts, as bits of enum schedule_part */
    unsigned back;  /* set, of a GPU: of these, those that go back to the configuration's */
    bool newcomers; /* set, of a GPU: `change` is of clients to come; with back_limits, back_scalars
                     */
    json_t *values; /* set, of a GPU or a total: its values, as they were written */
    bool save;      /* set: they are kept over restarts */
    bool reset;     /* reload: what administrators have set goes back, too */
    uint64_t after; /* events: those with greater numbers */
    bool sets_level; /* log-level: `level` is to be the log's */
    enum log_level level;
    uint32_t gpu;           /* trace: the GPU's index */
    uint32_t clients_shown; /* metrics: at most so many have rows of their own */
    uint32_t milliseconds;  /* trace: 1 to 1000 * PROTO_TRACE_SECONDS_MAX */
};

/* The name of a kind in requests: "ping", "version", ... The string is static. */
const char *admin_request_kind_name(enum admin_kind kind);

/* A request without its values: "kill client 7", "set user 1000", "reload". Returns
 * text. */
enum { ADMIN_REQUEST_TEXT = 40 + ACCOUNT_CGROUP_MAX };
const char *admin_request_describe(const struct admin_request *request,
                                   char text[ADMIN_REQUEST_TEXT]);

/* Whether a get or set is about this client. False for every client if it is about a GPU. */
bool admin_request_concerns(const struct admin_request *request, const struct client_view *view);

/* The user, group or control group that a request is about. Its path stays the request's. */
struct account_owner admin_request_owner(const struct admin_request *request);

/* Whether a request of this kind changes anything, or shows what other users' programs do. Then the
 * right to connect is not enough for it. */
bool admin_request_kind_changes(enum admin_kind kind);

/* Whether a value stands for the configuration's. "default" does not where it is a lease. */
bool admin_request_goes_back(const char *text);

/* Frees what admin_request_parse has made. Does nothing after it failed. */
void admin_request_free(struct admin_request *request);

/*
 * Reads one line, without its newline. admin_request_free must follow. invalid_value: it is not a
 * request; not_supported: this version does not know the request.
 */
uint32_t admin_request_parse(struct admin_request *request, const char *line, size_t length,
                             struct error *why);

#endif
