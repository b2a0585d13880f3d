/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/report/sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/messages.h"

#define SCHEMA_VERSION 1

static const struct sums_member members[SUMS_VALUES] = {
    [SUMS_CONNECTED] = {"connected_seconds", false, false},
    [SUMS_GPU_SECONDS] = {"gpu_seconds", false, false},
    [SUMS_MULTIPROCESSOR] = {"multiprocessor_seconds", false, false},
    [SUMS_LAUNCHES] = {"launches", true, false},
    [SUMS_COPIES] = {"copies", true, false},
    [SUMS_COPIED] = {"copied_bytes", true, false},
    [SUMS_MEMORY] = {"memory_byte_seconds", true, false},
    [SUMS_MEMORY_PEAK] = {"memory_peak_bytes", true, true},
    [SUMS_HOST] = {"host_memory_byte_seconds", true, false},
    [SUMS_HOST_PEAK] = {"host_memory_peak_bytes", true, true},
};

static const struct {
    const char *name, *member;
} keys[SUMS_KEYS] = {
    [SUMS_USER] = {"user", "uid"},
    [SUMS_NAME] = {"name", "name"},
    [SUMS_GPU] = {"gpu", "gpu"},
    [SUMS_DAY] = {"day", "day"},
    [SUMS_PROGRAM] = {"program", "program"},
    [SUMS_CGROUP] = {"cgroup", "cgroup"},
};

const struct sums_member *sums_member(enum sums_value value)
{
    return &members[value];
}

const char *sums_key_name(enum sums_key key)
{
    return keys[key].name;
}

const char *sums_key_member(enum sums_key key)
{
    return keys[key].member;
}

const char *sums_key_names(char text[SUMS_NAMES])
{
    size_t used = 0;
    for (enum sums_key i = 0; i < SUMS_KEYS && used < SUMS_NAMES; i++)
        used +=
            (size_t)snprintf(text + used, SUMS_NAMES - used, "%s%s", i ? ", " : "", keys[i].name);
    return text;
}

static enum sums_key key_find(const char *text, size_t length)
{
    enum sums_key key = 0;
    while (key < SUMS_KEYS &&
           (strlen(keys[key].name) != length || memcmp(keys[key].name, text, length) != 0))
        key++;
    return key;
}

uint32_t sums_parse_by(const char *text, struct sums_options *options, struct error *why)
{
    char names[SUMS_NAMES];
    for (options->by_count = 0;; text++) {
        const size_t length = strcspn(text, ",");
        const enum sums_key key = key_find(text, length);
        bool again = false;
        for (unsigned i = 0; i < options->by_count; i++)
            again |= options->by[i] == key;
        if (key == SUMS_KEYS || again || options->by_count == SUMS_KEYS_MAX)
            return error_set(why, MESSAGE(report_by), SUMS_KEYS_MAX, sums_key_names(names));
        options->by[options->by_count++] = key;
        text += length;
        if (!*text)
            return 0;
    }
}

/* ---- groups ---- */

static void group_free(struct sums_group *group)
{
    for (unsigned i = 0; i < SUMS_KEYS_MAX; i++)
        json_decref(group->of[i]);
    json_decref(group->clients);
}

bool sums_open(struct sums *sums, const struct sums_options *options)
{
    *sums = (struct sums){.options = options,
                          .by_name = json_object(),
                          .seen = json_object(),
                          .total.clients = json_object()};
    return sums->by_name && sums->seen && sums->total.clients;
}

void sums_close(struct sums *sums)
{
    for (size_t i = 0; i < sums->count; i++) {
        group_free(sums->groups[i]);
        free(sums->groups[i]);
    }
    free(sums->groups);
    group_free(&sums->total);
    json_decref(sums->by_name);
    json_decref(sums->seen);
    *sums = (struct sums){0};
}

/* NULL: there is no memory. */
static struct sums_group *group_make(struct sums *sums, const json_t *line, const char *name)
{
    struct sums_group *group = calloc(1, sizeof *group);
    if (!group || array_reserve(sums->groups, sums->room, sums->count + 1) < 0 ||
        json_object_set_new(sums->by_name, name, json_integer((json_int_t)sums->count)) < 0) {
        free(group);
        return NULL;
    }
    for (unsigned i = 0; i < sums->options->by_count; i++)
        group->of[i] = json_incref(json_object_get(line, keys[sums->options->by[i]].member));
    group->clients = json_object();
    sums->groups[sums->count++] = group;
    return group;
}

static struct sums_group *group_of(struct sums *sums, const json_t *line)
{
    json_t *values = json_array();
    for (unsigned i = 0; i < sums->options->by_count; i++)
        json_array_append(values, json_object_get(line, keys[sums->options->by[i]].member));
    char *name = json_dumps(values, JSON_COMPACT);
    json_decref(values);
    const json_t *number = name ? json_object_get(sums->by_name, name) : NULL;
    struct sums_group *group = number ? sums->groups[json_integer_value(number)]
                               : name ? group_make(sums, line, name)
                                      : NULL;
    free(name);
    return group;
}

static void group_add(struct sums_group *group, const json_t *line, const char *client)
{
    for (enum sums_value i = 0; i < SUMS_VALUES; i++) {
        const json_t *member = json_object_get(line, members[i].name);
        const long double value = members[i].whole ? (long double)json_integer_value(member)
                                                   : (long double)json_number_value(member);
        if (!members[i].peak)
            group->values[i] += value;
        else if (value > group->values[i])
            group->values[i] = value;
    }
    json_object_set_new(group->clients, client, json_true());
}

/* ---- lines ---- */

static bool is_number(const json_t *line, const char *name, bool whole)
{
    const json_t *member = json_object_get(line, name);
    return (whole ? json_is_integer(member) : json_is_number(member)) &&
           json_number_value(member) >= 0;
}

static bool is_text(const json_t *line, const char *name, bool may_lack)
{
    const json_t *member = json_object_get(line, name);
    return json_is_string(member) || (may_lack && json_is_null(member));
}

/* The member that is not as the schema says; NULL: there is none. */
static const char *find_strange(const json_t *line)
{
    for (enum sums_value i = 0; i < SUMS_VALUES; i++)
        if (!is_number(line, members[i].name, members[i].whole))
            return members[i].name;
    for (enum sums_key i = 0; i < SUMS_KEYS; i++)
        if (i == SUMS_USER ? !is_number(line, "uid", true)
                           : !is_text(line, keys[i].member, i != SUMS_GPU && i != SUMS_DAY))
            return keys[i].member;
    if (!is_text(line, "id", false))
        return "id";
    return is_number(line, "begin_seconds", false) ? NULL : "begin_seconds";
}

static uint32_t line_read(const char *text, size_t bytes, json_t **line, struct error *why)
{
    json_error_t mistake;
    *line = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &mistake);
    if (!*line)
        return error_set(why, MESSAGE(report_not_json), mistake.text);
    const json_t *version = json_object_get(*line, "schema_version");
    const char *strange = NULL;
    if (!json_is_integer(version))
        strange = "schema_version";
    else if (json_integer_value(version) != SCHEMA_VERSION)
        return error_set(why, MESSAGE(report_version), (long long)json_integer_value(version),
                         SCHEMA_VERSION);
    if (!strange)
        strange = find_strange(*line);
    return strange ? error_set(why, MESSAGE(report_member), strange) : 0;
}

static bool is_meant(const struct sums *sums, const json_t *line)
{
    const double begin = json_number_value(json_object_get(line, "begin_seconds"));
    return begin >= sums->options->since && begin < sums->options->until;
}

/* Notes the line's id. Returns whether it is new. */
static bool is_new(struct sums *sums, const char *id)
{
    const bool known = json_object_get(sums->seen, id) != NULL;
    sums->copies += known;
    return !known && json_object_set_new(sums->seen, id, json_true()) == 0;
}

static uint32_t line_add(struct sums *sums, const json_t *line, struct error *why)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    if (!is_meant(sums, line) || !is_new(sums, id))
        return 0;
    /* The line's number stands behind the client's part. */
    const char *dash = strrchr(id, '-');
    char *client = strndup(id, dash ? (size_t)(dash - id) : strlen(id));
    struct sums_group *group = client ? group_of(sums, line) : NULL;
    if (group) {
        group_add(group, line, client);
        group_add(&sums->total, line, client);
        sums->lines++;
    }
    free(client);
    return group ? 0 : error_set(why, MESSAGE(process_no_memory));
}

uint32_t sums_add(struct sums *sums, const char *text, size_t bytes, struct error *why)
{
    json_t *line;
    uint32_t error = line_read(text, bytes, &line, why);
    if (!error)
        error = line_add(sums, line, why);
    json_decref(line);
    return error;
}

/* Numbers by size, then texts; null stands before both. */
static int value_compare(const json_t *a, const json_t *b)
{
    const json_int_t first = json_integer_value(a), second = json_integer_value(b);
    const char *text = json_string_value(a), *other = json_string_value(b);
    if (text && other)
        return strcmp(text, other);
    if (text || other)
        return text ? 1 : -1;
    return (first > second) - (first < second);
}

static int group_compare(const void *a, const void *b)
{
    const struct sums_group *const *first = a, *const *second = b;
    int order = 0;
    for (unsigned i = 0; i < SUMS_KEYS_MAX && order == 0; i++)
        order = value_compare((*first)->of[i], (*second)->of[i]);
    return order;
}

void sums_finish(struct sums *sums)
{
    if (sums->count)
        qsort(sums->groups, sums->count, sizeof *sums->groups, group_compare);
    /* The numbers of groups are others now. */
    json_object_clear(sums->by_name);
}
