/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_answer: the answers of the admin socket, as JSON.
 *
 * Names are stable and carry their unit (used_bytes, gpu_time_seconds). A value that is not known,
 * or was not asked for, is null. Each answer matches schemas/admin-*.schema.json. Every function
 * returns a new value that the caller owns, or NULL if memory is short. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_ANSWER_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "server/supervisor/admin/json.h"
#include "server/supervisor/admin/request.h"
#include "server/supervisor/trace.h"
#include "server/supervisor/view.h"

#define ADMIN_SCHEMA_VERSION 2

/* A client's use of its device; known is false until the worker has reported it. */
struct admin_usage {
    uint32_t client;
    bool known;
    struct proto_worker_usage usage;
};

/* The use of all attached clients, in the order of view_each_client. */
struct admin_usages {
    struct admin_usage *rows;
    size_t count;
};

json_t *admin_answer_refusal(uint32_t error, const char *text); /* error: an error number */
json_t *admin_answer_ping(void);
json_t *admin_answer_version(void);
/* Says what the end of a client costs, and is made before it. with_worker: its device's worker is
 * replaced for it. */
json_t *admin_answer_kill(const struct supervisor *supervisor, uint32_t client, bool with_worker);
/* Names the clients of a user, or of all users (NULL), that have not left, and is made before their
 * end. */
json_t *admin_answer_kill_users(const struct supervisor *supervisor, const uint32_t *uid);
/* For drain and resume: the GPUs that the request is about, as they are now. saved: a server that
 * is started later finds them so. */
json_t *admin_answer_drain(const struct supervisor *supervisor, const struct admin_request *request,
                           bool saved);
/* For get and set: the present limits of what the request names: clients, a total, or a GPU. */
json_t *admin_answer_limits(const struct supervisor *supervisor,
                            const struct admin_request *request);
/* The caller sends a descriptor of the trace's memory with this answer. */
json_t *admin_answer_trace(const struct supervisor *supervisor, const struct trace *trace);
/* after: a number of an event, or 0. The numbers of another server process are none of this one's.
 */
json_t *admin_answer_events(uint64_t after);
json_t *admin_answer_log_level(void);
json_t *admin_answer_reload(const struct config_view *view);
json_t *admin_answer_status(const struct supervisor *supervisor, const struct admin_usages *usages);
json_t *admin_answer_clients(const struct supervisor *supervisor,
                             const struct admin_usages *usages);

/* The parts that answers of several kinds have. request: NULL in a refusal. */
struct admin_json admin_answer_begin(bool ok, const char *request);
void admin_answer_put_versions(struct admin_json *answer);
void admin_answer_put_server(struct admin_json *answer, const struct supervisor *supervisor);

/* The row of a client, or NULL if it has none. */
struct admin_usage *admin_answer_find_usage(const struct admin_usages *usages, uint32_t client);

#endif
