/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_rows: clients, devices and totals in the answers of the admin socket: what they asked for,
 * are granted and have used. Functions return a new value that the caller owns, or NULL if memory
 * is short. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_ROWS_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_ROWS_H

#include "server/supervisor/admin/json.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/view.h"

/* A client in the answer to `clients`. usage: NULL if the worker did not report it. */
json_t *admin_rows_client(const struct client_view *view, const struct proto_worker_usage *usage);

/* A client in the answer to get and set, with its limits alone. */
json_t *admin_rows_limits(const struct client_view *view);

/* A GPU in the answer to get and set, with the way in which it is shared. */
json_t *admin_rows_gpu(const struct supervisor *supervisor, const struct device_view *view);

/* The use and the limit of a user's, group's or control group's total: on each device, and of
 * pinned host memory. */
json_t *admin_rows_total(const struct supervisor *supervisor, const struct account_owner *owner);

/* Adds how a device is shared, and what enforces shares of its multiprocessors (null: not known
 * yet). */
void admin_rows_put_sharing(struct admin_json *object, const struct supervisor *supervisor,
                            const struct device_view *view);

#endif
