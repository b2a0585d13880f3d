/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/columns.h"

#include <string.h>

#include "client/tools/admin_client.h"
#include "client/tools/cell.h"
#include "client/tools/live/row.h"
#include "common/messages.h"

/* The form of a column's text in a table. In CSV a number stands as it is. */
enum form { TEXT, NUMBER, BYTES, PERCENT, SECONDS, USER, GOT, UTIL };

/* path: of the member in a client's row of the answer, with dots between. */
static const struct {
    const char *name, *path;
    enum form form;
} all[] = {
    {"client", "client", NUMBER},
    {"name", "name", TEXT},
    {"pid", "pid", NUMBER},
    {"uid", "uid", NUMBER},
    {"user", "uid", USER},
    {"gpu", "device", NUMBER},
    {"state", "state", TEXT},
    {"got_percent", "", GOT},
    {"util_percent", "", UTIL},
    {"threads_asked_percent", "threads.limit.asked_percent", PERCENT},
    {"threads_request_percent", "threads.request.granted_percent", PERCENT},
    {"threads_percent", "threads.limit.granted_percent", PERCENT},
    {"multiprocessors", "threads.multiprocessors", NUMBER},
    {"multiprocessors_now", "multiprocessors_now", NUMBER},
    {"time_asked_percent", "time.limit.asked_percent", PERCENT},
    {"time_request_percent", "time.request.granted_percent", PERCENT},
    {"time_percent", "time.limit.granted_percent", PERCENT},
    {"memory_bytes", "memory.used_bytes", BYTES},
    {"memory_asked_bytes", "memory.limit.asked_bytes", BYTES},
    {"memory_limit_bytes", "memory.limit.granted_bytes", BYTES},
    {"host_memory_bytes", "host_memory.used_bytes", BYTES},
    {"host_memory_limit_bytes", "host_memory.limit.granted_bytes", BYTES},
    {"priority", "priority", NUMBER},
    {"connected_seconds", "connected_seconds", SECONDS},
    {"gpu_time_seconds", "gpu_time_seconds", SECONDS},
    {"charged_seconds", "charged_seconds", SECONDS},
    {"launches", "launches", NUMBER},
    {"copied_bytes", "copied_bytes", BYTES},
    {"waits_for", "waits_for", NUMBER},
};
enum { ALL = sizeof all / sizeof all[0] };
_Static_assert((int)ALL <= (int)COLUMNS_MAX && (int)ALL <= TABLE_COLUMNS_MAX, "columns");

const char *columns_names(char text[COLUMNS_NAMES])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < ALL && used < COLUMNS_NAMES; i++)
        used +=
            (size_t)snprintf(text + used, COLUMNS_NAMES - used, "%s%s", i ? "," : "", all[i].name);
    return text;
}

static unsigned find(const char *name, size_t length)
{
    unsigned i = 0;
    while (i < ALL && (strlen(all[i].name) != length || memcmp(all[i].name, name, length) != 0))
        i++;
    return i;
}

uint32_t columns_parse(const char *text, struct columns *columns, struct error *why)
{
    char names[COLUMNS_NAMES];
    *columns = (struct columns){.csv = strcmp(text, "csv") == 0};
    for (; columns->csv && columns->count < ALL; columns->count++)
        columns->which[columns->count] = (unsigned char)columns->count;
    while (!columns->csv) {
        const size_t length = strcspn(text, ",");
        const unsigned which = find(text, length);
        if (which == ALL || columns->count == COLUMNS_MAX)
            return error_set(why, MESSAGE(ctl_columns), (int)length, text, columns_names(names));
        columns->which[columns->count++] = (unsigned char)which;
        if (!text[length])
            break;
        text += length + 1;
    }
    return 0;
}

/* The member that a path of names with dots between leads to. */
static const json_t *member_of(const json_t *object, const char *path)
{
    while (*path && object) {
        const size_t length = strcspn(path, ".");
        char name[40];
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        object = json_object_get(object, name);
        path += length + (path[length] == '.');
    }
    return object;
}

/* A value that is computed here; NULL: the column is a member of the answer. */
static json_t *computed(enum form form, const struct overview *overview, const json_t *client)
{
    struct row row;
    char cell[CELL_BYTES];
    if (form == USER)
        return json_string(cell_user(client, "uid", cell));
    if (form == UTIL || form == GOT) {
        row_read(&row, overview->status, &overview->sample, client);
        double share = form == GOT ? row.got : sample_client_share(&overview->sample, client);
        return share < 0 ? json_null() : json_real((double)(int)(share * 1e4 + 0.5) / 100);
    }
    return NULL;
}

/* ---- CSV ---- */

/* As RFC 4180 has it. */
static void print_text(FILE *out, const char *text)
{
    char shown[CELL_BYTES];
    snprintf(shown, sizeof shown, "%s", text);
    table_clean(shown);
    fputc('"', out);
    for (const char *at = shown; *at; at++)
        fprintf(out, "%s%c", *at == '"' ? "\"" : "", *at);
    fputc('"', out);
}

static void print_value(FILE *out, const json_t *value)
{
    if (json_is_string(value))
        print_text(out, json_string_value(value));
    else if (value && !json_is_null(value))
        json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
}

/* ---- table ---- */

static void add_cell(struct table *table, const json_t *value, enum form form)
{
    char cell[CELL_BYTES];
    json_t *holder = json_pack("{s:O?}", "value", value);
    if (json_is_string(value))
        cell_text(holder, "value", cell);
    else if (form == BYTES)
        cell_bytes(holder, "value", cell);
    else if (form == PERCENT || form == UTIL || form == GOT)
        cell_percent(holder, "value", cell);
    else if (form == SECONDS)
        cell_seconds(holder, "value", cell);
    else
        cell_integer(holder, "value", cell);
    table_add(table, "%s", cell);
    json_decref(holder);
}

static void print_csv(FILE *out, const struct columns *columns, const struct overview *overview)
{
    const json_t *clients = json_object_get(overview->sample.after, "clients"), *client;
    for (unsigned i = 0; i < columns->count; i++)
        fprintf(out, "%s%s", i ? "," : "", all[columns->which[i]].name);
    fputc('\n', out);
    for (size_t k = 0; (client = json_array_get(clients, k)); k++) {
        for (unsigned i = 0; i < columns->count; i++) {
            json_t *own = computed(all[columns->which[i]].form, overview, client);
            fputs(i ? "," : "", out);
            print_value(out, own ? own : member_of(client, all[columns->which[i]].path));
            json_decref(own);
        }
        fputc('\n', out);
    }
}

void columns_print(FILE *out, const struct columns *columns, const struct overview *overview,
                   struct table_look look)
{
    const json_t *clients = json_object_get(overview->sample.after, "clients"), *client;
    const char *headings[COLUMNS_MAX];
    char shown[COLUMNS_MAX][40];
    if (columns->csv) {
        print_csv(out, columns, overview);
        return;
    }
    for (unsigned i = 0; i < columns->count; i++) {
        const enum form form = all[columns->which[i]].form;
        snprintf(shown[i], sizeof shown[i], "%s%s", form == TEXT || form == USER ? "" : ">",
                 all[columns->which[i]].name);
        headings[i] = shown[i];
    }
    struct table *table = table_new(headings, columns->count, 0);
    if (!table)
        return;
    for (size_t k = 0; (client = json_array_get(clients, k)); k++)
        for (unsigned i = 0; i < columns->count; i++) {
            const enum form form = all[columns->which[i]].form;
            json_t *own = computed(form, overview, client);
            add_cell(table, own ? own : member_of(client, all[columns->which[i]].path), form);
            json_decref(own);
        }
    table_print(table, out, look);
    table_free(table);
}
