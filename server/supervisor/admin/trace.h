/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_trace: a trace of a GPU for one request. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_TRACE_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_TRACE_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of kind ADMIN_TRACE. */
void admin_trace(struct admin_peer *peer, const struct admin_request *request);

#endif
