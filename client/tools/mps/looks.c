/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/mps/looks.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/tools/cell.h"
#include "client/tools/mps/devices.h"
#include "common/messages.h"
#include "common/units.h"

/* ---- servers ---- */

enum admin_outcome looks_server_list(struct servers *servers, int count, char *const words[])
{
    json_t *status;
    const json_t *device;
    (void)count;
    (void)words;
    enum admin_outcome outcome = servers_ask_for(servers, "status", &status);
    for (size_t i = 0; (device = json_array_get(json_object_get(status, "devices"), i)); i++)
        if (json_is_integer(json_object_get(device, "worker_pid")))
            printf("%lld\n", (long long)json_integer_value(json_object_get(device, "worker_pid")));
    json_decref(status);
    return outcome;
}

/* The three words that MPS has. A worker that does not answer is about to be replaced. */
static const char *status_of(const json_t *device)
{
    const char *state = json_string_value(json_object_get(device, "state"));
    if (json_is_number(json_object_get(device, "worker_silent_seconds")))
        return "FAULT";
    return state && strcmp(state, "ready") == 0 ? "ACTIVE" : "INITIALIZING";
}

enum admin_outcome looks_server_status(struct servers *servers, int count, char *const words[])
{
    json_t *status;
    const json_t *device;
    (void)count;
    enum admin_outcome outcome = servers_find(servers, words[0], &status, &device);
    if (outcome == ADMIN_OK)
        puts(status_of(device));
    json_decref(status);
    return outcome;
}

/* ---- clients ---- */

/* A process is listed once, however many connections it has. */
static bool is_first(const json_t *clients, size_t at, const json_t *device)
{
    const json_t *pid = json_object_get(json_array_get(clients, at), "pid");
    for (size_t i = 0; i < at; i++) {
        const json_t *other = json_array_get(clients, i);
        if (servers_has_client(device, other) && json_equal(json_object_get(other, "pid"), pid))
            return false;
    }
    return true;
}

/* Prints the process numbers of a device's clients, each on a line of its own or all in one line.
 * Returns how many clients have none that the server can see. */
static unsigned print_pids(const json_t *clients, const json_t *device, bool in_line)
{
    const json_t *client;
    unsigned hidden = 0;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        const json_t *pid = json_object_get(client, "pid");
        if (!servers_has_client(device, client))
            continue;
        hidden += !json_is_integer(pid);
        if (json_is_integer(pid) && is_first(clients, i, device))
            printf(in_line ? " %lld" : "%lld\n", (long long)json_integer_value(pid));
    }
    return hidden;
}

static void note_hidden(unsigned hidden)
{
    if (!hidden)
        return;
    fputs("gpusharectl: ", stderr);
    fprintf(stderr, MESSAGE_TEXT(mps_clients_hidden), hidden);
    fputc('\n', stderr);
}

enum admin_outcome looks_client_list(struct servers *servers, int count, char *const words[])
{
    json_t *status, *clients = NULL;
    const json_t *device;
    (void)count;
    enum admin_outcome outcome = servers_find(servers, words[0], &status, &device);
    if (outcome == ADMIN_OK)
        outcome = servers_ask_for(servers, "clients", &clients);
    if (outcome == ADMIN_OK)
        note_hidden(print_pids(json_object_get(clients, "clients"), device, false));
    json_decref(clients);
    json_decref(status);
    return outcome;
}

/* The server that was named, or all of them: then only is NULL. */
static enum admin_outcome ask_both(struct servers *servers, const char *pid, json_t **status,
                                   json_t **clients, const json_t **only)
{
    *only = *clients = NULL;
    enum admin_outcome outcome =
        pid ? servers_find(servers, pid, status, only) : servers_ask_for(servers, "status", status);
    if (outcome == ADMIN_OK)
        outcome = servers_ask_for(servers, "clients", clients);
    return outcome;
}

enum admin_outcome looks_device_client_list(struct servers *servers, int count, char *const words[])
{
    json_t *status, *clients;
    const json_t *only, *device;
    char cell[CELL_BYTES];
    unsigned hidden = 0;
    enum admin_outcome outcome =
        ask_both(servers, count ? words[0] : NULL, &status, &clients, &only);
    const json_t *devices = json_object_get(status, "devices");
    for (size_t i = 0; outcome == ADMIN_OK && (device = json_array_get(devices, i)); i++) {
        if (only && device != only)
            continue;
        fputs(cell_text(device, "uuid", cell), stdout);
        hidden += print_pids(json_object_get(clients, "clients"), device, true);
        putchar('\n');
    }
    note_hidden(hidden);
    json_decref(clients);
    json_decref(status);
    return outcome;
}

/* The namespace of a process, if the number means the client's process here too: then the process
 * belongs to the client's user. */
static const char *namespace_of(const json_t *client, char text[CELL_BYTES])
{
    const json_t *pid = json_object_get(client, "pid");
    char path[64], link[64];
    struct stat process;
    strcpy(text, "-");
    snprintf(path, sizeof path, "/proc/%lld", (long long)json_integer_value(pid));
    if (!json_is_integer(pid) || stat(path, &process) < 0 ||
        (json_int_t)process.st_uid != json_integer_value(json_object_get(client, "uid")))
        return text;
    snprintf(path, sizeof path, "/proc/%lld/ns/pid", (long long)json_integer_value(pid));
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length <= 0)
        return text;
    link[length] = '\0';
    unsigned long inode = 0;
    if (sscanf(link, "pid:[%lu]", &inode) == 1)
        snprintf(text, CELL_BYTES, "%lu", inode);
    return text;
}

static void print_process(const json_t *device, const json_t *client)
{
    char pid[CELL_BYTES], id[CELL_BYTES], server[CELL_BYTES], uuid[CELL_BYTES], space[CELL_BYTES],
        name[CELL_BYTES];
    enum { UUID_SHOWN = 22 }; /* "GPU-cb1213a3-d6a4-be7f": MPS shows as much of it */
    cell_text(device, "uuid", uuid);
    printf("%-9s %-5s %-9s %-*.*s  %-12s %s\n", cell_integer(client, "pid", pid),
           cell_integer(client, "client", id), cell_integer(device, "worker_pid", server),
           UUID_SHOWN, UUID_SHOWN, uuid, namespace_of(client, space),
           cell_text(client, "name", name));
}

enum admin_outcome looks_ps(struct servers *servers, int count, char *const words[])
{
    json_t *status, *clients;
    const json_t *only, *device, *client;
    enum admin_outcome outcome =
        ask_both(servers, count ? words[1] : NULL, &status, &clients, &only);
    const json_t *devices = json_object_get(status, "devices");
    const json_t *rows = json_object_get(clients, "clients");
    if (outcome == ADMIN_OK)
        puts("PID       ID    SERVER    DEVICE                  NAMESPACE    COMMAND");
    for (size_t i = 0; outcome == ADMIN_OK && (device = json_array_get(devices, i)); i++)
        for (size_t k = 0; (client = json_array_get(rows, k)); k++)
            if ((!only || device == only) && servers_has_client(device, client))
                print_process(device, client);
    json_decref(clients);
    json_decref(status);
    return outcome;
}

/* ---- limits of clients to come ---- */

/* Takes a member of the limits of a GPU's clients to come, which has to be a number. */
static enum admin_outcome ask_limit(struct servers *servers, json_int_t gpu, const char *member,
                                    double *value)
{
    json_t *answer;
    enum admin_outcome outcome =
        servers_ask(servers, json_pack("{s:s, s:I}", "request", "get", "gpu", gpu), &answer);
    if (outcome != ADMIN_OK)
        return outcome;
    const json_t *row = json_array_get(json_object_get(answer, "gpus"), 0);
    const json_t *limits = json_object_get(row, "new_clients");
    const json_t *number = json_object_get(limits, member);
    *value = json_number_value(number);
    uint32_t error = json_is_number(number) ? 0
                     : json_is_null(limits)
                         ? error_set(&servers->why, MESSAGE(mps_unready), (long long)gpu)
                         : error_set(&servers->why, MESSAGE(mps_answer));
    json_decref(answer);
    return error ? servers_refuse(error) : ADMIN_OK;
}

/* MPS has one default for all GPUs. */
static enum admin_outcome ask_common_limit(struct servers *servers, const char *member,
                                           double *value)
{
    json_int_t devices;
    enum admin_outcome outcome = devices_count(servers, &devices);
    for (json_int_t i = 0; outcome == ADMIN_OK && i < devices; i++) {
        double one = 0;
        outcome = ask_limit(servers, i, member, &one);
        if (outcome == ADMIN_OK && i && (one < *value || one > *value))
            return servers_refuse(error_set(&servers->why, MESSAGE(mps_different)));
        *value = one;
    }
    return outcome;
}

enum admin_outcome looks_default_percentage(struct servers *servers, int count, char *const words[])
{
    double value = 0;
    (void)count;
    (void)words;
    enum admin_outcome outcome = ask_common_limit(servers, "threads_limit_percent", &value);
    if (outcome == ADMIN_OK)
        devices_print_percentage(value);
    return outcome;
}

enum admin_outcome looks_percentage(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    double value;
    (void)count;
    enum admin_outcome outcome = devices_of_server(servers, words[0], &gpu);
    if (outcome == ADMIN_OK)
        outcome = ask_limit(servers, gpu, "threads_limit_percent", &value);
    if (outcome == ADMIN_OK)
        devices_print_percentage(value);
    return outcome;
}

static enum admin_outcome print_memory(struct servers *servers, json_int_t gpu)
{
    char text[UNITS_TEXT];
    double value;
    enum admin_outcome outcome = ask_limit(servers, gpu, "memory_limit_bytes", &value);
    if (outcome == ADMIN_OK)
        puts(units_format_size((uint64_t)value, text));
    return outcome;
}

enum admin_outcome looks_default_memory(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    (void)count;
    enum admin_outcome outcome = devices_read(servers, words[0], &gpu);
    return outcome == ADMIN_OK ? print_memory(servers, gpu) : outcome;
}

enum admin_outcome looks_memory(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    (void)count;
    enum admin_outcome outcome = devices_of_both(servers, words[0], words[1], &gpu);
    return outcome == ADMIN_OK ? print_memory(servers, gpu) : outcome;
}

enum admin_outcome looks_default_priority(struct servers *servers, int count, char *const words[])
{
    double value = 0;
    (void)count;
    (void)words;
    enum admin_outcome outcome = ask_common_limit(servers, "priority", &value);
    if (outcome == ADMIN_OK)
        printf("%.0f\n", value);
    return outcome;
}
