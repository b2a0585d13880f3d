/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_gather: the commands status, clients and metrics, with the use that workers report. Loop
 * thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_GATHER_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_GATHER_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of kind ADMIN_STATUS, ADMIN_CLIENTS or ADMIN_METRICS, when the workers have
 * reported or a time limit is over. */
void admin_gather(struct admin_peer *peer, const struct admin_request *request);

#endif
