/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_kill: the command kill, which ends clients. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_KILL_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_KILL_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of kind ADMIN_KILL: at once for a client that has not left, and for all those
 * of a user; otherwise when the worker has said what keeps the client, or a time limit is over. */
void admin_kill(struct admin_peer *peer, const struct admin_request *request);

#endif
