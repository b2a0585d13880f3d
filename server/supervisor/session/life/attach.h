/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_attach: gives a session its device (the grant, the window, and the memory that the client
 * shares with its worker), and takes all that back. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_ATTACH_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"
#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/session/session.h"

struct config;
struct grant;

/* Handles window_move. */
session_handler session_attach_move;

/* Attaches the client to the device that `wish` names, which is ready; or refuses the client's
 * message with that serial. The worker's answer comes later. Returns false, and has done neither,
 * if the client has to wait (session/own_request.h): call again then. */
bool session_attach_now(struct session *session, uint64_t serial, const struct proto_attach *wish);

/* Attaches a session that is held to the new worker of its device (session_send_restoring). */
void session_attach_restore(struct session *session, worker_link_reply *answered);

/* Says in the log, once, that the client has attached. To be called when it asks for something:
 * a program that only looks leaves no trail. */
void session_attach_announce(struct session *session);

/* Takes everything but the connection back. The worker must have nothing of the client any more. */
void session_attach_release(struct session *session);

/* Computes a client's grant under a configuration; NULL: without one. Returns 0, or -ENOENT if the
 * profile that the client asks for does not exist. */
int session_attach_grant(const struct session *session, const struct config *config,
                         const struct device *device, const struct allowance *wish,
                         struct grant *grant);

/* The client, as the rules of a configuration see it. Its texts stay the session's. */
struct config_who session_attach_who(const struct session *session);

/* Chooses the accounts that a client would count in under a configuration (NULL: without one) and
 * these overrides. Returns as client_accounts_choose does. */
unsigned session_attach_accounts(const struct session *session, const struct config *config,
                                 const struct total_overrides *overrides,
                                 struct client_accounts *accounts);

/* Another server had attached the client, or was about to: takes its window and its accounts as
 * they were, with the descriptors of header, status, shadow and doorbell, which it takes over. The
 * session's members are set. Returns 0 or -errno; session_attach_release follows in any case. */
int session_attach_adopt(struct session *session, uint64_t offset, uint64_t bytes,
                         const int fds[4]);

/* The client was being attached: asks the worker again. */
void session_attach_again(struct session *session);

/* Sends the answer to attaching again, with its descriptors. */
void session_attach_answer_again(struct session *session, const struct channel_packet *packet);

#endif
