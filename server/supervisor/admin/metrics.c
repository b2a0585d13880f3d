/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/metrics.h"

#include "common/error.h"
#include "common/limits/limits.h"
#include "server/supervisor/account/history.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/view.h"

/* A rule without a gid gives every group a total of its own. */
enum { GROUPS_MAX = 100 };

static json_t *uid_json(uint32_t uid)
{
    return uid == HISTORY_NOBODY ? json_null() : json_integer(uid);
}

static json_t *buckets_json(const uint64_t counts[LATENCY_BUCKETS])
{
    json_t *buckets = json_array();
    for (uint32_t i = 0; buckets && i < LATENCY_BUCKETS; i++)
        if (json_array_append_new(buckets, admin_json_amount(counts[i])) < 0) {
            json_decref(buckets);
            return NULL;
        }
    return buckets;
}

static json_t *throttled_json(const struct history_use *use)
{
    struct admin_json throttled = admin_json_new();
    for (uint32_t hold = 0; hold < PROTO_HOLD_COUNT; hold++)
        admin_json_put(&throttled, proto_hold_name(hold),
                       admin_json_seconds(use->throttled_ns[hold]));
    return admin_json_finish(&throttled);
}

/* The members that clients and users have alike. */
static void put_use(struct admin_json *row, const struct history_use *use)
{
    admin_json_put(row, "gpu_time_seconds", admin_json_seconds(use->gpu_ns));
    admin_json_put(row, "charged_seconds", admin_json_seconds(use->charged_ns));
    admin_json_put(row, "launches", admin_json_amount(use->launches));
    admin_json_put(row, "copies", admin_json_amount(use->copies));
    admin_json_put(row, "copied_bytes", admin_json_amount(use->copied_bytes));
    admin_json_put(row, "throttled_seconds", throttled_json(use));
}

/* ---- devices ---- */

static json_t *device_json(const struct supervisor *supervisor, uint32_t index,
                           const struct history_device *history)
{
    struct admin_json row = admin_json_new();
    struct device_view view;
    char uuid[LIMITS_UUID_TEXT];
    view_device(supervisor, index, &view);
    const bool known = view.info.multiprocessors != 0;
    admin_json_put(&row, "device", json_integer(index));
    admin_json_put(&row, "uuid", json_string(view_device_uuid(supervisor, index, uuid)));
    admin_json_put(&row, "name", known ? admin_json_text(view.info.name) : json_null());
    admin_json_put(&row, "pci",
                   known && *view.info.pci ? admin_json_text(view.info.pci) : json_null());
    admin_json_put(&row, "state", json_string(device_state_name(view.state)));
    admin_json_put(&row, "clients", json_integer(view.clients));
    admin_json_put(&row, "multiprocessors",
                   known ? json_integer(view.info.multiprocessors) : json_null());
    admin_json_put(&row, "memory_bytes", known ? admin_json_amount(view.info.memory) : json_null());
    admin_json_put(&row, "memory_used_bytes", admin_json_amount(view.memory_charged));
    admin_json_put(&row, "worker_starts", json_integer(view.worker_starts));
    admin_json_put(&row, "one_client_at_a_time", json_boolean(view.singly));
    admin_json_put(&row, "one_client_at_a_time_seconds", admin_json_seconds(view.singly_ns));
    admin_json_put(&row, "quiet_windows",
                   admin_json_amount(history->windows + history->seen_windows));
    admin_json_put(&row, "quiet_seconds",
                   admin_json_seconds(history->window_ns + history->seen_ns));
    admin_json_put(&row, "recovery_seconds", admin_json_seconds(history->recovery_ns));
    admin_json_put(&row, "recoveries", buckets_json(history->recoveries));
    return admin_json_finish(&row);
}

static json_t *devices_json(const struct supervisor *supervisor, const struct history *history)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < view_device_count(supervisor); i++)
        if (json_array_append_new(rows, device_json(supervisor, i, &history->devices[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    return rows;
}

static json_t *fault_json(const struct history_fault *fault)
{
    struct admin_json row = admin_json_new();
    admin_json_put(&row, "device", json_integer(fault->device));
    admin_json_put(&row, "kind", json_string(error_name(fault->error)));
    admin_json_put(&row, "uid", uid_json(fault->uid));
    admin_json_put(&row, "count", admin_json_amount(fault->count));
    return admin_json_finish(&row);
}

static json_t *faults_json(const struct history *history)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < history->fault_count; i++)
        if (json_array_append_new(rows, fault_json(&history->faults[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    return rows;
}

/* ---- users and clients ---- */

static json_t *share_or_null(uint64_t share)
{
    return share == PROTO_UNSET ? json_null() : admin_json_percent((uint32_t)share);
}

/* The limits of all clients of the user together, on this device. */
static void put_totals(struct admin_json *row, const struct supervisor *supervisor,
                       const struct history_user *user)
{
    uint64_t limit[RESOURCES];
    for (enum resource i = 0; i < RESOURCES; i++)
        limit[i] = user->uid == HISTORY_NOBODY
                       ? PROTO_UNSET
                       : owner_total_user_limit(supervisor, user->uid, i, user->device);
    admin_json_put(row, "threads_limit_percent", share_or_null(limit[RESOURCE_THREADS]));
    admin_json_put(row, "time_limit_percent", share_or_null(limit[RESOURCE_TIME]));
    admin_json_put(row, "memory_limit_bytes", admin_json_amount(limit[RESOURCE_MEMORY]));
}

static json_t *user_json(const struct supervisor *supervisor, const struct history_user *user)
{
    struct admin_json row = admin_json_new();
    struct history_use use = user->left;
    history_use_add(&use, &user->now);
    admin_json_put(&row, "device", json_integer(user->device));
    admin_json_put(&row, "uid", uid_json(user->uid));
    admin_json_put(&row, "clients", json_integer(user->clients));
    put_totals(&row, supervisor, user);
    admin_json_put(&row, "memory_used_bytes", admin_json_amount(user->memory));
    put_use(&row, &use);
    admin_json_put(&row, "waits", buckets_json(use.waits));
    admin_json_put(&row, "latencies", buckets_json(use.latencies));
    return admin_json_finish(&row);
}

static json_t *users_json(const struct supervisor *supervisor, const struct history *history)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < history->user_count; i++)
        if (json_array_append_new(rows, user_json(supervisor, history->users[i])) < 0) {
            json_decref(rows);
            return NULL;
        }
    return rows;
}

static void add_group(void *context, const struct group_total *total)
{
    json_t **rows = context;
    struct admin_json row = admin_json_new();
    admin_json_put(&row, "device", json_integer(total->device));
    admin_json_put(&row, "gid", json_integer(total->gid));
    admin_json_put(&row, "clients", json_integer(total->clients));
    admin_json_put(&row, "threads_limit_percent", share_or_null(total->limit[RESOURCE_THREADS]));
    admin_json_put(&row, "time_limit_percent", share_or_null(total->limit[RESOURCE_TIME]));
    admin_json_put(&row, "memory_limit_bytes", admin_json_amount(total->limit[RESOURCE_MEMORY]));
    admin_json_put(&row, "memory_held_bytes", admin_json_amount(total->memory_held));
    if (*rows && json_array_append_new(*rows, admin_json_finish(&row)) < 0) {
        json_decref(*rows);
        *rows = NULL;
    }
}

static void put_groups(struct admin_json *answer, const struct supervisor *supervisor)
{
    json_t *rows = json_array();
    const int left_out = owner_total_each_group(supervisor, GROUPS_MAX, add_group, &rows);
    if (left_out < 0) {
        json_decref(rows);
        rows = NULL;
    }
    admin_json_put(answer, "groups", rows);
    admin_json_put(answer, "groups_left_out", json_integer(left_out));
}

struct showing {
    json_t *rows; /* NULL: there was no memory */
    uint32_t left, left_out;
};

static json_t *client_json(const struct client_view *view)
{
    struct admin_json row = admin_json_new();
    const struct allowance *granted = &view->granted;
    admin_json_put(&row, "client", json_integer(view->number));
    admin_json_put(&row, "name", admin_json_text(view->name));
    admin_json_put(&row, "uid", json_integer(view->uid));
    admin_json_put(&row, "device", json_integer(view->device));
    admin_json_put(&row, "threads_limit_percent",
                   admin_json_percent((uint32_t)granted->of[RESOURCE_THREADS].limit));
    admin_json_put(&row, "time_limit_percent",
                   admin_json_percent((uint32_t)granted->of[RESOURCE_TIME].limit));
    admin_json_put(&row, "memory_limit_bytes",
                   admin_json_amount(granted->of[RESOURCE_MEMORY].limit));
    admin_json_put(&row, "memory_used_bytes", admin_json_amount(view->charged[RESOURCE_MEMORY]));
    admin_json_put(&row, "host_memory_limit_bytes",
                   admin_json_amount(granted->of[RESOURCE_HOST_MEMORY].limit));
    admin_json_put(&row, "host_memory_used_bytes",
                   admin_json_amount(view->charged[RESOURCE_HOST_MEMORY]));
    put_use(&row, view->used);
    return admin_json_finish(&row);
}

static bool show_client(void *context, const struct client_view *view)
{
    struct showing *showing = context;
    if (!view->attached)
        return true;
    if (!showing->left) {
        showing->left_out++;
        return true;
    }
    showing->left--;
    if (json_array_append_new(showing->rows, client_json(view)) < 0) {
        json_decref(showing->rows);
        showing->rows = NULL;
    }
    return showing->rows != NULL;
}

json_t *admin_metrics_answer(struct supervisor *supervisor, uint32_t shown)
{
    struct admin_json answer = admin_answer_begin(true, "metrics");
    const struct history *history = view_history(supervisor);
    struct showing showing = {.rows = json_array(), .left = shown};
    admin_answer_put_versions(&answer);
    admin_answer_put_server(&answer, supervisor);
    for (enum server_warning i = 0; i < SERVER_WARNINGS; i++)
        admin_json_put(&answer, view_warning_name(i),
                       json_boolean(view_warning(supervisor, i, NULL)));
    admin_json_put(&answer, "devices", devices_json(supervisor, history));
    admin_json_put(&answer, "faults", faults_json(history));
    admin_json_put(&answer, "users", users_json(supervisor, history));
    put_groups(&answer, supervisor);
    view_each_client(supervisor, show_client, &showing);
    admin_json_put(&answer, "client_rows", showing.rows);
    admin_json_put(&answer, "clients_left_out", json_integer(showing.left_out));
    return admin_json_finish(&answer);
}
