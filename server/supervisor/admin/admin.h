/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin: the administrators' socket, separate from the clients' and stricter.
 *
 * A stream of JSON lines: one request a line, one answer a line, in order. Who may
 * connect is the socket file's business (mode 0660, group gpushare where there is
 * one); who may change something is decided by the uid that the kernel reports:
 * root, and those in the settings. Requests and answers: schemas/admin-*.schema.json.
 *
 * A peer costs bounded memory: its line is bounded, one request is served at a
 * time, and nothing more is read while an answer has not been taken. Everything
 * runs on the thread of the supervisor's loop.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_H

#include <stddef.h>

#include "common/error.h"

struct admin;
struct supervisor;

#define ADMIN_CONNECTIONS_MAX 32

/*
 * Listens where the supervisor's settings say: on the descriptor that systemd passed
 * (taken over), or on a socket file of its own. A file left by a dead server is
 * replaced; a living server's is not. From now on the process ignores SIGPIPE.
 * Returns 0, or an error number that *why explains.
 */
uint32_t admin_open(struct admin **out, struct supervisor *supervisor, struct error *why);

/*
 * Stops listening, removes the socket file that it made, and ends every connection.
 * Frees itself once the loop has run its close callbacks and the supervisor has
 * answered what was still asked; the supervisor must be alive until then. *admin
 * becomes NULL; NULL inside is allowed.
 */
void admin_close(struct admin **admin);

#endif
