/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_attach: a session gets its device: the grant, the window, what is shared with
 * the client and its worker; and gives all that back.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_ATTACH_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_ATTACH_H

#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/session/session.h"

struct config;
struct grant;

session_handler session_attach_move;

/* Attaches, or refuses the client's message with that serial. Its device is ready. */
void session_attach_now(struct session *session, uint64_t serial, const struct proto_attach *wish);

/* Gives everything but the connection back. The worker has nothing of the client any more. */
void session_attach_release(struct session *session);

/* A client's grant under a configuration (NULL: under none). 0; -ENOENT: the profile that
 * it asks for does not exist. */
int session_attach_grant(const struct session *session, const struct config *config,
                         const struct device *device, const struct allowance *wish,
                         struct grant *grant);

#endif
