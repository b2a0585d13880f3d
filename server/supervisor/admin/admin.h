/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin: the administrators' socket, separate from the clients' socket and stricter.
 *
 * It is a stream of JSON lines: one request on a line, one answer on a line, in order. The socket
 * file's mode decides who may connect (0660, group gpushare where there is one). The uid that the
 * kernel reports decides who may change something: root, and the users in the settings.
 * schemas/admin-*.schema.json describe requests and answers.
 *
 * A connection costs bounded memory: its line is bounded, one request is served at a time, and
 * nothing more is read until its answer has been taken. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_ADMIN_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_ADMIN_H

#include <stddef.h>

#include "common/error.h"

struct admin;
struct supervisor;

/*
 * Number of connections of root, again of the server's own user, and again of all users together
 * who may only look; and of each other user. Those who may change something count for themselves
 * alone, so nobody else can keep them out.
 */
#define ADMIN_CONNECTIONS_MAX      32
#define ADMIN_USER_CONNECTIONS_MAX 8

/*
 * Listens where the supervisor's settings say: on the descriptor that systemd passed (taken over),
 * or on a socket file of its own. A file left by a dead server is replaced; a living server's is
 * not. From this call on the process ignores SIGPIPE. Returns 0, or an error number that *why
 * explains with *out NULL.
 */
uint32_t admin_open(struct admin **out, struct supervisor *supervisor, struct error *why);

/* From now on answers wait for admin_send_held: an administrator is told of nothing that a server
 * which takes over would not know. */
void admin_hold(struct admin *admin);
/* All that the waiting answers say is kept. admin may be NULL. */
void admin_send_held(struct admin *admin);

/*
 * Stops listening, removes the socket file that admin_open made, and ends every connection. The
 * object frees itself once the loop has run its close callbacks and every question that it has
 * asked is answered; the supervisor must live until then. *admin becomes NULL; it may be NULL
 * before.
 */
void admin_close(struct admin **admin);

#endif
