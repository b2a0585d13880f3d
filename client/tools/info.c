/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/info.h"

#include <inttypes.h>
#include <string.h>

#include "client/engine/connection.h"
#include "client/session/limit_members.h"
#include "client/tools/table.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

gpushare_error info_collect(struct info *info, const char *socket, uint32_t device,
                            gpushare_warn warn)
{
    gpushare_connection *connection = NULL;
    struct gpushare_options options = {
        .size = sizeof options, .socket = socket, .device = device, .warn = warn};
    info->device = (struct gpushare_device){.size = sizeof info->device};
    info->limits = (struct gpushare_limits){.size = sizeof info->limits};
    info->wait = (struct gpushare_load_wait){.size = sizeof info->wait};
    info->owners = (struct proto_owners){0};
    gpushare_error error = gpushare_device_count(&options, &info->devices);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_device_query(&options, &info->device);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_connect(&options, &connection);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_limits(connection, &info->limits);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_load_wait(connection, &info->wait);
    if (error == GPUSHARE_SUCCESS)
        error = connection_owners(connection, &info->owners);
    gpushare_close(&connection);
    return error;
}

/* ---- for people ---- */

static void add_asked(struct table *table, bool asked, const char *what, const char *from)
{
    table_add(table, "%s", asked ? what : "-");
    table_add(table, "%s", asked && from ? from : "-");
}

static const char *mode_name(uint32_t mode)
{
    const char *name = proto_mode_name(mode);
    return name ? name : "unknown to this version";
}

/* The wish and the grant of a client in this environment, with the variables of the wish. */
struct outcome {
    struct allowance asked, granted, wish;
};

static struct outcome outcome_of(const struct info *info)
{
    const struct limits_wish *wish = &info->wish;
    struct outcome outcome;
    limit_members_read(&info->limits, &outcome.asked, &outcome.granted);
    uint64_t listed = limits_memory_listed(wish, info->device.ordinal, info->device.uuid);
    outcome.wish = limits_on_device(wish, info->device.memory, listed);
    /* The library's members say nothing of a value of 0, which the environment can ask for. */
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_range *wanted = &outcome.wish.of[i];
        struct allowance_range *asked = &outcome.asked.of[i];
        asked->request = asked->request == ALLOWANCE_UNSET ? wanted->request : asked->request;
        asked->limit = asked->limit == ALLOWANCE_UNSET ? wanted->limit : asked->limit;
    }
    return outcome;
}

static uint64_t value_of(const struct allowance *allowance, enum resource resource,
                         enum allowance_bound bound)
{
    const struct allowance_range *range = &allowance->of[resource];
    return bound == ALLOWANCE_REQUEST ? range->request : range->limit;
}

static const char *format_value(enum resource resource, uint64_t value, char text[UNITS_TEXT + 3])
{
    char number[UNITS_TEXT];
    if (allowance_resource(resource)->unit == DIALECT_BYTES)
        return units_format_bytes(value, text);
    snprintf(text, UNITS_TEXT + 3, "%s %%", units_format_percentage((uint32_t)value, number));
    return text;
}

/* One row. granted: text for its last column; NULL for the value that is granted. */
static void add_value(struct table *table, const struct outcome *outcome, enum resource resource,
                      enum allowance_bound bound, const char *granted)
{
    char text[UNITS_TEXT + 3];
    uint64_t asked = value_of(&outcome->asked, resource, bound);
    table_add(table, "%s.%s", allowance_resource(resource)->name,
              bound == ALLOWANCE_REQUEST ? "request" : "limit");
    add_asked(table, asked != ALLOWANCE_UNSET, format_value(resource, asked, text),
              allowance_variable_of(&outcome->wish, resource, bound));
    if (!granted)
        granted = format_value(resource, value_of(&outcome->granted, resource, bound), text);
    table_add(table, "%s", granted);
}

static void add_scalar(struct table *table, const struct outcome *outcome, enum scalar scalar)
{
    const struct allowance_scalar *row = allowance_scalar(scalar);
    const char *from = allowance_scalar_variable(&outcome->wish, scalar);
    uint64_t granted = outcome->granted.scalar[scalar];
    char text[UNITS_TEXT];
    table_add(table, "%s", row->name);
    add_asked(table, from != NULL,
              allowance_format_scalar(scalar, outcome->asked.scalar[scalar], text), from);
    allowance_format_scalar(scalar, granted, text);
    if (row->unit == ALLOWANCE_NUMBER)
        table_add(table, "%s (%s)", text, granted ? row->above_zero : row->at_zero);
    else
        table_add(table, "%s", granted ? text : row->at_zero);
}

static void show_device(const struct info *info, FILE *out)
{
    const struct gpushare_device *device = &info->device;
    char uuid[LIMITS_UUID_TEXT], text[UNITS_TEXT], name[sizeof device->name];
    snprintf(name, sizeof name, "%s", device->name);
    table_clean(name);
    fprintf(out, "device %u of %u: %s, compute capability %u.%u, driver for CUDA %u.%u\n",
            device->ordinal, info->devices, name, device->compute_major, device->compute_minor,
            device->driver_version / 1000, device->driver_version % 1000 / 10);
    fprintf(out, "%s, %s, %u multiprocessors", limits_format_uuid(device->uuid, uuid),
            units_format_bytes(device->memory, text), device->multiprocessors);
    if (device->partition_multiprocessors)
        fprintf(out, " in SM groups of %u\n", device->partition_multiprocessors);
    else
        fputs(" (its driver offers no partitions)\n", out);
    fprintf(out, "isolation between clients' kernels: none yet (one address space)\n");
    fprintf(out, "shared in mode %s%s\n\n", mode_name(info->limits.mode),
            info->limits.time_enforced ? "" : ": shares of time have no effect in this mode");
}

/* The multiprocessors that a request of threads makes the client's own: whole SM groups, and one at
 * least, as the server counts them. 0: it requests none, or the driver offers no partitions. */
static uint32_t own_multiprocessors(const struct info *info, const struct outcome *outcome)
{
    const uint32_t all = info->device.multiprocessors;
    const uint32_t sm_group = info->device.partition_multiprocessors;
    const uint64_t share = value_of(&outcome->granted, RESOURCE_THREADS, ALLOWANCE_REQUEST);
    if (!sm_group || !share || share == ALLOWANCE_UNSET)
        return 0;
    return max((uint32_t)(all * share / ALLOWANCE_WHOLE) / sm_group, 1u) * sm_group;
}

static void add_limits(struct table *table, const struct info *info)
{
    const struct gpushare_limits *limits = &info->limits;
    const struct outcome outcome = outcome_of(info);
    char granted[64], own[64];
    snprintf(own, sizeof own, "%u of %u SMs", own_multiprocessors(info, &outcome),
             info->device.multiprocessors);
    snprintf(granted, sizeof granted, "%u of %u SMs%s", limits->multiprocessors,
             info->device.multiprocessors, limits->partitioned ? "" : ", duty cycle");
    for (enum resource i = 0; i < RESOURCES; i++) {
        add_value(table, &outcome, i, ALLOWANCE_REQUEST, i == RESOURCE_THREADS ? own : NULL);
        add_value(table, &outcome, i, ALLOWANCE_LIMIT, i == RESOURCE_THREADS ? granted : NULL);
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        add_scalar(table, &outcome, i);
    table_add(table, "streams");
    add_asked(table, false, "", NULL);
    table_add(table, "%u", limits->streams);
}

/* The server does not say which of the causes it was. */
static void show_lowered(const struct info *info, FILE *out)
{
    const struct outcome outcome = outcome_of(info);
    for (enum resource i = 0; i < RESOURCES; i++) {
        const uint64_t asked = value_of(&outcome.asked, i, ALLOWANCE_REQUEST);
        if (asked == ALLOWANCE_UNSET || value_of(&outcome.granted, i, ALLOWANCE_REQUEST) >= asked)
            continue;
        fputc('\n', out);
        fprintf(out, MESSAGE_TEXT(info_request_lowered), allowance_resource(i)->name);
        fputc('\n', out);
    }
}

/* A request and a limit of an owner: "25 to 50 %", "50 %" for a limit alone, "-" for neither. */
static void add_owner_share(struct table *table, uint32_t request, uint32_t limit)
{
    char least[UNITS_TEXT], most[UNITS_TEXT];
    units_format_percentage(request, least);
    units_format_percentage(limit, most);
    if (request && limit < ALLOWANCE_WHOLE)
        table_add(table, "%s to %s %%", least, most);
    else if (request)
        table_add(table, "%s %% to any", least);
    else if (limit < ALLOWANCE_WHOLE)
        table_add(table, "%s %%", most);
    else
        table_add(table, "-");
}

static void add_owner_memory(struct table *table, uint64_t used, uint64_t limit)
{
    char has[UNITS_TEXT], most[UNITS_TEXT];
    if (limit == PROTO_UNSET)
        table_add(table, "-");
    else
        table_add(table, "%s of %s", units_format_bytes(used, has),
                  units_format_bytes(limit, most));
}

/* Limits that all clients of an owner share with this one. */
static void show_owners(const struct info *info, FILE *out, struct table_look look)
{
    static const char *const headings[] = {"ALL CLIENTS OF", "ACCOUNT", ">TIME",
                                           ">THREADS",       ">MEMORY", ">HOST MEMORY"};
    const struct proto_owners *owners = &info->owners;
    char profiles[sizeof owners->profiles];
    snprintf(profiles, sizeof profiles, "%s", owners->profiles);
    table_clean(profiles);
    fprintf(out, "\nprofiles that hold for this client: %s\n", profiles[0] ? profiles : "none");
    struct table *table =
        owners->count ? table_new(headings, sizeof headings / sizeof headings[0], 1) : NULL;
    if (!table)
        return;
    fputs("\nlimits that hold for all clients of these together:\n", out);
    for (uint32_t i = 0; i < owners->count; i++) {
        const struct proto_owner *owner = &owners->owners[i];
        table_add(table, "%s", owner->name);
        table_add(table, "%s", owner->scheduled ? "this client's" : "-");
        add_owner_share(table, owner->time_request, owner->time_limit);
        add_owner_share(table, owner->threads_request, owner->threads_limit);
        add_owner_memory(table, owner->memory_used, owner->memory_limit);
        add_owner_memory(table, owner->host_memory_used, owner->host_memory_limit);
    }
    table_print(table, out, look);
    table_free(table);
    if (owners->more)
        fputs("and others, which are not shown\n", out);
}

void info_show(const struct info *info, FILE *out, struct table_look look)
{
    static const char *const headings[] = {"LIMIT", ">ASKED", "BY", ">GRANTED"};
    show_device(info, out);
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0], 1);
    if (!table)
        return;
    add_limits(table, info);
    table_print(table, out, look);
    table_free(table);
    show_lowered(info, out);
    show_owners(info, out, look);
    if (info->wait.client)
        fprintf(out, "\n%s\n", info->wait.text);
    if (info->wish.visible.listed)
        fprintf(out, "\n%s makes %u device%s visible\n", info->wish.visible_from, info->devices,
                info->devices == 1 ? "" : "s");
}

/* ---- JSON ---- */

static json_t *text_or_null(bool there, const char *text)
{
    json_t *json = there && text ? json_string(text) : NULL;
    return json ? json : json_null();
}

static json_t *number_json(enum resource resource, uint64_t value)
{
    if (value == ALLOWANCE_UNSET)
        return json_null();
    return allowance_resource(resource)->unit == DIALECT_BYTES ? json_integer((json_int_t)value)
                                                               : json_real((double)value / 100);
}

static json_t *value_json(const struct outcome *outcome, enum resource resource,
                          enum allowance_bound bound)
{
    bool bytes = allowance_resource(resource)->unit == DIALECT_BYTES;
    uint64_t asked = value_of(&outcome->asked, resource, bound);
    const char *from = allowance_variable_of(&outcome->wish, resource, bound);
    return json_pack("{s:o, s:o, s:o}", bytes ? "asked_bytes" : "asked_percent",
                     number_json(resource, asked), "asked_by",
                     text_or_null(asked != ALLOWANCE_UNSET, from),
                     bytes ? "granted_bytes" : "granted_percent",
                     number_json(resource, value_of(&outcome->granted, resource, bound)));
}

static json_t *seconds_or_null(uint64_t ns)
{
    return ns ? json_real((double)ns / 1e9) : json_null();
}

static json_t *scalar_json(const struct outcome *outcome, enum scalar scalar)
{
    bool time = allowance_scalar(scalar)->unit == ALLOWANCE_TIME;
    const char *from = allowance_scalar_variable(&outcome->wish, scalar);
    uint64_t asked = outcome->asked.scalar[scalar], granted = outcome->granted.scalar[scalar];
    return json_pack("{s:o, s:o, s:o}", time ? "asked_seconds" : "asked",
                     !from  ? json_null()
                     : time ? seconds_or_null(asked)
                            : json_integer((json_int_t)asked),
                     "asked_by", text_or_null(true, from), time ? "granted_seconds" : "granted",
                     time ? seconds_or_null(granted) : json_integer((json_int_t)granted));
}

static json_t *limits_json(const struct info *info)
{
    const struct gpushare_limits *limits = &info->limits;
    const struct outcome outcome = outcome_of(info);
    json_t *json = json_object();
    for (enum resource i = 0; i < RESOURCES; i++)
        json_object_set_new(json, allowance_resource(i)->name,
                            json_pack("{s:o, s:o}", "request",
                                      value_json(&outcome, i, ALLOWANCE_REQUEST), "limit",
                                      value_json(&outcome, i, ALLOWANCE_LIMIT)));
    json_t *threads = json_object_get(json, allowance_resource(RESOURCE_THREADS)->name);
    json_t *time = json_object_get(json, allowance_resource(RESOURCE_TIME)->name);
    json_object_set_new(threads, "own_multiprocessors",
                        json_integer((json_int_t)own_multiprocessors(info, &outcome)));
    json_object_set_new(threads, "multiprocessors",
                        json_integer((json_int_t)limits->multiprocessors));
    json_object_set_new(threads, "partitioned", json_boolean(limits->partitioned));
    json_object_set_new(time, "mode", json_string(mode_name(limits->mode)));
    json_object_set_new(time, "enforced", json_boolean(limits->time_enforced));
    for (enum scalar i = 0; i < SCALARS; i++)
        json_object_set_new(json, allowance_scalar(i)->name, scalar_json(&outcome, i));
    json_object_set_new(json, "streams", json_integer((json_int_t)limits->streams));
    return json;
}

static json_t *device_json(const struct gpushare_device *device)
{
    char uuid[LIMITS_UUID_TEXT], capability[24], cuda[24];
    snprintf(capability, sizeof capability, "%u.%u", device->compute_major, device->compute_minor);
    snprintf(cuda, sizeof cuda, "%u.%u", device->driver_version / 1000,
             device->driver_version % 1000 / 10);
    return json_pack("{s:I, s:o, s:s, s:o, s:s, s:s, s:I, s:I, s:I}", "device",
                     (json_int_t)device->ordinal, "name", text_or_null(true, device->name), "uuid",
                     limits_format_uuid(device->uuid, uuid), "pci",
                     text_or_null(device->pci[0] != 0, device->pci), "compute_capability",
                     capability, "cuda_version", cuda, "memory_bytes", (json_int_t)device->memory,
                     "multiprocessors", (json_int_t)device->multiprocessors,
                     "partition_multiprocessors", (json_int_t)device->partition_multiprocessors);
}

static json_t *wait_json(const struct gpushare_load_wait *wait)
{
    if (!wait->client)
        return json_null();
    return json_pack("{s:I, s:o}", "client", (json_int_t)wait->client, "text",
                     text_or_null(true, wait->text));
}

static json_t *share_or_null(uint32_t share, uint32_t unset)
{
    return share == unset ? json_null() : json_real((double)share / 100);
}

static json_t *bytes_or_null(uint64_t bytes, uint64_t limit)
{
    return limit == PROTO_UNSET ? json_null() : json_integer((json_int_t)bytes);
}

static json_t *owner_json(const struct proto_owner *owner)
{
    return json_pack(
        "{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
        text_or_null(true, owner->name), "scheduled", (int)owner->scheduled, "time_request_percent",
        share_or_null(owner->time_request, 0), "time_limit_percent",
        share_or_null(owner->time_limit, ALLOWANCE_WHOLE), "threads_request_percent",
        share_or_null(owner->threads_request, 0), "threads_limit_percent",
        share_or_null(owner->threads_limit, ALLOWANCE_WHOLE), "memory_limit_bytes",
        bytes_or_null(owner->memory_limit, owner->memory_limit), "memory_used_bytes",
        bytes_or_null(owner->memory_used, owner->memory_limit), "host_memory_limit_bytes",
        bytes_or_null(owner->host_memory_limit, owner->host_memory_limit), "host_memory_used_bytes",
        bytes_or_null(owner->host_memory_used, owner->host_memory_limit));
}

static json_t *owners_json(const struct proto_owners *owners)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < owners->count; i++)
        json_array_append_new(list, owner_json(&owners->owners[i]));
    return list;
}

static json_t *profiles_json(const char *names)
{
    json_t *list = json_array();
    for (size_t length; *names; names += length + strspn(names + length, ", ")) {
        length = strcspn(names, ",");
        json_array_append_new(list, json_stringn(names, length));
    }
    return list;
}

json_t *info_json(const struct info *info)
{
    return json_pack("{s:i, s:b, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
                     "schema_version", 2, "ok", 1, "library_version", gpushare_version_text(),
                     "kernel_isolation", "none", "visible_devices", (json_int_t)info->devices,
                     "visible_by", text_or_null(true, info->wish.visible_from), "device",
                     device_json(&info->device), "limits", limits_json(info), "loads_wait_for",
                     wait_json(&info->wait), "profiles", profiles_json(info->owners.profiles),
                     "owners", owners_json(&info->owners), "more_owners", (int)info->owners.more);
}
