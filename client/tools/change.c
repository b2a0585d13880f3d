/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/change.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/id_name.h"
#include "common/limits/allowance.h"
#include "common/limits/dialect.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/units.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- targets ---- */

enum kind { CLIENT, USER, GROUP, CGROUP, GPU, KINDS };

static const char *const kind_names[KINDS] = {
    [CLIENT] = "client", [USER] = "user", [GROUP] = "group", [CGROUP] = "cgroup", [GPU] = "gpu"};

/* kind: the one that the user named, or KINDS for none, where any would do. */
static uint32_t refuse_missing(enum kind kind, struct error *why)
{
    switch (kind) {
    case CLIENT:
        return error_set(why, MESSAGE(ctl_client_missing));
    case USER:
        return error_set(why, MESSAGE(ctl_user_missing));
    case GROUP:
        return error_set(why, MESSAGE(ctl_group_missing));
    case CGROUP:
        return error_set(why, MESSAGE(ctl_cgroup_missing));
    case GPU:
        return error_set(why, MESSAGE(ctl_gpu_missing));
    case KINDS:
        break;
    }
    return error_set(why, MESSAGE(ctl_target_missing));
}

/* kind: as above. */
static uint32_t refuse_number(enum kind kind, const char *number, struct error *why)
{
    switch (kind) {
    case CLIENT:
        return error_set(why, MESSAGE(ctl_client_number), number);
    case USER:
        return error_set(why, MESSAGE(ctl_user_number), number);
    case GROUP:
        return error_set(why, MESSAGE(ctl_group_number), number);
    case CGROUP:
        return error_set(why, MESSAGE(ctl_cgroup_path), number);
    case GPU:
        return error_set(why, MESSAGE(ctl_gpu_number), number);
    case KINDS:
        break;
    }
    return error_set(why, MESSAGE(ctl_target), number);
}

/* kind: as above. Users and groups may be named. */
static uint32_t read_number(enum kind kind, const char *text, uint32_t *number, struct error *why)
{
    uint64_t value;
    if (units_parse_number(text, strlen(text), UINT32_MAX, &value) == 0) {
        *number = (uint32_t)value;
        return 0;
    }
    if ((kind == USER || kind == GROUP) && id_name_is_possible(text))
        return id_name_find(kind == USER ? ID_NAME_USER : ID_NAME_GROUP, text, number, why);
    return refuse_number(kind, text, why);
}

/* A control group is named by its path. kind: as above. Adds the target to the request. */
static uint32_t put_target(json_t *request, enum kind kind, const char *text, struct error *why)
{
    uint32_t number = 0;
    if (kind != CGROUP) {
        if (read_number(kind, text, &number, why))
            return why->number;
        json_object_set_new(request, kind_names[kind == KINDS ? CLIENT : kind],
                            json_integer(number));
        return 0;
    }
    json_t *path = json_string(text);
    if (text[0] == '/' && path && json_object_set_new(request, kind_names[kind], path) == 0)
        return 0;
    if (text[0] != '/')
        json_decref(path);
    return refuse_number(kind, text, why);
}

uint32_t change_read_target(json_t *request, int count, char *const words[], bool to_kill,
                            int *used, struct error *why)
{
    /* A user who named a kind need not be told the other kinds. */
    enum kind kind = KINDS;
    const char *number = count ? words[0] : NULL;
    *used = 1;
    for (enum kind i = CLIENT; number && *used == 1 && i < (to_kill ? GROUP : KINDS); i++) {
        size_t length = strlen(kind_names[i]);
        bool joined = strncmp(words[0], kind_names[i], length) == 0 && words[0][length] == ':';
        if (!joined && strcmp(words[0], kind_names[i]) != 0)
            continue;
        kind = i;
        if (joined) {
            number = words[0] + length + 1;
            break;
        }
        number = count > 1 ? words[1] : NULL;
        *used = 2;
    }
    if (!number)
        return to_kill && kind == KINDS ? error_set(why, MESSAGE(ctl_victim_missing))
                                        : refuse_missing(kind, why);
    if (put_target(request, kind, number, why))
        return to_kill && kind == KINDS ? error_set(why, MESSAGE(ctl_victim), number) : why->number;
    return 0;
}

/* ---- values ---- */

/* A name as people write it, and the path of its value in the request: "threads.limit" is the
 * member "limit" of the object "threads". */
struct place {
    const char *name, *path;
    bool number; /* the request has a number of this scalar there, which is checked here */
    enum scalar scalar;
};

/* Beside the resources and the scalars, whose names come from their tables. A fraction sets
 * both. */
static const struct place of_clients[] = {
    {.name = "fraction", .path = "memory.limit"},
    {.name = "fraction", .path = "time.request"},
};
static const struct place of_gpus[] = {
    {.name = "mode", .path = "mode"},
    {.name = "lease", .path = "lease"},
    {.name = "precision", .path = "precision"},
    {.name = "quantum", .path = "quantum"},
    {.name = "window_limit", .path = "window_limit"},
    {.name = "local_memory", .path = "local_memory"},
    {.name = "departed_time_limit", .path = "departed_time_limit"},
    {.name = "watchdog_warning", .path = "watchdog_warning"},
    {.name = "watchdog_limit", .path = "watchdog_limit"},
    {.name = "standby", .path = "standby"},
};

/* Puts value into the request. value: taken over. */
static uint32_t put_value(json_t *request, const struct place *place, json_t *value,
                          const char *word, struct error *why)
{
    const char *at = place->path;
    json_t *object = request, *inner;
    for (const char *dot; (dot = strchr(at, '.')); at = dot + 1, object = inner) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)(dot - at), at);
        inner = json_object_get(object, name);
        if (!inner) {
            inner = json_object();
            json_object_set_new(object, name, inner);
        }
    }
    if (json_object_get(object, at)) {
        json_decref(value);
        return error_set(why, MESSAGE(ctl_value_twice), word);
    }
    if (json_object_set_new(object, at, value) < 0)
        return error_set(why, MESSAGE(ctl_value_utf8), word);
    return 0;
}

static bool is_configured(const char *text)
{
    return strcmp(text, "configured") == 0;
}

static json_t *value_of(const struct place *place, const char *text)
{
    uint64_t number;
    if (!place->number || is_configured(text))
        return json_string(text);
    return allowance_parse_scalar(place->scalar, text, strlen(text), &number) == 0
               ? json_integer((json_int_t)number)
               : NULL;
}

/* Says why the text is no value for this name; NULL if it is one, or if the server is to check
 * it. A fraction is checked here. The server would name the two limits that the fraction
 * becomes, and the user wrote neither. */
static const char *why_not_value(const struct place *place, const char *text, json_t *value)
{
    struct dialect_amount share;
    if (!value)
        return MESSAGE_TEXT(ctl_value_text);
    if (strcmp(place->name, "fraction") == 0 && !is_configured(text) &&
        dialect_parse_share(text, strlen(text), &share) != 0)
        return "a fraction is " DIALECT_FORM_SHARE;
    return NULL;
}

/* The names that can be set for each kind of target. */
static const struct {
    const struct place *places; /* NULL for none */
    size_t count;
    bool limits, totals; /* the resources and scalars of each client; its owner's totals */
    bool no_memory;      /* of totals, those alone that a worker enforces */
    const char *example;
} settable[KINDS] = {
    [CLIENT] = {.places = of_clients,
                .count = COUNT(of_clients),
                .limits = true,
                .example = "threads=25%"},
    [USER] = {.places = of_clients,
              .count = COUNT(of_clients),
              .limits = true,
              .totals = true,
              .example = "threads=25% or total.memory=40%"},
    [GROUP] = {.totals = true, .example = "total.time=50%"},
    [CGROUP] = {.totals = true, .no_memory = true, .example = "total.time=50%"},
    [GPU] = {.places = of_gpus, .count = COUNT(of_gpus), .example = "mode=fair"},
};

/* Sets the value of a word at a place, if the word has its name. known: becomes true if it has. */
static uint32_t read_place(json_t *request, const char *word, const struct place *place,
                           bool *known, struct error *why)
{
    size_t length = strcspn(word, "=");
    if (!word[length] || strlen(place->name) != length || strncmp(word, place->name, length) != 0)
        return 0;
    *known = true;
    const char *text = word + length + 1;
    json_t *value = value_of(place, text);
    if (!value && place->number)
        return error_set(why, MESSAGE(ctl_value_priority), word,
                         allowance_scalar(place->scalar)->form);
    const char *wrong = why_not_value(place, text, value);
    if (wrong) {
        json_decref(value);
        return error_set(why, MESSAGE(ctl_value), word, wrong);
    }
    return put_value(request, place, value, word, why);
}

/* The same of the scalars of a client. */
static uint32_t read_scalars(json_t *request, const char *word, bool *known, struct error *why)
{
    for (enum scalar i = 0; i < SCALARS; i++) {
        const struct allowance_scalar *row = allowance_scalar(i);
        const struct place place = {row->name, row->name, row->unit == ALLOWANCE_NUMBER, i};
        if (read_place(request, word, &place, known, why))
            return why->number;
    }
    return 0;
}

/* The same at the places of the resources of a client. total: of the totals of this kind of target;
 * those of memory are limits alone. */
static uint32_t read_resources(json_t *request, const char *word, bool total, enum kind kind,
                               bool *known, struct error *why)
{
    static const struct {
        const char *suffix, *member;
    } bounds[] = {{"", ".limit"}, {".limit", ".limit"}, {".request", ".request"}};
    enum { REQUEST = 2 }; /* the place in bounds */
    const char *prefix = total ? "total." : "";
    for (enum resource i = 0; i < RESOURCES; i++) {
        const struct allowance_resource *row = allowance_resource(i);
        if (total && (!row->has_total || (settable[kind].no_memory && !row->by_worker)))
            continue;
        for (size_t k = 0; k < COUNT(bounds); k++) {
            char name[64], path[64];
            snprintf(name, sizeof name, "%s%s%s", prefix, row->name, bounds[k].suffix);
            snprintf(path, sizeof path, "%s%s%s", prefix, row->name, bounds[k].member);
            struct place place = {.name = name, .path = path};
            const bool before = *known;
            if (read_place(request, word, &place, known, why))
                return why->number;
            if (*known && !before && total && !row->by_worker && k == REQUEST)
                return error_set(why, MESSAGE(admin_total_request), row->name);
        }
    }
    return 0;
}

/* The limits of a GPU's clients to come. */
static uint32_t read_newcomers(json_t *request, const char *word, bool *known, struct error *why)
{
    static const char *const suffixes[] = {"", ".limit"};
    char name[64], path[64];
    for (enum resource i = 0; i < RESOURCES; i++)
        for (size_t k = 0; k < COUNT(suffixes); k++) {
            snprintf(name, sizeof name, "new_clients.%s%s", allowance_resource(i)->name,
                     suffixes[k]);
            snprintf(path, sizeof path, "new_clients.%s.limit", allowance_resource(i)->name);
            const struct place place = {.name = name, .path = path};
            if (read_place(request, word, &place, known, why))
                return why->number;
        }
    for (enum scalar i = 0; i < SCALARS; i++) {
        const struct allowance_scalar *row = allowance_scalar(i);
        snprintf(name, sizeof name, "new_clients.%s", row->name);
        const struct place place = {name, name, row->unit == ALLOWANCE_NUMBER, i};
        if (read_place(request, word, &place, known, why))
            return why->number;
    }
    return 0;
}

/* Whether a word has a name that another kind of target has. */
static bool is_of(enum kind kind, const char *word)
{
    json_t *scratch = json_object();
    struct error unused;
    bool known = false;
    for (size_t i = 0; i < settable[kind].count; i++)
        read_place(scratch, word, &settable[kind].places[i], &known, &unused);
    if (settable[kind].limits) {
        read_resources(scratch, word, false, kind, &known, &unused);
        read_scalars(scratch, word, &known, &unused);
    }
    json_decref(scratch);
    return known;
}

static uint32_t refuse_name(const char *word, enum kind kind, struct error *why)
{
    if (kind != GPU && is_of(GPU, word))
        return error_set(why, MESSAGE(ctl_value_of_gpu), word, word);
    if (kind == GPU && is_of(CLIENT, word))
        return error_set(why, MESSAGE(ctl_value_of_client), word, word, word);
    char clients[ALLOWANCE_NAMES], scalars[ALLOWANCE_NAMES], totals[ALLOWANCE_NAMES];
    allowance_names(false, "", "=", " or ", clients);
    allowance_scalar_names("", "=", " or ", scalars);
    allowance_names(true, "total.", "=", " or ", totals);
    switch (kind) {
    case USER:
        return error_set(why, MESSAGE(ctl_value_name_user), word, clients, scalars, totals);
    case GROUP:
        return error_set(why, MESSAGE(ctl_value_name_group), word, totals);
    case CGROUP:
        return error_set(why, MESSAGE(ctl_value_name_cgroup), word);
    case GPU:
        return error_set(why, MESSAGE(ctl_value_name_gpu), word);
    case CLIENT:
    case KINDS:
        break;
    }
    return error_set(why, MESSAGE(ctl_value_name), word, clients, scalars);
}

static uint32_t read_word(json_t *request, const char *word, enum kind kind, struct error *why)
{
    bool known = false;
    for (size_t i = 0; i < settable[kind].count; i++)
        if (read_place(request, word, &settable[kind].places[i], &known, why))
            return why->number;
    if (settable[kind].limits && (read_resources(request, word, false, kind, &known, why) ||
                                  read_scalars(request, word, &known, why)))
        return why->number;
    if (settable[kind].totals && read_resources(request, word, true, kind, &known, why))
        return why->number;
    if (kind == GPU && !known && read_newcomers(request, word, &known, why))
        return why->number;
    return known ? 0 : refuse_name(word, kind, why);
}

uint32_t change_read_values(json_t *request, int count, char *const words[], struct error *why)
{
    enum kind kind = CLIENT;
    while (kind < GPU && !json_object_get(request, kind_names[kind]))
        kind++;
    if (count == 0)
        return error_set(why, MESSAGE(ctl_set_nothing), settable[kind].example);
    for (int i = 0; i < count; i++)
        if (read_word(request, words[i], kind, why))
            return why->number;
    if (json_object_get(request, "total") && json_object_size(request) != 3)
        return error_set(why, MESSAGE(ctl_totals_alone));
    return 0;
}
