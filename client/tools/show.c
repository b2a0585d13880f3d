/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/show.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/tools/brief.h"
#include "client/tools/cell.h"
#include "client/tools/table.h"
#include "common/error.h"
#include "common/limits/allowance.h"
#include "common/messages.h"
#include "common/units.h"
#include "protocol.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Of a resource what was asked, what is granted, and what it uses; a scalar, and what said so. */
#define LIMITS_COLUMNS_MAX (RESOURCES * 3 + SCALARS * 2)

/* ---- status ---- */

static const char *isolation_of(const json_t *answer, char cell[CELL_BYTES])
{
    const char *value = json_string_value(json_object_get(answer, "kernel_isolation"));
    if (value && strcmp(value, "none") == 0)
        return "none yet (one address space)";
    return cell_text(answer, "kernel_isolation", cell);
}

/* An older server does not say it. */
static bool took_over(const json_t *status)
{
    const json_t *process = json_object_get(status, "process_uptime_seconds");
    return process && json_number_value(process) <
                          json_number_value(json_object_get(status, "uptime_seconds"));
}

static void show_server(FILE *out, const json_t *answer, bool wide)
{
    char a[CELL_BYTES], b[CELL_BYTES], c[CELL_BYTES], d[CELL_BYTES];
    const json_t *driver = json_object_get(answer, "driver");
    const char *path = json_string_value(json_object_get(driver, "path"));
    char shown[4200];
    snprintf(shown, sizeof shown, "%s", path ? path : "-");
    table_clean(shown);
    fprintf(out, "gpushared %s (protocol %s), pid %s, up %s",
            cell_text(answer, "server_version", a), cell_text(answer, "protocol_version", b),
            cell_integer(answer, "pid", c), cell_duration(answer, "uptime_seconds", d));
    if (took_over(answer))
        fprintf(out, " (this process %s)", cell_duration(answer, "process_uptime_seconds", d));
    fputc('\n', out);
    fprintf(out, "driver: %s (%s)\n", cell_text(driver, "name", a), shown);
    fprintf(out, "isolation between clients' kernels: %s\n", isolation_of(answer, a));
    fprintf(out, "clients: %s of at most %s; %s served, %s refused since the start\n",
            cell_integer(answer, "clients", a), cell_integer(answer, "clients_max", b),
            cell_integer(answer, "clients_served", c), cell_integer(answer, "clients_refused", d));
    fprintf(out, "pinned host memory: %s of %s\n", cell_bytes(answer, "host_memory_used_bytes", a),
            cell_bytes(answer, "host_memory_limit_bytes", b));
    if (!wide)
        return;
    fprintf(out, "file descriptors for clients: %s of %s; module images cached: %s (%s)\n",
            cell_integer(answer, "descriptors", a), cell_integer(answer, "descriptors_limit", b),
            cell_integer(answer, "images_cached", c), cell_bytes(answer, "images_cached_bytes", d));
}

/* How a device is shared: seven columns. */
#define SHARING_HEADINGS                                                                           \
    "MODE", ">LEASE", ">PRECISION", ">QUANTUM", ">WINDOW", ">LOCAL", "THREADS BY"

static void add_sharing(struct table *table, const json_t *device)
{
    const json_t *schedule = json_object_get(device, "schedule");
    const char *by = json_string_value(json_object_get(device, "threads_enforced_by"));
    char cell[CELL_BYTES];
    table_add(table, "%s", cell_text(schedule, "mode", cell));
    table_add(table, "%s", cell_time(schedule, "lease_seconds", cell));
    table_add(table, "%s", cell_percent(schedule, "precision_percent", cell));
    table_add(table, "%s", cell_time(schedule, "quantum_seconds", cell));
    table_add(table, "%s", cell_time(schedule, "window_limit_seconds", cell));
    table_add(table, "%s", cell_bytes(schedule, "local_memory_bytes", cell));
    table_add(table, "%s",
              by && strcmp(by, "duty_cycle") == 0 ? "duty cycle"
                                                  : cell_text(device, "threads_enforced_by", cell));
}

static void add_device(struct table *table, const json_t *device)
{
    char cell[CELL_BYTES];
    table_add(table, "%s", cell_integer(device, "device", cell));
    table_add(table, "%s", cell_text(device, "name", cell));
    table_add(table, "%s", cell_text(device, "cuda_version", cell));
    table_add(table, "%s", cell_text(device, "state", cell));
    table_add(table, "%s", cell_integer(device, "clients", cell));
    table_add(table, "%s", cell_bytes(device, "memory_used_bytes", cell));
    table_add(table, "%s", cell_bytes(device, "memory_bytes", cell));
    table_add(table, "%s", cell_integer(device, "multiprocessors", cell));
    table_add(table, "%s", cell_integer(device, "partitions", cell));
    table_add(table, "%s", cell_integer(device, "shared_queues", cell));
    add_sharing(table, device);
    table_add(table, "%s", cell_integer(device, "worker_pid", cell));
}

/* A sentence of the server about a device, for a line that names the device already. */
static void own_words(const json_t *device, const char *sentence, char *shown, size_t bytes)
{
    char cell[CELL_BYTES], name[CELL_BYTES + sizeof "device : "];
    snprintf(name, sizeof name, "device %s: ", cell_integer(device, "device", cell));
    size_t named = strncmp(sentence, name, strlen(name)) == 0 ? strlen(name) : 0;
    snprintf(shown, bytes, "%s", sentence + named);
    table_clean(shown);
}

static void show_trouble(FILE *out, const json_t *device)
{
    const char *trouble = json_string_value(json_object_get(device, "trouble"));
    char shown[400], cell[CELL_BYTES], since[CELL_BYTES];
    if (!trouble)
        return;
    own_words(device, trouble, shown, sizeof shown);
    cell_integer(device, "device", cell);
    if (json_is_number(json_object_get(device, "worker_ended_seconds")))
        fprintf(out, "device %s: the latest worker ended %s ago: %s\n", cell,
                cell_duration(device, "worker_ended_seconds", since), shown);
    else
        fprintf(out, "device %s: no worker: %s\n", cell, shown);
}

static void show_silence(FILE *out, const json_t *device)
{
    const char *silence = json_string_value(json_object_get(device, "worker_silence"));
    const json_t *calls = json_object_get(device, "worker_calls"), *call;
    char shown[128], cell[CELL_BYTES], number[CELL_BYTES], name[CELL_BYTES];
    cell_integer(device, "device", number);
    if (silence) {
        snprintf(shown, sizeof shown, "%s", silence);
        table_clean(shown);
        fprintf(out, "device %s: the worker has not answered for %s: %s\n", number,
                cell_time(device, "worker_silent_seconds", cell), shown);
    }
    for (size_t i = 0; (call = json_array_get(calls, i)); i++) {
        snprintf(shown, sizeof shown, "%s", cell_text(call, "call", cell));
        snprintf(name, sizeof name, "%s", cell_text(call, "thread", cell));
        fprintf(out, "device %s: thread %s of the worker has been in %s for %s\n", number, name,
                shown, cell_time(call, "seconds", cell));
    }
}

static void show_singly(FILE *out, const json_t *device)
{
    char cell[CELL_BYTES], time[CELL_BYTES];
    if (json_number_value(json_object_get(device, "one_client_at_a_time_seconds")) > 0)
        fprintf(out,
                "device %s: served one client at a time for %s so far: requests and limits of time "
                "are promised for the rest\n",
                cell_integer(device, "device", cell),
                cell_seconds(device, "one_client_at_a_time_seconds", time));
    if (json_is_true(json_object_get(device, "one_client_at_a_time")))
        fprintf(out,
                "device %s: serves one client at a time, after a fault: requests and limits of "
                "time have no effect\n",
                cell_integer(device, "device", cell));
}

/* Nothing while no text has come to the compiler. */
static void show_compilations(FILE *out, const json_t *device)
{
    static const struct {
        const char *member, *words;
    } shown[] = {{"running", "running"},
                 {"finished", "finished"},
                 {"known", "known already"},
                 {"over_time", "ended for their time"},
                 {"over_memory", "ended for their memory"}};
    const json_t *counts = json_object_get(device, "compilations");
    char cell[CELL_BYTES];
    json_int_t all = 0;
    for (size_t i = 0; i < COUNT(shown); i++)
        all += json_integer_value(json_object_get(counts, shown[i].member));
    if (!all)
        return;
    fprintf(out, "device %s: compilations:", cell_integer(device, "device", cell));
    for (size_t i = 0; i < COUNT(shown); i++)
        fprintf(out, "%s %s %s", i ? "," : "", cell_integer(counts, shown[i].member, cell),
                shown[i].words);
    fputc('\n', out);
}

/* Nothing where there is to be none. */
static void show_standby(FILE *out, const json_t *device)
{
    const json_t *standby = json_object_get(device, "standby");
    char number[CELL_BYTES], kind[CELL_BYTES], state[CELL_BYTES], pid[CELL_BYTES],
        memory[CELL_BYTES], resident[CELL_BYTES], shown[400];
    cell_text(standby, "kind", kind);
    if (!standby || strcmp(kind, "none") == 0)
        return;
    cell_integer(device, "device", number);
    fprintf(out, "device %s: standby: %s, %s", number, kind, cell_text(standby, "state", state));
    if (!json_is_null(json_object_get(standby, "pid")))
        fprintf(out, ", process %s, %s of device memory, %s of host memory",
                cell_integer(standby, "pid", pid),
                cell_bytes(standby, "device_memory_bytes", memory),
                cell_bytes(standby, "resident_bytes", resident));
    fputc('\n', out);
    const char *trouble = json_string_value(json_object_get(standby, "trouble"));
    if (!trouble || json_integer_value(json_object_get(standby, "failures")) == 0)
        return;
    own_words(device, trouble, shown, sizeof shown);
    fprintf(out, "device %s: the latest standby failed: %s\n", number, shown);
}

static void show_warnings(FILE *out, const json_t *device)
{
    const json_t *warnings = json_object_get(device, "warnings"), *warning;
    char shown[400], cell[CELL_BYTES];
    for (size_t i = 0; (warning = json_array_get(warnings, i)); i++) {
        const char *text = json_string_value(json_object_get(warning, "text"));
        own_words(device, text ? text : "", shown, sizeof shown);
        fprintf(out, "device %s: warning: %s\n", cell_integer(device, "device", cell), shown);
    }
}

/* ---- status ---- */

static void show_devices(FILE *out, const json_t *answer, struct table_look look)
{
    static const char *const headings[] = {
        ">DEVICE", "NAME", ">CUDA",       "STATE",          ">CLIENTS",       ">MEMORY USED",
        ">MEMORY", ">SMS", ">PARTITIONS", ">SHARED QUEUES", SHARING_HEADINGS, ">WORKER"};
    _Static_assert(sizeof headings / sizeof headings[0] <= TABLE_COLUMNS_MAX, "columns");
    const json_t *devices = json_object_get(answer, "devices"), *device;
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0], 1);
    if (!table)
        return;
    for (size_t i = 0; (device = json_array_get(devices, i)); i++)
        add_device(table, device);
    table_print(table, out, look);
    table_free(table);
}

static bool has_text(const json_t *list, const char *text)
{
    const json_t *item;
    for (size_t i = 0; (item = json_array_get(list, i)); i++)
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    return false;
}

/* One line for each setting that is not as the configuration says, and how to go back. */
static void show_drift(FILE *out, const json_t *gpus, const char *index)
{
    static const struct {
        const char *name, *key;
        const char *(*cell)(const json_t *object, const char *name, char cell[CELL_BYTES]);
    } settings[] = {
        {"mode", "mode", cell_text},
        {"lease", "lease_seconds", cell_time},
        {"precision", "precision_percent", cell_percent},
        {"quantum", "quantum_seconds", cell_time},
        {"window_limit", "window_limit_seconds", cell_time},
        {"local_memory", "local_memory_bytes", cell_bytes},
        {"departed_time_limit", "departed_time_limit_seconds", cell_limit},
        {"watchdog_warning", "watchdog_warning_seconds", cell_limit},
        {"watchdog_limit", "watchdog_limit_seconds", cell_limit},
        {"standby", "standby", cell_text},
    };
    char number[CELL_BYTES], is[CELL_BYTES], says[CELL_BYTES];
    const json_t *gpu;
    bool any = false;
    for (size_t i = 0; (gpu = json_array_get(gpus, i)); i++) {
        const json_t *now = json_object_get(gpu, "schedule");
        const json_t *configured = json_object_get(gpu, "configured");
        for (size_t k = 0; k < COUNT(settings); k++) {
            if (!has_text(json_object_get(gpu, "changed"), settings[k].name))
                continue;
            fprintf(out,
                    has_text(json_object_get(gpu, "saved"), settings[k].name)
                        ? MESSAGE_TEXT(ctl_drift_saved)
                        : MESSAGE_TEXT(ctl_drift),
                    cell_integer(gpu, index, number), settings[k].name,
                    settings[k].cell(now, settings[k].key, is),
                    settings[k].cell(configured, settings[k].key, says));
            fputc('\n', out);
            any = true;
        }
    }
    if (any)
        fprintf(out, "%s\n", MESSAGE_TEXT(ctl_drift_remedy));
}

/* The limits of clients to come that an administrator has set, a line each. */
static void show_new_clients(FILE *out, const json_t *gpu)
{
    const json_t *limits = json_object_get(gpu, "new_clients"), *changed;
    char number[CELL_BYTES], name[CELL_BYTES], key[2 * CELL_BYTES], value[CELL_BYTES];
    cell_integer(gpu, "gpu", number);
    for (size_t i = 0; (changed = json_array_get(json_object_get(limits, "changed"), i)); i++) {
        const char *text = json_string_value(changed);
        snprintf(name, sizeof name, "%s", text ? text : "-");
        table_clean(name);
        const enum resource resource = allowance_find(name);
        const enum scalar scalar = allowance_find_scalar(name);
        if (resource < RESOURCES && allowance_resource(resource)->unit == DIALECT_SHARE) {
            snprintf(key, sizeof key, "%s_limit_percent", name);
            cell_percent(limits, key, value);
        } else if (resource < RESOURCES) {
            snprintf(key, sizeof key, "%s_limit_bytes", name);
            cell_bytes(limits, key, value);
        } else if (scalar < SCALARS && allowance_scalar(scalar)->unit == ALLOWANCE_NUMBER) {
            cell_integer(limits, allowance_scalar(scalar)->key, value);
        } else {
            cell_limit(limits, scalar < SCALARS ? allowance_scalar(scalar)->key : name, value);
        }
        fprintf(out, MESSAGE_TEXT(ctl_new_clients), number, name, value, number, name);
        fputc('\n', out);
    }
}

void show_drained(FILE *out, const json_t *answer)
{
    const json_t *devices = json_object_get(answer, "devices"), *device;
    char number[CELL_BYTES];
    for (size_t i = 0; (device = json_array_get(devices, i)); i++) {
        if (!json_is_true(json_object_get(device, "drained")))
            continue;
        cell_integer(device, "device", number);
        fprintf(out, MESSAGE_TEXT(ctl_device_drained), number, number);
        fputc('\n', out);
    }
}

void show_server_warnings(FILE *out, const json_t *answer)
{
    const json_t *warnings = json_object_get(answer, "warnings"), *warning;
    char shown[ERROR_TEXT_BYTES];
    for (size_t i = 0; (warning = json_array_get(warnings, i)); i++) {
        const char *text = json_string_value(json_object_get(warning, "text"));
        snprintf(shown, sizeof shown, "%s", text ? text : "");
        table_clean(shown);
        fprintf(out, "warning: %s\n", shown);
    }
}

void show_status(FILE *out, const json_t *answer, const struct sample *sample,
                 struct table_look look)
{
    const json_t *devices = json_object_get(answer, "devices"), *device;
    show_server(out, answer, !sample);
    fputc('\n', out);
    if (sample)
        brief_devices(out, answer, sample, look);
    else
        show_devices(out, answer, look);
    show_drained(out, answer);
    show_server_warnings(out, answer);
    for (size_t i = 0; (device = json_array_get(devices, i)); i++) {
        show_trouble(out, device);
        show_singly(out, device);
        show_silence(out, device);
        show_compilations(out, device);
        show_standby(out, device);
        show_warnings(out, device);
    }
    show_drift(out, devices, "device");
}

void show_gpus(FILE *out, const json_t *answer, struct table_look look)
{
    static const char *const headings[] = {">GPU",     SHARING_HEADINGS, ">DEPARTED",
                                           ">WARNING", ">WATCHDOG",      "STANDBY"};
    const json_t *gpus = json_object_get(answer, "gpus"), *gpu;
    char cell[CELL_BYTES];
    struct table *table = table_new(headings, sizeof headings / sizeof headings[0], 1);
    if (!table)
        return;
    for (size_t i = 0; (gpu = json_array_get(gpus, i)); i++) {
        const json_t *schedule = json_object_get(gpu, "schedule");
        table_add(table, "%s", cell_integer(gpu, "gpu", cell));
        add_sharing(table, gpu);
        table_add(table, "%s", cell_time(schedule, "departed_time_limit_seconds", cell));
        table_add(table, "%s", cell_time(schedule, "watchdog_warning_seconds", cell));
        table_add(table, "%s", cell_time(schedule, "watchdog_limit_seconds", cell));
        table_add(table, "%s", cell_text(schedule, "standby", cell));
    }
    table_print(table, out, look);
    table_free(table);
    show_drift(out, gpus, "gpu");
    for (size_t i = 0; (gpu = json_array_get(gpus, i)); i++)
        show_new_clients(out, gpu);
}

/* ---- clients ---- */

/* The columns of a table of clients. */
struct headings {
    const char *text[TABLE_COLUMNS_MAX];
    unsigned count;
    char asked[RESOURCES][32], granted[RESOURCES][32], used[RESOURCES][32], scalars[SCALARS][32];
};

static void headings_add(struct headings *headings, const char *text)
{
    if (headings->count < TABLE_COLUMNS_MAX)
        headings->text[headings->count++] = text;
}

/* The limits that a client asked for beside those that it was granted; add_limits fills them. */
static void headings_add_limits(struct headings *headings)
{
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *resource = allowance_resource(i);
        snprintf(headings->asked[i], sizeof headings->asked[i], ">%s ASKED", resource->heading);
        headings_add(headings, headings->asked[i]);
        snprintf(headings->granted[i], sizeof headings->granted[i], "+>%s GRANTED",
                 resource->heading);
        headings_add(headings, headings->granted[i]);
        if (i == RESOURCE_THREADS)
            headings_add(headings, "+>SMS");
        if (!resource->by_worker) {
            snprintf(headings->used[i], sizeof headings->used[i], "+>%s USED", resource->heading);
            headings_add(headings, headings->used[i]);
        }
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        snprintf(headings->scalars[i], sizeof headings->scalars[i], ">%s",
                 allowance_scalar(i)->heading);
        headings_add(headings, headings->scalars[i]);
        if (allowance_scalar(i)->source_key)
            headings_add(headings, "BY");
    }
}

static void add_limits(struct table *table, const json_t *client)
{
    char cell[CELL_BYTES];
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *resource = allowance_resource(i);
        const json_t *limits = json_object_get(client, resource->name);
        if (resource->unit == DIALECT_BYTES) {
            table_add(table, "%s", cell_amounts(limits, "asked_bytes", cell));
            table_add(table, "%s", cell_amounts(limits, "granted_bytes", cell));
        } else {
            table_add(table, "%s", cell_shares(limits, "asked_percent", cell));
            table_add(table, "%s", cell_shares(limits, "granted_percent", cell));
        }
        if (!resource->by_worker)
            table_add(table, "%s", cell_bytes(limits, "used_bytes", cell));
        if (i == RESOURCE_THREADS)
            table_add(table, "%s%s", cell_integer(limits, "multiprocessors", cell),
                      json_is_false(json_object_get(limits, "partitioned")) ? ", duty cycle" : "");
    }
    for (enum scalar i = 0; i < SCALARS; i++) {
        const struct allowance_scalar *scalar = allowance_scalar(i);
        table_add(table, "%s",
                  scalar->unit == ALLOWANCE_TIME ? cell_time(client, scalar->key, cell)
                                                 : cell_integer(client, scalar->key, cell));
        if (scalar->source_key)
            table_add(table, "%s", cell_text(client, scalar->source_key, cell));
    }
}

/* The seconds of all reasons together, and the reason with the most of them: "1.250 s, lease". */
static const char *throttled_of(const json_t *client, char cell[CELL_BYTES])
{
    const json_t *throttled = json_object_get(client, "throttled_seconds");
    double sum = 0, high = 0;
    const char *why = NULL;
    for (uint32_t hold = 0; hold < PROTO_HOLD_COUNT; hold++) {
        double seconds = json_number_value(json_object_get(throttled, proto_hold_name(hold)));
        sum += seconds > 0 ? seconds : 0;
        if (seconds > high) {
            high = seconds;
            why = proto_hold_name(hold);
        }
    }
    if (json_is_object(throttled))
        snprintf(cell, CELL_BYTES, "%.3f s%s%s", sum, why ? ", " : "", why ? why : "");
    else
        strcpy(cell, "-");
    return cell;
}

/* The time below which of_hundred in a hundred commands waited: the end of a histogram's step. */
static const char *wait_of(const json_t *client, unsigned of_hundred, char cell[CELL_BYTES])
{
    const json_t *waits = json_object_get(client, "waits"), *count;
    double all = 0, sum = 0;
    size_t i;
    for (i = 0; (count = json_array_get(waits, i)); i++)
        all += (double)json_integer_value(count);
    for (i = 0; i < 32 && (count = json_array_get(waits, i)); i++) {
        sum += (double)json_integer_value(count);
        if (all > 0 && sum * 100 >= all * of_hundred)
            break;
    }
    double us = (double)(UINT64_C(2) << i);
    if (!(all > 0) || !count)
        strcpy(cell, "-");
    else if (us < 1e3)
        snprintf(cell, CELL_BYTES, "<%.0f us", us);
    else if (us < 1e6)
        snprintf(cell, CELL_BYTES, "<%.0f ms", us / 1e3);
    else
        snprintf(cell, CELL_BYTES, "<%.0f s", us / 1e6);
    return cell;
}

static void add_usage(struct table *table, const json_t *client)
{
    char cell[CELL_BYTES];
    table_add(table, "%s", cell_integer(client, "multiprocessors_now", cell));
    table_add(table, "%s", cell_seconds(client, "gpu_time_seconds", cell));
    table_add(table, "%s", cell_seconds(client, "charged_seconds", cell));
    table_add(table, "%s", cell_integer(client, "launches", cell));
    table_add(table, "%s", cell_bytes(client, "copied_bytes", cell));
    table_add(table, "%s", throttled_of(client, cell));
    table_add(table, "%s", wait_of(client, 50, cell));
    table_add(table, "%s", wait_of(client, 99, cell));
    table_add(table, "%s", cell_integer(client, "shared_queues", cell));
    table_add(table, "%s", cell_integer(client, "waits_for", cell));
}

/* One line for each client of which an administrator has set something, and how to go back. */
static void show_client_drift(FILE *out, const json_t *clients)
{
    const json_t *client;
    char number[CELL_BYTES];
    bool any = false;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        const json_t *changed = json_object_get(client, "changed"), *name;
        char names[(2 * RESOURCES + SCALARS) * 32] = "";
        size_t used = 0;
        for (size_t k = 0; (name = json_array_get(changed, k)) && used < sizeof names; k++)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.28s", k ? ", " : "",
                                     json_is_string(name) ? json_string_value(name) : "-");
        if (!*names)
            continue;
        fprintf(out, MESSAGE_TEXT(ctl_client_drift), cell_integer(client, "client", number), names);
        fputc('\n', out);
        any = true;
    }
    if (any)
        fprintf(out, "%s\n", MESSAGE_TEXT(ctl_client_drift_remedy));
}

void show_clients(FILE *out, const json_t *answer, struct table_look look)
{
    static const char *const before[] = {">CLIENT", "NAME",  ">PID",   ">UID",
                                         "USER",    "STATE", ">DEVICE"};
    static const char *const after[] = {">SMS NOW",       ">GPU TIME",  ">CHARGED",   ">LAUNCHES",
                                        ">COPIED",        ">THROTTLED", ">HALF WAIT", ">99 % WAIT",
                                        ">SHARED QUEUES", ">WAITS FOR"};
    _Static_assert(COUNT(before) + LIMITS_COLUMNS_MAX + COUNT(after) <= TABLE_COLUMNS_MAX,
                   "columns");
    struct headings headings = {.count = 0};
    const json_t *clients = json_object_get(answer, "clients");
    const json_t *client;
    char cell[CELL_BYTES];
    if (json_array_size(clients) == 0) {
        fputs("no clients\n", out);
        return;
    }
    for (size_t i = 0; i < COUNT(before); i++)
        headings_add(&headings, before[i]);
    headings_add_limits(&headings);
    for (size_t i = 0; i < COUNT(after); i++)
        headings_add(&headings, after[i]);
    struct table *table = table_new(headings.text, headings.count, 2);
    if (!table)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        table_add(table, "%s", cell_integer(client, "client", cell));
        table_add(table, "%s", cell_text(client, "name", cell));
        table_add(table, "%s", cell_integer(client, "pid", cell));
        table_add(table, "%s", cell_integer(client, "uid", cell));
        table_add(table, "%s", cell_user(client, "uid", cell));
        table_add(table, "%s", cell_text(client, "state", cell));
        table_add(table, "%s", cell_integer(client, "device", cell));
        add_limits(table, client);
        add_usage(table, client);
    }
    table_print(table, out, look);
    table_free(table);
    show_client_drift(out, clients);
}

void show_limits(FILE *out, const json_t *answer, struct table_look look)
{
    struct headings headings = {.count = 0};
    const json_t *clients = json_object_get(answer, "clients");
    const json_t *client;
    char cell[CELL_BYTES];
    headings_add(&headings, ">CLIENT");
    headings_add(&headings, "NAME");
    headings_add_limits(&headings);
    struct table *table = table_new(headings.text, headings.count, 2);
    if (!table)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        table_add(table, "%s", cell_integer(client, "client", cell));
        table_add(table, "%s", cell_text(client, "name", cell));
        add_limits(table, client);
    }
    table_print(table, out, look);
    table_free(table);
    show_client_drift(out, clients);
}

/* The origin of a total, and whether the total outlives the server. */
static const char *limiter_of(const json_t *row, char cell[CELL_BYTES])
{
    cell_text(row, "limited_by", cell);
    if (json_is_true(json_object_get(row, "saved")))
        strncat(cell, ", saved", CELL_BYTES - 1 - strlen(cell));
    return cell;
}

/* A table of totals, all of one owner. */
struct totals {
    struct table *table;
    const json_t *of; /* the answer's total */
    const struct sample *sample;
    char owner[CELL_BYTES + 8];
};

static void add_total(const struct totals *totals, const char *what, const json_t *row)
{
    char limit[CELL_BYTES], used[CELL_BYTES], by[CELL_BYTES];
    table_add(totals->table, "%s", totals->owner);
    table_add(totals->table, "%s", what);
    table_add(totals->table, "-");
    table_add(totals->table, "%s", cell_bytes(row, "limit_bytes", limit));
    table_add(totals->table, "%s", limiter_of(row, by));
    table_add(totals->table, "-");
    table_add(totals->table, "-");
    table_add(totals->table, "%s", cell_bytes(row, "used_bytes", used));
}

/* The sample says of which user a client is, and not of which groups. */
static const char *use_cell(const struct totals *totals, const json_t *row, bool threads,
                            char cell[CELL_BYTES])
{
    const json_t *user = json_object_get(totals->of, "user");
    struct sample_use use = {-1, -1};
    if (totals->sample && user)
        use = sample_user_use(totals->sample, user, json_object_get(row, "gpu"));
    if (use.time < 0)
        strcpy(cell, "-");
    else if (threads)
        snprintf(cell, CELL_BYTES, "%.0f SMs", use.multiprocessors);
    else
        snprintf(cell, CELL_BYTES, "%.0f %%", use.time * 100);
    return cell;
}

/* The time or the threads of one device. */
static void add_share(const struct totals *totals, const char *what, const json_t *row,
                      bool threads)
{
    char cell[CELL_BYTES];
    table_add(totals->table, "%s", totals->owner);
    table_add(totals->table, "%s", what);
    table_add(totals->table, "%s", cell_percent(row, "request_percent", cell));
    table_add(totals->table, "%s", cell_percent(row, "limit_percent", cell));
    table_add(totals->table, "%s", limiter_of(row, cell));
    table_add(totals->table, "%s", cell_integer(row, "clients", cell));
    table_add(totals->table, "%s", cell_percent(row, "clients_request_percent", cell));
    table_add(totals->table, "%s", use_cell(totals, row, threads, cell));
}

static void add_totals(const struct totals *totals, enum resource resource)
{
    const struct allowance_resource *about = allowance_resource(resource);
    char number[CELL_BYTES], what[CELL_BYTES + 24];
    const json_t *list = json_object_get(totals->of, about->name), *row;
    for (size_t i = 0; (row = json_array_get(list, i)); i++) {
        snprintf(what, sizeof what, "%s of GPU %s", about->name, cell_integer(row, "gpu", number));
        if (about->by_worker)
            add_share(totals, what, row, resource == RESOURCE_THREADS);
        else
            add_total(totals, what, row);
    }
}

void show_total(FILE *out, const json_t *answer, const struct sample *sample,
                struct table_look look)
{
    static const char *const headings[] = {"ALL CLIENTS OF", "IN TOTAL", ">REQUEST",      ">LIMIT",
                                           "SET BY",         ">CLIENTS", ">THEY REQUEST", ">USED"};
    const json_t *total = json_object_get(answer, "total");
    const bool cgroup = json_object_get(total, "cgroup") != NULL;
    const char *kind = cgroup ? "cgroup" : json_object_get(total, "group") ? "group" : "user";
    char name[CELL_BYTES];
    struct totals totals = {.of = total,
                            .sample = sample,
                            .table = table_new(headings, sizeof headings / sizeof headings[0], 1)};
    if (!totals.table)
        return;
    snprintf(totals.owner, sizeof totals.owner, "%s %s", kind,
             cgroup ? cell_text(total, kind, name) : cell_integer(total, kind, name));
    add_totals(&totals, RESOURCE_THREADS);
    add_totals(&totals, RESOURCE_TIME);
    if (!cgroup) {
        add_totals(&totals, RESOURCE_MEMORY);
        add_total(&totals, "pinned host memory", json_object_get(total, "host_memory"));
    }
    table_print(totals.table, out, look);
    table_free(totals.table);
}

struct table_look show_look(FILE *out, const char *no_color, const char *term)
{
    struct winsize size;
    if (!isatty(fileno(out)))
        return (struct table_look){0};
    return (struct table_look){
        .bold = !(no_color && *no_color) && term && *term && strcmp(term, "dumb") != 0,
        .width = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0,
    };
}
