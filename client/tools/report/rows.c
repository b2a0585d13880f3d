/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/report/rows.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "client/tools/cell.h"
#include "common/id_name.h"
#include "common/messages.h"
#include "common/units.h"

#define SCHEMA_VERSION 1
#define HOUR           3600.0L
#define GIB            1073741824.0L

/* The name of the user with this uid here, or NULL. */
static char *user_name(const json_t *uid)
{
    return json_is_integer(uid) ? id_name_of(ID_NAME_USER, (uint32_t)json_integer_value(uid))
                                : NULL;
}

/* ---- a table ---- */

static const struct {
    const char *heading;
    enum { HOURS, COUNT, BYTES, GIB_HOURS } form;
} columns[SUMS_VALUES] = {
    [SUMS_CONNECTED] = {">CONNECTED H", HOURS}, [SUMS_GPU_SECONDS] = {">GPU H", HOURS},
    [SUMS_MULTIPROCESSOR] = {">SM H", HOURS},   [SUMS_LAUNCHES] = {">LAUNCHES", COUNT},
    [SUMS_COPIES] = {">COPIES", COUNT},         [SUMS_COPIED] = {">COPIED", BYTES},
    [SUMS_MEMORY] = {">GIB H", GIB_HOURS},      [SUMS_MEMORY_PEAK] = {">PEAK", BYTES},
    [SUMS_HOST] = {">HOST GIB H", GIB_HOURS},   [SUMS_HOST_PEAK] = {">HOST PEAK", BYTES},
};

static void add_value(struct table *table, enum sums_value which, long double value)
{
    char text[UNITS_TEXT];
    switch (columns[which].form) {
    case HOURS:
        table_add(table, "%.4Lf", value / HOUR);
        break;
    case GIB_HOURS:
        table_add(table, "%.4Lf", value / GIB / HOUR);
        break;
    case BYTES:
        table_add(table, "%s",
                  units_format_bytes(value < 0x1p64L ? (uint64_t)value : UINT64_MAX, text));
        break;
    case COUNT:
        table_add(table, "%.0Lf", value);
        break;
    }
}

static void add_key(struct table *table, const struct sums *sums, const struct sums_group *group,
                    unsigned at)
{
    char cell[CELL_BYTES];
    json_t *holder = json_pack("{s:O?}", "value", group->of[at]);
    if (sums->options->by[at] == SUMS_USER)
        cell_user(holder, "value", cell);
    else
        cell_text(holder, "value", cell);
    table_add(table, "%s", cell);
    json_decref(holder);
}

static void add_group(struct table *table, const struct sums *sums, const struct sums_group *group)
{
    for (unsigned i = 0; i < sums->options->by_count; i++) {
        if (group == &sums->total)
            table_add(table, "%s", i ? "" : "all");
        else
            add_key(table, sums, group, i);
    }
    table_add(table, "%zu", json_object_size(group->clients));
    for (enum sums_value i = 0; i < SUMS_VALUES; i++)
        add_value(table, i, group->values[i]);
}

void rows_print_table(FILE *out, const struct sums *sums, struct table_look look)
{
    const char *headings[SUMS_KEYS_MAX + 1 + SUMS_VALUES];
    char names[SUMS_KEYS_MAX][16];
    const unsigned by = sums->options->by_count;
    if (!sums->count) {
        fprintf(out, "%s\n", MESSAGE_TEXT(report_empty));
        return;
    }
    for (unsigned i = 0; i < by; i++) {
        snprintf(names[i], sizeof names[i], "%s", sums_key_name(sums->options->by[i]));
        for (char *at = names[i]; *at; at++)
            *at = (char)toupper((unsigned char)*at);
        headings[i] = names[i];
    }
    headings[by] = ">CLIENTS";
    for (enum sums_value i = 0; i < SUMS_VALUES; i++)
        headings[by + 1 + i] = columns[i].heading;
    struct table *table = table_new(headings, by + 1 + SUMS_VALUES, by);
    if (!table)
        return;
    for (size_t i = 0; i < sums->count; i++)
        add_group(table, sums, sums->groups[i]);
    add_group(table, sums, &sums->total);
    table_print(table, out, look);
    table_free(table);
}

/* ---- CSV ---- */

/* A spreadsheet takes a text that begins like this for a formula, and clients choose their names.
 */
static bool is_formula(const char *text)
{
    return *text && strchr("=+-@", *text);
}

static void print_text(FILE *out, const char *text)
{
    fputs(is_formula(text) ? "\"'" : "\"", out);
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '"' ? "\"" : "", *text);
    fputc('"', out);
}

static void print_key(FILE *out, enum sums_key key, const json_t *value)
{
    char *user = key == SUMS_USER ? user_name(value) : NULL;
    if (key == SUMS_USER)
        fprintf(out, "%lld,", (long long)json_integer_value(value));
    if (user)
        print_text(out, user);
    else if (json_is_string(value))
        print_text(out, json_string_value(value));
    free(user);
}

static void print_value(FILE *out, enum sums_value which, long double value)
{
    if (sums_member(which)->whole)
        fprintf(out, ",%.0Lf", value);
    else
        fprintf(out, ",%.6Lf", value);
}

void rows_print_csv(FILE *out, const struct sums *sums)
{
    const struct sums_options *options = sums->options;
    for (unsigned i = 0; i < options->by_count; i++)
        fprintf(out, "%s%s%s", i ? "," : "", options->by[i] == SUMS_USER ? "uid," : "",
                sums_key_name(options->by[i]));
    fputs(",clients", out);
    for (enum sums_value i = 0; i < SUMS_VALUES; i++)
        fprintf(out, ",%s", sums_member(i)->name);
    fputs("\r\n", out);
    for (size_t k = 0; k < sums->count; k++) {
        for (unsigned i = 0; i < options->by_count; i++) {
            fputs(i ? "," : "", out);
            print_key(out, options->by[i], sums->groups[k]->of[i]);
        }
        fprintf(out, ",%zu", json_object_size(sums->groups[k]->clients));
        for (enum sums_value i = 0; i < SUMS_VALUES; i++)
            print_value(out, i, sums->groups[k]->values[i]);
        fputs("\r\n", out);
    }
}

/* ---- JSON ---- */

static json_t *values_json(const struct sums_group *group)
{
    json_t *object = json_object();
    json_object_set_new(object, "clients",
                        json_integer((json_int_t)json_object_size(group->clients)));
    for (enum sums_value i = 0; i < SUMS_VALUES; i++) {
        const long double value = group->values[i];
        /* Byte-seconds of many years have more than JSON's whole numbers hold here. */
        const bool whole = sums_member(i)->whole && value < 0x1p63L;
        json_object_set_new(object, sums_member(i)->name,
                            whole ? json_integer((json_int_t)value) : json_real((double)value));
    }
    return object;
}

static json_t *group_json(const struct sums *sums, const struct sums_group *group)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < sums->options->by_count; i++) {
        const enum sums_key key = sums->options->by[i];
        char *user = key == SUMS_USER ? user_name(group->of[i]) : NULL;
        if (key == SUMS_USER)
            json_object_set_new(object, "user", user ? json_string(user) : json_null());
        json_object_set(object, sums_key_member(key), group->of[i]);
        free(user);
    }
    json_t *values = values_json(group);
    json_object_update(object, values);
    json_decref(values);
    return object;
}

static json_t *moment_json(double moment)
{
    return isfinite(moment) ? json_real(moment) : json_null();
}

void rows_print_json(FILE *out, const struct sums *sums, uint64_t damaged, bool well)
{
    json_t *by = json_array(), *groups = json_array();
    for (unsigned i = 0; i < sums->options->by_count; i++)
        json_array_append_new(by, json_string(sums_key_name(sums->options->by[i])));
    for (size_t i = 0; i < sums->count; i++)
        json_array_append_new(groups, group_json(sums, sums->groups[i]));
    json_t *report = json_pack(
        "{s:i, s:b, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o}", "schema_version", SCHEMA_VERSION,
        "ok", well, "request", "report", "by", by, "since_seconds",
        moment_json(sums->options->since), "until_seconds", moment_json(sums->options->until),
        "lines", (json_int_t)sums->lines, "copies", (json_int_t)sums->copies, "damaged",
        (json_int_t)damaged, "groups", groups, "total", values_json(&sums->total));
    json_dumpf(report, out, JSON_INDENT(2) | JSON_REAL_PRECISION(ADMIN_CLIENT_DIGITS));
    fputc('\n', out);
    json_decref(report);
}
