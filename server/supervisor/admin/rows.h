/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_rows: clients and devices in the answers of the admin socket: what they asked
 * for, are granted and have used. Each returns a new value, NULL where memory is short.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_ROWS_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_ROWS_H

#include "server/supervisor/admin/json.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/view.h"

/* A row of clients. usage: NULL if the worker did not say. */
json_t *admin_rows_client(const struct client_view *view, const struct proto_worker_usage *usage);

/* A row of get and set: limits alone. The client is attached. */
json_t *admin_rows_limits(const struct client_view *view);

/* A GPU of get and set: how it is shared. */
json_t *admin_rows_gpu(const struct device_view *view);

/* The use and the limit of a user or a group in total: of each device and of pinned host memory. */
json_t *admin_rows_total(const struct supervisor *supervisor, const struct account_owner *owner);

/* How a device is shared, and what enforces shares of its multiprocessors (null: not known yet). */
void admin_rows_put_sharing(struct admin_json *object, const struct device_view *view);

#endif
