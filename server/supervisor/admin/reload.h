/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_reload: the command reload, which reads the configuration again. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_RELOAD_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_RELOAD_H

#include "server/supervisor/admin/peer.h"
#include "server/supervisor/admin/request.h"

/* Answers a request of kind ADMIN_RELOAD when the reload is over, or a time limit is. */
void admin_reload(struct admin_peer *peer, const struct admin_request *request);

#endif
