/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_answer: the answers of the admin socket, as JSON.
 *
 * Names are stable and carry their unit (used_bytes, gpu_time_seconds); what is
 * not known or not asked is null. Each answer matches schemas/admin-*.schema.json.
 * Loop thread. Every function returns a new value that the caller owns, or NULL
 * where memory is short.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_ANSWER_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "server/supervisor/admin/request.h"
#include "server/supervisor/trace.h"
#include "server/supervisor/view.h"

#define ADMIN_SCHEMA_VERSION 2

/* A client's usage as reported by a worker; known: false before the report. */
struct admin_usage {
    uint32_t client;
    bool known;
    struct proto_worker_usage usage;
};

/* usages of all attached clients, in the order of their numbers. */
struct admin_usages {
    struct admin_usage *rows;
    size_t count;
};

json_t *admin_answer_refusal(uint32_t error, const char *text); /* error: of the error table */
json_t *admin_answer_ping(void);
json_t *admin_answer_version(void);
json_t *admin_answer_kill(uint32_t client);
/* get and set: what these clients are granted now. */
json_t *admin_answer_limits(const struct supervisor *supervisor,
                            const struct admin_request *request);
/* The descriptor goes with the answer. */
json_t *admin_answer_trace(const struct supervisor *supervisor, const struct trace *trace);
json_t *admin_answer_reload(const struct config_view *view);
json_t *admin_answer_status(const struct supervisor *supervisor, const struct admin_usages *usages);
json_t *admin_answer_clients(const struct supervisor *supervisor,
                             const struct admin_usages *usages);

/* The row of a client, or NULL. */
struct admin_usage *admin_answer_find_usage(const struct admin_usages *usages, uint32_t client);

#endif
