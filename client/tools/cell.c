/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/cell.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/tools/table.h"
#include "common/id_name.h"
#include "common/units.h"

const char *cell_text(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const char *text = json_string_value(json_object_get(object, name));
    snprintf(cell, CELL_BYTES, "%s", text && *text ? text : "-");
    table_clean(cell);
    return cell;
}

const char *cell_integer(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        snprintf(cell, CELL_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        strcpy(cell, "-");
    return cell;
}

const char *cell_user(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const json_t *uid = json_object_get(object, name);
    char *user =
        json_is_integer(uid) ? id_name_of(ID_NAME_USER, (uint32_t)json_integer_value(uid)) : NULL;
    if (!user)
        return cell_integer(object, name, cell);
    snprintf(cell, CELL_BYTES, "%s", user);
    free(user);
    table_clean(cell);
    return cell;
}

const char *cell_bytes(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const json_t *value = json_object_get(object, name);
    char text[UNITS_TEXT];
    json_int_t bytes = json_integer_value(value);
    snprintf(cell, CELL_BYTES, "%s",
             json_is_integer(value) && bytes >= 0 ? units_format_bytes((uint64_t)bytes, text)
                                                  : "-");
    return cell;
}

/* "12.5"; NULL if value is no percentage. */
static const char *format_percent(const json_t *value, char text[UNITS_TEXT])
{
    double percent = json_number_value(value);
    if (!json_is_number(value) || !(percent >= 0 && percent <= 100))
        return NULL;
    return units_format_percentage((uint32_t)(percent * 100 + 0.5), text);
}

const char *cell_percent(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    char text[UNITS_TEXT];
    const char *percent = format_percent(json_object_get(object, name), text);
    snprintf(cell, CELL_BYTES, "%s%s", percent ? percent : "-", percent ? " %" : "");
    return cell;
}

/* A resource's request and limit, "30 to 50 %". which: asked or granted. A request of 0 is none. */
const char *cell_shares(const json_t *resource, const char *which, char cell[CELL_BYTES])
{
    const json_t *request = json_object_get(json_object_get(resource, "request"), which);
    char a[UNITS_TEXT], b[UNITS_TEXT];
    const char *low = json_number_value(request) > 0 ? format_percent(request, a) : NULL;
    const char *high =
        format_percent(json_object_get(json_object_get(resource, "limit"), which), b);
    if (low && high)
        snprintf(cell, CELL_BYTES, "%s to %s %%", low, high);
    else if (low)
        snprintf(cell, CELL_BYTES, "%s %% to any", low);
    else
        snprintf(cell, CELL_BYTES, "%s%s", high ? high : "-", high ? " %" : "");
    return cell;
}

const char *cell_amounts(const json_t *resource, const char *which, char cell[CELL_BYTES])
{
    const json_t *request = json_object_get(resource, "request");
    char low[CELL_BYTES], high[CELL_BYTES];
    cell_bytes(json_object_get(resource, "limit"), which, high);
    if (json_integer_value(json_object_get(request, which)) > 0)
        snprintf(cell, CELL_BYTES, "%.40s to %.40s", cell_bytes(request, which, low),
                 strcmp(high, "-") == 0 ? "any" : high);
    else
        snprintf(cell, CELL_BYTES, "%s", high);
    return cell;
}

const char *cell_seconds(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_number(value))
        snprintf(cell, CELL_BYTES, "%.3f s", json_number_value(value));
    else
        strcpy(cell, "-");
    return cell;
}

const char *cell_duration(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    double seconds = json_number_value(json_object_get(object, name));
    uint64_t whole = seconds > 0 && seconds < 1e12 ? (uint64_t)seconds : 0;
    if (whole >= 86400)
        snprintf(cell, CELL_BYTES, "%" PRIu64 " d %" PRIu64 " h", whole / 86400, whole / 3600 % 24);
    else if (whole >= 3600)
        snprintf(cell, CELL_BYTES, "%" PRIu64 " h %" PRIu64 " min", whole / 3600, whole / 60 % 60);
    else if (whole >= 60)
        snprintf(cell, CELL_BYTES, "%" PRIu64 " min %" PRIu64 " s", whole / 60, whole % 60);
    else
        snprintf(cell, CELL_BYTES, "%" PRIu64 " s", whole);
    return cell;
}

/* Seconds in the form of the configuration, "50ms". */
const char *cell_time(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    double seconds = json_number_value(json_object_get(object, name));
    char text[UNITS_TEXT];
    snprintf(cell, CELL_BYTES, "%s",
             seconds > 0 && seconds < 1e9
                 ? units_format_duration((uint64_t)(seconds * 1e9 + 0.5), text)
                 : "-");
    return cell;
}

const char *cell_limit(const json_t *object, const char *name, char cell[CELL_BYTES])
{
    const json_t *value = json_object_get(object, name);
    if (json_is_number(value) && json_number_value(value) == 0)
        strcpy(cell, "0");
    else
        cell_time(object, name, cell);
    return cell;
}

const char *cell_cut(char cell[CELL_BYTES], unsigned most)
{
    unsigned width = 0;
    char *end = NULL;
    for (char *at = cell; *at; at++) {
        if (((unsigned char)*at & 0xc0) == 0x80)
            continue;
        if (width++ == most - 1)
            end = at;
    }
    if (width > most && end)
        strcpy(end, "+");
    return cell;
}
