/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/request.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/limits/allowance.h"
#include "common/limits/limits.h"
#include "common/messages.h"
#include "common/printable.h"

static const char *const kind_names[] = {
    [ADMIN_PING] = "ping",       [ADMIN_VERSION] = "version",     [ADMIN_STATUS] = "status",
    [ADMIN_CLIENTS] = "clients", [ADMIN_KILL] = "kill",           [ADMIN_GET] = "get",
    [ADMIN_SET] = "set",         [ADMIN_RELOAD] = "reload",       [ADMIN_TRACE] = "trace",
    [ADMIN_METRICS] = "metrics", [ADMIN_DRAIN] = "drain",         [ADMIN_RESUME] = "resume",
    [ADMIN_EVENTS] = "events",   [ADMIN_LOG_LEVEL] = "log-level", [ADMIN_CONFIG] = "config",
};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

const char *admin_request_kind_name(enum admin_kind kind)
{
    return kind_names[kind];
}

bool admin_request_concerns(const struct admin_request *request, const struct client_view *view)
{
    if (!view->attached || strcmp(view->state, "attached") != 0)
        return false;
    return (request->target == ADMIN_TARGET_USER && view->uid == request->number) ||
           (request->target == ADMIN_TARGET_CLIENT && view->number == request->number);
}

struct account_owner admin_request_owner(const struct admin_request *request)
{
    if (request->target == ADMIN_TARGET_CGROUP)
        return (struct account_owner){.kind = TOTAL_CGROUP,
                                      .cgroup = json_string_value(request->cgroup)};
    return (struct account_owner){.kind = request->target == ADMIN_TARGET_GROUP ? TOTAL_GROUP
                                                                                : TOTAL_USER,
                                  .id = request->number};
}

bool admin_request_goes_back(const char *text)
{
    return strcmp(text, "configured") == 0 || strcmp(text, "default") == 0;
}

bool admin_request_kind_changes(enum admin_kind kind)
{
    return kind == ADMIN_KILL || kind == ADMIN_SET || kind == ADMIN_RELOAD || kind == ADMIN_TRACE ||
           kind == ADMIN_DRAIN || kind == ADMIN_RESUME || kind == ADMIN_EVENTS ||
           kind == ADMIN_LOG_LEVEL || kind == ADMIN_CONFIG;
}

/* The parser recurses, so nesting is bounded before it sees the line. */
static bool too_deep(const char *line, size_t length)
{
    unsigned depth = 0;
    bool text = false;
    for (size_t i = 0; i < length; i++) {
        if (text && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            text = !text;
        else if (!text && (line[i] == '{' || line[i] == '[') && ++depth > ADMIN_DEPTH_MAX)
            return true;
        else if (!text && (line[i] == '}' || line[i] == ']') && depth)
            depth--;
    }
    return false;
}

static const char *const targets[] = {[ADMIN_TARGET_CLIENT] = "client",
                                      [ADMIN_TARGET_USER] = "user",
                                      [ADMIN_TARGET_GROUP] = "group",
                                      [ADMIN_TARGET_CGROUP] = "cgroup",
                                      [ADMIN_TARGET_GPU] = "gpu"};
#define TARGETS (sizeof targets / sizeof targets[0])

const char *admin_request_describe(const struct admin_request *request,
                                   char text[ADMIN_REQUEST_TEXT])
{
    const char *name = kind_names[request->kind];
    if (request->kind == ADMIN_TRACE)
        snprintf(text, ADMIN_REQUEST_TEXT, "%s of gpu %u", name, request->gpu);
    else if (request->target == ADMIN_TARGET_NONE)
        snprintf(text, ADMIN_REQUEST_TEXT, "%s%s%s", name, request->reset ? " --reset" : "",
                 request->all ? " --all" : "");
    else if (request->target == ADMIN_TARGET_CGROUP)
        snprintf(text, ADMIN_REQUEST_TEXT, "%s cgroup %s", name,
                 json_string_value(request->cgroup));
    else
        snprintf(text, ADMIN_REQUEST_TEXT, "%s%s %s %u", name, request->force ? " --force" : "",
                 targets[request->target], request->number);
    printable_replace(text);
    return text;
}

static bool may_be_about(enum admin_kind kind, enum admin_target target)
{
    return kind == ADMIN_GET || kind == ADMIN_SET ||
           (kind == ADMIN_KILL && (target == ADMIN_TARGET_CLIENT || target == ADMIN_TARGET_USER)) ||
           ((kind == ADMIN_TRACE || kind == ADMIN_DRAIN || kind == ADMIN_RESUME) &&
            target == ADMIN_TARGET_GPU);
}

/* The members that a request of this kind may have. */
static bool has_member(enum admin_kind kind, enum admin_target target, const char *key)
{
    if (strcmp(key, "request") == 0)
        return true;
    for (size_t i = ADMIN_TARGET_CLIENT; i < TARGETS; i++)
        if (strcmp(key, targets[i]) == 0)
            return may_be_about(kind, (enum admin_target)i);
    if (kind == ADMIN_TRACE)
        return strcmp(key, "seconds") == 0;
    if (kind == ADMIN_METRICS)
        return strcmp(key, "clients") == 0;
    if (kind == ADMIN_KILL)
        return strcmp(key, "force") == 0 || strcmp(key, "all") == 0;
    if (kind == ADMIN_RELOAD)
        return strcmp(key, "reset") == 0;
    if (kind == ADMIN_EVENTS)
        return strcmp(key, "after") == 0;
    if (kind == ADMIN_LOG_LEVEL)
        return strcmp(key, "level") == 0;
    if (kind != ADMIN_SET)
        return false;
    if (strcmp(key, "save") == 0)
        return true;
    if (target == ADMIN_TARGET_GPU)
        return schedule_part_of(key, strlen(key)) != 0 || strcmp(key, "new_clients") == 0;
    if (target != ADMIN_TARGET_CLIENT && strcmp(key, "total") == 0)
        return true;
    if (target == ADMIN_TARGET_GROUP || target == ADMIN_TARGET_CGROUP)
        return false;
    return allowance_find(key) != RESOURCES || allowance_find_scalar(key) != SCALARS;
}

/* Each target has settings of its own. */
static uint32_t refuse_member(const struct admin_request *request, const char *key,
                              struct error *why)
{
    if (request->kind == ADMIN_SET && request->target == ADMIN_TARGET_GPU)
        return error_set(why, MESSAGE(admin_gpu_member_unknown), key);
    if (request->kind == ADMIN_SET && request->target == ADMIN_TARGET_GROUP)
        return error_set(why, MESSAGE(admin_group_member_unknown), key);
    if (request->kind == ADMIN_SET && request->target == ADMIN_TARGET_CGROUP)
        return error_set(why, MESSAGE(admin_cgroup_member_unknown), key);
    return error_set(why, MESSAGE(admin_member_unknown), kind_names[request->kind], key);
}

static uint32_t check_members(const struct admin_request *request, json_t *root, struct error *why)
{
    for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at))
        if (!has_member(request->kind, request->target, json_object_iter_key(at)))
            return refuse_member(request, json_object_iter_key(at), why);
    return 0;
}

static bool read_number(json_t *json, uint32_t most, uint32_t *number)
{
    json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || value > (json_int_t)most)
        return false;
    *number = (uint32_t)value;
    return true;
}

/* A path names one control group, and no pattern. It is given back by admin_request_free. */
static uint32_t read_cgroup(struct admin_request *request, json_t *path, struct error *why)
{
    const char *text = json_string_value(path);
    const size_t length = text ? strlen(text) : 0;
    if (!length || length > ACCOUNT_CGROUP_MAX || text[0] != '/' || strchr(text, '*') ||
        (length > 1 && text[length - 1] == '/'))
        return error_set(why, MESSAGE(admin_cgroup_path), ACCOUNT_CGROUP_MAX);
    request->cgroup = json_incref(path);
    return 0;
}

/* The request's subject. */
static uint32_t read_target(struct admin_request *request, json_t *root, struct error *why)
{
    unsigned named = 0;
    for (size_t i = ADMIN_TARGET_CLIENT; i < TARGETS; i++) {
        json_t *number = json_object_get(root, targets[i]);
        if (!number)
            continue;
        request->target = (enum admin_target)i;
        if (request->target == ADMIN_TARGET_CGROUP &&
            may_be_about(request->kind, request->target)) {
            named++;
            continue;
        }
        /* A member that no request of this kind may have is named in the refusal. */
        named += !may_be_about(request->kind, request->target) ||
                         read_number(number, UINT32_MAX, &request->number)
                     ? 1
                     : 2;
    }
    if (named == 1 && request->target == ADMIN_TARGET_CGROUP && request->kind != ADMIN_KILL)
        return read_cgroup(request, json_object_get(root, targets[ADMIN_TARGET_CGROUP]), why);
    request->all = request->kind == ADMIN_KILL && json_is_true(json_object_get(root, "all"));
    if (named + request->all == 1 && (request->all || !json_object_get(root, "all")))
        return 0;
    return request->kind == ADMIN_KILL
               ? error_set(why, MESSAGE(admin_kill_subject))
               : error_set(why, MESSAGE(admin_subject), kind_names[request->kind]);
}

/* One member of {"request": text, "limit": text}. */
static uint32_t read_bound(struct admin_request *set, enum resource resource, json_t *json,
                           enum allowance_bound bound, struct error *why)
{
    const struct allowance_resource *row = allowance_resource(resource);
    const char *text = json_string_value(json);
    bool request = bound == ALLOWANCE_REQUEST;
    struct dialect_amount amount;
    char room[DIALECT_FORM_ROOM];
    if (text && admin_request_goes_back(text)) {
        *(request ? &set->back_requests : &set->back_limits) |= RESOURCE_BIT(resource);
        return 0;
    }
    if (text && allowance_parse(resource, bound, text, strlen(text), &amount) == 0) {
        allowance_put(&set->change, resource, bound, amount);
        return 0;
    }
    if (!text)
        return request ? error_set(why, MESSAGE(admin_bound_request_text), row->name, row->form)
                       : error_set(why, MESSAGE(admin_bound_text), row->name, row->form);
    const char *form = allowance_form(resource, text, room);
    return request ? error_set(why, MESSAGE(admin_bound_request), row->name, text, form)
                   : error_set(why, MESSAGE(admin_bound), row->name, text, form);
}

static uint32_t read_range(struct admin_request *set, json_t *root, enum resource resource,
                           struct error *why)
{
    const struct allowance_resource *row = allowance_resource(resource);
    json_t *wish = json_object_get(root, row->name);
    json_t *request = json_object_get(wish, "request"), *limit = json_object_get(wish, "limit");
    size_t members = (request != NULL) + (limit != NULL);
    if (!wish)
        return 0;
    if (!members || json_object_size(wish) != members)
        return error_set(why, MESSAGE(admin_resource), row->name, row->form);
    uint32_t error = 0;
    if (request)
        error = read_bound(set, resource, request, ALLOWANCE_REQUEST, why);
    if (!error && limit)
        error = read_bound(set, resource, limit, ALLOWANCE_LIMIT, why);
    return error;
}

/* A time is a text, of which "0" lifts the limit. */
static uint32_t read_scalar(struct admin_request *set, json_t *root, enum scalar scalar,
                            struct error *why)
{
    struct allowance *change = &set->change;
    const struct allowance_scalar *row = allowance_scalar(scalar);
    json_t *json = json_object_get(root, row->name);
    const char *text = json_string_value(json);
    uint32_t number;
    if (!json)
        return 0;
    if (text && admin_request_goes_back(text)) {
        set->back_scalars |= 1U << scalar;
        return 0;
    }
    if (row->unit == ALLOWANCE_NUMBER) {
        if (!read_number(json, (uint32_t)row->most, &number) || number < row->least)
            return error_set(why, MESSAGE(admin_priority), row->name, row->form);
        change->scalar[scalar] = number;
        return 0;
    }
    if (text && strcmp(text, "0") == 0)
        change->scalar[scalar] = 0;
    else if (!text ||
             allowance_parse_scalar(scalar, text, strlen(text), &change->scalar[scalar]) != 0)
        return error_set(why, MESSAGE(admin_kernel_time), row->name, row->form);
    return 0;
}

static uint32_t read_change(struct admin_request *set, json_t *root, struct error *why)
{
    struct allowance *change = &set->change;
    char names[ALLOWANCE_NAMES], scalars[ALLOWANCE_NAMES];
    uint32_t error = 0;
    *change = allowance_none;
    for (enum resource i = 0; !error && i < RESOURCES; i++)
        error = read_range(set, root, i, why);
    for (enum scalar i = 0; !error && i < SCALARS; i++)
        error = read_scalar(set, root, i, why);
    if (error)
        return error;
    allowance_attribute(change, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    if (json_object_size(root) == 2)
        return error_set(why, MESSAGE(admin_set_nothing),
                         allowance_names(false, "\"", "\"", ", ", names),
                         allowance_scalar_names("\"", "\"", " or ", scalars));
    return 0;
}

/* A limit or a request of one member of "total". Nothing is put where the configuration's word is
 * to hold again. */
static uint32_t read_total_bound(struct total_change *change, enum resource resource, json_t *value,
                                 enum allowance_bound bound, struct error *why)
{
    const struct allowance_resource *row = allowance_resource(resource);
    const char *text = json_string_value(value);
    const bool request = bound == ALLOWANCE_REQUEST;
    struct dialect_amount amount = {0};
    char room[DIALECT_FORM_ROOM];
    if (!value)
        return 0;
    if (!text)
        return request ? error_set(why, MESSAGE(admin_total_request_text), row->name, row->form)
                       : error_set(why, MESSAGE(admin_total_limit_text), row->name, row->form);
    if (!admin_request_goes_back(text) &&
        allowance_parse(resource, bound, text, strlen(text), &amount) != 0)
        return request ? error_set(why, MESSAGE(admin_total_request_form), row->name, text,
                                   allowance_form(resource, text, room))
                       : error_set(why, MESSAGE(admin_total_limit), row->name, text,
                                   allowance_form(resource, text, room));
    allowance_put(&change->limits, resource, bound, amount);
    *(request ? &change->request_parts : &change->parts) |= RESOURCE_BIT(resource);
    return 0;
}

/* One member of "total": {"limit": text}, or {"request": text, "limit": text}. */
static uint32_t read_total_part(json_t *total, enum resource resource, struct total_change *change,
                                struct error *why)
{
    const struct allowance_resource *row = allowance_resource(resource);
    json_t *part = json_object_get(total, row->name), *limit = json_object_get(part, "limit");
    json_t *request = json_object_get(part, "request");
    const size_t members = (limit != NULL) + (request != NULL);
    if (!part)
        return 0;
    if (request && !row->by_worker)
        return error_set(why, MESSAGE(admin_total_request), row->name);
    if (!members || json_object_size(part) != members)
        return row->by_worker ? error_set(why, MESSAGE(admin_total_share), row->name, row->form)
                              : error_set(why, MESSAGE(admin_total_resource), row->name, row->form);
    uint32_t error = read_total_bound(change, resource, limit, ALLOWANCE_LIMIT, why);
    return error ? error : read_total_bound(change, resource, request, ALLOWANCE_REQUEST, why);
}

/* Whether a total of this target has a resource: a control group has no memory in total. */
static bool has_total(enum admin_target target, enum resource resource)
{
    const struct allowance_resource *row = allowance_resource(resource);
    return row->has_total && (target != ADMIN_TARGET_CGROUP || row->by_worker);
}

/* Of a user, a group or a control group. */
static uint32_t read_total(struct admin_request *request, json_t *root, struct error *why)
{
    const bool cgroup = request->target == ADMIN_TARGET_CGROUP;
    json_t *total = json_object_get(root, "total");
    size_t members = 0;
    char names[ALLOWANCE_NAMES];
    struct total_change *change = &request->total;
    *change = (struct total_change){.limits = allowance_none};
    if (json_object_size(root) != 3)
        return total    ? error_set(why, MESSAGE(admin_total_alone))
               : cgroup ? error_set(why, MESSAGE(admin_cgroup_total))
                        : error_set(why, MESSAGE(admin_group_total));
    for (enum resource i = 0; i < RESOURCES; i++)
        members += has_total(request->target, i) &&
                   json_object_get(total, allowance_resource(i)->name) != NULL;
    if (!members || json_object_size(total) != members)
        return cgroup ? error_set(why, MESSAGE(admin_cgroup_total_object))
                      : error_set(why, MESSAGE(admin_total_object),
                                  allowance_names(true, "\"", "\"", " and ", names));
    for (enum resource i = 0; i < RESOURCES; i++) {
        uint32_t error = read_total_part(total, i, change, why);
        if (error)
            return error;
    }
    request->totals = true;
    return 0;
}

/* The word "default" is one of NVIDIA's classes of leases. */
static bool goes_back(unsigned part, const char *text)
{
    return admin_request_goes_back(text) &&
           (part != SCHEDULE_LEASE || strcmp(text, "default") != 0);
}

/* Of a GPU. */
static uint32_t read_schedule_change(struct admin_request *request, json_t *root, struct error *why)
{
    for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at)) {
        const char *key = json_object_iter_key(at);
        unsigned part = schedule_part_of(key, strlen(key));
        if (!part)
            continue;
        const char *text = json_string_value(json_object_iter_value(at));
        if (!text)
            return error_set(why, MESSAGE(admin_schedule_text), key);
        if (goes_back(part, text))
            request->back |= part;
        else if (schedule_set(&request->schedule, (enum schedule_part)part, text, strlen(text),
                              why))
            return why->number;
        request->parts |= part;
    }
    if (!request->parts)
        return error_set(why, MESSAGE(admin_schedule_nothing));
    return 0;
}

/* The limits of clients to come. A guarantee is nobody's who is not there. */
static uint32_t read_newcomers(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *limits = json_object_get(root, "new_clients");
    size_t members = 0;
    uint32_t error = 0;
    request->newcomers = true;
    request->change = allowance_none;
    if (request->save || json_object_size(root) != 3)
        return error_set(why, MESSAGE(admin_new_clients_alone));
    for (enum resource i = 0; !error && i < RESOURCES; i++) {
        json_t *one = json_object_get(limits, allowance_resource(i)->name);
        members += one != NULL;
        if (json_object_get(one, "request"))
            return error_set(why, MESSAGE(admin_new_clients_request), allowance_resource(i)->name);
        error = read_range(request, limits, i, why);
    }
    for (enum scalar i = 0; !error && i < SCALARS; i++) {
        members += json_object_get(limits, allowance_scalar(i)->name) != NULL;
        error = read_scalar(request, limits, i, why);
    }
    if (!error && (!members || json_object_size(limits) != members))
        return error_set(why, MESSAGE(admin_new_clients_object));
    allowance_attribute(&request->change, (struct allowance_source){ALLOWANCE_BY_ADMIN, 0});
    return error;
}

static uint32_t read_trace(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *seconds = json_object_get(root, "seconds");
    double milliseconds = json_number_value(seconds) * 1e3;
    if (!read_number(json_object_get(root, "gpu"), UINT32_MAX, &request->gpu))
        return error_set(why, MESSAGE(admin_trace_gpu));
    if (!json_is_number(seconds) || !(milliseconds >= 1) ||
        !(milliseconds <= PROTO_TRACE_SECONDS_MAX * 1e3))
        return error_set(why, MESSAGE(admin_trace_seconds), PROTO_TRACE_SECONDS_MAX);
    request->milliseconds = (uint32_t)milliseconds;
    return 0;
}

/* Takes "save" out of the request. */
static uint32_t read_save(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *save = json_object_get(root, "save");
    if (save && !json_is_boolean(save))
        return error_set(why, MESSAGE(admin_save));
    request->save = json_is_true(save);
    json_object_del(root, "save");
    return 0;
}

/* The members of a request beside its kind and its target. */
static json_t *values_of(const struct admin_request *request, json_t *root)
{
    json_t *values = json_deep_copy(request->totals ? json_object_get(root, "total") : root);
    if (request->totals || !values)
        return values;
    json_object_del(values, "request");
    json_object_del(values, targets[request->target]);
    return values;
}

static uint32_t read_set(struct admin_request *request, json_t *root, struct error *why)
{
    uint32_t error = read_save(request, root, why);
    if (error)
        return error;
    if (request->target == ADMIN_TARGET_GPU && json_object_get(root, "new_clients"))
        return read_newcomers(request, root, why);
    if (request->target == ADMIN_TARGET_GPU)
        error = read_schedule_change(request, root, why);
    else if (request->target == ADMIN_TARGET_GROUP || request->target == ADMIN_TARGET_CGROUP ||
             json_object_get(root, "total"))
        error = read_total(request, root, why);
    else if (request->save)
        error = error_set(why, MESSAGE(admin_save_clients));
    else
        return read_change(request, root, why);
    if (error)
        return error;
    request->values = values_of(request, root);
    return request->values ? 0 : error_set(why, MESSAGE(server_no_memory));
}

static uint32_t read_force(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *force = json_object_get(root, "force");
    if (force && !json_is_boolean(force))
        return error_set(why, MESSAGE(admin_force));
    request->force = json_is_true(force);
    if (request->force && request->target != ADMIN_TARGET_CLIENT)
        return error_set(why, MESSAGE(admin_force_user));
    return 0;
}

/* Without a GPU all are meant. */
static uint32_t read_drain(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *gpu = json_object_get(root, "gpu");
    if (gpu && !read_number(gpu, UINT32_MAX, &request->number))
        return error_set(why, MESSAGE(admin_drain_gpu), kind_names[request->kind]);
    request->target = gpu ? ADMIN_TARGET_GPU : ADMIN_TARGET_NONE;
    return 0;
}

static uint32_t read_after(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *after = json_object_get(root, "after");
    if (after && (!json_is_integer(after) || json_integer_value(after) < 0))
        return error_set(why, MESSAGE(admin_events_after));
    request->after = (uint64_t)json_integer_value(after);
    return 0;
}

static uint32_t read_level(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *level = json_object_get(root, "level");
    const char *name = json_string_value(level);
    request->sets_level = level != NULL;
    if (level && (!name || log_level_find(name, &request->level) < 0))
        return error_set(why, MESSAGE(admin_log_level));
    return 0;
}

static uint32_t read_reset(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *reset = json_object_get(root, "reset");
    if (reset && !json_is_boolean(reset))
        return error_set(why, MESSAGE(admin_reset));
    request->reset = json_is_true(reset);
    return 0;
}

static uint32_t read_metrics(struct admin_request *request, json_t *root, struct error *why)
{
    json_t *clients = json_object_get(root, "clients");
    request->clients_shown = ADMIN_METRICS_CLIENTS;
    if (clients && !read_number(clients, ADMIN_METRICS_CLIENTS_MAX, &request->clients_shown))
        return error_set(why, MESSAGE(admin_metrics_clients), ADMIN_METRICS_CLIENTS_MAX);
    return 0;
}

static uint32_t read_root(struct admin_request *request, json_t *root, struct error *why)
{
    const char *name = json_string_value(json_object_get(root, "request"));
    if (!name)
        return error_set(why, MESSAGE(admin_request_text));
    size_t kind = 0;
    while (kind < KINDS && strcmp(kind_names[kind], name) != 0)
        kind++;
    if (kind == KINDS)
        return error_set(why, MESSAGE(admin_request_unknown), name);
    request->kind = (enum admin_kind)kind;
    uint32_t error = 0;
    if (may_be_about(request->kind, ADMIN_TARGET_CLIENT))
        error = read_target(request, root, why);
    if (!error)
        error = check_members(request, root, why);
    if (!error && request->kind == ADMIN_SET)
        error = read_set(request, root, why);
    if (!error && request->kind == ADMIN_KILL)
        error = read_force(request, root, why);
    if (!error && request->kind == ADMIN_RELOAD)
        error = read_reset(request, root, why);
    if (!error && request->kind == ADMIN_TRACE)
        error = read_trace(request, root, why);
    if (!error && request->kind == ADMIN_METRICS)
        error = read_metrics(request, root, why);
    if (!error && (request->kind == ADMIN_DRAIN || request->kind == ADMIN_RESUME))
        error = read_drain(request, root, why);
    if (!error && request->kind == ADMIN_EVENTS)
        error = read_after(request, root, why);
    if (!error && request->kind == ADMIN_LOG_LEVEL)
        error = read_level(request, root, why);
    return error;
}

void admin_request_free(struct admin_request *request)
{
    json_decref(request->values);
    json_decref(request->cgroup);
    request->values = request->cgroup = NULL;
}

uint32_t admin_request_parse(struct admin_request *request, const char *line, size_t length,
                             struct error *why)
{
    *request = (struct admin_request){0};
    if (length >= ADMIN_LINE_MAX)
        return error_set(why, MESSAGE(admin_line_max), ADMIN_LINE_MAX);
    if (too_deep(line, length))
        return error_set(why, MESSAGE(admin_depth_max), ADMIN_DEPTH_MAX);
    json_error_t mistake;
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &mistake);
    if (!root)
        return error_set(why, MESSAGE(admin_not_json), mistake.text);
    uint32_t error = read_root(request, root, why);
    json_decref(root);
    if (error)
        admin_request_free(request);
    return error;
}
