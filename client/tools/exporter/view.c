/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/tools/admin_client.h"
#include "common/clock.h"
#include "common/id_name.h"
#include "common/units.h"

/* Each page asks once a second, and several can be open. A whole second would have each second
 * question of a page meet the answer of the first. */
#define FRESH_NS (900 * UNITS_MS)
/* The server waits for its workers for a second (ADMIN_USAGE_MS), twice here. A scrape that comes
 * meanwhile waits for this and for its own five seconds, and Prometheus gives up after ten. */
#define LIMIT_SECONDS 3.0
/* Users whose names are kept. More are a server that runs for years, and are looked up again. */
#define USERS_MAX 1000

void view_open(struct view *view, const char *socket)
{
    *view = (struct view){.socket = socket, .users = json_object()};
}

void view_close(struct view *view)
{
    json_decref(view->users);
    free(view->text);
    *view = (struct view){0};
}

/* The caller owns *answer, which is an error if this fails; NULL without memory. */
static bool ask_server(const struct view *view, const char *what, uint64_t begun, json_t **answer)
{
    const double left = LIMIT_SECONDS - (double)(clock_now() - begun) / 1e9;
    struct admin_client_wait wait = {.seconds = left - ADMIN_CLIENT_SECONDS, .enough = -1};
    json_t *request = json_pack("{s:s}", "request", what);
    *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(view->socket, request, answer, &wait) : ADMIN_FAILED;
    json_decref(request);
    return outcome == ADMIN_OK;
}

/* The name of a user, looked up once; the caller owns it. JSON's null: the system knows none. */
static json_t *user_name(struct view *view, const char *key, uint32_t uid)
{
    json_t *known = json_object_get(view->users, key);
    if (known)
        return json_incref(known);
    char *name = id_name_of(ID_NAME_USER, uid);
    json_t *made = name ? json_string(name) : NULL;
    free(name);
    if (!made) /* a name that is no UTF-8 is shown as the number, too */
        made = json_null();
    if (json_object_size(view->users) >= USERS_MAX)
        json_object_clear(view->users);
    json_object_set(view->users, key, made);
    return made;
}

static json_t *users_of(struct view *view, const json_t *clients)
{
    const json_t *rows = json_object_get(clients, "clients"), *row;
    json_t *users = json_object();
    for (size_t i = 0; users && (row = json_array_get(rows, i)); i++) {
        const json_t *uid = json_object_get(row, "uid");
        char key[24];
        snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, json_integer_value(uid));
        if (json_is_integer(uid) && !json_object_get(users, key))
            json_object_set_new(users, key,
                                user_name(view, key, (uint32_t)json_integer_value(uid)));
    }
    return users;
}

/* The document, which the caller owns; NULL without memory. */
static json_t *make_document(struct view *view, uint64_t begun)
{
    json_t *status = NULL, *clients = NULL;
    view->answered = ask_server(view, "status", begun, &status);
    if (!view->answered)
        return status;
    view->answered = ask_server(view, "clients", begun, &clients);
    if (!view->answered) {
        json_decref(status);
        return clients;
    }
    return json_pack("{s:i, s:b, s:o, s:o, s:o}", "schema_version", ADMIN_CLIENT_SCHEMA_VERSION,
                     "ok", 1, "users", users_of(view, clients), "status", status, "clients",
                     clients);
}

const char *view_ask(struct view *view)
{
    uint64_t begun = clock_now();
    if (view->text && begun - view->asked_at < FRESH_NS)
        return view->text;
    json_t *document = make_document(view, begun);
    free(view->text);
    view->text = document
                     ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS))
                     : NULL;
    json_decref(document);
    view->asked_at = clock_now();
    return view->text;
}
