/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/util.h"
#include "common/limits/limits.h"
#include "server/supervisor/loop/events.h"
#include "server/supervisor/admin/rows.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"

static json_t *text_or_null(const char *from)
{
    return *from ? admin_json_text(from) : json_null();
}

struct admin_json admin_answer_begin(bool ok, const char *request)
{
    struct admin_json answer = admin_json_new();
    admin_json_put(&answer, "schema_version", json_integer(ADMIN_SCHEMA_VERSION));
    admin_json_put(&answer, "ok", json_boolean(ok));
    if (request)
        admin_json_put(&answer, "request", json_string(request));
    return answer;
}

json_t *admin_answer_refusal(uint32_t error, const char *sentence)
{
    struct admin_json answer = admin_answer_begin(false, NULL);
    admin_json_put(&answer, "error", json_string(error_name(error)));
    admin_json_put(&answer, "text", admin_json_text(sentence));
    return admin_json_finish(&answer);
}

json_t *admin_answer_ping(void)
{
    struct admin_json answer = admin_answer_begin(true, "ping");
    return admin_json_finish(&answer);
}

/* A client by what says which one it is. */
static void put_identity(struct admin_json *object, const struct client_view *view)
{
    admin_json_put(object, "client", json_integer(view->number));
    admin_json_put(object, "name", admin_json_text(view->name));
    admin_json_put(object, "pid", view->pid > 0 ? json_integer(view->pid) : json_null());
    admin_json_put(object, "uid", json_integer(view->uid));
}

struct kill_cost {
    uint32_t client;
    bool found;
    struct client_view victim;
    json_t *others; /* NULL: there was no memory */
};

static bool find_victim(void *context, const struct client_view *view)
{
    struct kill_cost *cost = context;
    cost->found = view->number == cost->client;
    if (cost->found)
        cost->victim = *view;
    return !cost->found;
}

static bool is_leaving(const struct client_view *view)
{
    return strcmp(view->state, proto_connection_state_name(PROTO_CONNECTION_STATE_LEAVING)) == 0;
}

/* list: NULL after memory was short. */
static bool add_identity(json_t **list, const struct client_view *view)
{
    struct admin_json client = admin_json_new();
    put_identity(&client, view);
    if (json_array_append_new(*list, admin_json_finish(&client)) < 0) {
        json_decref(*list);
        *list = NULL;
    }
    return *list != NULL;
}

/* The clients that have something on the device still. */
static bool add_other(void *context, const struct client_view *view)
{
    struct kill_cost *cost = context;
    if (!view->attached || view->device != cost->victim.device || view->number == cost->client ||
        is_leaving(view))
        return true;
    return add_identity(&cost->others, view);
}

json_t *admin_answer_kill(const struct supervisor *supervisor, uint32_t client, bool with_worker)
{
    struct kill_cost cost = {.client = client, .others = json_array()};
    struct admin_json answer = admin_answer_begin(true, "kill");
    view_each_client(supervisor, find_victim, &cost);
    cost.victim.number = client;
    put_identity(&answer, &cost.victim);
    bool replaced = with_worker && cost.found && cost.victim.attached;
    if (replaced && cost.others)
        view_each_client(supervisor, add_other, &cost);
    json_t *clients = json_array();
    if (clients)
        add_identity(&clients, &cost.victim);
    admin_json_put(&answer, "clients", clients);
    admin_json_put(&answer, "worker_replaced",
                   replaced ? json_integer(cost.victim.device) : json_null());
    admin_json_put(&answer, "ended_with_worker", cost.others);
    return admin_json_finish(&answer);
}

struct users_clients {
    const uint32_t *uid; /* NULL: of all users */
    json_t *list;        /* NULL: there was no memory */
};

static bool add_of_user(void *context, const struct client_view *view)
{
    struct users_clients *of = context;
    return (of->uid && view->uid != *of->uid) || is_leaving(view) || add_identity(&of->list, view);
}

json_t *admin_answer_kill_users(const struct supervisor *supervisor, const uint32_t *uid)
{
    struct admin_json answer = admin_answer_begin(true, "kill");
    struct users_clients of = {.uid = uid, .list = json_array()};
    if (of.list)
        view_each_client(supervisor, add_of_user, &of);
    admin_json_put(&answer, "client", json_null());
    admin_json_put(&answer, "name", json_null());
    admin_json_put(&answer, "pid", json_null());
    admin_json_put(&answer, "uid", uid ? json_integer(*uid) : json_null());
    admin_json_put(&answer, "clients", of.list);
    admin_json_put(&answer, "worker_replaced", json_null());
    admin_json_put(&answer, "ended_with_worker", json_array());
    return admin_json_finish(&answer);
}

json_t *admin_answer_drain(const struct supervisor *supervisor, const struct admin_request *request,
                           bool saved)
{
    struct admin_json answer = admin_answer_begin(true, admin_request_kind_name(request->kind));
    json_t *gpus = json_array();
    for (uint32_t i = 0; i < view_device_count(supervisor); i++) {
        if (request->target == ADMIN_TARGET_GPU && request->number != i)
            continue;
        struct admin_json gpu = admin_json_new();
        struct device_view view;
        memset(&view, 0, sizeof view);
        view_device(supervisor, i, &view);
        admin_json_put(&gpu, "gpu", json_integer(i));
        admin_json_put(&gpu, "drained", json_boolean(view.drained));
        admin_json_put(&gpu, "clients", json_integer(view.clients));
        if (json_array_append_new(gpus, admin_json_finish(&gpu)) < 0)
            answer.failed = true;
    }
    admin_json_put(&answer, "saved", json_boolean(saved));
    admin_json_put(&answer, "gpus", gpus);
    return admin_json_finish(&answer);
}

json_t *admin_answer_events(uint64_t after)
{
    struct admin_json answer = admin_answer_begin(true, "events");
    const uint64_t latest = events_latest();
    json_t *events = json_array();
    struct event event;
    uint64_t number = after, missed = 0;
    while (number < latest && events_next(number, &event)) {
        struct admin_json json = admin_json_new();
        missed += event.number - number - 1;
        number = event.number;
        admin_json_put(&json, "number", admin_json_amount(event.number));
        admin_json_put(&json, "time_seconds", admin_json_seconds(event.moment_ns));
        admin_json_put(&json, "level", json_string(log_level_name(event.level)));
        admin_json_put(&json, "text", admin_json_text(event.text));
        if (json_array_append_new(events, admin_json_finish(&json)) < 0)
            answer.failed = true;
    }
    admin_json_put(&answer, "pid", json_integer(getpid()));
    admin_json_put(&answer, "latest", admin_json_amount(after > latest ? latest : number));
    admin_json_put(&answer, "missed", admin_json_amount(missed));
    admin_json_put(&answer, "events", events);
    return admin_json_finish(&answer);
}

json_t *admin_answer_log_level(void)
{
    struct admin_json answer = admin_answer_begin(true, "log-level");
    admin_json_put(&answer, "level", json_string(log_level_name(log_level())));
    return admin_json_finish(&answer);
}

json_t *admin_answer_reload(const struct config_view *view)
{
    struct admin_json answer = admin_answer_begin(true, "reload");
    admin_json_put(&answer, "file", view->file ? admin_json_text(view->file) : json_null());
    admin_json_put(&answer, "profiles", json_integer((json_int_t)view->profiles));
    admin_json_put(&answer, "rules", json_integer((json_int_t)view->rules));
    admin_json_put(&answer, "gpus", json_integer((json_int_t)view->gpus));
    admin_json_put(&answer, "users", json_integer((json_int_t)view->users));
    admin_json_put(&answer, "groups", json_integer((json_int_t)view->groups));
    admin_json_put(&answer, "cgroups", json_integer((json_int_t)view->cgroups));
    admin_json_put(&answer, "changed_clients", json_integer(view->changed_clients));
    admin_json_put(&answer, "changed_settings", json_integer(view->changed_settings));
    return admin_json_finish(&answer);
}

json_t *admin_answer_trace(const struct supervisor *supervisor, const struct trace *trace)
{
    struct admin_json answer = admin_answer_begin(true, "trace");
    struct device_view view;
    json_t *clients = json_array();
    memset(&view, 0, sizeof view);
    view_device(supervisor, trace->device, &view);
    admin_json_put(&answer, "gpu", json_integer(trace->device));
    admin_json_put(&answer, "name", admin_json_text(view.info.name));
    admin_json_put(&answer, "seconds", json_real((double)trace->milliseconds / 1e3));
    admin_json_put(&answer, "trouble",
                   trace->trouble ? admin_json_text(trace->trouble) : json_null());
    for (size_t i = 0; i < trace->client_count; i++) {
        struct admin_json client = admin_json_new();
        admin_json_put(&client, "client", json_integer(trace->clients[i].number));
        admin_json_put(&client, "name", admin_json_text(trace->clients[i].name));
        admin_json_put(&client, "pid",
                       trace->clients[i].pid > 0 ? json_integer(trace->clients[i].pid)
                                                 : json_null());
        admin_json_put(&client, "uid", json_integer(trace->clients[i].uid));
        if (json_array_append_new(clients, admin_json_finish(&client)) < 0)
            answer.failed = true;
    }
    admin_json_put(&answer, "clients", clients);
    return admin_json_finish(&answer);
}

void admin_answer_put_versions(struct admin_json *answer)
{
    char protocol[24];
    snprintf(protocol, sizeof protocol, "%d.%d", PROTO_MAJOR, PROTO_MINOR);
    admin_json_put(answer, "server_version", json_string(GPUSHARE_VERSION));
    admin_json_put(answer, "protocol_version", json_string(protocol));
}

json_t *admin_answer_version(void)
{
    struct admin_json answer = admin_answer_begin(true, "version");
    admin_answer_put_versions(&answer);
    return admin_json_finish(&answer);
}

struct admin_usage *admin_answer_find_usage(const struct admin_usages *usages, uint32_t client)
{
    size_t low = 0, high = usages->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (usages->rows[middle].client < client)
            low = middle + 1;
        else
            high = middle;
    }
    return low < usages->count && usages->rows[low].client == client ? &usages->rows[low] : NULL;
}

/* ---- status ---- */

struct queues {
    const struct admin_usages *usages;
    uint32_t device;
    uint64_t shared;
    uint64_t quiet_windows, quiet_ns; /* of the device's worker; as the latest answer says */
    bool quiet_known;
    bool known; /* the workers of all attached clients have answered */
};

static bool add_queues(void *context, const struct client_view *view)
{
    struct queues *queues = context;
    if (!view->attached || view->device != queues->device)
        return true;
    const struct admin_usage *row = admin_answer_find_usage(queues->usages, view->number);
    if (!row || !row->known) {
        queues->known = false;
        return true;
    }
    queues->shared += row->usage.shared_queues;
    queues->quiet_windows = max(queues->quiet_windows, (uint64_t)row->usage.quiet_windows);
    queues->quiet_ns = max(queues->quiet_ns, row->usage.quiet_nanoseconds);
    queues->quiet_known = true;
    return true;
}

/* Adds the device's properties as the driver reports them; null until the first worker was
 * ready. */
static void put_device_info(struct admin_json *object, const struct device_view *view)
{
    const struct proto_device_info *info = &view->info;
    bool known = info->multiprocessors != 0;
    char uuid[LIMITS_UUID_TEXT], version[24], capability[24];
    snprintf(version, sizeof version, "%u.%u", info->driver_version / 1000,
             info->driver_version % 1000 / 10);
    snprintf(capability, sizeof capability, "%u.%u", info->compute_major, info->compute_minor);
    admin_json_put(object, "name", known ? admin_json_text(info->name) : json_null());
    admin_json_put(object, "uuid",
                   known ? json_string(limits_format_uuid(info->uuid, uuid)) : json_null());
    admin_json_put(object, "pci", known ? text_or_null(info->pci) : json_null());
    admin_json_put(object, "cuda_version", known ? json_string(version) : json_null());
    admin_json_put(object, "compute_capability", known ? json_string(capability) : json_null());
    admin_json_put(object, "memory_bytes", known ? admin_json_amount(info->memory) : json_null());
    admin_json_put(object, "multiprocessors",
                   known ? json_integer(info->multiprocessors) : json_null());
    admin_json_put(object, "partition_multiprocessors",
                   known ? json_integer(info->partition_multiprocessors) : json_null());
}

static json_t *warnings_json(const struct device_view *view)
{
    json_t *warnings = json_array();
    for (uint32_t i = 0; i < view->warning_count; i++) {
        struct admin_json warning = admin_json_new();
        admin_json_put(&warning, "name", json_string(proto_warning_name(view->warnings[i].which)));
        admin_json_put(&warning, "text", admin_json_text(view->warnings[i].text));
        json_array_append_new(warnings, admin_json_finish(&warning));
    }
    return warnings;
}

static json_t *server_warnings_json(const struct supervisor *supervisor)
{
    json_t *warnings = json_array();
    struct error what;
    for (enum server_warning i = 0; i < SERVER_WARNINGS; i++) {
        if (!view_warning(supervisor, i, &what))
            continue;
        struct admin_json warning = admin_json_new();
        admin_json_put(&warning, "name", json_string(view_warning_name(i)));
        admin_json_put(&warning, "text", admin_json_text(what.text));
        json_array_append_new(warnings, admin_json_finish(&warning));
    }
    return warnings;
}

static json_t *compilations_json(const struct device_view *view)
{
    static const char *const names[] = {[ACTIVITY_COMPILING] = "running",
                                        [ACTIVITY_COMPILED] = "finished",
                                        [ACTIVITY_COMPILE_KNOWN] = "known",
                                        [ACTIVITY_COMPILE_OVER_TIME] = "over_time",
                                        [ACTIVITY_COMPILE_OVER_MEMORY] = "over_memory"};
    struct admin_json json = admin_json_new();
    for (enum activity_count i = 0; i < ACTIVITY_COUNTS; i++)
        admin_json_put(&json, names[i], json_integer(view->compilations[i]));
    return admin_json_finish(&json);
}

static json_t *calls_json(const struct device_view *view)
{
    json_t *calls = json_array();
    for (unsigned i = 0; i < view->call_count; i++) {
        struct admin_json call = admin_json_new();
        admin_json_put(&call, "thread", json_string(activity_thread_name(view->calls[i].thread)));
        admin_json_put(&call, "call", json_string(view->calls[i].name));
        admin_json_put(&call, "seconds", admin_json_seconds(view->calls[i].ns));
        json_array_append_new(calls, admin_json_finish(&call));
    }
    return calls;
}

static json_t *known_bytes(uint64_t bytes)
{
    return bytes == STANDBY_UNKNOWN ? json_null() : admin_json_amount(bytes);
}

static json_t *standby_json(const struct standby_view *view)
{
    struct admin_json standby = admin_json_new();
    admin_json_put(&standby, "kind", json_string(schedule_standby_name(view->kind)));
    admin_json_put(&standby, "state", json_string(standby_state_name(view->state)));
    admin_json_put(&standby, "pid", view->pid > 0 ? json_integer(view->pid) : json_null());
    admin_json_put(&standby, "device_memory_bytes", known_bytes(view->device_bytes));
    admin_json_put(&standby, "resident_bytes", known_bytes(view->resident));
    admin_json_put(&standby, "takeovers", json_integer(view->takeovers));
    admin_json_put(&standby, "failures", json_integer(view->failures));
    admin_json_put(&standby, "trouble", text_or_null(view->trouble));
    return admin_json_finish(&standby);
}

static json_t *device_json(const struct supervisor *supervisor, uint32_t index,
                           const struct admin_usages *usages)
{
    struct device_view view;
    struct queues queues = {.usages = usages, .device = index, .known = true};
    memset(&view, 0, sizeof view);
    view_device(supervisor, index, &view);
    view_each_client(supervisor, add_queues, &queues);

    struct admin_json device = admin_json_new();
    admin_json_put(&device, "device", json_integer(view.index));
    admin_json_put(&device, "driver_ordinal", json_integer(view.ordinal));
    admin_json_put(&device, "state", json_string(device_state_name(view.state)));
    put_device_info(&device, &view);
    admin_rows_put_sharing(&device, supervisor, &view);
    admin_json_put(&device, "memory_used_bytes", admin_json_amount(view.memory_charged));
    admin_json_put(&device, "clients", json_integer(view.clients));
    admin_json_put(&device, "drained", json_boolean(view.drained));
    admin_json_put(&device, "one_client_at_a_time", json_boolean(view.singly));
    admin_json_put(&device, "one_client_at_a_time_seconds", admin_json_seconds(view.singly_ns));
    admin_json_put(&device, "partitions", json_integer(view.partitions));
    admin_json_put(&device, "shared_queues",
                   queues.known ? json_integer((json_int_t)queues.shared) : json_null());
    admin_json_put(&device, "quiet_windows",
                   queues.quiet_known ? json_integer((json_int_t)queues.quiet_windows)
                                      : json_null());
    admin_json_put(&device, "quiet_seconds",
                   queues.quiet_known ? admin_json_seconds(queues.quiet_ns) : json_null());
    admin_json_put(&device, "worker_pid",
                   view.worker_pid > 0 ? json_integer(view.worker_pid) : json_null());
    admin_json_put(&device, "worker_starts", json_integer(view.worker_starts));
    admin_json_put(&device, "worker_ended_seconds",
                   view.ended ? admin_json_seconds(view.ended_ns) : json_null());
    admin_json_put(&device, "worker_silent_seconds",
                   view.silent_ns ? admin_json_seconds(view.silent_ns) : json_null());
    admin_json_put(&device, "worker_silence", text_or_null(view.silence));
    admin_json_put(&device, "worker_calls", calls_json(&view));
    admin_json_put(&device, "compilations", compilations_json(&view));
    admin_json_put(&device, "standby", standby_json(&view.standby));
    admin_json_put(&device, "trouble", text_or_null(view.trouble));
    admin_json_put(&device, "warnings", warnings_json(&view));
    return admin_json_finish(&device);
}

static json_t *driver_json(const struct settings *settings)
{
    struct admin_json driver = admin_json_new();
    admin_json_put(&driver, "name", admin_json_text(settings->driver_name));
    admin_json_put(&driver, "path", admin_json_text(settings->driver));
    return admin_json_finish(&driver);
}

void admin_answer_put_server(struct admin_json *answer, const struct supervisor *supervisor)
{
    struct server_view view;
    memset(&view, 0, sizeof view);
    view_server(supervisor, &view);
    admin_json_put(answer, "uptime_seconds", admin_json_clock(view.uptime_ns));
    admin_json_put(answer, "process_uptime_seconds", admin_json_clock(view.process_uptime_ns));
    admin_json_put(answer, "clients", json_integer(view.clients));
    admin_json_put(answer, "clients_max", json_integer(view.clients_max));
    admin_json_put(answer, "clients_served", admin_json_amount(view.clients_served));
    admin_json_put(answer, "clients_refused", admin_json_amount(view.clients_refused));
    admin_json_put(answer, "host_memory_limit_bytes", admin_json_amount(view.host_limit));
    admin_json_put(answer, "host_memory_used_bytes", admin_json_amount(view.host_charged));
    admin_json_put(answer, "descriptors", json_integer(view.fds));
    admin_json_put(answer, "descriptors_limit", json_integer(view.fds_limit));
    admin_json_put(answer, "images_cached", json_integer(view.images));
    admin_json_put(answer, "images_cached_bytes", admin_json_amount(view.image_bytes));
}

json_t *admin_answer_status(const struct supervisor *supervisor, const struct admin_usages *usages)
{
    struct admin_json answer = admin_answer_begin(true, "status");
    admin_answer_put_versions(&answer);
    admin_json_put(&answer, "pid", json_integer(getpid()));
    admin_json_put(&answer, "driver", driver_json(supervisor_settings(supervisor)));
    /* A device has one context, which is one address space: see docs/architecture.md. */
    admin_json_put(&answer, "kernel_isolation", json_string("none"));
    admin_answer_put_server(&answer, supervisor);
    admin_json_put(&answer, "state_folder", text_or_null(supervisor_settings(supervisor)->state));
    admin_json_put(&answer, "warnings", server_warnings_json(supervisor));
    json_t *devices = json_array();
    for (uint32_t i = 0; i < view_device_count(supervisor); i++)
        if (json_array_append_new(devices, device_json(supervisor, i, usages)) < 0)
            answer.failed = true;
    admin_json_put(&answer, "devices", devices);
    return admin_json_finish(&answer);
}

/* ---- clients and limits ---- */

struct listing {
    const struct admin_usages *usages;   /* for the command clients */
    const struct admin_request *request; /* for get and set */
    json_t *rows;
    bool failed;
};

static void listing_append(struct listing *listing, json_t *row)
{
    if (json_array_append_new(listing->rows, row) < 0)
        listing->failed = true;
}

static bool list_client(void *context, const struct client_view *view)
{
    struct listing *listing = context;
    const struct admin_usage *row = admin_answer_find_usage(listing->usages, view->number);
    listing_append(listing, admin_rows_client(view, row && row->known ? &row->usage : NULL));
    return !listing->failed;
}

json_t *admin_answer_clients(const struct supervisor *supervisor, const struct admin_usages *usages)
{
    struct admin_json answer = admin_answer_begin(true, "clients");
    struct listing listing = {.usages = usages, .rows = json_array()};
    view_each_client(supervisor, list_client, &listing);
    admin_json_put(&answer, "clients", listing.rows);
    answer.failed |= listing.failed;
    return admin_json_finish(&answer);
}

static bool list_limits(void *context, const struct client_view *view)
{
    struct listing *listing = context;
    if (admin_request_concerns(listing->request, view))
        listing_append(listing, admin_rows_limits(view));
    return !listing->failed;
}

json_t *admin_answer_limits(const struct supervisor *supervisor,
                            const struct admin_request *request)
{
    struct admin_json answer = admin_answer_begin(true, admin_request_kind_name(request->kind));
    struct listing listing = {.request = request, .rows = json_array()};
    if (request->target == ADMIN_TARGET_GPU) {
        struct device_view view;
        view_device(supervisor, request->number, &view);
        listing_append(&listing, admin_rows_gpu(supervisor, &view));
    } else {
        view_each_client(supervisor, list_limits, &listing);
    }
    if (request->target == ADMIN_TARGET_GROUP || request->target == ADMIN_TARGET_CGROUP)
        json_decref(listing.rows); /* the answer shows clients with their users instead */
    else
        admin_json_put(&answer, request->target == ADMIN_TARGET_GPU ? "gpus" : "clients",
                       listing.rows);
    if (request->target != ADMIN_TARGET_GPU && request->target != ADMIN_TARGET_CLIENT) {
        struct account_owner owner = admin_request_owner(request);
        admin_json_put(&answer, "total", admin_rows_total(supervisor, &owner));
    }
    answer.failed |= listing.failed;
    return admin_json_finish(&answer);
}
