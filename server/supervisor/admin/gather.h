/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_gather: status and clients, with what the workers say of their clients' use. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_GATHER_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_GATHER_H

#include "server/supervisor/admin/peer.h"

/* Answers a request of this kind: ADMIN_STATUS or ADMIN_CLIENTS. */
void admin_gather(struct admin_peer *peer, enum admin_kind kind);

#endif
