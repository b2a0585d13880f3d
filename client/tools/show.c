/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/show.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/tools/table.h"
#include "common/units.h"

#define CELL 96

/* ---- members as text; each returns its buffer ---- */

static const char *text_of(const json_t *object, const char *name, char cell[CELL])
{
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(cell, CELL, "%s", text && *text ? text : "-");
    table_clean(cell);
    return cell;
}

static const char *integer_of(const json_t *object, const char *name, char cell[CELL])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        snprintf(cell, CELL, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        strcpy(cell, "-");
    return cell;
}

static const char *bytes_of(const json_t *object, const char *name, char cell[CELL])
{
    const json_t *value = json_object_get(object, name);
    char text[UNITS_TEXT];
    json_int_t bytes = json_integer_value(value);
    snprintf(cell, CELL, "%s",
             json_is_integer(value) && bytes >= 0 ? units_format_bytes((uint64_t)bytes, text)
                                                  : "-");
    return cell;
}

static const char *percent_of(const json_t *object, const char *name, char cell[CELL])
{
    const json_t *value = json_object_get(object, name);
    double percent = json_number_value(value);
    char text[UNITS_TEXT];
    if (json_is_number(value) && percent >= 0 && percent <= 100)
        snprintf(cell, CELL, "%s %%",
                 units_format_percentage((uint32_t)(percent * 100 + 0.5), text));
    else
        strcpy(cell, "-");
    return cell;
}

static const char *seconds_of(const json_t *object, const char *name, char cell[CELL])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_number(value))
        snprintf(cell, CELL, "%.3f s", json_number_value(value));
    else
        strcpy(cell, "-");
    return cell;
}

static const char *duration_of(const json_t *object, const char *name, char cell[CELL])
{
    double seconds = json_number_value(json_object_get(object, name));
    uint64_t whole = seconds > 0 && seconds < 1e12 ? (uint64_t)seconds : 0;
    if (whole >= 86400)
        snprintf(cell, CELL, "%" PRIu64 " d %" PRIu64 " h", whole / 86400, whole / 3600 % 24);
    else if (whole >= 3600)
        snprintf(cell, CELL, "%" PRIu64 " h %" PRIu64 " min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(cell, CELL, "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
    else
        snprintf(cell, CELL, "%" PRIu64 " s", whole);
    return cell;
}

/* ---- status ---- */

static const char *isolation_of(const json_t *answer, char cell[CELL])
{
    const char *value = json_string_value(json_object_get(answer, "kernel_isolation"));
    if (value && strcmp(value, "none") == 0)
        return "none yet (one address space)";
    return text_of(answer, "kernel_isolation", cell);
}

static void show_server(FILE *out, const json_t *answer)
{
    char a[CELL], b[CELL], c[CELL], d[CELL];
    const json_t *driver = json_object_get(answer, "driver");
    const char *path = json_string_value(json_object_get(driver, "path"));
    char shown[4200];
    snprintf(shown, sizeof shown, "%s", path ? path : "-");
    table_clean(shown);
    fprintf(out, "gpushared %s (protocol %s), pid %s, up %s\n",
            text_of(answer, "server_version", a), text_of(answer, "protocol_version", b),
            integer_of(answer, "pid", c), duration_of(answer, "uptime_seconds", d));
    fprintf(out, "driver: %s (%s)\n", text_of(driver, "name", a), shown);
    fprintf(out, "isolation between clients' kernels: %s\n", isolation_of(answer, a));
    fprintf(out, "clients: %s of at most %s; %s served, %s refused since the start\n",
            integer_of(answer, "clients", a), integer_of(answer, "clients_max", b),
            integer_of(answer, "clients_served", c), integer_of(answer, "clients_refused", d));
    fprintf(out, "pinned host memory: %s of %s\n", bytes_of(answer, "host_memory_used_bytes", a),
            bytes_of(answer, "host_memory_limit_bytes", b));
    fprintf(out, "file descriptors for clients: %s of %s; module images cached: %s (%s)\n",
            integer_of(answer, "descriptors", a), integer_of(answer, "descriptors_limit", b),
            integer_of(answer, "images_cached", c), bytes_of(answer, "images_cached_bytes", d));
}

void show_status(FILE *out, const json_t *answer, bool bold)
{
    static const char *const headings[] = {">DEVICE",     "NAME",           ">CUDA",   "STATE",
                                           ">CLIENTS",    ">MEMORY USED",   ">MEMORY", ">SMS",
                                           ">PARTITIONS", ">SHARED QUEUES", ">WORKER"};
    char cell[CELL];
    const json_t *devices = json_object_get(answer, "devices"), *device;
    size_t i;
    show_server(out, answer);
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0]);
    if (!table)
        return;
    for (i = 0; (device = json_array_get(devices, i)); i++) {
        table_add(table, "%s", integer_of(device, "device", cell));
        table_add(table, "%s", text_of(device, "name", cell));
        table_add(table, "%s", text_of(device, "cuda_version", cell));
        table_add(table, "%s", text_of(device, "state", cell));
        table_add(table, "%s", integer_of(device, "clients", cell));
        table_add(table, "%s", bytes_of(device, "memory_used_bytes", cell));
        table_add(table, "%s", bytes_of(device, "memory_bytes", cell));
        table_add(table, "%s", integer_of(device, "multiprocessors", cell));
        table_add(table, "%s", integer_of(device, "partitions", cell));
        table_add(table, "%s", integer_of(device, "shared_queues", cell));
        table_add(table, "%s", integer_of(device, "worker_pid", cell));
    }
    fputc('\n', out);
    table_print(table, out, bold);
    table_free(table);
    for (i = 0; (device = json_array_get(devices, i)); i++) {
        const char *trouble = json_string_value(json_object_get(device, "trouble"));
        if (!trouble)
            continue;
        char shown[400];
        snprintf(shown, sizeof shown, "%s", trouble);
        table_clean(shown);
        fprintf(out, "device %s: the latest worker ended: %s\n", integer_of(device, "device", cell),
                shown);
    }
}

/* ---- clients ---- */

static void add_client(struct table *table, const json_t *client)
{
    static const char *const bytes[] = {"memory_asked_bytes",      "memory_limit_bytes",
                                        "memory_used_bytes",       "host_memory_asked_bytes",
                                        "host_memory_limit_bytes", "host_memory_used_bytes"};
    char cell[CELL], granted[CELL];
    table_add(table, "%s", integer_of(client, "client", cell));
    table_add(table, "%s", text_of(client, "name", cell));
    table_add(table, "%s", integer_of(client, "pid", cell));
    table_add(table, "%s", integer_of(client, "uid", cell));
    table_add(table, "%s", text_of(client, "state", cell));
    table_add(table, "%s", integer_of(client, "device", cell));
    table_add(table, "%s", percent_of(client, "threads_asked_percent", cell));
    integer_of(client, "multiprocessors", granted);
    if (json_is_integer(json_object_get(client, "multiprocessors")))
        strcat(granted,
               json_is_true(json_object_get(client, "partitioned")) ? " SMs" : " SMs, shared");
    table_add(table, "%s", granted);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        table_add(table, "%s", bytes_of(client, bytes[i], cell));
    table_add(table, "%s", integer_of(client, "priority", cell));
    table_add(table, "%s", seconds_of(client, "gpu_time_seconds", cell));
    table_add(table, "%s", integer_of(client, "launches", cell));
    table_add(table, "%s", integer_of(client, "shared_queues", cell));
}

void show_clients(FILE *out, const json_t *answer, bool bold)
{
    static const char *const headings[] = {
        ">CLIENT",        "NAME",     ">PID",          ">UID",      "STATE",     ">DEVICE",
        ">THREADS ASKED", ">GRANTED", ">MEMORY ASKED", ">LIMIT",    ">USED",     ">HOST ASKED",
        ">LIMIT",         ">USED",    ">PRIORITY",     ">GPU TIME", ">LAUNCHES", ">SHARED QUEUES"};
    _Static_assert(sizeof headings / sizeof headings[0] <= TABLE_COLUMNS_MAX, "columns");
    const json_t *clients = json_object_get(answer, "clients");
    const json_t *client;
    size_t i;
    if (json_array_size(clients) == 0) {
        fputs("no clients\n", out);
        return;
    }
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0]);
    if (!table)
        return;
    for (i = 0; (client = json_array_get(clients, i)); i++)
        add_client(table, client);
    table_print(table, out, bold);
    table_free(table);
}

static void add_limits(struct table *table, const json_t *client)
{
    char cell[CELL];
    const json_t *threads = json_object_get(client, "threads");
    table_add(table, "%s", integer_of(client, "client", cell));
    table_add(table, "%s", text_of(client, "name", cell));
    table_add(table, "%s", percent_of(threads, "asked_percent", cell));
    table_add(table, "%s", percent_of(threads, "limit_percent", cell));
    table_add(table, "%s", integer_of(threads, "multiprocessors", cell));
    static const char *const memories[] = {"memory", "host_memory"};
    for (int i = 0; i < 2; i++) {
        const json_t *memory = json_object_get(client, memories[i]);
        table_add(table, "%s", bytes_of(memory, "asked_bytes", cell));
        table_add(table, "%s", bytes_of(memory, "limit_bytes", cell));
        table_add(table, "%s", bytes_of(memory, "used_bytes", cell));
    }
    table_add(table, "%s", integer_of(client, "priority", cell));
}

void show_limits(FILE *out, const json_t *answer, bool bold)
{
    static const char *const headings[] = {
        ">CLIENT",          "NAME",          ">THREADS ASKED", ">GRANTED",
        ">MULTIPROCESSORS", ">MEMORY ASKED", ">LIMIT",         ">USED",
        ">HOST ASKED",      ">LIMIT",        ">USED",          ">PRIORITY"};
    const json_t *clients = json_object_get(answer, "clients");
    const json_t *client;
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0]);
    if (!table)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++)
        add_limits(table, client);
    table_print(table, out, bold);
    table_free(table);
}

bool show_is_bold(FILE *out, const char *no_color, const char *term)
{
    return isatty(fileno(out)) && !(no_color && *no_color) && term && *term &&
           strcmp(term, "dumb") != 0;
}
