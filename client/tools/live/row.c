/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/row.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const json_t *row_device(const json_t *status, json_int_t index)
{
    const json_t *devices = json_object_get(status, "devices"), *device;
    for (size_t i = 0; (device = json_array_get(devices, i)); i++)
        if (json_integer_value(json_object_get(device, "device")) == index)
            return device;
    return NULL;
}

const char *row_share(double share, char cell[CELL_BYTES])
{
    if (share < 0)
        strcpy(cell, "-");
    else
        snprintf(cell, CELL_BYTES, "%.0f%%", share * 100);
    return cell;
}

/* "25-50%", "50%", "25%+" for a request without a limit, "-" for neither: seven characters, since
 * the screens have 80 columns. */
static void range_cell(const json_t *resource, const char *which, char cell[CELL_BYTES])
{
    const json_t *low = json_object_get(json_object_get(resource, "request"), which);
    const json_t *high = json_object_get(json_object_get(resource, "limit"), which);
    const double request = json_number_value(low);
    if (request > 0 && json_is_number(high))
        snprintf(cell, CELL_BYTES, "%.0f-%.0f%%", request, json_number_value(high));
    else if (request > 0)
        snprintf(cell, CELL_BYTES, "%.0f%%+", request);
    else if (json_is_number(high))
        snprintf(cell, CELL_BYTES, "%.0f%%", json_number_value(high));
    else
        strcpy(cell, "-");
}

/* Of a device that takes turns, the time is all that a client gets. Elsewhere several run at once,
 * each on its multiprocessors. */
static double share_got(const struct sample *sample, const json_t *client, const json_t *device,
                        bool of_time)
{
    const double time = sample_client_share(sample, client);
    const json_t *now = json_object_get(client, "multiprocessors_now");
    const double all = json_number_value(json_object_get(device, "multiprocessors"));
    if (of_time || time < 0)
        return time;
    if (!json_is_number(now) || !(all > 0))
        return -1;
    return time * json_number_value(now) / all;
}

void row_read(struct row *row, const json_t *status, const struct sample *sample,
              const json_t *client)
{
    const json_t *index = json_object_get(client, "device");
    const json_t *memory = json_object_get(client, "memory");
    *row = (struct row){.client = json_integer_value(json_object_get(client, "client")),
                        .device = json_is_integer(index) ? json_integer_value(index) : -1,
                        .used = json_integer_value(json_object_get(memory, "used_bytes"))};
    const json_t *device = row_device(status, row->device);
    const bool of_time =
        json_is_true(json_object_get(json_object_get(device, "schedule"), "time_enforced"));
    const json_t *resource = json_object_get(client, of_time ? "time" : "threads");
    cell_text(client, "name", row->name);
    cell_user(client, "uid", row->user);
    cell_integer(client, "device", row->gpu);
    cell_text(client, "state", row->state);
    range_cell(resource, "asked_percent", row->asked);
    range_cell(resource, "granted_percent", row->granted);
    row->got = share_got(sample, client, device, of_time);
    row_share(row->got, row->share);
    cell_bytes(memory, "used_bytes", row->memory);
    cell_bytes(json_object_get(memory, "limit"), "granted_bytes", row->limit);
}
