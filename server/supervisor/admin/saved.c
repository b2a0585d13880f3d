/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/saved.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/change.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/saved.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"

/* Finds the object that a request is about. */
static enum saved_kind find_object(const struct supervisor *supervisor,
                                   const struct admin_request *request, char name[SAVED_NAME])
{
    _Static_assert((int)SAVED_NAME >= (int)LIMITS_UUID_TEXT, "a UUID fits");
    const struct account_owner owner = admin_request_owner(request);
    if (request->target == ADMIN_TARGET_GPU) {
        view_device_uuid(supervisor, request->number, name);
        return SAVED_GPU;
    }
    saved_name_of(&owner, name);
    return saved_kind_of(&owner);
}

/* ---- after a set ---- */

struct note {
    struct saved *saved;
    const struct admin_request *request;
    enum saved_kind kind;
    char name[SAVED_NAME];
    json_t *keep; /* the values to be kept */
    bool changed; /* something is kept no longer */
};

/* Notes one value, or one member of it. */
static void note_value(struct note *note, const char *value, const char *member, json_t *text,
                       bool back)
{
    if (back) {
        note->changed |= saved_take(note->saved, note->kind, note->name, value, member);
    } else if (!note->request->save) {
        return;
    } else if (!member) {
        json_object_set(note->keep, value, text);
    } else {
        json_t *one = json_object_get(note->keep, value);
        if (!one) {
            one = json_object();
            json_object_set_new(note->keep, value, one);
        }
        json_object_set(one, member, text);
    }
}

static void note_schedule(struct note *note)
{
    json_t *values = note->request->values;
    for (void *at = json_object_iter(values); at; at = json_object_iter_next(values, at)) {
        const char *key = json_object_iter_key(at);
        unsigned part = schedule_part_of(key, strlen(key));
        note_value(note, key, NULL, json_object_iter_value(at), (note->request->back & part) != 0);
    }
}

static void note_bounds(struct note *note, const char *key, json_t *bounds)
{
    for (void *at = json_object_iter(bounds); at; at = json_object_iter_next(bounds, at)) {
        json_t *text = json_object_iter_value(at);
        note_value(note, key, json_object_iter_key(at), text,
                   admin_request_goes_back(json_string_value(text)));
    }
}

static void note_total(struct note *note)
{
    json_t *values = note->request->values;
    for (void *at = json_object_iter(values); at; at = json_object_iter_next(values, at))
        note_bounds(note, json_object_iter_key(at), json_object_iter_value(at));
}

int admin_saved_note(struct supervisor *supervisor, const struct admin_request *request)
{
    struct note note = {
        .saved = supervisor_saved(supervisor), .request = request, .keep = json_object()};
    int result = note.keep ? 0 : -ENOMEM;
    note.kind = find_object(supervisor, request, note.name);
    if (result == 0 && request->target == ADMIN_TARGET_GPU)
        note_schedule(&note);
    else if (result == 0)
        note_total(&note);
    if (result == 0 && json_object_size(note.keep) > 0) {
        result = saved_put(note.saved, note.kind, note.name, note.keep);
        note.changed = true;
    }
    json_decref(note.keep);
    return result < 0 ? result : note.changed;
}

int admin_saved_drained(struct supervisor *supervisor, uint32_t gpu, bool drained, const char *by)
{
    struct saved *saved = supervisor_saved(supervisor);
    char uuid[SAVED_NAME];
    view_device_uuid(supervisor, gpu, uuid);
    if (!drained) {
        /* Also where an earlier attempt could not be written. */
        bool had = saved_take(saved, SAVED_DRAINED, uuid, "by", NULL);
        return had || saved_written(saved, SAVED_DRAINED, uuid) != NULL;
    }
    json_t *values = json_pack("{s:s}", "by", by);
    int result = values ? saved_put(saved, SAVED_DRAINED, uuid, values) : -ENOMEM;
    json_decref(values);
    return result < 0 ? result : 1;
}

/* ---- at the start ---- */

/* An object with values. number: of a GPU, a user or a group; a control group has its name. */
struct object {
    enum saved_kind kind;
    const char *name;
    uint32_t number;
};

/* Makes the set that the values of an object were once. 0, or an error number. */
static uint32_t request_make(struct admin_request *request, const struct object *object,
                             const json_t *values, struct error *why)
{
    static const char *const targets[SAVED_KINDS] = {[SAVED_GPU] = "gpu",
                                                     [SAVED_USER] = "user",
                                                     [SAVED_GROUP] = "group",
                                                     [SAVED_CGROUP] = "cgroup"};
    const enum saved_kind kind = object->kind;
    *request = (struct admin_request){0};
    if (!json_is_object(values))
        return error_set(why, MESSAGE(saved_no_values));
    json_t *root = kind == SAVED_GPU ? json_deep_copy(values) : json_object();
    char *line = NULL;
    if (kind != SAVED_GPU)
        json_object_set_new(root, "total", json_deep_copy(values));
    json_object_set_new(root, "request", json_string("set"));
    json_object_set_new(root, targets[kind],
                        kind == SAVED_CGROUP ? json_string(object->name)
                                             : json_integer(object->number));
    if (root)
        line = json_dumps(root, JSON_COMPACT);
    uint32_t error = line ? admin_request_parse(request, line, strlen(line), why)
                          : error_set(why, MESSAGE(server_no_memory));
    free(line);
    json_decref(root);
    return error;
}

/* There are no clients yet, so no worker is asked. */
static void never_later(void *context, uint32_t error, const char *text)
{
    if (error)
        log_error(MESSAGE_TEXT(log_saved_late), (const char *)context, text);
}

static void no_worker(void *context, uint32_t number, uint32_t error, const char *text)
{
    (void)number;
    never_later(context, error, text);
}

static uint32_t carry_out(struct supervisor *supervisor, const struct admin_request *request,
                          const char *by, struct error *why)
{
    struct account_owner owner = admin_request_owner(request);
    bool over;
    if (request->target != ADMIN_TARGET_GPU)
        return owner_total_set(supervisor, &owner, &request->total,
                               &(struct reload_asker){by, never_later, (void *)by}, &over, why);
    struct device_view view;
    struct schedule to = request->schedule;
    view_device(supervisor, request->number, &view);
    schedule_merge(&to, &view.configured, request->back);
    int result = change_schedule(supervisor, request->number, &to, request->parts,
                                 &(struct change_asker){by, no_worker, (void *)by});
    return result < 0 ? error_set(why, MESSAGE(request_failed), strerror(-result)) : 0;
}

/* Finds the number of an object with this name, as requests have it. */
static bool find_number(const struct supervisor *supervisor, struct object *object)
{
    char text[SAVED_NAME];
    uint64_t value;
    if (object->kind == SAVED_CGROUP)
        return true;
    if (object->kind != SAVED_GPU) {
        if (units_parse_number(object->name, strlen(object->name), UINT32_MAX, &value) < 0)
            return false;
        object->number = (uint32_t)value;
        return true;
    }
    for (uint32_t i = 0; i < view_device_count(supervisor); i++)
        if (strcmp(view_device_uuid(supervisor, i, text), object->name) == 0) {
            object->number = i;
            return true;
        }
    return false;
}

/* 0: they are in force; or an error number, and none of them is. */
static uint32_t restore_values(struct supervisor *supervisor, const struct object *object,
                               const json_t *values, struct error *why)
{
    struct admin_request request;
    uint32_t error = request_make(&request, object, values, why);
    if (!error)
        error = carry_out(supervisor, &request, supervisor_saved(supervisor)->file, why);
    admin_request_free(&request);
    return error;
}

/* A member of an object's values, as values of its own. */
static json_t *value_alone(const char *key, json_t *value)
{
    json_t *alone = json_object();
    json_object_set(alone, key, value);
    return alone;
}

static void restore_object(struct supervisor *supervisor, enum saved_kind kind, const char *name,
                           json_t *values)
{
    static const char *const kinds[SAVED_KINDS] = {[SAVED_GPU] = "GPU",
                                                   [SAVED_USER] = "user",
                                                   [SAVED_GROUP] = "group",
                                                   [SAVED_CGROUP] = "cgroup"};
    struct object object = {.kind = kind, .name = name};
    const char *file = supervisor_saved(supervisor)->file;
    struct error why;
    if (!find_number(supervisor, &object)) {
        if (kind == SAVED_GPU)
            log_warning(MESSAGE_TEXT(log_saved_gpu_absent), file, name);
        else
            log_error(MESSAGE_TEXT(log_saved_name), file, name, kinds[kind]);
        return;
    }
    if (!restore_values(supervisor, &object, values, &why))
        return;
    if (json_object_size(values) < 2) {
        log_error(MESSAGE_TEXT(log_saved_refused), file, kinds[kind], name, why.text);
        return;
    }
    /* Of several, those that are right hold. */
    for (void *at = json_object_iter(values); at; at = json_object_iter_next(values, at)) {
        const char *key = json_object_iter_key(at);
        json_t *alone = value_alone(key, json_object_iter_value(at));
        if (restore_values(supervisor, &object, alone, &why))
            log_error(MESSAGE_TEXT(log_saved_value_refused), file, key, kinds[kind], name,
                      why.text);
        json_decref(alone);
    }
}

static void restore_drained(struct supervisor *supervisor, const char *uuid)
{
    struct object object = {.kind = SAVED_GPU, .name = uuid};
    const char *file = supervisor_saved(supervisor)->file;
    if (!find_number(supervisor, &object)) {
        log_warning(MESSAGE_TEXT(log_saved_gpu_absent), file, uuid);
        return;
    }
    clients_drain(supervisor, object.number, true);
    log_notice(MESSAGE_TEXT(log_drain_restored), object.number, file);
}

static void restore_all(struct supervisor *supervisor, enum saved_kind kind)
{
    json_t *all = saved_all(supervisor_saved(supervisor), kind);
    for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at))
        if (kind == SAVED_DRAINED)
            restore_drained(supervisor, json_object_iter_key(at));
        else
            restore_object(supervisor, kind, json_object_iter_key(at), json_object_iter_value(at));
}

void admin_saved_restore(struct supervisor *supervisor, bool apply)
{
    struct saved *saved = supervisor_saved(supervisor);
    struct error why;
    if (saved_open(saved, supervisor_loop(supervisor), supervisor_settings(supervisor)->state,
                   &why))
        log_error(MESSAGE_TEXT(log_saved_not_read), why.text);
    for (enum saved_kind kind = 0; apply && kind < SAVED_KINDS; kind++)
        restore_all(supervisor, kind);
}

/* ---- what is shown ---- */

unsigned admin_saved_parts(const struct supervisor *supervisor, const struct device_view *view)
{
    char name[SAVED_NAME];
    struct schedule kept = view->schedule;
    struct error unused;
    unsigned parts = 0;
    view_device_uuid(supervisor, view->index, name);
    json_t *values = saved_written(supervisor_saved(supervisor), SAVED_GPU, name);
    for (void *at = json_object_iter(values); at; at = json_object_iter_next(values, at)) {
        const char *key = json_object_iter_key(at);
        const char *value = json_string_value(json_object_iter_value(at));
        unsigned part = schedule_part_of(key, strlen(key));
        if (part && value && !schedule_set(&kept, part, value, strlen(value), &unused))
            parts |= part;
    }
    return parts & ~schedule_differs(&kept, &view->schedule);
}

bool admin_saved_total(const struct supervisor *supervisor, const struct account_owner *owner,
                       enum resource resource)
{
    char name[SAVED_NAME];
    const struct object object = {
        .kind = saved_kind_of(owner), .name = saved_name_of(owner, name), .number = owner->id};
    struct admin_request request;
    struct error unused;
    const char *key = allowance_resource(resource)->name;
    json_t *values = saved_written(supervisor_saved(supervisor), object.kind, name);
    json_t *alone = value_alone(key, json_object_get(values, key));
    bool holds = !request_make(&request, &object, alone, &unused) &&
                 owner_total_is_set(supervisor, owner, resource, &request.total.limits);
    admin_request_free(&request);
    json_decref(alone);
    return holds;
}
