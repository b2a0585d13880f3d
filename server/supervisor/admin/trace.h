/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_trace: the command trace, which records what runs on a GPU. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_TRACE_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_TRACE_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of kind ADMIN_TRACE, when the trace is over or a time limit is. */
void admin_trace(struct admin_peer *peer, const struct admin_request *request);

#endif
