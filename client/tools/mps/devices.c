/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/mps/devices.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/messages.h"
#include "common/units.h"

enum admin_outcome devices_count(struct servers *servers, json_int_t *count)
{
    json_t *status;
    enum admin_outcome outcome = servers_ask_for(servers, "status", &status);
    *count = (json_int_t)json_array_size(json_object_get(status, "devices"));
    json_decref(status);
    return outcome;
}

enum admin_outcome devices_read(struct servers *servers, const char *text, json_int_t *gpu)
{
    uint64_t number;
    if (units_parse_number(text, strlen(text), UINT32_MAX, &number) != 0)
        return servers_refuse(error_set(&servers->why, MESSAGE(mps_device), text));
    *gpu = (json_int_t)number;
    return ADMIN_OK;
}

enum admin_outcome devices_of_server(struct servers *servers, const char *pid, json_int_t *gpu)
{
    json_t *status;
    const json_t *device;
    enum admin_outcome outcome = servers_find(servers, pid, &status, &device);
    if (outcome == ADMIN_OK)
        *gpu = json_integer_value(json_object_get(device, "device"));
    json_decref(status);
    return outcome;
}

enum admin_outcome devices_of_both(struct servers *servers, const char *pid, const char *device,
                                   json_int_t *gpu)
{
    json_int_t named = 0;
    enum admin_outcome outcome = devices_read(servers, device, &named);
    if (outcome == ADMIN_OK)
        outcome = devices_of_server(servers, pid, gpu);
    if (outcome == ADMIN_OK && named != *gpu)
        return servers_refuse(
            error_set(&servers->why, MESSAGE(mps_device_other), pid, (long long)*gpu, device));
    return outcome;
}

void devices_print_percentage(double percent)
{
    /* Two digits where the second one is not 0: no value is rounded away. */
    char text[UNITS_TEXT];
    snprintf(text, sizeof text, "%.2f", percent);
    size_t length = strlen(text);
    if (text[length - 1] == '0')
        text[length - 1] = '\0';
    puts(text);
}
