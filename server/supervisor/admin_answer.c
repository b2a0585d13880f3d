/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/limits.h"
#include "server/supervisor/settings.h"

#define SECONDS(ns) json_real((double)(ns) / 1e9)

/* Adds a new value, taking it over. A NULL (memory is short) makes the whole answer fail: `failed`
 * stays set, and the answer is not sent without a member. */
struct object {
    json_t *json;
    bool failed;
};

static struct object object_new(void)
{
    json_t *json = json_object();
    return (struct object){json, !json};
}

static void put(struct object *object, const char *name, json_t *value)
{
    if (json_object_set_new(object->json, name, value) < 0)
        object->failed = true;
}

static json_t *finish(struct object *object)
{
    if (!object->failed)
        return object->json;
    json_decref(object->json);
    return NULL;
}

/* JSON's integers are signed here; no real amount is that large, PROTO_UNSET is. */
static json_t *amount(uint64_t value)
{
    return value > INT64_MAX ? json_null() : json_integer((json_int_t)value);
}

/* Text that came from a client or a driver; JSON takes UTF-8 only. */
static json_t *text(const char *from)
{
    json_t *json = json_string(from);
    if (json)
        return json;
    char clean[512];
    size_t i = 0;
    for (; i < sizeof clean - 1 && from[i]; i++)
        clean[i] = (unsigned char)from[i] >= 0x80 ? '?' : from[i];
    clean[i] = '\0';
    return json_string(clean);
}

static json_t *text_or_null(const char *from)
{
    return *from ? text(from) : json_null();
}

static struct object answer_new(bool ok, const char *request)
{
    struct object answer = object_new();
    put(&answer, "schema_version", json_integer(ADMIN_SCHEMA_VERSION));
    put(&answer, "ok", json_boolean(ok));
    if (request)
        put(&answer, "request", json_string(request));
    return answer;
}

json_t *admin_answer_refusal(uint32_t error, const char *sentence)
{
    struct object answer = answer_new(false, NULL);
    put(&answer, "error", json_string(error_name(error)));
    put(&answer, "text", text(sentence));
    return finish(&answer);
}

json_t *admin_answer_ping(void)
{
    struct object answer = answer_new(true, "ping");
    return finish(&answer);
}

json_t *admin_answer_kill(uint32_t client)
{
    struct object answer = answer_new(true, "kill");
    put(&answer, "client", json_integer(client));
    return finish(&answer);
}

json_t *admin_answer_reload(const struct supervisor_config_view *view)
{
    struct object answer = answer_new(true, "reload");
    put(&answer, "file", view->file ? text(view->file) : json_null());
    put(&answer, "profiles", json_integer((json_int_t)view->profiles));
    put(&answer, "rules", json_integer((json_int_t)view->rules));
    return finish(&answer);
}

json_t *admin_answer_trace(const struct supervisor *supervisor,
                           const struct supervisor_trace *trace)
{
    struct object answer = answer_new(true, "trace");
    struct supervisor_device_view view;
    json_t *clients = json_array();
    memset(&view, 0, sizeof view);
    supervisor_device_view(supervisor, trace->device, &view);
    put(&answer, "gpu", json_integer(trace->device));
    put(&answer, "name", text(view.info.name));
    put(&answer, "seconds", json_real((double)trace->milliseconds / 1e3));
    put(&answer, "trouble", trace->trouble ? text(trace->trouble) : json_null());
    for (size_t i = 0; i < trace->client_count; i++) {
        struct object client = object_new();
        put(&client, "client", json_integer(trace->clients[i].number));
        put(&client, "name", text(trace->clients[i].name));
        put(&client, "pid",
            trace->clients[i].pid > 0 ? json_integer(trace->clients[i].pid) : json_null());
        put(&client, "uid", json_integer(trace->clients[i].uid));
        if (json_array_append_new(clients, finish(&client)) < 0)
            answer.failed = true;
    }
    put(&answer, "clients", clients);
    return finish(&answer);
}

static void put_versions(struct object *answer)
{
    char protocol[24];
    snprintf(protocol, sizeof protocol, "%d.%d", PROTO_MAJOR, PROTO_MINOR);
    put(answer, "server_version", json_string(GPUSHARE_VERSION));
    put(answer, "protocol_version", json_string(protocol));
}

json_t *admin_answer_version(void)
{
    struct object answer = answer_new(true, "version");
    put_versions(&answer);
    return finish(&answer);
}

struct admin_usage *admin_usages_find(const struct admin_usages *usages, uint32_t client)
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
    bool known; /* every attached client's worker has answered */
};

static bool add_queues(void *context, const struct supervisor_client_view *view)
{
    struct queues *queues = context;
    if (!view->attached || view->device != queues->device)
        return true;
    const struct admin_usage *row = admin_usages_find(queues->usages, view->number);
    if (row && row->known)
        queues->shared += row->usage.shared_queues;
    else
        queues->known = false;
    return true;
}

/* What the driver said of a device; null before the first worker was ready. */
static void put_device_info(struct object *object, const struct supervisor_device_view *view)
{
    const struct proto_device_info *info = &view->info;
    bool known = info->multiprocessors != 0;
    char uuid[LIMITS_UUID_TEXT], version[24], capability[24];
    snprintf(version, sizeof version, "%u.%u", info->driver_version / 1000,
             info->driver_version % 1000 / 10);
    snprintf(capability, sizeof capability, "%u.%u", info->compute_major, info->compute_minor);
    put(object, "name", known ? text(info->name) : json_null());
    put(object, "uuid", known ? json_string(limits_format_uuid(info->uuid, uuid)) : json_null());
    put(object, "pci", known ? text_or_null(info->pci) : json_null());
    put(object, "cuda_version", known ? json_string(version) : json_null());
    put(object, "compute_capability", known ? json_string(capability) : json_null());
    put(object, "memory_bytes", known ? amount(info->memory) : json_null());
    put(object, "multiprocessors", known ? json_integer(info->multiprocessors) : json_null());
    put(object, "partition_multiprocessors",
        known ? json_integer(info->partition_multiprocessors) : json_null());
}

static json_t *device_json(const struct supervisor *supervisor, uint32_t index,
                           const struct admin_usages *usages)
{
    struct supervisor_device_view view;
    struct queues queues = {.usages = usages, .device = index, .known = true};
    memset(&view, 0, sizeof view);
    supervisor_device_view(supervisor, index, &view);
    supervisor_each_client(supervisor, add_queues, &queues);

    struct object device = object_new();
    put(&device, "device", json_integer(view.index));
    put(&device, "driver_ordinal", json_integer(view.ordinal));
    put(&device, "state", json_string(supervisor_device_state_name(view.state)));
    put_device_info(&device, &view);
    put(&device, "memory_used_bytes", amount(view.memory_charged));
    put(&device, "clients", json_integer(view.clients));
    put(&device, "partitions", json_integer(view.partitions));
    put(&device, "shared_queues",
        queues.known ? json_integer((json_int_t)queues.shared) : json_null());
    put(&device, "worker_pid", view.worker_pid > 0 ? json_integer(view.worker_pid) : json_null());
    put(&device, "worker_starts", json_integer(view.worker_starts));
    put(&device, "trouble", text_or_null(view.trouble));
    return finish(&device);
}

static json_t *driver_json(const struct settings *settings)
{
    struct object driver = object_new();
    put(&driver, "name", text(settings->driver_name));
    put(&driver, "path", text(settings->driver));
    return finish(&driver);
}

static void put_totals(struct object *answer, const struct supervisor *supervisor)
{
    struct supervisor_totals totals;
    memset(&totals, 0, sizeof totals);
    supervisor_totals(supervisor, &totals);
    put(answer, "uptime_seconds", SECONDS(totals.uptime_ns));
    put(answer, "clients", json_integer(totals.clients));
    put(answer, "clients_max", json_integer(totals.clients_max));
    put(answer, "clients_served", amount(totals.clients_served));
    put(answer, "clients_refused", amount(totals.clients_refused));
    put(answer, "host_memory_limit_bytes", amount(totals.host_limit));
    put(answer, "host_memory_used_bytes", amount(totals.host_charged));
    put(answer, "descriptors", json_integer(totals.fds));
    put(answer, "descriptors_limit", json_integer(totals.fds_limit));
    put(answer, "images_cached", json_integer(totals.images));
    put(answer, "images_cached_bytes", amount(totals.image_bytes));
}

json_t *admin_answer_status(const struct supervisor *supervisor, const struct admin_usages *usages)
{
    struct object answer = answer_new(true, "status");
    put_versions(&answer);
    put(&answer, "pid", json_integer(getpid()));
    put(&answer, "driver", driver_json(supervisor_settings(supervisor)));
    /* One context a device, one address space: see docs/architecture.md. */
    put(&answer, "kernel_isolation", json_string("none"));
    put_totals(&answer, supervisor);
    json_t *devices = json_array();
    for (uint32_t i = 0; i < supervisor_device_count(supervisor); i++)
        if (json_array_append_new(devices, device_json(supervisor, i, usages)) < 0)
            answer.failed = true;
    put(&answer, "devices", devices);
    return finish(&answer);
}

/* ---- clients ---- */

static json_t *percentage(uint32_t hundredths)
{
    return hundredths ? json_real(hundredths / 100.0) : json_null();
}

static void put_granted(struct object *client, const struct supervisor_client_view *view)
{
    bool on = view->attached;
    put(client, "device", on ? json_integer(view->device) : json_null());
    put(client, "priority", on ? json_integer(view->priority) : json_null());
    put(client, "threads_asked_percent", on ? percentage(view->threads_asked) : json_null());
    put(client, "threads_granted_percent", on ? percentage(view->threads_granted) : json_null());
    put(client, "multiprocessors", on ? json_integer(view->multiprocessors) : json_null());
    put(client, "partitioned", on ? json_boolean(view->partitioned) : json_null());
    put(client, "memory_asked_bytes", on ? amount(view->memory_asked) : json_null());
    put(client, "memory_limit_bytes", on ? amount(view->memory_limit) : json_null());
    put(client, "memory_used_bytes", on ? amount(view->memory_charged) : json_null());
    put(client, "host_memory_asked_bytes", on ? amount(view->host_asked) : json_null());
    put(client, "host_memory_limit_bytes", on ? amount(view->host_limit) : json_null());
    put(client, "host_memory_used_bytes", on ? amount(view->host_charged) : json_null());
}

static void put_usage(struct object *client, const struct admin_usage *row)
{
    const struct proto_worker_usage *usage = row && row->known ? &row->usage : NULL;
    put(client, "gpu_time_seconds", usage ? SECONDS(usage->gpu_nanoseconds) : json_null());
    put(client, "launches", usage ? amount(usage->launches) : json_null());
    put(client, "copies", usage ? amount(usage->copies) : json_null());
    put(client, "copied_bytes", usage ? amount(usage->copied_bytes) : json_null());
    put(client, "in_flight", usage ? json_integer(usage->in_flight) : json_null());
    put(client, "streams", usage ? json_integer(usage->streams) : json_null());
    put(client, "shared_queues", usage ? json_integer(usage->shared_queues) : json_null());
}

struct listing {
    const struct admin_usages *usages;
    json_t *clients;
    bool failed;
};

static bool list_client(void *context, const struct supervisor_client_view *view)
{
    struct listing *listing = context;
    struct object client = object_new();
    put(&client, "client", json_integer(view->number));
    put(&client, "name", text(view->name));
    put(&client, "pid", view->pid > 0 ? json_integer(view->pid) : json_null());
    put(&client, "uid", json_integer(view->uid));
    put(&client, "state", json_string(view->state));
    put(&client, "connected_seconds", SECONDS(view->connected_ns));
    put(&client, "descriptors", json_integer(view->fds));
    put(&client, "waiting_requests", json_integer(view->waiting));
    put_granted(&client, view);
    put_usage(&client, admin_usages_find(listing->usages, view->number));
    if (json_array_append_new(listing->clients, finish(&client)) < 0)
        listing->failed = true;
    return !listing->failed;
}

json_t *admin_answer_clients(const struct supervisor *supervisor, const struct admin_usages *usages)
{
    struct object answer = answer_new(true, "clients");
    struct listing listing = {.usages = usages, .clients = json_array()};
    supervisor_each_client(supervisor, list_client, &listing);
    put(&answer, "clients", listing.clients);
    answer.failed |= listing.failed;
    return finish(&answer);
}

/* ---- limits ---- */

static json_t *memory_json(uint64_t asked, uint64_t limit, uint64_t used)
{
    struct object memory = object_new();
    put(&memory, "asked_bytes", amount(asked));
    put(&memory, "limit_bytes", amount(limit));
    put(&memory, "used_bytes", amount(used));
    return finish(&memory);
}

static json_t *threads_json(const struct supervisor_client_view *view)
{
    struct object threads = object_new();
    put(&threads, "asked_percent", percentage(view->threads_asked));
    put(&threads, "limit_percent", percentage(view->threads_granted));
    put(&threads, "multiprocessors", json_integer(view->multiprocessors));
    put(&threads, "partitioned", json_boolean(view->partitioned));
    return finish(&threads);
}

struct limits_listing {
    const struct admin_request *request;
    json_t *clients;
    bool failed;
};

static bool list_limits(void *context, const struct supervisor_client_view *view)
{
    struct limits_listing *listing = context;
    if (!admin_request_concerns(listing->request, view))
        return true;
    struct object client = object_new();
    put(&client, "client", json_integer(view->number));
    put(&client, "name", text(view->name));
    put(&client, "uid", json_integer(view->uid));
    put(&client, "device", json_integer(view->device));
    put(&client, "threads", threads_json(view));
    put(&client, "memory",
        memory_json(view->memory_asked, view->memory_limit, view->memory_charged));
    put(&client, "host_memory",
        memory_json(view->host_asked, view->host_limit, view->host_charged));
    put(&client, "priority", json_integer(view->priority));
    if (json_array_append_new(listing->clients, finish(&client)) < 0)
        listing->failed = true;
    return !listing->failed;
}

json_t *admin_answer_limits(const struct supervisor *supervisor,
                            const struct admin_request *request)
{
    struct object answer = answer_new(true, admin_kind_name(request->kind));
    struct limits_listing listing = {.request = request, .clients = json_array()};
    supervisor_each_client(supervisor, list_limits, &listing);
    put(&answer, "clients", listing.clients);
    answer.failed |= listing.failed;
    return finish(&answer);
}
