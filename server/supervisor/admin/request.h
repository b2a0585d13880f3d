/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_request: one line of the admin socket, read and checked.
 *
 * A line is hostile: its length, nesting, members and their types are checked here,
 * so that nobody else looks at JSON that came from outside. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/config/schedule.h"
#include "server/supervisor/view.h"

#define ADMIN_LINE_MAX  65536 /* bytes of a request, its newline included */
#define ADMIN_DEPTH_MAX 8     /* objects and arrays inside one another */

enum admin_kind {
    ADMIN_PING,
    ADMIN_VERSION,
    ADMIN_STATUS,
    ADMIN_CLIENTS,
    ADMIN_KILL,
    ADMIN_GET,
    ADMIN_SET,
    ADMIN_RELOAD,
    ADMIN_TRACE
};

/* The subject of a request. */
enum admin_target {
    ADMIN_TARGET_NONE,
    ADMIN_TARGET_CLIENT,
    ADMIN_TARGET_USER,
    ADMIN_TARGET_GROUP,
    ADMIN_TARGET_GPU
};

struct admin_request {
    enum admin_kind kind;
    enum admin_target target;
    uint32_t number; /* of the client, or the GPU's index; or the uid or gid of all clients meant */
    struct allowance change;   /* of set */
    bool totals;               /* of set: not each client's limits but what they have in total */
    struct total_change total; /* then */
    struct schedule schedule;  /* of set, of a GPU... */
    unsigned parts;            /* ...these parts: bits of enum schedule_part */
    uint32_t gpu;              /* of trace */
    uint32_t milliseconds;     /* likewise; 1 to 1000 * PROTO_TRACE_SECONDS_MAX */
};

/* "ping", "version", ... Static. */
const char *admin_request_kind_name(enum admin_kind kind);

/* Whether this client is one of those that a get or set is about; none is where it is a GPU. */
bool admin_request_concerns(const struct admin_request *request, const struct client_view *view);

/* The user or the group that it is about. */
struct account_owner admin_request_owner(const struct admin_request *request);

/* Does it change anything, or show what other users' programs do? Then it needs more than being
 * allowed to connect. */
bool admin_request_kind_changes(enum admin_kind kind);

/*
 * Reads one line, without its newline. invalid_value: it is not a request; not_supported: this
 * version does not know the request.
 */
uint32_t admin_request_parse(struct admin_request *request, const char *line, size_t length,
                             struct error *why);

#endif
