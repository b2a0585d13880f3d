/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/all.h"

#include <stdbool.h>
#include <string.h>

#include "client/tools/show.h"

/* Takes request over. */
static enum admin_outcome ask(const char *socket, json_t *request, json_t **answer)
{
    *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(socket, request, answer, NULL) : ADMIN_FAILED;
    json_decref(request);
    return outcome;
}

/* Appends what an answer to get has to the lists of *answer. */
static void add_rows(json_t *answer, const json_t *of)
{
    json_array_extend(json_object_get(answer, "gpus"), json_object_get(of, "gpus"));
    json_array_extend(json_object_get(answer, "clients"), json_object_get(of, "clients"));
    if (json_object_get(of, "total"))
        json_array_append(json_object_get(answer, "totals"), json_object_get(of, "total"));
}

/* kind: "gpu" or "user". A user whose clients have left meanwhile is no failure. */
static enum admin_outcome add(const char *socket, const char *kind, json_int_t number,
                              json_t **answer)
{
    json_t *one;
    enum admin_outcome outcome =
        ask(socket, json_pack("{s:s, s:I}", "request", "get", kind, number), &one);
    const char *error = json_string_value(json_object_get(one, "error"));
    const bool left = outcome == ADMIN_FAILED && error && strcmp(error, "not_found") == 0;
    if (outcome == ADMIN_OK || left) {
        add_rows(*answer, one);
        json_decref(one);
        return ADMIN_OK;
    }
    json_decref(*answer);
    *answer = one;
    return outcome;
}

/* Whether the client at this place is the first one of its user. */
static bool is_users_first(const json_t *clients, size_t at)
{
    const json_t *uid = json_object_get(json_array_get(clients, at), "uid");
    for (size_t i = 0; i < at; i++)
        if (json_equal(json_object_get(json_array_get(clients, i), "uid"), uid))
            return false;
    return true;
}

enum admin_outcome all_take(const char *socket, json_t **answer)
{
    json_t *status, *clients = NULL, *gpus, *users;
    enum admin_outcome outcome = ask(socket, json_pack("{s:s}", "request", "status"), &status);
    if (outcome == ADMIN_OK)
        outcome = ask(socket, json_pack("{s:s}", "request", "clients"), &clients);
    if (outcome != ADMIN_OK) {
        *answer = clients ? clients : status;
        if (clients)
            json_decref(status);
        return outcome;
    }
    *answer = json_pack("{s:i, s:b, s:s, s:[], s:[], s:[]}", "schema_version",
                        ADMIN_CLIENT_SCHEMA_VERSION, "ok", 1, "request", "get-all", "gpus",
                        "clients", "totals");
    gpus = json_object_get(status, "devices");
    users = json_object_get(clients, "clients");
    for (size_t i = 0; outcome == ADMIN_OK && i < json_array_size(gpus); i++)
        outcome = add(socket, "gpu", (json_int_t)i, answer);
    for (size_t i = 0; outcome == ADMIN_OK && i < json_array_size(users); i++)
        if (is_users_first(users, i))
            outcome =
                add(socket, "user",
                    json_integer_value(json_object_get(json_array_get(users, i), "uid")), answer);
    json_decref(status);
    json_decref(clients);
    return *answer ? outcome : ADMIN_FAILED;
}

void all_print(FILE *out, const json_t *answer, struct table_look look)
{
    const json_t *totals = json_object_get(answer, "totals");
    show_gpus(out, answer, look);
    if (json_array_size(json_object_get(answer, "clients"))) {
        fputc('\n', out);
        show_limits(out, answer, look);
    }
    for (size_t i = 0; i < json_array_size(totals); i++) {
        json_t *of_user = json_pack("{s:O}", "total", json_array_get(totals, i));
        fputc('\n', out);
        show_total(out, of_user, NULL, look);
        json_decref(of_user);
    }
}
