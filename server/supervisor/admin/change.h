/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_change: the commands get and set: limits of clients and totals, and how a GPU is shared.
 * Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_CHANGE_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_CHANGE_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of kind ADMIN_GET or ADMIN_SET, at once or when the workers have answered. */
void admin_change(struct admin_peer *peer, const struct admin_request *request);

#endif
