/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/mps/servers.h"

#include <stdint.h>
#include <string.h>

#include "common/messages.h"
#include "common/units.h"

enum admin_outcome servers_refuse(uint32_t error)
{
    return error == PROTO_ERROR_INVALID_VALUE ? ADMIN_USAGE : ADMIN_FAILED;
}

enum admin_outcome servers_ask(struct servers *servers, json_t *request, json_t **answer)
{
    *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(servers->socket, request, answer, NULL) : ADMIN_FAILED;
    json_decref(request);
    if (outcome == ADMIN_OK)
        return outcome;
    const char *text = json_string_value(json_object_get(*answer, "text"));
    error_set(&servers->why, PROTO_ERROR_SERVER_RESOURCES, "%s",
              text ? text : MESSAGE_TEXT(process_no_memory));
    json_decref(*answer);
    *answer = NULL;
    return outcome;
}

enum admin_outcome servers_ask_for(struct servers *servers, const char *request, json_t **answer)
{
    return servers_ask(servers, json_pack("{s:s}", "request", request), answer);
}

uint32_t servers_read_pid(struct servers *servers, const char *text, json_int_t *pid)
{
    uint64_t number;
    if (units_parse_number(text, strlen(text), INT32_MAX, &number) != 0 || number == 0)
        return error_set(&servers->why, MESSAGE(mps_pid), text);
    *pid = (json_int_t)number;
    return 0;
}

/* Scripts of MPS name servers, and people may mean a client. */
static enum admin_outcome refuse_unknown(struct servers *servers, const char *text, json_int_t pid)
{
    json_t *clients;
    const json_t *client;
    json_int_t named = -1;
    enum admin_outcome outcome = servers_ask_for(servers, "clients", &clients);
    if (outcome != ADMIN_OK)
        return outcome;
    for (size_t i = 0; (client = json_array_get(json_object_get(clients, "clients"), i)); i++)
        if (json_integer_value(json_object_get(client, "pid")) == pid)
            named = json_integer_value(json_object_get(client, "client"));
    json_decref(clients);
    return servers_refuse(
        named < 0 ? error_set(&servers->why, MESSAGE(mps_server_unknown), text)
                  : error_set(&servers->why, MESSAGE(mps_server_client), text, (long long)named));
}

enum admin_outcome servers_find(struct servers *servers, const char *pid, json_t **status,
                                const json_t **device)
{
    json_int_t number;
    *status = NULL;
    uint32_t error = servers_read_pid(servers, pid, &number);
    if (error)
        return servers_refuse(error);
    enum admin_outcome outcome = servers_ask_for(servers, "status", status);
    if (outcome != ADMIN_OK)
        return outcome;
    const json_t *devices = json_object_get(*status, "devices");
    for (size_t i = 0; (*device = json_array_get(devices, i)); i++)
        if (json_integer_value(json_object_get(*device, "worker_pid")) == number)
            return ADMIN_OK;
    json_decref(*status);
    *status = NULL;
    return refuse_unknown(servers, pid, number);
}

bool servers_has_client(const json_t *device, const json_t *client)
{
    const json_t *of = json_object_get(client, "device");
    return json_is_integer(of) &&
           json_integer_value(of) == json_integer_value(json_object_get(device, "device"));
}
