/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_host_import: the use of another connection's host buffer on one's own device.
 *
 * Both connections are of one process and group. The one that uses the buffer is charged for it as
 * well, since the memory is pinned once more there. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_IMPORT_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWNED_HOST_IMPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

enum import_state { IMPORT_MAPPING, IMPORT_LIVE, IMPORT_UNMAPPING };

/* The use of another connection's buffer. */
struct host_import {
    struct list_link in_session; /* in user->imports */
    struct session *user, *owner;
    struct heap_region *region;
    enum import_state state; /* session_host_import_enter changes it */
    uint32_t row;            /* of the user's table of imports */
    bool recalled;           /* unmap it as soon as it is mapped */
    struct charge charge;
    uint32_t owner_number; /* of one that the last server had, before it is found: the owner, */
    uint64_t address;      /* and where the region begins */
};

session_handler session_host_import;

/* The session's use of the buffer that begins at this address; NULL: it has none. */
struct host_import *session_host_import_find(const struct session *session, uint64_t address);

void session_host_import_enter(struct host_import *import, enum import_state state);

/* Has the user's worker give a share back that it has or is to have, and lets go of it. */
void session_host_import_return(struct host_import *import);

/* The session is taken down: makes other sessions stop using its buffers. */
void session_host_import_recall(struct session *session);

/* The session's worker has nothing of it any more: buffers of other sessions that it used go back
 * to them. */
void session_host_import_end(struct session *session);

/* Has a new worker map and register the buffers of others that the one before had
 * (session_send_restoring). */
void session_host_import_restore(struct session *session, worker_link_reply *answered);

#endif
