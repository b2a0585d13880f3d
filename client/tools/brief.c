/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/brief.h"

#include <string.h>

#include "client/tools/cell.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { CLIENT_NAME_MAX = 13, DEVICE_NAME_MAX = 20, USER_NAME_MAX = 8 };

static const char *share_cell(double share, char cell[CELL_BYTES])
{
    if (share < 0)
        strcpy(cell, "-");
    else
        snprintf(cell, CELL_BYTES, "%.0f %%", share * 100);
    return cell;
}

/* A state in which nothing can be used stands in the place of the share. */
static void add_use(struct table *table, const json_t *row, const char *usual, double share)
{
    char cell[CELL_BYTES];
    cell_text(row, "state", cell);
    table_add(table, "%s", strcmp(cell, usual) == 0 ? share_cell(share, cell) : cell);
}

void brief_devices(FILE *out, const json_t *answer, const struct sample *sample,
                   struct table_look look)
{
    static const char *const headings[] = {">GPU",    "NAME",    "MODE", ">CLIENTS",
                                           ">MEMORY", ">OF ALL", ">UTIL"};
    const json_t *devices = json_object_get(answer, "devices"), *device;
    char cell[CELL_BYTES];
    struct table *table = table_new(headings, COUNT(headings), 1);
    if (!table)
        return;
    for (size_t i = 0; (device = json_array_get(devices, i)); i++) {
        table_add(table, "%s", cell_integer(device, "device", cell));
        cell_text(device, "name", cell);
        table_add(table, "%s", cell_cut(cell, DEVICE_NAME_MAX));
        table_add(table, "%s", cell_text(json_object_get(device, "schedule"), "mode", cell));
        table_add(table, "%s", cell_integer(device, "clients", cell));
        table_add(table, "%s", cell_bytes(device, "memory_used_bytes", cell));
        table_add(table, "%s", cell_bytes(device, "memory_bytes", cell));
        add_use(table, device, "ready", sample_device_share(sample, device));
    }
    table_print(table, out, look);
    table_free(table);
}

static void add_client(struct table *table, const struct sample *sample, const json_t *client)
{
    const json_t *memory = json_object_get(client, "memory");
    char cell[CELL_BYTES];
    table_add(table, "%s", cell_integer(client, "client", cell));
    cell_text(client, "name", cell);
    table_add(table, "%s", cell_cut(cell, CLIENT_NAME_MAX));
    cell_user(client, "uid", cell);
    table_add(table, "%s", cell_cut(cell, USER_NAME_MAX));
    table_add(table, "%s", cell_integer(client, "device", cell));
    table_add(table, "%s",
              cell_integer(json_object_get(client, "threads"), "multiprocessors", cell));
    table_add(table, "%s", cell_shares(json_object_get(client, "time"), "granted_percent", cell));
    table_add(table, "%s", cell_bytes(memory, "used_bytes", cell));
    table_add(table, "%s", cell_bytes(json_object_get(memory, "limit"), "granted_bytes", cell));
    add_use(table, client, "attached", sample_client_share(sample, client));
}

void brief_clients(FILE *out, const struct sample *sample, struct table_look look)
{
    static const char *const headings[] = {">CLIENT", "NAME",    "USER",   ">GPU", ">SMS",
                                           ">TIME",   ">MEMORY", ">LIMIT", ">UTIL"};
    const json_t *clients = json_object_get(sample->after, "clients"), *client;
    if (json_array_size(clients) == 0) {
        fputs("no clients\n", out);
        return;
    }
    struct table *table = table_new(headings, COUNT(headings), 2);
    if (!table)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++)
        add_client(table, sample, client);
    table_print(table, out, look);
    table_free(table);
}
