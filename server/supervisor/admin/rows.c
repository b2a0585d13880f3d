/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/rows.h"

#include <stdio.h>

#include "server/supervisor/admin/saved.h"

/* A row shows for each value what the client asked for and what it was granted. */
static json_t *bound_json(enum dialect_unit unit, uint64_t asked, uint64_t granted)
{
    struct admin_json pair = admin_json_new();
    if (unit == DIALECT_SHARE) {
        admin_json_put(&pair, "asked_percent",
                       asked == ALLOWANCE_UNSET ? json_null()
                                                : admin_json_percent((uint32_t)asked));
        admin_json_put(&pair, "granted_percent", admin_json_percent((uint32_t)granted));
    } else {
        admin_json_put(&pair, "asked_bytes", admin_json_amount(asked));
        admin_json_put(&pair, "granted_bytes", admin_json_amount(granted));
    }
    return admin_json_finish(&pair);
}

/* Adds what a resource has besides its request and its limit. */
static void put_use(struct admin_json *json, const struct client_view *view, enum resource resource)
{
    if (resource == RESOURCE_THREADS) {
        admin_json_put(json, "multiprocessors", json_integer(view->multiprocessors));
        admin_json_put(json, "partitioned", json_boolean(view->partitioned));
    } else if (!allowance_resource(resource)->by_worker) {
        admin_json_put(json, "used_bytes", admin_json_amount(view->charged[resource]));
    }
}

static json_t *resource_json(const struct client_view *view, enum resource resource)
{
    const struct allowance_range *asked = &view->asked.of[resource];
    const struct allowance_range *granted = &view->granted.of[resource];
    enum dialect_unit unit = allowance_resource(resource)->unit;
    struct admin_json json = admin_json_new();
    admin_json_put(&json, "request", bound_json(unit, asked->request, granted->request));
    admin_json_put(&json, "limit", bound_json(unit, asked->limit, granted->limit));
    put_use(&json, view, resource);
    return admin_json_finish(&json);
}

/* Says who set a limit. */
static json_t *limiter_json(struct allowance_source source)
{
    static const char *const names[] = {[ALLOWANCE_BY_SELF] = "server",
                                        [ALLOWANCE_BY_CLIENT] = "client",
                                        [ALLOWANCE_BY_FILE] = "configuration",
                                        [ALLOWANCE_BY_ADMIN] = "administrator"};
    const char *name = names[source.origin];
    return name ? json_string(name) : json_null();
}

/* A time of 0 is no limit. */
static json_t *scalar_json(enum scalar scalar, uint64_t value)
{
    if (allowance_scalar(scalar)->unit == ALLOWANCE_NUMBER)
        return json_integer((json_int_t)value);
    return value ? admin_json_seconds(value) : json_null();
}

static void put_scalar(struct admin_json *client, const struct client_view *view,
                       enum scalar scalar)
{
    const struct allowance_scalar *row = allowance_scalar(scalar);
    uint64_t value = view->granted.scalar[scalar];
    admin_json_put(client, row->key, view->attached ? scalar_json(scalar, value) : json_null());
    if (row->source_key)
        admin_json_put(client, row->source_key,
                       view->attached && value ? limiter_json(view->granted.scalar_from[scalar])
                                               : json_null());
}

static bool is_admins(struct allowance_source source)
{
    return source.origin == ALLOWANCE_BY_ADMIN;
}

/* The values that an administrator has set, by the names that set has for them. */
static json_t *client_changed_json(const struct allowance *own)
{
    static const char *const bounds[] = {
        [ALLOWANCE_REQUEST] = "request", [ALLOWANCE_LIMIT] = "limit"};
    json_t *names = json_array();
    for (enum resource i = 0; i < RESOURCES; i++)
        for (enum allowance_bound bound = ALLOWANCE_REQUEST; bound <= ALLOWANCE_LIMIT; bound++)
            if (is_admins(allowance_source(own, i, bound)))
                json_array_append_new(
                    names, json_sprintf("%s.%s", allowance_resource(i)->name, bounds[bound]));
    for (enum scalar i = 0; i < SCALARS; i++)
        if (is_admins(own->scalar_from[i]))
            json_array_append_new(names, json_string(allowance_scalar(i)->name));
    return names;
}

static void put_limits(struct admin_json *client, const struct client_view *view)
{
    bool on = view->attached;
    admin_json_put(client, "device", on ? json_integer(view->device) : json_null());
    for (enum resource i = 0; i < RESOURCES; i++)
        admin_json_put(client, allowance_resource(i)->name,
                       on ? resource_json(view, i) : json_null());
    for (enum scalar i = 0; i < SCALARS; i++)
        put_scalar(client, view, i);
    admin_json_put(client, "changed", on ? client_changed_json(&view->own) : json_array());
}

static json_t *throttled_json(const struct proto_worker_usage *usage)
{
    const uint64_t held_ns[] = {[PROTO_HOLD_LEASE] = usage->throttled_lease,
                                [PROTO_HOLD_DUTY] = usage->throttled_duty,
                                [PROTO_HOLD_PRIORITY] = usage->throttled_priority,
                                [PROTO_HOLD_THREADS] = usage->throttled_threads};
    _Static_assert(sizeof held_ns / sizeof held_ns[0] == PROTO_HOLD_COUNT, "a row for each hold");
    struct admin_json throttled = admin_json_new();
    for (uint32_t hold = 0; hold < PROTO_HOLD_COUNT; hold++)
        admin_json_put(&throttled, proto_hold_name(hold), admin_json_seconds(held_ns[hold]));
    return admin_json_finish(&throttled);
}

static json_t *waits_json(const struct proto_worker_usage *usage)
{
    json_t *waits = json_array();
    for (size_t i = 0; waits && i < sizeof usage->waits / sizeof usage->waits[0]; i++) {
        if (json_array_append_new(waits, admin_json_amount(usage->waits[i])) < 0) {
            json_decref(waits);
            return NULL;
        }
    }
    return waits;
}

static void put_usage(struct admin_json *client, const struct proto_worker_usage *usage)
{
    const struct {
        const char *name;
        json_t *value;
    } members[] = {
        {"gpu_time_seconds", usage ? admin_json_seconds(usage->gpu_nanoseconds) : json_null()},
        {"charged_seconds", usage ? admin_json_seconds(usage->charged) : json_null()},
        {"leases", usage ? admin_json_amount(usage->leases) : json_null()},
        {"multiprocessors_now", usage ? json_integer(usage->multiprocessors) : json_null()},
        {"launches", usage ? admin_json_amount(usage->launches) : json_null()},
        {"copies", usage ? admin_json_amount(usage->copies) : json_null()},
        {"copied_bytes", usage ? admin_json_amount(usage->copied_bytes) : json_null()},
        {"in_flight", usage ? json_integer(usage->in_flight) : json_null()},
        {"streams", usage ? json_integer(usage->streams) : json_null()},
        {"shared_queues", usage ? json_integer(usage->shared_queues) : json_null()},
        {"waits_for", usage && usage->waits_for ? json_integer(usage->waits_for) : json_null()},
        {"throttled_seconds", usage ? throttled_json(usage) : json_null()},
        {"waits", usage ? waits_json(usage) : json_null()},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        admin_json_put(client, members[i].name, members[i].value);
}

static void put_who(struct admin_json *client, const struct client_view *view)
{
    admin_json_put(client, "client", json_integer(view->number));
    admin_json_put(client, "name", admin_json_text(view->name));
    admin_json_put(client, "uid", json_integer(view->uid));
}

/* For how long promises of time had no effect. */
static void put_singly(struct admin_json *row, uint64_t ns)
{
    admin_json_put(row, "one_client_at_a_time_seconds", admin_json_seconds(ns));
}

json_t *admin_rows_client(const struct client_view *view, const struct proto_worker_usage *usage)
{
    struct admin_json client = admin_json_new();
    put_who(&client, view);
    admin_json_put(&client, "pid", view->pid > 0 ? json_integer(view->pid) : json_null());
    admin_json_put(&client, "state", json_string(view->state));
    admin_json_put(&client, "blame", json_string(view->blame));
    put_singly(&client, view->singly_ns);
    admin_json_put(&client, "connected_seconds", admin_json_clock(view->connected_ns));
    admin_json_put(&client, "descriptors", json_integer(view->fds));
    admin_json_put(&client, "waiting_requests", json_integer(view->waiting));
    put_limits(&client, view);
    put_usage(&client, usage);
    return admin_json_finish(&client);
}

json_t *admin_rows_limits(const struct client_view *view)
{
    struct admin_json client = admin_json_new();
    put_who(&client, view);
    put_singly(&client, view->singly_ns);
    put_limits(&client, view);
    return admin_json_finish(&client);
}

/* ---- devices ---- */

static json_t *schedule_json(const struct schedule *schedule)
{
    struct admin_json json = admin_json_new();
    admin_json_put(&json, "mode", json_string(proto_mode_name(schedule->mode)));
    admin_json_put(&json, "lease_seconds", admin_json_seconds(schedule->lease_ns));
    admin_json_put(&json, "precision_percent", admin_json_percent(schedule->precision));
    admin_json_put(&json, "quantum_seconds", admin_json_seconds(schedule->quantum_ns));
    admin_json_put(&json, "window_limit_seconds", admin_json_seconds(schedule->window_limit_ns));
    admin_json_put(&json, "local_memory_bytes", json_integer((json_int_t)schedule->local_memory));
    admin_json_put(&json, "departed_time_limit_seconds",
                   admin_json_seconds(schedule->departed_limit_ns));
    admin_json_put(&json, "watchdog_warning_seconds",
                   admin_json_seconds(schedule->watchdog_warning_ns));
    admin_json_put(&json, "watchdog_limit_seconds",
                   admin_json_seconds(schedule->watchdog_limit_ns));
    admin_json_put(&json, "standby", json_string(schedule_standby_name(schedule->standby)));
    admin_json_put(
        &json, "plan_seconds",
        admin_json_seconds(schedule->lease_ns * PROTO_PERCENT_WHOLE / schedule->precision));
    admin_json_put(&json, "time_enforced", json_boolean(schedule_time_enforced(schedule->mode)));
    return admin_json_finish(&json);
}

static json_t *parts_json(unsigned parts)
{
    json_t *names = json_array();
    const char *name;
    for (size_t i = 0; (name = schedule_part_name(parts, i)); i++)
        json_array_append_new(names, json_string(name));
    return names;
}

void admin_rows_put_sharing(struct admin_json *object, const struct supervisor *supervisor,
                            const struct device_view *view)
{
    admin_json_put(object, "schedule", schedule_json(&view->schedule));
    admin_json_put(object, "configured", schedule_json(&view->configured));
    admin_json_put(object, "changed",
                   parts_json(schedule_differs(&view->schedule, &view->configured)));
    admin_json_put(object, "saved", parts_json(admin_saved_parts(supervisor, view)));
    /* If the driver can't split the device, a limit of threads lets a client run less often. */
    admin_json_put(object, "threads_enforced_by",
                   !view->info.multiprocessors            ? json_null()
                   : view->info.partition_multiprocessors ? json_string("partitions")
                                                          : json_string("duty_cycle"));
}

/* The most that a client to come gets. */
static json_t *newcomer_json(const struct allowance *newcomer)
{
    struct admin_json json = admin_json_new();
    json_t *changed = json_array();
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *row = allowance_resource(i);
        const bool share = row->unit == DIALECT_SHARE;
        char name[64];
        snprintf(name, sizeof name, share ? "%s_limit_percent" : "%s_limit_bytes", row->name);
        admin_json_put(&json, name,
                       share ? admin_json_percent((uint32_t)newcomer->of[i].limit)
                             : admin_json_amount(newcomer->of[i].limit));
        if (is_admins(allowance_source(newcomer, i, ALLOWANCE_LIMIT)))
            json_array_append_new(changed, json_string(row->name));
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        admin_json_put(&json, allowance_scalar(i)->key, scalar_json(i, newcomer->scalar[i]));
        if (is_admins(newcomer->scalar_from[i]))
            json_array_append_new(changed, json_string(allowance_scalar(i)->name));
    }
    admin_json_put(&json, "changed", changed);
    return admin_json_finish(&json);
}

json_t *admin_rows_gpu(const struct supervisor *supervisor, const struct device_view *view)
{
    struct admin_json gpu = admin_json_new();
    admin_json_put(&gpu, "gpu", json_integer(view->index));
    admin_rows_put_sharing(&gpu, supervisor, view);
    admin_json_put(&gpu, "new_clients",
                   view->info.multiprocessors ? newcomer_json(&view->newcomer) : json_null());
    return admin_json_finish(&gpu);
}

static json_t *percent_or_null(uint64_t value)
{
    return value == PROTO_UNSET ? json_null() : admin_json_percent((uint32_t)value);
}

static json_t *limited_by_json(const struct total_view *view)
{
    if (view->set)
        return json_string("administrator");
    return view->limit != PROTO_UNSET || view->request != PROTO_UNSET ? json_string("configuration")
                                                                      : json_null();
}

/* Of what the worker enforces: each device has its own. */
static json_t *share_json(const struct supervisor *supervisor, const struct account_owner *owner,
                          enum resource resource, uint32_t device)
{
    struct admin_json total = admin_json_new();
    struct total_view view;
    owner_total_view(supervisor, owner, resource, device, &view);
    admin_json_put(&total, "gpu", json_integer(device));
    admin_json_put(&total, "request_percent", percent_or_null(view.request));
    admin_json_put(&total, "limit_percent", percent_or_null(view.limit));
    admin_json_put(&total, "limited_by", limited_by_json(&view));
    admin_json_put(&total, "saved", json_boolean(admin_saved_total(supervisor, owner, resource)));
    admin_json_put(&total, "clients", json_integer(view.clients));
    admin_json_put(&total, "clients_request_percent", admin_json_percent((uint32_t)view.used));
    if (resource == RESOURCE_TIME)
        put_singly(&total, view.singly_ns);
    return admin_json_finish(&total);
}

static json_t *total_json(const struct supervisor *supervisor, const struct account_owner *owner,
                          enum resource resource, uint32_t device)
{
    struct admin_json total = admin_json_new();
    struct total_view view;
    owner_total_view(supervisor, owner, resource, device, &view);
    if (allowance_resource(resource)->of_device)
        admin_json_put(&total, "gpu", json_integer(device));
    admin_json_put(&total, "limit_bytes", admin_json_amount(view.limit));
    admin_json_put(&total, "used_bytes", admin_json_amount(view.used));
    admin_json_put(&total, "limited_by", limited_by_json(&view));
    admin_json_put(&total, "saved", json_boolean(admin_saved_total(supervisor, owner, resource)));
    return admin_json_finish(&total);
}

/* A total of a resource that each device has its own of is a list, with an entry for each. */
static json_t *totals_json(const struct supervisor *supervisor, const struct account_owner *owner,
                           enum resource resource)
{
    const bool by_worker = allowance_resource(resource)->by_worker;
    if (!by_worker && !allowance_resource(resource)->of_device)
        return total_json(supervisor, owner, resource, TOTAL_OF_SERVER);
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < view_device_count(supervisor); i++)
        if (json_array_append_new(list, by_worker
                                            ? share_json(supervisor, owner, resource, i)
                                            : total_json(supervisor, owner, resource, i)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *admin_rows_total(const struct supervisor *supervisor, const struct account_owner *owner)
{
    const bool cgroup = owner->kind == TOTAL_CGROUP;
    struct admin_json total = admin_json_new();
    if (cgroup)
        admin_json_put(&total, "cgroup", admin_json_text(owner->cgroup));
    else
        admin_json_put(&total, owner->kind == TOTAL_GROUP ? "group" : "user",
                       json_integer(owner->id));
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_resource(i)->has_total && (!cgroup || allowance_resource(i)->by_worker))
            admin_json_put(&total, allowance_resource(i)->name, totals_json(supervisor, owner, i));
    return admin_json_finish(&total);
}
