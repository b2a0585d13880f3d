/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/mps/orders.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/tools/mps/devices.h"
#include "common/limits/allowance.h"
#include "common/messages.h"
#include "common/units.h"

/* ---- servers and clients ---- */

enum admin_outcome orders_start_server(struct servers *servers, int count, char *const words[])
{
    json_t *status;
    const json_t *device;
    uint64_t uid;
    uint32_t error = 0;
    (void)count;
    if (units_parse_number(words[1], strlen(words[1]), UINT32_MAX, &uid) != 0)
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_user), words[1]));
    enum admin_outcome outcome = servers_ask_for(servers, "status", &status);
    if (outcome != ADMIN_OK)
        return outcome;
    const json_t *devices = json_object_get(status, "devices");
    for (size_t i = 0; !error && (device = json_array_get(devices, i)); i++)
        if (!json_is_integer(json_object_get(device, "worker_pid")))
            error = error_set(&servers->why, MESSAGE(mps_unready),
                              (long long)json_integer_value(json_object_get(device, "device")));
    json_decref(status);
    return error ? servers_refuse(error) : ADMIN_OK;
}

/* Ends the connections of a server's clients: of one process, or of all (-1). *ended: how many. */
static enum admin_outcome end_clients(struct servers *servers, const char *server, json_int_t pid,
                                      unsigned *ended)
{
    json_t *status, *clients = NULL, *answer;
    const json_t *device, *client;
    *ended = 0;
    enum admin_outcome outcome = servers_find(servers, server, &status, &device);
    if (outcome == ADMIN_OK)
        outcome = servers_ask_for(servers, "clients", &clients);
    const json_t *rows = json_object_get(clients, "clients");
    for (size_t i = 0; outcome == ADMIN_OK && (client = json_array_get(rows, i)); i++) {
        const char *state = json_string_value(json_object_get(client, "state"));
        if (!servers_has_client(device, client) || (state && strcmp(state, "leaving") == 0) ||
            (pid >= 0 && json_integer_value(json_object_get(client, "pid")) != pid))
            continue;
        outcome = servers_ask(
            servers,
            json_pack("{s:s, s:O}", "request", "kill", "client", json_object_get(client, "client")),
            &answer);
        json_decref(answer);
        *ended += outcome == ADMIN_OK;
    }
    json_decref(clients);
    json_decref(status);
    return outcome;
}

enum admin_outcome orders_shutdown_server(struct servers *servers, int count, char *const words[])
{
    unsigned ended;
    if (count < 2)
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_shutdown)));
    return end_clients(servers, words[0], -1, &ended);
}

enum admin_outcome orders_terminate_client(struct servers *servers, int count, char *const words[])
{
    json_int_t pid;
    unsigned ended;
    (void)count;
    uint32_t error = servers_read_pid(servers, words[1], &pid);
    if (error)
        return servers_refuse(error);
    enum admin_outcome outcome = end_clients(servers, words[0], pid, &ended);
    if (outcome == ADMIN_OK && !ended)
        return servers_refuse(
            error_set(&servers->why, MESSAGE(mps_client_unknown), words[0], words[1]));
    return outcome;
}

/* ---- limits of clients to come ---- */

/* Sets a limit of a GPU's clients to come. limits: stays the caller's; NULL: there was no
 * memory. */
static enum admin_outcome set_limits(struct servers *servers, json_int_t gpu, json_t *limits)
{
    json_t *answer;
    enum admin_outcome outcome = servers_ask(
        servers, json_pack("{s:s, s:I, s:O}", "request", "set", "gpu", gpu, "new_clients", limits),
        &answer);
    json_decref(answer);
    return outcome;
}

/* MPS has one default for all GPUs. limits: taken over. */
static enum admin_outcome set_on_all(struct servers *servers, json_t *limits)
{
    json_int_t devices;
    enum admin_outcome outcome = devices_count(servers, &devices);
    for (json_int_t i = 0; outcome == ADMIN_OK && i < devices; i++)
        outcome = set_limits(servers, i, limits);
    json_decref(limits);
    return outcome;
}

/* Reads a percentage without its sign. Returns the limit of threads, or NULL: servers->why says
 * why. */
static json_t *threads_limit(struct servers *servers, const char *text, double *percent)
{
    struct dialect_amount amount;
    char share[UNITS_TEXT];
    if (dialect_parse_percentage(text, strlen(text), &amount) != 0) {
        error_set(&servers->why, MESSAGE(mps_percentage), text, DIALECT_FORM_PERCENTAGE);
        return NULL;
    }
    *percent = (double)amount.value / 100;
    json_t *limits = json_pack("{s:{s:s}}", "threads", "limit", dialect_format(amount, share));
    if (!limits)
        error_set(&servers->why, MESSAGE(process_no_memory));
    return limits;
}

static enum admin_outcome after_percentage(enum admin_outcome outcome, double percent)
{
    if (outcome == ADMIN_OK)
        devices_print_percentage(percent);
    return outcome;
}

enum admin_outcome orders_default_percentage(struct servers *servers, int count,
                                             char *const words[])
{
    double percent;
    (void)count;
    json_t *limits = threads_limit(servers, words[0], &percent);
    return limits ? after_percentage(set_on_all(servers, limits), percent) : ADMIN_USAGE;
}

enum admin_outcome orders_percentage(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    double percent;
    (void)count;
    json_t *limits = threads_limit(servers, words[1], &percent);
    if (!limits)
        return ADMIN_USAGE;
    enum admin_outcome outcome = devices_of_server(servers, words[0], &gpu);
    if (outcome == ADMIN_OK)
        outcome = set_limits(servers, gpu, limits);
    json_decref(limits);
    return after_percentage(outcome, percent);
}

/* The server reads the amount. Its form is checked here, so that a wrong one is wrong usage. */
static enum admin_outcome set_memory(struct servers *servers, json_int_t gpu, const char *text)
{
    struct dialect_amount amount;
    char room[DIALECT_FORM_ROOM];
    if (allowance_parse(RESOURCE_MEMORY, ALLOWANCE_LIMIT, text, strlen(text), &amount) != 0)
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_memory), text,
                                        allowance_form(RESOURCE_MEMORY, text, room)));
    json_t *limits = json_pack("{s:{s:s}}", "memory", "limit", text);
    enum admin_outcome outcome = set_limits(servers, gpu, limits);
    json_decref(limits);
    return outcome;
}

enum admin_outcome orders_default_memory(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    (void)count;
    enum admin_outcome outcome = devices_read(servers, words[0], &gpu);
    return outcome == ADMIN_OK ? set_memory(servers, gpu, words[1]) : outcome;
}

enum admin_outcome orders_memory(struct servers *servers, int count, char *const words[])
{
    json_int_t gpu;
    (void)count;
    enum admin_outcome outcome = devices_of_both(servers, words[0], words[1], &gpu);
    return outcome == ADMIN_OK ? set_memory(servers, gpu, words[2]) : outcome;
}

enum admin_outcome orders_default_priority(struct servers *servers, int count, char *const words[])
{
    uint64_t priority;
    (void)count;
    if (allowance_parse_scalar(SCALAR_PRIORITY, words[0], strlen(words[0]), &priority) != 0)
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_priority), words[0],
                                        allowance_scalar(SCALAR_PRIORITY)->form));
    return set_on_all(servers, json_pack("{s:I}", "priority", (json_int_t)priority));
}

/* ---- what is refused ---- */

enum admin_outcome orders_quit(struct servers *servers, int count, char *const words[])
{
    (void)count;
    (void)words;
    return servers_refuse(error_set(&servers->why, MESSAGE(mps_quit)));
}

enum admin_outcome orders_partitions(struct servers *servers, int count, char *const words[])
{
    (void)count;
    (void)words;
    return servers_refuse(error_set(&servers->why, MESSAGE(mps_partitions)));
}
