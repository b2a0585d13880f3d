/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/info.h"

#include <inttypes.h>

#include "client/tools/table.h"
#include "common/units.h"

gpushare_error info_collect(struct info *info, const char *socket, uint32_t device,
                            gpushare_warn warn)
{
    gpushare_connection *connection = NULL;
    struct gpushare_options options = {
        .size = sizeof options, .socket = socket, .device = device, .warn = warn};
    info->device = (struct gpushare_device){.size = sizeof info->device};
    info->limits = (struct gpushare_limits){.size = sizeof info->limits};
    gpushare_error error = gpushare_device_count(&options, &info->devices);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_device_query(&options, &info->device);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_connect(&options, &connection);
    if (error == GPUSHARE_SUCCESS)
        error = gpushare_limits(connection, &info->limits);
    gpushare_close(&connection);
    return error;
}

/* ---- for people ---- */

static void add_asked(struct table *table, bool asked, const char *what, const char *from)
{
    table_add(table, "%s", asked ? what : "-");
    table_add(table, "%s", asked && from ? from : "-");
}

static uint32_t to_hundredths(double percentage)
{
    return percentage > 0 && percentage <= 100 ? (uint32_t)(percentage * 100 + 0.5) : 0;
}

static const char *mode_name(uint32_t mode)
{
    const char *name = proto_mode_name(mode);
    return name ? name : "unknown to this version";
}

/* The variable whose limit of memory is the one that was asked for: the strictest. */
static const char *memory_from(const struct info *info)
{
    const struct limits_wish *wish = &info->wish;
    uint64_t asked = info->limits.memory_limit_asked, device = info->device.memory;
    if (wish->memory_limit_from && limits_amount(wish->memory_limit, device) == asked)
        return wish->memory_limit_from;
    if (wish->fraction_from && allowance_part(device, wish->fraction) == asked)
        return wish->fraction_from;
    return wish->memory_from;
}

static void add_memory(struct table *table, const char *name, uint64_t asked, const char *from,
                       uint64_t granted)
{
    char text[UNITS_TEXT];
    table_add(table, "%s", name);
    add_asked(table, asked != 0, units_format_bytes(asked, text), from);
    table_add(table, "%s", units_format_bytes(granted, text));
}

/* One row. granted: text for its last column; NULL for the share in per cent. */
static void add_share(struct table *table, const char *name, double asked, const char *from,
                      double share, const char *granted)
{
    char text[UNITS_TEXT], percent[UNITS_TEXT + 3];
    snprintf(percent, sizeof percent, "%s %%", units_format_percentage(to_hundredths(asked), text));
    table_add(table, "%s", name);
    add_asked(table, asked > 0, percent, from);
    if (granted)
        table_add(table, "%s", granted);
    else
        table_add(table, "%s %%", units_format_percentage(to_hundredths(share), text));
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
        fprintf(out, " in partitions of %u\n", device->partition_multiprocessors);
    else
        fputs(" (its driver offers no partitions)\n", out);
    fprintf(out, "isolation between clients' kernels: none yet (one address space)\n");
    fprintf(out, "shared in mode %s%s\n\n", mode_name(info->limits.mode),
            info->limits.time_enforced ? "" : ": shares of time have no effect in this mode");
}

static void add_limits(struct table *table, const struct info *info)
{
    const struct limits_wish *wish = &info->wish;
    const struct gpushare_limits *limits = &info->limits;
    char granted[64], priority[16];
    snprintf(granted, sizeof granted, "%u of %u SMs%s", limits->multiprocessors,
             info->device.multiprocessors, limits->partitioned ? "" : ", duty cycle");
    add_share(table, "threads.request", limits->thread_request_asked, wish->thread_request_from,
              limits->thread_request, NULL);
    add_share(table, "threads.limit", limits->thread_percentage_asked, wish->thread_percentage_from,
              0, granted);
    add_share(table, "time.request", limits->time_request_asked, wish->time_request_from,
              limits->time_request, NULL);
    add_share(table, "time.limit", limits->time_limit_asked, wish->time_limit_from,
              limits->time_limit, NULL);
    add_memory(table, "memory.request", limits->memory_request_asked, wish->memory_request_from,
               limits->memory_request);
    add_memory(table, "memory.limit", limits->memory_limit_asked, memory_from(info),
               limits->memory_limit);
    add_memory(table, "host_memory.request", limits->host_memory_request_asked,
               wish->host_request_from, limits->host_memory_request);
    add_memory(table, "host_memory.limit", limits->host_memory_limit_asked, wish->host_memory_from,
               limits->host_memory_limit);
    snprintf(priority, sizeof priority, "%u", limits->priority_asked);
    table_add(table, "priority");
    add_asked(table, wish->priority_from != NULL, priority, wish->priority_from);
    table_add(table, "%u%s", limits->priority, limits->priority ? " (behind 0)" : " (normal)");
    table_add(table, "streams");
    add_asked(table, false, "", NULL);
    table_add(table, "%u", limits->streams);
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

static json_t *bytes_json(uint64_t asked, const char *from, uint64_t granted)
{
    return json_pack("{s:o, s:o, s:I}", "asked_bytes",
                     asked ? json_integer((json_int_t)asked) : json_null(), "asked_by",
                     text_or_null(asked != 0, from), "granted_bytes", (json_int_t)granted);
}

static json_t *share_json(double asked, const char *from, double granted)
{
    return json_pack("{s:o, s:o, s:f}", "asked_percent", asked > 0 ? json_real(asked) : json_null(),
                     "asked_by", text_or_null(asked > 0, from), "granted_percent", granted);
}

static json_t *limits_json(const struct info *info)
{
    const struct limits_wish *wish = &info->wish;
    const struct gpushare_limits *limits = &info->limits;
    bool priority = wish->priority_from != NULL;
    json_t *threads = json_pack(
        "{s:o, s:o, s:I, s:b}", "request",
        share_json(limits->thread_request_asked, wish->thread_request_from, limits->thread_request),
        "limit",
        share_json(limits->thread_percentage_asked, wish->thread_percentage_from,
                   limits->thread_percentage),
        "multiprocessors", (json_int_t)limits->multiprocessors, "partitioned",
        (int)limits->partitioned);
    json_t *time = json_pack(
        "{s:o, s:o, s:s, s:b}", "request",
        share_json(limits->time_request_asked, wish->time_request_from, limits->time_request),
        "limit", share_json(limits->time_limit_asked, wish->time_limit_from, limits->time_limit),
        "mode", mode_name(limits->mode), "enforced", (int)limits->time_enforced);
    json_t *priority_json = json_pack("{s:o, s:o, s:I}", "asked",
                                      priority ? json_integer(limits->priority_asked) : json_null(),
                                      "asked_by", text_or_null(priority, wish->priority_from),
                                      "granted", (json_int_t)limits->priority);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:I}", "threads", threads, "time", time, "memory",
        json_pack("{s:o, s:o}", "request",
                  bytes_json(limits->memory_request_asked, wish->memory_request_from,
                             limits->memory_request),
                  "limit",
                  bytes_json(limits->memory_limit_asked, memory_from(info), limits->memory_limit)),
        "host_memory",
        json_pack("{s:o, s:o}", "request",
                  bytes_json(limits->host_memory_request_asked, wish->host_request_from,
                             limits->host_memory_request),
                  "limit",
                  bytes_json(limits->host_memory_limit_asked, wish->host_memory_from,
                             limits->host_memory_limit)),
        "priority", priority_json, "streams", (json_int_t)limits->streams);
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

json_t *info_json(const struct info *info)
{
    return json_pack("{s:i, s:b, s:s, s:s, s:I, s:o, s:o, s:o}", "schema_version", 2, "ok", 1,
                     "library_version", gpushare_version_text(), "kernel_isolation", "none",
                     "visible_devices", (json_int_t)info->devices, "visible_by",
                     text_or_null(true, info->wish.visible_from), "device",
                     device_json(&info->device), "limits", limits_json(info));
}
