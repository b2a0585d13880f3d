/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_drain: carries out requests to drain GPUs and to resume them: a drained GPU takes no new
 * clients, also after a restart of the server where there is a folder to keep that in. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_DRAIN_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_DRAIN_H

#include "server/supervisor/admin/peer.h"

void admin_drain(struct admin_peer *peer, const struct admin_request *request);

#endif
