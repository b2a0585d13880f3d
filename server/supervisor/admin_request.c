/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "common/dialect.h"
#include "common/limits.h"

static const char *const kind_names[] = {
    [ADMIN_PING] = "ping",       [ADMIN_VERSION] = "version", [ADMIN_STATUS] = "status",
    [ADMIN_CLIENTS] = "clients", [ADMIN_KILL] = "kill",       [ADMIN_GET] = "get",
    [ADMIN_SET] = "set",         [ADMIN_RELOAD] = "reload",   [ADMIN_TRACE] = "trace",
};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

const char *admin_kind_name(enum admin_kind kind)
{
    return kind_names[kind];
}

bool admin_request_concerns(const struct admin_request *request,
                            const struct supervisor_client_view *view)
{
    return view->attached && strcmp(view->state, "attached") == 0 &&
           (request->by_user ? view->uid == request->client : view->number == request->client);
}

bool admin_kind_changes(enum admin_kind kind)
{
    return kind == ADMIN_KILL || kind == ADMIN_SET || kind == ADMIN_RELOAD || kind == ADMIN_TRACE;
}

__attribute__((format(printf, 3, 4))) static void say(char *why, size_t why_size,
                                                      const char *format, ...)
{
    if (why_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why, why_size, format, arguments);
        va_end(arguments);
    }
}
/* The error stands here and not in say(), where an analyser doesn't see that it is one. */
#define refuse(error, ...) (say(__VA_ARGS__), (error))

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

/* Which members each kind has, "request" aside. */
static bool has_member(enum admin_kind kind, const char *key)
{
    static const char *const limits[] = {"threads", "memory", "host_memory", "priority"};
    if (strcmp(key, "client") == 0)
        return kind == ADMIN_KILL || kind == ADMIN_GET || kind == ADMIN_SET;
    if (strcmp(key, "user") == 0)
        return kind == ADMIN_GET || kind == ADMIN_SET;
    if (strcmp(key, "gpu") == 0 || strcmp(key, "seconds") == 0)
        return kind == ADMIN_TRACE;
    for (size_t i = 0; kind == ADMIN_SET && i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(key, limits[i]) == 0)
            return true;
    return strcmp(key, "request") == 0;
}

static int check_members(json_t *root, enum admin_kind kind, char *why, size_t why_size)
{
    for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at))
        if (!has_member(kind, json_object_iter_key(at)))
            return refuse(-EINVAL, why, why_size, "\"%s\" has no member \"%.64s\"",
                          kind_names[kind], json_object_iter_key(at));
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

/* Whom it concerns. */
static int read_whom(struct admin_request *request, json_t *root, char *why, size_t why_size)
{
    json_t *client = json_object_get(root, "client"), *user = json_object_get(root, "user");
    request->by_user = user != NULL;
    if (!(client && user) && read_number(user ? user : client, UINT32_MAX, &request->client))
        return 0;
    return refuse(-EINVAL, why, why_size,
                  "\"%s\" needs \"client\", the number of a client as \"clients\" shows it%s",
                  kind_names[request->kind],
                  request->kind == ADMIN_KILL ? "" : ", or \"user\", a uid, and not both");
}

/* The text of {"limit": ...}, or NULL with a sentence. */
static const char *limit_of(json_t *wish, const char *name, const char *form, char *why,
                            size_t why_size)
{
    const char *limit = json_string_value(json_object_get(wish, "limit"));
    if (limit && json_object_size(wish) == 1)
        return limit;
    say(why, why_size, "\"%s\" of a client that runs is an object {\"limit\": text}, %s", name,
        form);
    return NULL;
}

typedef int parse_amount(const char *text, size_t length, struct dialect_amount *amount);

static int read_limit(json_t *root, const char *name, parse_amount *parse, const char *form,
                      struct dialect_amount *amount, char *why, size_t why_size)
{
    json_t *wish = json_object_get(root, name);
    if (!wish)
        return 0;
    const char *limit = limit_of(wish, name, form, why, why_size);
    if (!limit)
        return -EINVAL;
    if (parse(limit, strlen(limit), amount) != 0)
        return refuse(-EINVAL, why, why_size, "\"%s\": \"%.64s\" is not %s", name, limit, form);
    return 0;
}

static int read_change(struct supervisor_change *change, json_t *root, char *why, size_t why_size)
{
    struct dialect_amount threads = {0}, memory = {0}, host = {0}; /* DIALECT_UNSET */
    *change = (struct supervisor_change){
        .priority = UINT32_MAX, .memory_limit = PROTO_UNSET, .host_limit = PROTO_UNSET};
    int result = read_limit(root, "threads", dialect_parse_share, DIALECT_FORM_SHARE, &threads, why,
                            why_size);
    if (result == 0)
        result = read_limit(root, "memory", dialect_parse_amount, DIALECT_FORM_AMOUNT, &memory, why,
                            why_size);
    if (result == 0)
        result = read_limit(root, "host_memory", dialect_parse_size, DIALECT_FORM_SIZE, &host, why,
                            why_size);
    if (result < 0)
        return result;
    json_t *priority = json_object_get(root, "priority");
    if (priority && !read_number(priority, LIMITS_PRIORITY_MAX, &change->priority))
        return refuse(-EINVAL, why, why_size,
                      "\"priority\" is a number from 0 (normal) to %d (lower)",
                      LIMITS_PRIORITY_MAX);
    if (threads.unit != DIALECT_UNSET)
        change->thread_percentage = (uint32_t)threads.value;
    if (memory.unit == DIALECT_SHARE)
        change->memory_share = (uint32_t)memory.value;
    else if (memory.unit == DIALECT_BYTES)
        change->memory_limit = memory.value;
    if (host.unit == DIALECT_BYTES)
        change->host_limit = host.value;
    if (json_object_size(root) == 2)
        return refuse(-EINVAL, why, why_size,
                      "\"set\" needs something to set: \"threads\", \"memory\", \"host_memory\" or "
                      "\"priority\"");
    return 0;
}

static int read_trace(struct admin_request *request, json_t *root, char *why, size_t why_size)
{
    json_t *seconds = json_object_get(root, "seconds");
    double milliseconds = json_number_value(seconds) * 1e3;
    if (!read_number(json_object_get(root, "gpu"), UINT32_MAX, &request->gpu))
        return refuse(-EINVAL, why, why_size,
                      "\"trace\" needs \"gpu\", the number of a device as \"status\" shows it");
    if (!json_is_number(seconds) || !(milliseconds >= 1) ||
        !(milliseconds <= PROTO_TRACE_SECONDS_MAX * 1e3))
        return refuse(-EINVAL, why, why_size,
                      "\"trace\" needs \"seconds\", a number from 0.001 to %d",
                      PROTO_TRACE_SECONDS_MAX);
    request->milliseconds = (uint32_t)milliseconds;
    return 0;
}

static int read_root(struct admin_request *request, json_t *root, char *why, size_t why_size)
{
    const char *name = json_string_value(json_object_get(root, "request"));
    if (!name)
        return refuse(-EINVAL, why, why_size,
                      "a request is an object with a text \"request\", such as "
                      "{\"request\":\"status\"}");
    size_t kind = 0;
    while (kind < KINDS && strcmp(kind_names[kind], name) != 0)
        kind++;
    if (kind == KINDS)
        return refuse(-ENOTSUP, why, why_size,
                      "there is no request \"%.64s\": this server knows ping, version, status, "
                      "clients, get, set, kill, reload and trace",
                      name);
    request->kind = (enum admin_kind)kind;
    int result = check_members(root, request->kind, why, why_size);
    if (result == 0 && has_member(request->kind, "client"))
        result = read_whom(request, root, why, why_size);
    if (result == 0 && request->kind == ADMIN_SET)
        result = read_change(&request->change, root, why, why_size);
    if (result == 0 && request->kind == ADMIN_TRACE)
        result = read_trace(request, root, why, why_size);
    return result;
}

int admin_request_parse(struct admin_request *request, const char *line, size_t length, char *why,
                        size_t why_size)
{
    *request = (struct admin_request){0};
    if (length >= ADMIN_LINE_MAX)
        return refuse(-EINVAL, why, why_size, "a request may have at most %d bytes",
                      ADMIN_LINE_MAX);
    if (too_deep(line, length))
        return refuse(-EINVAL, why, why_size, "a request may nest at most %d deep",
                      ADMIN_DEPTH_MAX);
    json_error_t error;
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return refuse(-EINVAL, why, why_size, "a request must be one JSON object on one line: %s",
                      error.text);
    int result = read_root(request, root, why, why_size);
    json_decref(root);
    return result;
}
