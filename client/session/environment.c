/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/session/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/session/failure.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/units.h"

#define SYSTEM_SOCKET "/run/gpushare/gpushare.sock"

static const char *read_variable(const char *name, void *context)
{
    (void)context;
    /* A set-user-ID program must not let its caller choose the server. */
    return secure_getenv(name);
}

/* A percentage of the options, in hundredths of a per cent; 0: not asked for. */
static gpushare_error parse_percentage(const char *name, double percentage, uint32_t *hundredths)
{
    *hundredths = 0;
    if (percentage == 0)
        return GPUSHARE_SUCCESS;
    if (!(percentage >= 0.01 && percentage <= 100))
        return failure(MESSAGE(options_share), name, percentage);
    *hundredths = (uint32_t)(percentage * 100 + 0.5);
    return GPUSHARE_SUCCESS;
}

static gpushare_error refuse_above_limit(const char *what, double request, double limit)
{
    return failure(MESSAGE(options_share_request), what, request, limit);
}

static gpushare_error refuse_above_memory_limit(const char *what, uint64_t request, uint64_t limit)
{
    char asked[UNITS_TEXT], limit_text[UNITS_TEXT];
    return failure(MESSAGE(options_memory_request), what, units_format_size(request, asked),
                   units_format_size(limit, limit_text));
}

static gpushare_error merge_memory(struct environment *environment,
                                   const struct gpushare_options *options)
{
    struct limits_wish *wish = &environment->wish;
    if (options->memory_limit && options->memory_request > options->memory_limit)
        return refuse_above_memory_limit("memory", options->memory_request, options->memory_limit);
    if (options->host_memory_limit && options->host_memory_request > options->host_memory_limit)
        return refuse_above_memory_limit("host_memory", options->host_memory_request,
                                         options->host_memory_limit);
    environment->memory_limit = options->memory_limit ? options->memory_limit : PROTO_UNSET;
    environment->memory_request = options->memory_request;
    if (options->host_memory_limit)
        wish->host_memory = limits_tighter(wish->host_memory, options->host_memory_limit);
    wish->host_request = limits_lower_request(wish->host_request, options->host_memory_request);
    return GPUSHARE_SUCCESS;
}

/* The lower one of two requests is asked for. A request above a limit of the other source is no
 * error: the server grants no more than the limit. */
static gpushare_error merge_shares(struct limits_wish *wish, const struct gpushare_options *options)
{
    uint32_t threads, request, limit, fraction;
    gpushare_error error;
    if (!(options->fraction >= 0 && options->fraction <= 1))
        return failure(MESSAGE(options_fraction), options->fraction);
    if ((error = parse_percentage("thread_request", options->thread_request, &threads)) ||
        (error = parse_percentage("time_request", options->time_request, &request)) ||
        (error = parse_percentage("time_limit", options->time_limit, &limit)) ||
        (error = parse_percentage("fraction (in per cent)", options->fraction * 100, &fraction)))
        return error;
    request = limits_tighter_percentage(request, fraction);
    if (options->thread_percentage != 0 && options->thread_request > options->thread_percentage)
        return refuse_above_limit("thread", options->thread_request, options->thread_percentage);
    if (limit && request > limit)
        return refuse_above_limit("time", request / 100.0, options->time_limit);
    wish->thread_request = limits_tighter_percentage(wish->thread_request, threads);
    wish->time_request = limits_tighter_percentage(wish->time_request, request);
    wish->time_limit = limits_tighter_percentage(wish->time_limit, limit);
    wish->fraction = limits_tighter_percentage(wish->fraction, fraction);
    return GPUSHARE_SUCCESS;
}

static gpushare_error merge_limits(struct limits_wish *wish, const struct gpushare_options *options)
{
    if (options->thread_percentage != 0) {
        if (!(options->thread_percentage >= 1 && options->thread_percentage <= 100))
            return failure(MESSAGE(options_thread_percentage), options->thread_percentage);
        wish->thread_percentage = limits_tighter_percentage(
            wish->thread_percentage, (uint32_t)(options->thread_percentage * 100 + 0.5));
    }
    if (options->priority > LIMITS_PRIORITY_MAX)
        return failure(MESSAGE(options_priority), options->priority, LIMITS_PRIORITY_MAX);
    wish->priority = limits_tighter_priority(wish->priority, options->priority);
    return GPUSHARE_SUCCESS;
}

static gpushare_error choose_name(struct limits_wish *wish, const char *name)
{
    if (name) {
        if (strlen(name) > LIMITS_NAME_MAX || !limits_name_is_valid(name))
            return failure(MESSAGE(options_name), LIMITS_NAME_MAX);
        snprintf(wish->name, sizeof wish->name, "%s", name);
    } else if (!wish->name_from) {
        /* A program's file name may hold any bytes; without a name the client works as well. */
        if (strlen(program_invocation_short_name) <= LIMITS_NAME_MAX &&
            limits_name_is_valid(program_invocation_short_name))
            snprintf(wish->name, sizeof wish->name, "%s", program_invocation_short_name);
    }
    return GPUSHARE_SUCCESS;
}

static gpushare_error choose_profile(struct limits_wish *wish, const char *profile)
{
    if (!profile)
        return GPUSHARE_SUCCESS;
    if (!*profile || strlen(profile) > LIMITS_NAME_MAX || !limits_name_is_valid(profile))
        return failure(MESSAGE(options_profile), LIMITS_NAME_MAX);
    snprintf(wish->profile, sizeof wish->profile, "%s", profile);
    return GPUSHARE_SUCCESS;
}

static gpushare_error choose_sockets(struct environment *environment, const char *path)
{
    char(*sockets)[LIMITS_SOCKET_MAX + 1] = environment->sockets;
    sockets[0][0] = sockets[1][0] = '\0';
    if (path) {
        if (!*path || strlen(path) > LIMITS_SOCKET_MAX)
            return failure(MESSAGE(options_socket), LIMITS_SOCKET_MAX);
        snprintf(sockets[0], sizeof sockets[0], "%s", path);
        return GPUSHARE_SUCCESS;
    }
    if (environment->wish.socket_from) {
        memcpy(sockets[0], environment->wish.socket, sizeof sockets[0]);
        return GPUSHARE_SUCCESS;
    }
    unsigned n = 0;
    const char *runtime = read_variable("XDG_RUNTIME_DIR", NULL);
    if (runtime && *runtime) {
        int length = snprintf(sockets[0], sizeof sockets[0], "%s/gpushare/gpushare.sock", runtime);
        if (length > 0 && (size_t)length < sizeof sockets[0] && access(sockets[0], F_OK) == 0)
            n = 1;
    }
    memcpy(sockets[n], SYSTEM_SOCKET, sizeof SYSTEM_SOCKET);
    return GPUSHARE_SUCCESS;
}

/* Only `gpushare info` heeds this variable, but a value that can't be understood is refused as any
 * other variable's is. */
static gpushare_error check_warnings(void)
{
    const char *value = read_variable("GPUSHARE_WARNINGS", NULL);
    if (!value || !strcmp(value, "0") || !strcmp(value, "1"))
        return GPUSHARE_SUCCESS;
    return failure(MESSAGE(warnings_variable), value);
}

gpushare_error environment_read(struct environment *environment,
                                const struct gpushare_options *options)
{
    gpushare_error error;
    struct error why;
    if (limits_wish_read(&environment->wish, read_variable, NULL, why.text, sizeof why.text) < 0)
        return failure_text(GPUSHARE_ERROR_INVALID_ENVIRONMENT, why.text);
    environment->device = options->device;
    environment->warn = options->warn;
    environment->warn_context = options->warn_context;
    if ((error = merge_limits(&environment->wish, options)) ||
        (error = merge_memory(environment, options)) ||
        (error = merge_shares(&environment->wish, options)) || (error = check_warnings()) ||
        (error = choose_name(&environment->wish, options->name)) ||
        (error = choose_profile(&environment->wish, options->profile)))
        return error;
    return choose_sockets(environment, options->socket);
}
