/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

static const char *const kind_names[] = {
    [ADMIN_PING] = "ping",       [ADMIN_VERSION] = "version", [ADMIN_STATUS] = "status",
    [ADMIN_CLIENTS] = "clients", [ADMIN_KILL] = "kill",
};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

const char *admin_kind_name(enum admin_kind kind)
{
    return kind_names[kind];
}

bool admin_kind_changes(enum admin_kind kind)
{
    return kind == ADMIN_KILL;
}

__attribute__((format(printf, 4, 5))) static int refuse(int error, char *why, size_t why_size,
                                                        const char *format, ...)
{
    if (why_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why, why_size, format, arguments);
        va_end(arguments);
    }
    return error;
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

static int check_members(json_t *root, enum admin_kind kind, char *why, size_t why_size)
{
    const char *key;
    json_t *value;
    json_object_foreach(
        root, key,
        value) if (strcmp(key, "request") != 0 &&
                   (kind != ADMIN_KILL ||
                    strcmp(key, "client") != 0)) return refuse(-EINVAL, why, why_size,
                                                               "\"%s\" has no member \"%.64s\"",
                                                               kind_names[kind], key);
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
                      "clients and kill",
                      name);
    request->kind = (enum admin_kind)kind;
    int result = check_members(root, request->kind, why, why_size);
    if (result < 0 || request->kind != ADMIN_KILL)
        return result;
    json_t *client = json_object_get(root, "client");
    json_int_t number = json_integer_value(client);
    if (!json_is_integer(client) || number < 0 || number > (json_int_t)UINT32_MAX)
        return refuse(-EINVAL, why, why_size,
                      "\"kill\" needs \"client\", the number of a client as \"clients\" shows it");
    request->client = (uint32_t)number;
    return 0;
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
