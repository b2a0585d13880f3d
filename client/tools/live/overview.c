/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/overview.h"

#include "client/tools/brief.h"
#include "client/tools/cell.h"
#include "client/tools/live/row.h"
#include "client/tools/show.h"
#include "common/clock.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { NAME_MAX_SHOWN = 12, USER_MAX_SHOWN = 8 };

static enum admin_outcome ask(const char *socket, const char *what, json_t **answer)
{
    json_t *request = json_pack("{s:s}", "request", what);
    *answer = NULL;
    enum admin_outcome outcome =
        request ? admin_client_ask(socket, request, answer, NULL) : ADMIN_FAILED;
    json_decref(request);
    return outcome;
}

enum admin_outcome overview_take(struct overview *overview, const char *socket, json_t **failure)
{
    json_t *status, *clients = NULL;
    *failure = NULL;
    overview->asked_at = clock_now();
    enum admin_outcome outcome = ask(socket, "status", &status);
    if (outcome == ADMIN_OK)
        outcome = ask(socket, "clients", &clients);
    if (outcome != ADMIN_OK) {
        *failure = clients ? clients : status;
        if (clients)
            json_decref(status);
        return outcome;
    }
    json_decref(overview->status);
    overview->status = status;
    json_decref(overview->sample.before);
    overview->sample.before =
        overview->sample.after ? overview->sample.after : json_incref(clients);
    overview->sample.after = clients;
    return ADMIN_OK;
}

json_t *overview_json(const struct overview *overview)
{
    return json_pack("{s:i, s:b, s:s, s:O, s:O}", "schema_version", ADMIN_CLIENT_SCHEMA_VERSION,
                     "ok", 1, "request", "overview", "status", overview->status, "clients",
                     overview->sample.after);
}

static void print_clients(FILE *out, const struct overview *overview, struct table_look look)
{
    static const char *const headings[] = {">ID",      "NAME", "USER",    ">GPU",   ">ASKED",
                                           ">GRANTED", ">GOT", ">MEMORY", ">LIMIT", "STATE"};
    const json_t *clients = json_object_get(overview->sample.after, "clients"), *client;
    struct row row;
    if (json_array_size(clients) == 0) {
        fputs("no clients\n", out);
        return;
    }
    struct table *table = table_new(headings, COUNT(headings), 2);
    if (!table)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        row_read(&row, overview->status, &overview->sample, client);
        table_add(table, "%lld", (long long)row.client);
        table_add(table, "%s", cell_cut(row.name, NAME_MAX_SHOWN));
        table_add(table, "%s", cell_cut(row.user, USER_MAX_SHOWN));
        table_add(table, "%s", row.gpu);
        table_add(table, "%s", row.asked);
        table_add(table, "%s", row.granted);
        table_add(table, "%s", row.share);
        table_add(table, "%s", row.memory);
        table_add(table, "%s", row.limit);
        table_add(table, "%s", row.state);
    }
    table_print(table, out, look);
    table_free(table);
}

void overview_print(FILE *out, const struct overview *overview, struct table_look look)
{
    char version[CELL_BYTES], up[CELL_BYTES], driver[CELL_BYTES], clients[CELL_BYTES];
    fprintf(out, "gpushare %s, up %s, driver %s, clients: %s\n\n",
            cell_text(overview->status, "server_version", version),
            cell_duration(overview->status, "uptime_seconds", up),
            cell_text(json_object_get(overview->status, "driver"), "name", driver),
            cell_integer(overview->status, "clients", clients));
    brief_devices(out, overview->status, &overview->sample, look);
    show_drained(out, overview->status);
    show_server_warnings(out, overview->status);
    fputc('\n', out);
    print_clients(out, overview, look);
}

void overview_free(struct overview *overview)
{
    json_decref(overview->status);
    sample_free(&overview->sample);
    *overview = (struct overview){0};
}
